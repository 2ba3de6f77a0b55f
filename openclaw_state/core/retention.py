"""Retention: what is too old or too many, stamped before it is deleted.

Plan and apply select with the same conditions. Work goes oldest first, in transactions of at
most 5,000 rows, so that no lock is held for long (contract, signal-log section 12; design
section 2, points 2 and 6).
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ..model import Limits
from ..results import Pruned
from .database import Database

HOURLY_MS = 3_600_000
BATCH_ROWS = 5_000

_TOO_OLD = "occurred_at < ?"
_TOO_MANY = "sequence <= ?"


class _Doomed(NamedTuple):
    """Which events go, oldest first, and how to name the first of them up to a given one."""

    condition: str
    order: str
    up_to: str


_BY_AGE = _Doomed(_TOO_OLD, "occurred_at, sequence", "(occurred_at, sequence) <= (?, ?)")
_BY_ROWS = _Doomed(_TOO_MANY, "sequence", "sequence <= ?")


def plan(connection: sqlite3.Connection, limits: Limits, *, now: int) -> Pruned:
    """What `apply` would remove now; nothing is written."""
    cutoff = now - limits.max_age_ms
    by_age = _count(connection, f"session_state_events WHERE {_TOO_OLD}", cutoff)
    bound = _row_bound(connection, limits.max_rows, cutoff)
    kept_young = f"session_state_events WHERE {_TOO_MANY} AND NOT {_TOO_OLD}"
    sessions = connection.execute(
        "SELECT count(*) FROM (SELECT DISTINCT session_key, agent_id FROM session_state_events"
        f" WHERE {_TOO_OLD} OR {_TOO_MANY})",
        (cutoff, bound),
    ).fetchone()[0]
    return Pruned(
        cutoff=cutoff,
        max_rows=limits.max_rows,
        events_by_age=by_age,
        events_by_rows=_count(connection, kept_young, bound, cutoff),
        sessions=sessions,
        cursors_expired=_count(connection, "session_watch_cursors WHERE updated_at < ?", cutoff),
        cursors_pending=_count(
            connection,
            "session_watch_cursors WHERE updated_at < ? AND material_sequence > last_seen_sequence",
            cutoff,
        ),
        heads_kept=_count(connection, "session_state_heads"),
        applied=False,
    )


def apply(database: Database, limits: Limits, *, now: int) -> Pruned:
    """Remove what is past the limits, batch by batch, and say what was removed.

    Raises BusyError when another writer holds the lock for longer than the wait; batches that
    were committed before stay done.
    """
    cutoff = now - limits.max_age_ms
    touched: set[tuple[str, str]] = set()
    by_age = _remove(database, _BY_AGE, cutoff, now, touched)
    with database.reading() as connection:
        bound = _row_bound(connection, limits.max_rows, cutoff)
    by_rows = _remove(database, _BY_ROWS, bound, now, touched) if bound else 0
    with database.writing() as connection:
        expired = "session_watch_cursors WHERE updated_at < ?"
        pending = _count(connection, f"{expired} AND material_sequence > last_seen_sequence", cutoff)
        removed = connection.execute(f"DELETE FROM {expired}", (cutoff,)).rowcount
        heads = _count(connection, "session_state_heads")
    return Pruned(
        cutoff=cutoff,
        max_rows=limits.max_rows,
        events_by_age=by_age,
        events_by_rows=by_rows,
        sessions=len(touched),
        cursors_expired=removed,
        cursors_pending=pending,
        heads_kept=heads,
        applied=True,
    )


def _remove(database: Database, doomed: _Doomed, bound: int, now: int, touched: set[tuple[str, str]]) -> int:
    removed = 0
    while True:
        with database.writing() as connection:
            rows = connection.execute(
                "SELECT session_key, agent_id, sequence, occurred_at FROM session_state_events"
                f" WHERE {doomed.condition} ORDER BY {doomed.order} LIMIT {BATCH_ROWS}",
                (bound,),
            ).fetchall()
            if rows:
                touched |= _stamp(connection, rows, now)
                last = {"sequence": rows[-1][2], "occurred_at": rows[-1][3]}
                connection.execute(
                    f"DELETE FROM session_state_events WHERE {doomed.condition} AND {doomed.up_to}",
                    (bound, *(last[name] for name in doomed.order.split(", "))),
                )
        removed += len(rows)
        if len(rows) < BATCH_ROWS:
            return removed


def _stamp(
    connection: sqlite3.Connection, rows: list[tuple[str, str, int, int]], now: int
) -> set[tuple[str, str]]:
    """Raise the watermark of every session in the batch, before its events go."""
    greatest: dict[tuple[str, str], int] = {}
    for key, agent, sequence, _ in rows:
        greatest[key, agent] = max(sequence, greatest.get((key, agent), 0))
    connection.executemany(
        "UPDATE session_state_heads SET pruned_max_sequence = ?, updated_at = ?"
        " WHERE session_key = ? AND agent_id = ? AND pruned_max_sequence < ?",
        [(mark, now, key, agent, mark) for (key, agent), mark in greatest.items()],
    )
    return set(greatest)


def _row_bound(connection: sqlite3.Connection, max_rows: int, cutoff: int) -> int:
    """The newest sequence that is one too many once the old rows are gone; 0 when none is."""
    row = connection.execute(
        f"SELECT sequence FROM session_state_events WHERE NOT {_TOO_OLD}"
        " ORDER BY sequence DESC LIMIT 1 OFFSET ?",
        (cutoff, max_rows),
    ).fetchone()
    return row[0] if row else 0


def _count(connection: sqlite3.Connection, rest: str, *values: int) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {rest}", values).fetchone()[0])
