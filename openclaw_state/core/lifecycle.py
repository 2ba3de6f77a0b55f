"""Reset and delete: what goes with a session (contract, signal-log section 14)."""

from __future__ import annotations

import sqlite3

from ..results import Forgotten

_OWN = {
    "events": "session_state_events WHERE session_key = ? AND agent_id = ?",
    "heads": "session_state_heads WHERE session_key = ? AND agent_id = ?",
    "links": "session_upstream_links WHERE session_key = ? AND agent_id = ?",
}
_CURSORS = "session_watch_cursors WHERE watcher_session_key = ? OR target_session_key = ?"


def plan_forget(connection: sqlite3.Connection, session_key: str, agent_id: str) -> Forgotten:
    """What `forget` would remove."""
    counts = {
        name: connection.execute(f"SELECT count(*) FROM {rest}", (session_key, agent_id)).fetchone()[0]
        for name, rest in _OWN.items()
    }
    cursors = connection.execute(f"SELECT count(*) FROM {_CURSORS}", (session_key, session_key)).fetchone()[0]
    return Forgotten(session_key, agent_id, **counts, cursors=cursors, applied=False)


def forget(connection: sqlite3.Connection, session_key: str, agent_id: str) -> Forgotten:
    """Delete a session's link, events and head, and every watch by or on its key under any agent.

    The watermark goes too; sequences never restart.
    """
    counts = {
        name: connection.execute(f"DELETE FROM {rest}", (session_key, agent_id)).rowcount
        for name, rest in _OWN.items()
    }
    cursors = connection.execute(f"DELETE FROM {_CURSORS}", (session_key, session_key)).rowcount
    return Forgotten(session_key, agent_id, **counts, cursors=cursors, applied=True)
