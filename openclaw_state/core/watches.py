"""Watch cursors: seed, the frozen watermark, acknowledge, registration, ambient watches.

Every rule about a row of session_watch_cursors is here (contract, signal-log sections 6.5
to 6.7, 7, 9, 10 and, for files without watcher_store_path, 17).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..model import Cursor, Delivery
from ..results import Acknowledged, Watched
from . import keys
from .cursors import Raised, find, select
from .shape import Shape
from .surroundings import Surroundings, delivery

_MAIN_KEY_SINCE = 15


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
    named = set(watchers)
    kept = set(registered) - set(told)
    for watcher in told:
        stored = registered.get(watcher) or Cursor(watcher, target, 0, 0, 0, "explicit", now, stores[watcher])
        reach = delivery(stored, shape, surroundings)
        if watcher in registered and watcher in named and reach.ok is False:
            kept.add(watcher)
            raised.append(Raised(stored, reach, opened=False))
            continue
        idle = stored.notified == stored.seen
        cursor = stored._replace(
            notified=sequence if idle else stored.notified, material=sequence, updated_at=now
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
    return cursor._replace(
        seen=cursor.notified, notified=max(cursor.notified, cursor.material), updated_at=now
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
    if rule := refusal(watcher, target, agent_id):
        return Watched(False, False, None, rule)
    agent = agent_id or keys.agent_of(target) or ""
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
    watcher = keys.qualify(keys.normalize_agent_id(agent_id), keys.normalize_main_key(own_main_key))
    if keys.list_kind(session_key, entry) != "group":
        return Watched(False, False, None, "not a group session")
    if rule := refusal(watcher, session_key, agent_id):
        return Watched(False, False, None, rule)
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
            existing = existing._replace(provenance="explicit")
        return Watched(True, False, existing)
    row = connection.execute(
        "SELECT last_sequence FROM session_state_heads WHERE session_key = ? AND agent_id = ?",
        (wanted.target, agent_id),
    ).fetchone()
    head = row[0] if row else 0
    cursor = wanted._replace(seen=head, notified=head, material=head)
    seed(connection, shape, [cursor])
    return Watched(True, True, cursor, replaced=existing)


def refusal(watcher: str, target: str, agent_id: str | None) -> str | None:
    """The rule that forbids a watch whatever the database holds; None when none does."""
    if not keys.is_agent_qualified(watcher):
        return "a watcher needs an agent-qualified key (agent:<id>:<rest>)"
    if watcher == target:
        return "a session cannot watch itself"
    if agent_id is None and keys.agent_of(target) is None:
        return "a bare target key needs its agent named"
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
    connection: sqlite3.Connection,
    shape: Shape,
    surroundings: Surroundings,
    *,
    exists: Mapping[str, bool | None],
    now: int,
) -> tuple[list[Raised], list[tuple[Cursor, str]]]:
    """The start-up sweep: notified catches up with material where the watcher exists (section 11)."""
    raised: list[Raised] = []
    skipped: list[tuple[Cursor, str]] = []
    for cursor in select(connection, shape):
        if not cursor.pending:
            continue
        if not (known := exists.get(cursor.watcher)):
            skipped.append((cursor, "no such session" if known is False else "session stores unknown"))
            continue
        connection.execute(
            "UPDATE session_watch_cursors SET notified_sequence = material_sequence, updated_at = ?"
            " WHERE watcher_session_key = ? AND target_session_key = ?",
            (now, cursor.watcher, cursor.target),
        )
        swept = cursor._replace(notified=cursor.material, updated_at=now)
        raised.append(Raised(swept, delivery(swept, shape, surroundings), opened=False))
    return raised, skipped
