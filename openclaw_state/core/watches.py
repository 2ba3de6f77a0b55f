"""Watch cursors: seed, the frozen watermark, acknowledge, registration, ambient watches.

Every rule about a row of session_watch_cursors is here (contract, signal-log sections 6.5
to 6.7, 7, 9, 10 and, for files without watcher_store_path, 17).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..model import NOTIFYING_KINDS, Acknowledged, Cursor, CursorReport, Delivery, Watched
from . import keys
from .database import Shape
from .surroundings import Surroundings, delivery

_MAIN_KEY_SINCE = 15


@dataclass(frozen=True, slots=True)
class Raised:
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


def find(connection: sqlite3.Connection, shape: Shape, watcher: str, target: str) -> Cursor | None:
    found = select(connection, shape, watcher=watcher, target=target)
    return found[0] if found else None


def is_watched(connection: sqlite3.Connection, target: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM session_watch_cursors WHERE target_session_key = ? LIMIT 1", (target,)
    ).fetchone()
    return row is not None


def known_store_paths(
    connection: sqlite3.Connection, shape: Shape, surroundings: Surroundings, watchers: Iterable[str]
) -> dict[str, str | None]:
    """The path to store with each new cursor: computed, else copied from a newer one of the watcher."""
    if not shape.has_store_path:
        return dict.fromkeys(watchers)
    paths = {watcher: surroundings.store_path(watcher) for watcher in watchers}
    if missing := [watcher for watcher, path in paths.items() if path is None]:
        paths |= connection.execute(
            "SELECT watcher_session_key, watcher_store_path FROM session_watch_cursors"
            " WHERE watcher_store_path IS NOT NULL"
            " AND watcher_session_key IN (SELECT value FROM json_each(?)) ORDER BY updated_at",
            (json.dumps(missing),),
        )
    return paths


def seed(connection: sqlite3.Connection, shape: Shape, cursors: Sequence[Cursor]) -> None:
    """Write cursors as they are, over whatever stood there.

    Files without a store column belong to releases that kept the provenance of an
    overwritten cursor (contract section 17).
    """
    if not cursors:
        return
    rows = json.dumps(
        [
            [c.watcher, c.target, c.seen, c.notified, c.material, c.provenance, c.updated_at, c.store_path]
            for c in cursors
        ]
    )
    names = [
        "watcher_session_key",
        "target_session_key",
        "last_seen_sequence",
        "notified_sequence",
        "material_sequence",
        "provenance",
        "updated_at",
    ]
    kept = {"watcher_session_key", "target_session_key"}
    if shape.has_store_path:
        names.append("watcher_store_path")
    else:
        kept.add("provenance")
    values = ", ".join(f"json_extract(value, '$[{index}]')" for index in range(len(names)))
    updates = ", ".join(f"{name} = excluded.{name}" for name in names if name not in kept)
    connection.execute(
        f"INSERT INTO session_watch_cursors ({', '.join(names)}) SELECT {values} FROM json_each(?) WHERE true"
        f" ON CONFLICT (watcher_session_key, target_session_key) DO UPDATE SET {updates}",
        (rows,),
    )


def named_watchers(watchers: Iterable[str]) -> list[str]:
    """The watcher keys given with an event: unique, without empty and bare ones, order kept."""
    return [key for key in dict.fromkeys(watchers) if key and keys.is_agent_qualified(key)]


def seed_spawn(
    connection: sqlite3.Connection,
    shape: Shape,
    surroundings: Surroundings,
    *,
    target: str,
    sequence: int,
    watchers: Iterable[str],
    now: int,
) -> None:
    """A spawn starts its named watchers at its own sequence (contract section 6, step 6)."""
    stores = known_store_paths(connection, shape, surroundings, watchers)
    seed(
        connection,
        shape,
        [
            Cursor(watcher, target, sequence, sequence, sequence, "explicit", now, store)
            for watcher, store in stores.items()
        ],
    )


def freeze(
    connection: sqlite3.Connection,
    shape: Shape,
    surroundings: Surroundings,
    *,
    target: str,
    sequence: int,
    actor_id: str | None,
    watchers: Sequence[str],
    now: int,
) -> list[Raised]:
    """The frozen watermark step for every watcher of a notifying event (contract section 7).

    Four statements at most, whatever the number of watchers.
    """
    registered = {cursor.watcher: cursor for cursor in select(connection, shape, target=target)}
    told = [
        watcher
        for watcher in dict.fromkeys([*watchers, *registered])
        if watcher != actor_id and keys.is_agent_qualified(watcher)
    ]
    new = [watcher for watcher in told if watcher not in registered]
    stores = known_store_paths(connection, shape, surroundings, new) if new else {}
    seed(
        connection,
        shape,
        [Cursor(watcher, target, 0, sequence, sequence, "explicit", now, stores[watcher]) for watcher in new],
    )
    raised: list[Raised] = []
    moved = 0
    kept = set(registered) - set(told)
    for watcher in told:
        stored = registered.get(watcher) or Cursor(watcher, target, 0, 0, 0, "explicit", now, stores[watcher])
        reach = delivery(stored, shape, surroundings)
        if watcher in registered and watcher in watchers and reach.ok is False:
            kept.add(watcher)
            raised.append(Raised(stored, reach, opened=False))
            continue
        idle = stored.notified == stored.seen
        cursor = replace(
            stored, notified=sequence if idle else stored.notified, material=sequence, updated_at=now
        )
        raised.append(Raised(cursor, reach, opened=idle))
        moved += watcher in registered
    if moved:
        connection.execute(
            "UPDATE session_watch_cursors SET notified_sequence ="
            " CASE WHEN notified_sequence = last_seen_sequence THEN ? ELSE notified_sequence END,"
            " material_sequence = ?, updated_at = ?"
            " WHERE target_session_key = ? AND watcher_session_key NOT IN (SELECT value FROM json_each(?))",
            (sequence, sequence, now, target, json.dumps([*kept, *new])),
        )
    return raised


def acknowledge(
    connection: sqlite3.Connection,
    shape: Shape,
    surroundings: Surroundings,
    *,
    watcher: str,
    targets: Iterable[str],
    now: int,
) -> Acknowledged:
    """Move seen to notified and notified to material, where the store path is current (section 9).

    Unknown pairs are ignored. `reopened` is filled by the caller from the cursors returned.
    """
    wanted = set(targets)
    moved: list[Cursor] = []
    skipped: list[tuple[Cursor, Delivery]] = []
    for cursor in select(connection, shape, watcher=watcher):
        if cursor.target not in wanted:
            continue
        reach = delivery(cursor, shape, surroundings)
        if reach.ok is False:
            skipped.append((cursor, reach))
        else:
            moved.append(cursor)
    if moved:
        connection.execute(
            "UPDATE session_watch_cursors SET last_seen_sequence = notified_sequence,"
            " notified_sequence = max(notified_sequence, material_sequence), updated_at = ?"
            " WHERE watcher_session_key = ? AND target_session_key IN (SELECT value FROM json_each(?))",
            (now, watcher, json.dumps([cursor.target for cursor in moved])),
        )
    return Acknowledged(tuple(moved), (), tuple(skipped))


def acknowledged(cursor: Cursor, now: int) -> Cursor:
    """What `acknowledge` made of a cursor."""
    return replace(
        cursor, seen=cursor.notified, notified=max(cursor.notified, cursor.material), updated_at=now
    )


def register(
    connection: sqlite3.Connection,
    shape: Shape,
    surroundings: Surroundings,
    *,
    watcher: str,
    target: str,
    agent_id: str | None,
    store_path: str | None,
    now: int,
) -> Watched:
    """Register an explicit watch from the target's current version (contract section 10)."""
    if refusal := _refusal(watcher, target):
        return Watched(False, False, None, refusal)
    agent = agent_id or keys.agent_of(target)
    if agent is None:
        return Watched(False, False, None, "a bare target key needs its agent named")
    return _start(
        connection,
        shape,
        Cursor(
            watcher,
            target,
            0,
            0,
            0,
            "explicit",
            now,
            store_path or known_store_paths(connection, shape, surroundings, [watcher])[watcher],
        ),
        agent,
    )


