"""Reading watch cursors: the rows, and what the log and the surroundings say about them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..model import NOTIFYING_KINDS, Cursor, CursorReport, Delivery
from .listing import SessionFilter, containing
from .shape import Shape
from .surroundings import Surroundings, delivery


class Raised(NamedTuple):
    """A cursor that a change made material; opened tells that nothing was pending before."""

    cursor: Cursor
    delivery: Delivery
    opened: bool


def _columns(shape: Shape) -> str:
    store = "watcher_store_path" if shape.has_store_path else "NULL AS watcher_store_path"
    return (
        "watcher_session_key, target_session_key, last_seen_sequence, notified_sequence,"
        f" material_sequence, provenance, updated_at, {store}"
    )


def select(
    connection: sqlite3.Connection, shape: Shape, *, watcher: str | None = None, target: str | None = None
) -> list[Cursor]:
    """Cursors of a watcher, on a target, or all; ordered by watcher and target."""
    conditions = [
        (f"{name}_session_key = ?", value) for name, value in (("watcher", watcher), ("target", target))
    ]
    chosen = [(text, value) for text, value in conditions if value is not None]
    where = " WHERE " + " AND ".join(text for text, _ in chosen) if chosen else ""
    rows = connection.execute(
        f"SELECT {_columns(shape)} FROM session_watch_cursors{where}"
        " ORDER BY watcher_session_key, target_session_key",
        [value for _, value in chosen],
    )
    return [Cursor(*row) for row in rows]


class Pending(NamedTuple):
    """Pending cursors, the one that has waited longest first, and how many there are in all."""

    cursors: list[Cursor]
    total: int


def select_pending(
    connection: sqlite3.Connection, shape: Shape, chosen: SessionFilter, *, most: int
) -> Pending:
    """The pending cursors whose watcher or target is among these sessions.

    Cursors carry no agent, so an agent's are those whose target has a head under it.
    """
    parts, values = ["material_sequence > last_seen_sequence"], list[Any]()
    ends = ("watcher_session_key", "target_session_key")
    if chosen.session_keys:
        marks = ", ".join("?" * len(chosen.session_keys))
        parts.append("(" + " OR ".join(f"{end} IN ({marks})" for end in ends) + ")")
        values += chosen.session_keys * 2
    if chosen.containing is not None:
        parts.append("(" + " OR ".join(map(containing, ends)) + ")")
        values += [chosen.containing] * 2
    if chosen.agent_id is not None:
        parts.append(
            "EXISTS (SELECT 1 FROM session_state_heads"
            " WHERE session_key = target_session_key AND agent_id = ?)"
        )
        values.append(chosen.agent_id)
    source = f"FROM session_watch_cursors WHERE {' AND '.join(parts)}"
    rows = connection.execute(
        f"SELECT {_columns(shape)} {source}"
        " ORDER BY notified_sequence, watcher_session_key, target_session_key LIMIT ?",
        (*values, most),
    ).fetchall()
    total = connection.execute(f"SELECT count(*) {source}", values).fetchone()[0]
    return Pending([Cursor(*row) for row in rows], total)


def find(connection: sqlite3.Connection, shape: Shape, watcher: str, target: str) -> Cursor | None:
    found = select(connection, shape, watcher=watcher, target=target)
    return found[0] if found else None


def is_watched(connection: sqlite3.Connection, target: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM session_watch_cursors WHERE target_session_key = ? LIMIT 1", (target,)
    ).fetchone()
    return row is not None


def report(
    connection: sqlite3.Connection,
    shape: Shape,
    surroundings: Surroundings,
    cursors: Iterable[Cursor],
    *,
    max_age_ms: int,
) -> Iterator[CursorReport]:
    """What the log and the surroundings say about each cursor."""
    listed = list(cursors)
    exists = known_sessions(
        connection, surroundings, {key for cursor in listed for key in (cursor.watcher, cursor.target)}
    )
    for cursor in listed:
        answers = (exists[cursor.watcher], exists[cursor.target])
        yield CursorReport(
            cursor=cursor,
            head=newest_version(connection, cursor.target),
            lag=lag(connection, cursor.target, cursor.seen),
            orphaned=True if False in answers else None if None in answers else False,
            delivery=delivery(cursor, shape, surroundings),
            expires_at=cursor.updated_at + max_age_ms,
        )


def newest_version(connection: sqlite3.Connection, session_key: str) -> int:
    """The greatest version of a key over all agents: cursors carry no agent."""
    row = connection.execute(
        "SELECT max(last_sequence) FROM session_state_heads WHERE session_key = ?", (session_key,)
    ).fetchone()
    return row[0] or 0


def lag(connection: sqlite3.Connection, target: str, seen: int) -> int:
    """How many retained events of a session that notify came after a version."""
    marks = ", ".join("?" * len(NOTIFYING_KINDS))
    row = connection.execute(
        "SELECT count(*) FROM session_state_events"
        f" WHERE session_key = ? AND sequence > ? AND kind IN ({marks})",
        (target, seen, *NOTIFYING_KINDS),
    ).fetchone()
    return int(row[0])


def greatest_lag(connection: sqlite3.Connection, target: str) -> int:
    """The lag of the pending watcher of a session that has seen least of it; 0 without one."""
    seen = connection.execute(
        "SELECT min(last_seen_sequence) FROM session_watch_cursors"
        " WHERE target_session_key = ? AND material_sequence > last_seen_sequence",
        (target,),
    ).fetchone()[0]
    return 0 if seen is None else lag(connection, target, seen)


def known_sessions(
    connection: sqlite3.Connection, surroundings: Surroundings, session_keys: Iterable[str]
) -> dict[str, bool | None]:
    """Has each session a head, an event or a session row? None when the stores cannot tell."""
    wanted = set(session_keys)
    logged = connection.execute(
        "SELECT value FROM json_each(?) WHERE"
        " EXISTS (SELECT 1 FROM session_state_heads WHERE session_key = value)"
        " OR EXISTS (SELECT 1 FROM session_state_events WHERE session_key = value)",
        (json.dumps(sorted(wanted)),),
    ).fetchall()
    known: dict[str, bool | None] = {key: True for (key,) in logged}
    return known | surroundings.sessions_exist(wanted - known.keys())
