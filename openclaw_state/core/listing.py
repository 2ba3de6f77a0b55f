"""Long readings of the log, in batches: events by filter, and sessions by latest change."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from ..model import Event, SessionRow
from ..timespec import SAFE_MAX
from . import changes
from .schema import EVENT_COLUMNS

BATCH_ROWS = 500

Reading = Callable[[], AbstractContextManager[sqlite3.Connection]]


def containing(column: str) -> str:
    """The SQL condition that a column contains a text, in any case."""
    return f"instr(lower({column}), lower(?)) > 0"


# There are fewer heads than events, so it is their keys that are searched.
_IN_CONTAINING = (
    f"session_key IN (SELECT session_key FROM session_state_heads WHERE {containing('session_key')})"
)


class EventFilter(NamedTuple):
    """Which events to list; empty means all.

    actors are `type` or `type:id`; after and through are sequences (exclusive, inclusive);
    later_than and until are epoch ms (exclusive, inclusive); containing is a part of the
    session's key, in any case.
    """

    session_keys: tuple[str, ...] = ()
    agent_id: str | None = None
    kinds: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    run_id: str | None = None
    after: int | None = None
    through: int | None = None
    later_than: int | None = None
    until: int | None = None
    containing: str | None = None

    def where(self) -> tuple[str, list[Any]]:
        """The SQL condition and its values, for all but the bounds of the sequence."""
        parts: list[str] = []
        values: list[Any] = []
        for column, accepted in (("session_key", self.session_keys), ("kind", self.kinds)):
            if accepted:
                parts.append(f"{column} IN ({', '.join('?' * len(accepted))})")
                values += accepted
        if self.actors:
            pairs = [actor.partition(":") for actor in self.actors]
            parts.append(
                "("
                + " OR ".join("actor_type = ?" + " AND actor_id = ?" * bool(colon) for _, colon, _ in pairs)
                + ")"
            )
            values += [text for kind, colon, actor in pairs for text in ((kind, actor) if colon else (kind,))]
        for test, value in (
            ("agent_id = ?", self.agent_id),
            ("run_id = ?", self.run_id),
            ("occurred_at > ?", self.later_than),
            ("occurred_at <= ?", self.until),
            (_IN_CONTAINING, self.containing),
        ):
            if value is not None:
                parts.append(test)
                values.append(value)
        return " AND ".join(parts) or "true", values


def events(reading: Reading, chosen: EventFilter, *, newest: int | None = None) -> Iterator[Event]:
    """Events in order of sequence; `newest` keeps only that many from the end.

    The upper bound is the log's newest sequence at the start. Each batch is one read
    transaction; none is held while the caller works.
    """
    # One bound on each side: of several, SQLite would walk the index from the first.
    after = -1 if chosen.after is None else chosen.after
    with reading() as connection:
        end = changes.newest_sequence(connection)
        if chosen.through is not None:
            end = min(end, chosen.through)
        if newest is not None:
            after = max(after, before_newest(connection, chosen, end, newest))
    while True:
        with reading() as connection:
            batch = events_between(connection, chosen, after, end)
        yield from batch
        if len(batch) < BATCH_ROWS:
            return
        after = batch[-1].sequence


def events_between(
    connection: sqlite3.Connection, chosen: EventFilter, after: int, through: int
) -> tuple[Event, ...]:
    """At most 500 events that match, after one sequence and up to another, in order."""
    where, values = chosen.where()
    rows = connection.execute(
        f"SELECT {EVENT_COLUMNS} FROM session_state_events WHERE {where}"
        f" AND sequence > ? AND sequence <= ? ORDER BY sequence LIMIT {BATCH_ROWS}",
        (*values, after, through),
    )
    return tuple(Event(*row) for row in rows)


def before_newest(connection: sqlite3.Connection, chosen: EventFilter, through: int, count: int) -> int:
    """The sequence after which `count` matching events remain up to another; -1 for the very first."""
    if count == 0:
        return through
    where, values = chosen.where()
    row = connection.execute(
        f"SELECT sequence FROM session_state_events WHERE {where} AND sequence <= ?"
        " ORDER BY sequence DESC LIMIT 1 OFFSET ?",
        (*values, through, count - 1),
    ).fetchone()
    return row[0] - 1 if row else -1


_SESSIONS = """
    SELECT h.session_key, h.agent_id, h.last_sequence, h.pruned_max_sequence, h.updated_at,
      (SELECT count(*) FROM session_state_events e
        WHERE e.session_key = h.session_key AND e.agent_id = h.agent_id),
      (SELECT min(e.sequence) FROM session_state_events e
        WHERE e.session_key = h.session_key AND e.agent_id = h.agent_id),
      (SELECT count(*) FROM session_watch_cursors c WHERE c.target_session_key = h.session_key),
      (SELECT count(*) FROM session_watch_cursors c WHERE c.target_session_key = h.session_key
        AND c.material_sequence > c.last_seen_sequence)
    FROM (SELECT session_key, agent_id, last_sequence, pruned_max_sequence, updated_at
            FROM session_state_heads WHERE {where} AND last_sequence < ?
            ORDER BY last_sequence DESC LIMIT ?) h
    ORDER BY h.last_sequence DESC