def register_ambient(
    connection: sqlite3.Connection,
    shape: Shape,
    surroundings: Surroundings,
    *,
    session_key: str,
    agent_id: str,
    main_key: str | None,
    entry: Mapping[str, Any],
    dm_scope: str,
    now: int,
) -> Watched:
    """The agent's main session watches its group sessions, queue-only (contract section 10)."""
    own_main_key = main_key if shape.version >= _MAIN_KEY_SINCE or shape.has_store_path else None
    watcher = f"agent:{keys.normalize_agent_id(agent_id)}:{keys.normalize_main_key(own_main_key)}"
    if refusal := _ambient_refusal(session_key, entry) or _refusal(watcher, session_key):
        return Watched(False, False, None, refusal)
    existing = find(connection, shape, watcher, session_key)
    if dm_scope != "main" and not shape.has_store_path and shape.version < _MAIN_KEY_SINCE:
        if existing and existing.ambient:
            remove(connection, watcher, session_key)
        return Watched(False, False, None, "this release watches groups only under dmScope main")
    store = known_store_paths(connection, shape, surroundings, [watcher])[watcher]
    return _start(
        connection, shape, Cursor(watcher, session_key, 0, 0, 0, "ambient-group", now, store), agent_id
    )


def _start(connection: sqlite3.Connection, shape: Shape, wanted: Cursor, agent_id: str) -> Watched:
    existing = find(connection, shape, wanted.watcher, wanted.target)
    if existing and (not shape.has_store_path or existing.store_path == wanted.store_path):
        if existing.ambient and not wanted.ambient:
            connection.execute(
                "UPDATE session_watch_cursors SET provenance = 'explicit'"
                " WHERE watcher_session_key = ? AND target_session_key = ?",
                (wanted.watcher, wanted.target),
            )
            existing = replace(existing, provenance="explicit")
        return Watched(True, False, existing)
    row = connection.execute(
        "SELECT last_sequence FROM session_state_heads WHERE session_key = ? AND agent_id = ?",
        (wanted.target, agent_id),
    ).fetchone()
    head = row[0] if row else 0
    cursor = replace(wanted, seen=head, notified=head, material=head)
    seed(connection, shape, [cursor])
    return Watched(True, True, cursor)


