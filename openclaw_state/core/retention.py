"""Retention: what is too old or too many, stamped before it is deleted.

Plan and apply select with the same conditions. Work goes oldest first, in transactions of at
most 5,000 rows, so that no lock is held for long (contract, signal-log section 12; design
section 2, points 2 and 6).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import NamedTuple

from ..errors import UsageError
from ..model import Limits
from ..results import Pruned
from .database import Database

HOURLY_MS = 3_600_000
BATCH_ROWS = 5_000
_FIRST_ROWS = 1_000
_LEAST_ROWS = 100
_HOLD_S = 0.04
_PAUSE = 0.1
_BATCHES_A_CHECKPOINT = 8

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
    cutoff = _cutoff(limits, now)
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

    Raises UsageError for negative limits, and BusyError when another writer holds the lock for
    longer than the wait; batches that were committed before stay done.
    """
    cutoff = _cutoff(limits, now)
    touched: set[tuple[str, str]] = set()
    states: list[bool] = []
    # Checkpoints flush the disk: they come between batches, and after several only.
    database.pragma("wal_autocheckpoint = 0")
    try:
        by_age = _in_batches(database, partial(_remove_events, _BY_AGE, cutoff, touched, now))
        with database.reading() as connection:
            bound = _row_bound(connection, limits.max_rows, cutoff)
            heads = _count(connection, "session_state_heads")
        remove_by_rows = partial(_remove_events, _BY_ROWS, bound, touched, now)
        by_rows = _in_batches(database, remove_by_rows) if bound else 0
        expired = _in_batches(database, partial(_remove_cursors, cutoff, states))
    finally:
        database.pragma("wal_autocheckpoint = 1000")
    return Pruned(
        cutoff=cutoff,
        max_rows=limits.max_rows,
        events_by_age=by_age,
        events_by_rows=by_rows,
        sessions=len(touched),
        cursors_expired=expired,
        cursors_pending=sum(states),
        heads_kept=heads,
        applied=True,
    )


def _cutoff(limits: Limits, now: int) -> int:
    if min(limits) < 0:
        raise UsageError("a retention limit cannot be negative")
    return now - limits.max_age_ms


def _in_batches(database: Database, remove: Callable[[sqlite3.Connection, int], int]) -> int:
    """Let `remove` delete at most so many rows a transaction, until it finds fewer; returns the sum.

    The size of a batch follows from the time that the last one took. A writer that waits looks
    for the lock now and then only: the pause lets it find the lock free.
    """
    removed, most = 0, min(_FIRST_ROWS, BATCH_ROWS)
    for number in count(1):
        with database.writing() as connection:
            begun = time.monotonic()
            found = remove(connection, most)
        held = time.monotonic() - begun
        removed += found
        if removed and (found < most or number % _BATCHES_A_CHECKPOINT == 0):
            database.pragma("wal_checkpoint(PASSIVE)")
        if found < most:
            break
        time.sleep(held * _PAUSE)
        most = min(BATCH_ROWS, max(_LEAST_ROWS, int(most * min(2.0, _HOLD_S / held))))
    return removed


def _remove_events(
    doomed: _Doomed,
    bound: int,
    touched: set[tuple[str, str]],
    now: int,
    connection: sqlite3.Connection,
    most: int,
) -> int:
    """Delete the first events, after raising the watermark of every session among them."""
    end = connection.execute(
        f"SELECT {doomed.order} FROM session_state_events WHERE {doomed.condition}"
        f" ORDER BY {doomed.order} LIMIT 1 OFFSET ?",
        (bound, most - 1),
    ).fetchone()
    where, values = (doomed.up_to, end) if end else (doomed.condition, (bound,))
    # The unary plus keeps SQLite from walking the index of all sessions for the sake of the grouping.
    greatest = connection.execute(
        f"SELECT session_key, agent_id, max(sequence) FROM session_state_events WHERE {where}"
        " GROUP BY +session_key, +agent_id",
        values,
    ).fetchall()
    touched.update((key, agent) for key, agent, _ in greatest)
    connection.executemany(
        "UPDATE session_state_heads SET pruned_max_sequence = ?, updated_at = ?"
        " WHERE session_key = ? AND agent_id = ? AND pruned_max_sequence < ?",
        [(mark, now, key, agent, mark) for key, agent, mark in greatest],
    )
    return connection.execute(f"DELETE FROM session_state_events WHERE {where}", values).rowcount


def _remove_cursors(cutoff: int, states: list[bool], connection: sqlite3.Connection, most: int) -> int:
    """Delete expired watches; whether each was pending is added to `states`."""
    rows = connection.execute(
        "SELECT watcher_session_key, target_session_key, material_sequence > last_seen_sequence"
        " FROM session_watch_cursors WHERE updated_at < ? ORDER BY updated_at LIMIT ?",
        (cutoff, most),
    ).fetchall()
    connection.executemany(
        "DELETE FROM session_watch_cursors WHERE watcher_session_key = ? AND target_session_key = ?",
        [row[:2] for row in rows],
    )
    states += [bool(pending) for _, _, pending in rows]
    return len(rows)


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
