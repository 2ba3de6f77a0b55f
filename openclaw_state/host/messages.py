"""Which transcripts of an agent's store hold a message (contract, sessions section 7.4)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

from ..core.failures import translated
from .agentrows import open_store, probe_store

# One step through the index for each session, however many rows its transcript has.
_SESSIONS = """
WITH RECURSIVE found(id) AS (
  SELECT min(session_id) FROM transcript_events
  UNION ALL
  SELECT (SELECT min(session_id) FROM transcript_events WHERE session_id > found.id)
  FROM found WHERE found.id IS NOT NULL
)
SELECT id FROM found WHERE id IS NOT NULL
"""
_EVENTS = "SELECT event_json FROM transcript_events WHERE session_id = ? ORDER BY seq"
_ROLES = frozenset({"user", "assistant", "tool", "toolResult", "system"})


def transcripts(path: str, *, messages: bool = False) -> dict[str, bool | None] | None:
    """Session id -> does its transcript hold a message, for every session that has one at all.

    None for one that compressed rows alone could tell of, and for all unless messages is set. The
    whole is None where the store keeps no transcripts. Raises as `agentrows.open_store`.
    """
    with translated(path), closing(open_store(path)) as connection:
        if not probe_store(connection).has_transcripts:
            return None
        found = [row[0] for row in connection.execute(_SESSIONS)]
        return {one: _has_message(connection, one) if messages else None for one in found}


def _has_message(connection: sqlite3.Connection, session_id: str) -> bool | None:
    answer: bool | None = False
    for (text,) in connection.execute(_EVENTS, (session_id,)):
        if text is None:
            answer = None
        elif _is_message(text):
            return True
    return answer


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