def _refusal(watcher: str, target: str) -> str | None:
    if not keys.is_agent_qualified(watcher):
        return "a watcher needs an agent-qualified key (agent:<id>:<rest>)"
    if watcher == target:
        return "a session cannot watch itself"
    return None


def _ambient_refusal(session_key: str, entry: Mapping[str, Any]) -> str | None:
    parsed = keys.parse(session_key)
    folded = keys.fold(session_key)
    rest = parsed[1] if parsed else folded
    grouped = entry.get("chatType") in ("group", "channel") or ":group:" in folded or ":channel:" in folded
    if (
        session_key in ("global", "unknown")
        or rest.startswith("cron:")
        or entry.get("spawnedBy")
        or not grouped
    ):
        return "not a group session"
    return None


def remove(connection: sqlite3.Connection, watcher: str, target: str | None = None) -> int:
    """Delete one watch, or all of a watcher (its reset: contract section 14); returns how many."""
    if target is None:
        return connection.execute(
            "DELETE FROM session_watch_cursors WHERE watcher_session_key = ?", (watcher,)
        ).rowcount
    return connection.execute(
        "DELETE FROM session_watch_cursors WHERE watcher_session_key = ? AND target_session_key = ?",
        (watcher, target),
    ).rowcount


def remove_unchanged(connection: sqlite3.Connection, cursor: Cursor, *, unless_pending: bool) -> int:
    """Delete a watch unless it was touched since it was read, or is pending where that protects it."""
    guard = " AND material_sequence <= last_seen_sequence" if unless_pending else ""
    return connection.execute(
        "DELETE FROM session_watch_cursors WHERE watcher_session_key = ? AND target_session_key = ?"
        f" AND updated_at = ?{guard}",
        (cursor.watcher, cursor.target, cursor.updated_at),
    ).rowcount


def rearm(
    connection: sqlite3.Connection, shape: Shape, surroundings: Surroundings, *, now: int
) -> tuple[list[Raised], list[tuple[Cursor, str]]]:
    """The start-up sweep: notified catches up with material where the watcher exists (section 11)."""
    raised: list[Raised] = []
    skipped: list[tuple[Cursor, str]] = []
    pending = [cursor for cursor in select(connection, shape) if cursor.pending]
    possible = {cursor.watcher for cursor in pending if keys.is_agent_qualified(cursor.watcher)}
    exists = surroundings.sessions_exist(possible)
    for cursor in pending:
        if not (known := exists.get(cursor.watcher, False)):
            skipped.append((cursor, "no such session" if known is False else "session stores unknown"))
            continue
        connection.execute(
            "UPDATE session_watch_cursors SET notified_sequence = material_sequence, updated_at = ?"
            " WHERE watcher_session_key = ? AND target_session_key = ?",
            (now, cursor.watcher, cursor.target),
        )
        swept = replace(cursor, notified=cursor.material, updated_at=now)
        raised.append(Raised(swept, delivery(swept, shape, surroundings), opened=False))
    return raised, skipped


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
            lag=_lag(connection, cursor),
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


def _lag(connection: sqlite3.Connection, cursor: Cursor) -> int:
    marks = ", ".join("?" * len(NOTIFYING_KINDS))
    row = connection.execute(
        "SELECT count(*) FROM session_state_events"
        f" WHERE session_key = ? AND sequence > ? AND kind IN ({marks})",
        (cursor.target, cursor.seen, *NOTIFYING_KINDS),
    ).fetchone()
    return int(row[0])


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
