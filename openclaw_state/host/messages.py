"""Which transcripts of an agent's store hold a message (contract, sessions section 7.4)."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

from ..core.failures import translated
from .agentrows import open_store, probe_store

_ROLES = frozenset({"user", "assistant", "tool", "toolResult", "system"})


def transcripts(path: str, *, messages: bool = False) -> dict[str, bool | None] | None:
    """Session id -> does its transcript hold a message, for every session that has one at all.

    None for one that compressed rows alone could tell of, and for all unless messages is set. The
    whole is None where the store keeps no transcripts. Raises as `agentrows.open_store`.
    """
    with translated(path), closing(open_store(path)) as connection:
        if not probe_store(connection).has_transcripts:
            return None
        if not messages:
            return {
                row[0]: None
                for row in connection.execute("SELECT DISTINCT session_id FROM transcript_events")
            }
        found: dict[str, bool | None] = {}
        for session_id, text in connection.execute("SELECT session_id, event_json FROM transcript_events"):
            if found.get(session_id) is not True:
                said = None if text is None else _is_message(text)
                known = found.get(session_id, False)
                found[session_id] = said if said else None if None in (said, known) else False
        return found


def _is_message(text: str) -> bool:
    """A row of type `message`, or an older one without type that has a role."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(event, dict):
        return False
    if event.get("type") is not None:
        return bool(event["type"] == "message")
    return _role(event) in _ROLES or _role(event.get("message")) in _ROLES


def _role(value: Any) -> str | None:
    role = value.get("role") if isinstance(value, dict) else None
    return role if isinstance(role, str) else None
