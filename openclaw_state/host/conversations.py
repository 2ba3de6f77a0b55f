"""Who wrote direct messages to each session of an agent's store."""

from __future__ import annotations

from contextlib import closing

from ..core.failures import translated
from .agentrows import open_store

_NEEDED = {
    "session_windows": ("session_id", "session_key"),
    "session_conversations": ("session_id", "conversation_id"),
    "conversations": ("conversation_id", "channel", "account_id", "kind", "peer_id"),
}


def direct_senders(path: str) -> dict[str, list[tuple[str, str, str]]]:
    """Session key -> (channel, account, peer) of its direct conversations, those of older windows too.

    Empty for a release that keeps none. Raises as `open_store`.
    """
    with translated(path), closing(open_store(path)) as connection:
        for table, columns in _NEEDED.items():
            found = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
            if not {name for (name,) in found} >= set(columns):
                return {}
        senders: dict[str, list[tuple[str, str, str]]] = {}
        for key, channel, account, peer in connection.execute(
            "SELECT DISTINCT w.session_key, c.channel, c.account_id, c.peer_id FROM session_windows AS w"
            " JOIN session_conversations AS s ON s.session_id = w.session_id"
            " JOIN conversations AS c ON c.conversation_id = s.conversation_id"
            " WHERE c.kind = 'direct' ORDER BY w.session_key, c.channel, c.peer_id"
        ):
            senders.setdefault(key, []).append((channel, account, peer))
        return senders