"""


class SessionFilter(NamedTuple):
    """Which sessions to list; empty means all, containing is a part of the key in any case."""

    agent_id: str | None = None
    session_keys: tuple[str, ...] = ()
    containing: str | None = None

    def where(self) -> tuple[str, list[Any]]:
        """The SQL condition on heads, and its values."""
        return EventFilter(
            session_keys=self.session_keys, agent_id=self.agent_id, containing=self.containing
        ).where()


def sessions(
    reading: Reading, chosen: SessionFilter | None = None, *, most: int | None = None
) -> Iterator[SessionRow]:
    """Sessions with a head, the latest change first."""
    where, values = (chosen or SessionFilter()).where()
    before, left = SAFE_MAX, most
    while left is None or left > 0:
        size = BATCH_ROWS if left is None else min(left, BATCH_ROWS)
        with reading() as connection:
            rows = connection.execute(_SESSIONS.format(where=where), (*values, before, size)).fetchall()
            batch = [_session(connection, row) for row in rows]
        yield from batch
        if len(batch) < size:
            return
        before = batch[-1].version
        left = None if left is None else left - len(batch)


def _session(connection: sqlite3.Connection, row: tuple[Any, ...]) -> SessionRow:
    key, agent, version, watermark, updated_at, count, oldest, watchers, pending = row
    last = connection.execute(
        f"SELECT {EVENT_COLUMNS} FROM session_state_events WHERE sequence = ? AND session_key = ?",
        (version, key),
    ).fetchone()
    return SessionRow(
        key,
        agent,
        version,
        watermark,
        count,
        oldest,
        watchers,
        pending,
        Event(*last) if last else None,
        updated_at,
    )


def count_sessions(connection: sqlite3.Connection, chosen: SessionFilter | None = None) -> int:
    """How many sessions have a head."""
    where, values = (chosen or SessionFilter()).where()
    row = connection.execute(f"SELECT count(*) FROM session_state_heads WHERE {where}", values).fetchone()
    return int(row[0])


def is_named(connection: sqlite3.Connection, session_key: str) -> bool:
    """Has exactly this key a head, an event, a cursor or a link?"""
    tests = (
        "session_state_heads WHERE session_key = ?1",
        "session_state_events WHERE session_key = ?1",
        "session_watch_cursors WHERE watcher_session_key = ?1 OR target_session_key = ?1",
        "session_upstream_links WHERE session_key = ?1",
    )
    either = " OR ".join(f"EXISTS (SELECT 1 FROM {test})" for test in tests)
    return bool(connection.execute(f"SELECT {either}", (session_key,)).fetchone()[0])


def known_keys(connection: sqlite3.Connection) -> list[str]:
    """Every key that a head, a cursor or a link names."""
    rows = connection.execute(
        "SELECT session_key FROM session_state_heads"
        " UNION SELECT watcher_session_key FROM session_watch_cursors"
        " UNION SELECT target_session_key FROM session_watch_cursors"
        " UNION SELECT session_key FROM session_upstream_links"
    )
    return [key for (key,) in rows]


class Standing(NamedTuple):
    """What the log knows of every session at once: versions by key and agent, watches by key."""

    versions: dict[tuple[str, str], int]
    watchers: dict[str, tuple[int, int]]

    def of(self, session_key: str, agent_id: str) -> tuple[int, int, int]:
        """(state version, watchers, pending notices) of one session."""
        return (
            self.versions.get((session_key, agent_id), 0),
            *self.watchers.get(session_key, (0, 0)),
        )


def standing(connection: sqlite3.Connection) -> Standing:
    """Every head and every watched session, in two passes."""
    heads = connection.execute("SELECT session_key, agent_id, last_sequence FROM session_state_heads")
    watched = connection.execute(
        "SELECT target_session_key, count(*), sum(material_sequence > last_seen_sequence)"
        " FROM session_watch_cursors GROUP BY target_session_key"
    )
    return Standing(
        {(key, agent): version for key, agent, version in heads},
        {key: (watchers, pending) for key, watchers, pending in watched},
    )
