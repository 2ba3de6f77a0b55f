"""State versions and changesSince: the exact delta, truncation and the history gap.

Reading advances nothing (contract, signal-log section 13).
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable
from typing import Any

from ..errors import UsageError
from ..model import Changes, Event, Head
from ..timespec import SAFE_MAX
from .javascript import trim
from .schema import EVENT_COLUMNS

MAX_CHANGES = 200


def read_changes(
    connection: sqlite3.Connection,
    session_key: str,
    agent_id: str,
    since: float,
    limit: float = MAX_CHANGES,
) -> Changes:
    """Up to `limit` events of exactly this session and agent after `since`, oldest first.

    limit is floored and held to 1..200; history_gap is since below the watermark.
    Raises UsageError when since or limit is NaN.
    """
    if math.isnan(limit) or math.isnan(since):
        raise UsageError("since and limit must be numbers")
    most = MAX_CHANGES if limit > MAX_CHANGES else max(1, math.floor(max(limit, 1)))
    rows = connection.execute(
        f"SELECT {EVENT_COLUMNS} FROM session_state_events"
        " WHERE session_key = ? AND agent_id = ? AND sequence > ? ORDER BY sequence LIMIT ?",
        (session_key, agent_id, since, most + 1),
    ).fetchall()
    head = read_head(connection, session_key, agent_id)
    return Changes(
        events=tuple(Event(*row) for row in rows[:most]),
        truncated=len(rows) > most,
        earliest_available=_earliest(connection, session_key, agent_id, head),
        history_gap=head is not None and since < head.watermark,
    )


def _earliest(connection: sqlite3.Connection, session_key: str, agent_id: str, head: Head | None) -> int:
    oldest = oldest_sequence(connection, session_key, agent_id)
    if oldest is not None:
        return oldest
    return head.version + 1 if head else 0


def oldest_sequence(connection: sqlite3.Connection, session_key: str, agent_id: str) -> int | None:
    """The smallest retained sequence of a session, None when nothing is retained."""
    row = connection.execute(
        "SELECT sequence FROM session_state_events WHERE session_key = ? AND agent_id = ?"
        " ORDER BY sequence LIMIT 1",
        (session_key, agent_id),
    ).fetchone()
    return row[0] if row else None


_HEAD = (
    "SELECT session_key, agent_id, last_sequence, pruned_max_sequence, updated_at FROM session_state_heads"
)


def read_head(connection: sqlite3.Connection, session_key: str, agent_id: str) -> Head | None:
    """The head of one session under one agent."""
    row = connection.execute(
        f"{_HEAD} WHERE session_key = ? AND agent_id = ?", (session_key, agent_id)
    ).fetchone()
    return Head(*row) if row else None


def read_heads(connection: sqlite3.Connection, session_key: str) -> list[Head]:
    """The heads of a key under every agent, by agent."""
    return [
        Head(*row)
        for row in connection.execute(f"{_HEAD} WHERE session_key = ? ORDER BY agent_id", (session_key,))
    ]


def version(connection: sqlite3.Connection, session_key: str, agent_id: str) -> int:
    """The state version: the head's sequence, or 0."""
    head = read_head(connection, session_key, agent_id)
    return head.version if head else 0


def versions(connection: sqlite3.Connection, session_keys: Iterable[str]) -> dict[str, dict[str, int]]:
    """agent -> session -> version for every head whose key is listed, whatever its agent."""
    found: dict[str, dict[str, int]] = {}
    for key in dict.fromkeys(filter(None, session_keys)):
        for head in read_heads(connection, key):
            found.setdefault(head.agent_id, {})[key] = head.version
    return found


def newest_sequence(connection: sqlite3.Connection) -> int:
    """The newest sequence that the log ever gave out, 0 when it is new."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'session_state_events'").fetchone()
    return row[0] if row else 0


def version_at(connection: sqlite3.Connection, session_key: str, agent_id: str, instant: int) -> int:
    """The greatest retained sequence of a session before an instant (epoch ms), else its watermark."""
    row = connection.execute(
        "SELECT max(sequence) FROM session_state_events"
        " WHERE session_key = ? AND agent_id = ? AND occurred_at < ?",
        (session_key, agent_id, instant),
    ).fetchone()
    if row[0] is not None:
        return int(row[0])
    head = read_head(connection, session_key, agent_id)
    return head.watermark if head else 0


def parse_since(value: Any) -> int | None:
    """changesSince as `session_status` reads it: a non-negative safe integer, or text that equals one.

    Blank text and None mean absent. Raises UsageError for anything else.
    """
    if isinstance(value, str):
        value = _number(trim(value))
    if value is None:
        return None
    is_finite = isinstance(value, int | float) and not isinstance(value, bool)
    if is_finite and 0 <= value <= SAFE_MAX and value == int(value):
        return int(value)
    raise UsageError("changesSince must be a non-negative integer")


def _number(text: str) -> float | None:
    if not text:
        return None
    if not text.isascii() or text[-1] not in "0123456789." or "_" in text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan
