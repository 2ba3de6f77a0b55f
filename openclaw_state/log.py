"""SignalLog: the public Python API on one signal log, OpenClaw's own or the embedded one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from .core import changes, events, keys, lifecycle, listing, notices, producers, retention, watches
from .core.database import DEFAULT_LOCK_WAIT_MS, Database, create_embedded
from .core.surroundings import Detached, Embedded, Surroundings, delivery
from .errors import NoDatabaseError, RefusedError, StateError, UsageError
from .host.location import Location, locate
from .model import (
    Acknowledged,
    Changes,
    Cursor,
    CursorReport,
    Event,
    Forgotten,
    Head,
    Limits,
    Link,
    Notice,
    Pruned,
    QueuedLine,
    Recorded,
    SessionRow,
    Swept,
    Wake,
    Watched,
)
from .upstream import links


def _system_clock() -> int:
    return time.time_ns() // 1_000_000


class SignalLog:
    """One signal log, opened for reading or, with change=True, for change.

    Use it as a context manager. Every thread gets its own connection; the queue of notices
    and wakes belongs to this object, as a gateway's belongs to its process. All times are
    epoch ms; methods raise the classes of `openclaw_state.errors`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Location | None = None,
        *,
        change: bool = False,
        create: bool = False,
        surroundings: Surroundings | None = None,
        strict: bool = False,
        auto_prune: bool = False,
        best_effort: bool = False,
        limits: Limits | None = None,
        lock_wait_ms: int = DEFAULT_LOCK_WAIT_MS,
        clock: Callable[[], int] = _system_clock,
    ) -> None:
        """Open the log at a path, or the one that the environment selects (design section 4).

        change: allow writing; the embedded file is then created where it is missing.
        create: with change, create a missing file at any path outside an OpenClaw directory.
        strict: follow OpenClaw also where this tool does better on purpose.
        auto_prune: recording applies retention, at most hourly, as a gateway does.
        best_effort: recording logs a failure and returns, instead of raising.
        limits: retention limits of auto_prune; OpenClaw's own file has fixed ones.
        lock_wait_ms: how long a write waits for another writer.
        Raises NoDatabaseError, BadDatabaseError, NewerSchemaError, AccessError,
        ConfigurationError, RefusedError.
        """
        if isinstance(path, Location):
            self.location = path
        else:
            self.location = locate(db=os.fspath(path) if path is not None else None)
        if change and (create or self.location.embedded):
            self._create_missing()
        self._database = Database(self.location.path, writable=change, lock_wait_ms=lock_wait_ms)
        self._surroundings = surroundings or self._default_surroundings()
        if limits is not None and not self.embedded:
            raise RefusedError("OpenClaw's own file keeps OpenClaw's retention limits")
        self._limits = limits or Limits()
        self._strict = strict
        self._auto_prune = auto_prune
        self._best_effort = best_effort
        self._clock = clock
        self._pruned_at = 0
        self._queue = notices.Queue()

    def __enter__(self) -> SignalLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of every thread."""
        self._database.close()

    @property
    def embedded(self) -> bool:
        """Is this the tool's own file (no OpenClaw behind it)?"""
        return isinstance(self._surroundings, Embedded)

    @property
    def path(self) -> str:
        return self.location.path

    @property
    def warnings(self) -> list[str]:
        """What a reader should know about the file that was opened."""
        found = list(self.location.warnings)
        if self._database.shape.warning:
            found.append(self._database.shape.warning)
        if self._database.immutable:
            found.append(
                f"{self.path} was opened immutable: its directory is not writable and there is no -wal file"
            )
        return found

    # Reading

    def version(self, session_key: str, *, agent_id: str | None = None) -> int:
        """The state version: the greatest sequence ever given to the session, 0 without a head."""
        with self._database.reading() as connection:
            return changes.version(connection, session_key, self._agent(session_key, agent_id))

    def versions(self, session_keys: Iterable[str]) -> dict[str, dict[str, int]]:
        """agent -> session -> version for every head under the listed keys."""
        with self._database.reading() as connection:
            return changes.versions(connection, session_keys)

    def newest_sequence(self) -> int:
        """The newest sequence of the whole log."""
        with self._database.reading() as connection:
            return changes.newest_sequence(connection)

    def heads(self, session_key: str) -> list[Head]:
        """The heads of a key, one per agent that owns it."""
        with self._database.reading() as connection:
            return changes.read_heads(connection, session_key)

    def head(self, session_key: str, *, agent_id: str | None = None) -> Head | None:
        """The head of one session."""
        with self._database.reading() as connection:
            return changes.read_head(connection, session_key, self._agent(session_key, agent_id))

    def oldest_sequence(self, session_key: str, *, agent_id: str | None = None) -> int | None:
        """The oldest retained sequence of a session, None when nothing is retained."""
        with self._database.reading() as connection:
            return changes.oldest_sequence(connection, session_key, self._agent(session_key, agent_id))

    def changes_since(
        self,
        session_key: str,
        since: float,
        *,
        agent_id: str | None = None,
        limit: float = changes.MAX_CHANGES,
    ) -> Changes:
        """The exact delta after a version, at most 200 events (contract, signal-log section 13)."""
        with self._database.reading() as connection:
            agent = self._agent(session_key, agent_id)
            return changes.read_changes(connection, session_key, agent, since, limit)

    def version_at(self, session_key: str, instant: int, *, agent_id: str | None = None) -> int:
        """The version that a session had before an instant (epoch ms), as far as events are retained."""
        with self._database.reading() as connection:
            return changes.version_at(connection, session_key, self._agent(session_key, agent_id), instant)

    def events(
        self, chosen: listing.EventFilter | None = None, *, newest: int | None = None
    ) -> Iterator[Event]:
        """Events in order, lazily, in batches of 500; no transaction is held between batches."""
        return listing.events(self._database.reading, chosen or listing.EventFilter(), newest=newest)

    def sessions(self, *, agent_id: str | None = None, most: int | None = None) -> Iterator[SessionRow]:
        """Sessions with a head, the latest change first."""
        return listing.sessions(self._database.reading, agent_id=agent_id, most=most)

    def session_known(self, session_key: str) -> bool | None:
        """Has the session a head, an event, a cursor, a link or a session row? None: cannot be known."""
        with self._database.reading() as connection:
            if watches.select(connection, self._database.shape, watcher=session_key):
                return True
            if watches.is_watched(connection, session_key) or links.has_link(connection, session_key):
                return True
            surroundings = Detached() if self.embedded else self._surroundings
            known = watches.known_sessions(connection, surroundings, [session_key])[session_key]
            return False if known is None and self.embedded else known

    def cursors(self, *, watcher: str | None = None, target: str | None = None) -> list[CursorReport]:
        """Watches with lag, state, delivery and expiry, by watcher and target."""
        with self._database.reading() as connection:
            found = watches.select(connection, self._database.shape, watcher=watcher, target=target)
            return list(
                watches.report(
                    connection,
                    self._database.shape,
                    self._surroundings,
                    found,
                    max_age_ms=self._limits.max_age_ms,
                )
            )

    def notices(self, watcher: str | None = None) -> list[Notice]:
        """The pending notices of one watcher, or of all."""
        with self._database.reading() as connection:
            found = watches.select(connection, self._database.shape, watcher=watcher)
            return list(notices.describe(connection, self._raised(found)))

    def link(self, session_key: str, *, agent_id: str | None = None) -> Link | None:
        """The upstream link of a session."""
        with self._database.reading() as connection:
            return links.read(connection, session_key, self._agent(session_key, agent_id))

    def watched_links(self) -> dict[str, list[Link]]:
        """The links that the upstream monitor visits, by catalog."""
        with self._database.reading() as connection:
            return links.watched(connection)

    # Recording

    def record(
        self,
        session_key: str,
        kind: str,
        *,
        actor_type: str,
        summary: str,
        agent_id: str | None = None,
        session_id: str | None = None,
        actor_id: str | None = None,
        run_id: str | None = None,
        dedupe_key: str | None = None,
        payload: Any = None,
        occurred_at: float | None = None,
        watchers: Iterable[str] = (),
    ) -> Recorded:
        """Append one event as it is given, by the gateway's rules (contract, signal-log section 6).

        occurred_at is epoch ms, held to the last 24 hours. Raises UsageError for keys that no
        session can have, BusyError, RefusedError, StorageError.
        """
        return self._append(
            lambda: events.Draft(
                session_key,
                self._agent(session_key, agent_id),
                kind,
                actor_type,
                summary,
                session_id,
                actor_id,
                run_id,
                dedupe_key,
                payload,
                occurred_at,
                tuple(watchers),
            )
        )

    def human_message(
        self,
        session_key: str,
        *,
        agent_id: str | None = None,
        channel: str | None = None,
        spawned_by: str | None = None,
        parent: str | None = None,
        actor_id: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        dedupe_key: str | None = None,
        payload: Any = None,
        occurred_at: float | None = None,
    ) -> Recorded:
        """A person wrote to the session directly.

        Recorded only where somebody is to hear of it: the session has a lineage (spawned_by,
        else parent, becomes a watcher) or is watched. Otherwise the event is None.
        """
        lineage = producers.lineage_watcher(spawned_by, parent)
        return self._append(
            lambda: producers.human_message(
                session_key,
                self._agent(session_key, agent_id),
                channel=channel,
                watchers=lineage,
                actor_id=actor_id,
                session_id=session_id,
                run_id=run_id,
                dedupe_key=dedupe_key,
                payload=payload,
                occurred_at=occurred_at,
            ),
            only_if_watched=not lineage,
        )

    def goal_changed(
        self,
        session_key: str,
        summary: str,
        *,
        agent_id: str | None = None,
        actor_type: str = "system",
        actor_id: str | None = None,
        spawned_by: str | None = None,
        parent: str | None = None,
        session_id: str | None = None,
    ) -> Recorded:
        """The session's goal changed; the lineage watcher hears of it."""
        return self._append(
            lambda: producers.goal_changed(
                session_key,
                self._agent(session_key, agent_id),
                summary=summary,
                watchers=producers.lineage_watcher(spawned_by, parent),
                actor_type=actor_type,
                actor_id=actor_id,
                session_id=session_id,
            )
        )

    def session_created(
        self,
        session_key: str,
        *,
        session_id: str,
        actor_type: str,
        actor_id: str | None = None,
        agent_id: str | None = None,
    ) -> Recorded:
        """A session began, by a known creator; once per session id."""
        return self._append(
            lambda: producers.session_created(
                session_key,
                self._agent(session_key, agent_id),
                session_id=session_id,
                actor_type=actor_type,
                actor_id=actor_id,
            )
        )

    def child_spawned(
        self, child: str, *, requester: str, run_id: str, agent_id: str | None = None
    ) -> Recorded:
        """A session started a child; the requester watches it from here on. Once per run."""
        return self._append(
            lambda: producers.child_spawned(
                child, self._agent(child, agent_id), requester=requester, run_id=run_id
            )
        )

    def run_ended(
        self,
        child: str,
        *,
        run_id: str,
        outcome: str | None = None,
        requester: str | None = None,
        agent_id: str | None = None,
    ) -> Recorded:
        """A child run ended: outcome None is success, else error, timeout or cancelled. Once per run."""
        return self._append(
            lambda: producers.run_ended(
                child, self._agent(child, agent_id), run_id=run_id, outcome=outcome, requester=requester
            )
        )

    def compacted(
        self,
        session_key: str,
        *,
        operation_id: str,
        session_id: str | None = None,
        run_id: str | None = None,
        agent_id: str | None = None,
    ) -> Recorded:
        """The session's context was compacted; once per operation."""
        return self._append(
            lambda: producers.compacted(
                session_key,
                self._agent(session_key, agent_id),
                operation_id=operation_id,
                session_id=session_id,
                run_id=run_id,
            )
        )

    def adopted(
        self, session_key: str, *, catalog_id: str, host_id: str, agent_id: str | None = None
    ) -> Recorded:
        """A person took over a session from another program's catalog; once per session."""
        return self._append(
            lambda: producers.adopted(
                session_key, self._agent(session_key, agent_id), catalog_id=catalog_id, host_id=host_id
            )
        )

    def upstream_missing(self, link: Link) -> Recorded:
        """The source of an adopted session disappeared; once per generation of the link."""
        return self._append(lambda: producers.upstream_missing(link, links.source_key(link)))

    @contextmanager
    def child_run(
        self, parent: str, child: str, *, run_id: str | None = None, agent_id: str | None = None
    ) -> Iterator[str]:
        """Record a child's spawn, run the block, record how it ended; yields the run id.

        A TimeoutError (also of subprocess) ends the run as `timeout`, an interrupt or a
        cancellation as `cancelled`, any other exception as `error`; all are raised on.
        """
        run = run_id or _new_run_id()
        self.child_spawned(child, requester=parent, run_id=run, agent_id=agent_id)
        outcome = None
        try:
            yield run
        except BaseException as error:
            outcome = producers.outcome_of(error)
            raise
        finally:
            self.run_ended(child, run_id=run, outcome=outcome, requester=parent, agent_id=agent_id)

    # Watching

    def watch(
        self, watcher: str, target: str, *, agent_id: str | None = None, store_path: str | None = None
    ) -> Watched:
        """Watch a session from its current version on; an existing watch keeps its pending state.

        agent_id names the agent of a bare target. A refusal is an answer, not an exception
        (contract, signal-log section 10).
        """
        with self._database.writing() as connection:
            return watches.register(
                connection,
                self._database.shape,
                self._surroundings,
                watcher=watcher,
                target=target,
                agent_id=agent_id,
                store_path=store_path,
                now=self._clock(),
            )

    def watch_group(
        self,
        session_key: str,
        *,
        agent_id: str,
        main_key: str | None = None,
        entry: Mapping[str, Any] | None = None,
        dm_scope: str = "main",
    ) -> Watched:
        """Let the agent's main session watch a group session, queue-only."""
        with self._database.writing() as connection:
            return watches.register_ambient(
                connection,
                self._database.shape,
                self._surroundings,
                session_key=session_key,
                agent_id=agent_id,
                main_key=main_key,
                entry=entry or {},
                dm_scope=dm_scope,
                now=self._clock(),
            )

    def unwatch(self, watcher: str, target: str) -> bool:
        """Remove one watch; False when there was none."""
        with self._database.writing() as connection:
            return watches.remove(connection, watcher, target) > 0

    def reset_watches(self, watcher: str) -> int:
        """Remove all watches of a watcher, as its reset does; its own log stays. Returns how many."""
        with self._database.writing() as connection:
            return watches.remove(connection, watcher)

    def remove_watches(self, pairs: Iterable[tuple[str, str]]) -> int:
        """Remove several watches in one transaction; returns how many were there."""
        with self._database.writing() as connection:
            return sum(watches.remove(connection, watcher, target) for watcher, target in pairs)

    def acknowledge(self, watcher: str, targets: Iterable[str]) -> Acknowledged:
        """Acknowledge notices; what came after one was announced reopens it (section 9)."""
        with self._database.writing() as connection:
            return self._acknowledge(connection, watcher, targets)

    def drain(self, watcher: str) -> list[Notice]:
        """The pending notices of a watcher, acknowledged as returned, in one transaction."""
        with self._database.writing() as connection:
            found = watches.select(connection, self._database.shape, watcher=watcher)
            raised = [item for item in self._raised(found) if item.delivery.ok is not False]
            pending = list(notices.describe(connection, raised))
            self._acknowledge(connection, watcher, [notice.target for notice in pending])
        return pending

    def sweep(self) -> Swept:
        """Re-arm every pending notice whose watcher exists, as a gateway does when it starts.

        With auto_prune, retention follows at the same instant (section 11).
        """
        now = self._clock()
        with self._database.writing() as connection:
            raised, skipped = watches.rearm(connection, self._database.shape, self._surroundings, now=now)
            described = list(notices.describe(connection, raised))
        for item in raised:
            self._queue.push(item.cursor, item.delivery)
        pruned = retention.apply(self._database, self._limits, now=now) if self._auto_prune else None
        return Swept(tuple(described), tuple(skipped), pruned)

    # The queue of this process

    def queued(self, watcher: str) -> list[QueuedLine]:
        """The lines waiting in this process for a watcher's next turn."""
        return self._queue.peek(watcher)

    def queued_watchers(self) -> list[str]:
        """The watchers, in folded spelling, that have lines waiting."""
        return self._queue.watchers()

    def consume(self, watcher: str) -> list[QueuedLine]:
        """Take the waiting lines of a watcher and acknowledge their targets, as its turn does."""
        lines = self._queue.consume(watcher)
        decoded = (notices.decode_context_key(line.context_key) for line in lines)
        targets = [target for target in decoded if target is not None]
        if targets:
            self.acknowledge(watcher, targets)
        return lines

    def take_wakes(self) -> list[Wake]:
        """The wakes asked for since the last call."""
        return self._queue.take_wakes()

    def use_surroundings(self, surroundings: Surroundings) -> None:
        """Publish another store configuration; lines for stores that it does not know are dropped."""
        self._surroundings = surroundings
        self._queue.retire(lambda line: self._delivery(line).ok is not False)

    # Retention and endings

    def prune(self, limits: Limits | None = None, *, dry_run: bool = False) -> Pruned:
        """Apply retention, or plan it; limits default to OpenClaw's 30 days and 50,000 rows."""
        now = self._clock()
        if dry_run:
            with self._database.reading() as connection:
                return retention.plan(connection, limits or self._limits, now=now)
        return retention.apply(self._database, limits or self._limits, now=now)

    def forget(self, session_key: str, *, agent_id: str | None = None, dry_run: bool = False) -> Forgotten:
        """Delete a session's log, head, link and every watch by or on it (section 14)."""
        agent = self._agent(session_key, agent_id)
        if dry_run:
            with self._database.reading() as connection:
                return lifecycle.plan_forget(connection, session_key, agent)
        with self._database.writing() as connection:
            return lifecycle.forget(connection, session_key, agent)

    # Upstream links

    def upsert_link(
        self,
        session_key: str,
        *,
        catalog_id: str,
        host_id: str,
        thread_id: str,
        upstream_kind: str,
        upstream_ref: Any = None,
        marker: Any = None,
        agent_id: str | None = None,
        if_absent: bool = False,
    ) -> bool:
        """Store the link of an adopted session; True when a row was written (section 15)."""
        with self._database.writing() as connection:
            return links.upsert(
                connection,
                session_key=session_key,
                agent_id=self._agent(session_key, agent_id),
                catalog_id=catalog_id,
                host_id=host_id,
                thread_id=thread_id,
                upstream_kind=upstream_kind,
                upstream_ref=upstream_ref,
                marker=marker,
                if_absent=if_absent,
                now=self._clock(),
            )

    def set_link_marker(
        self,
        session_key: str,
        marker: Any,
        *,
        agent_id: str | None = None,
        expected_updated_at: int | None = None,
    ) -> bool:
        """Move a link's marker; False when the link is gone or was changed meanwhile."""
        with self._database.writing() as connection:
            return links.set_marker(
                connection,
                session_key,
                self._agent(session_key, agent_id),
                marker,
                expected_updated_at=expected_updated_at,
                now=self._clock(),
            )

    def delete_link(
        self, session_key: str, *, agent_id: str | None = None, expected_updated_at: int | None = None
    ) -> str:
        """Remove a link: `deleted`, or with expected_updated_at also `absent` or `changed`."""
        with self._database.writing() as connection:
            return links.delete(
                connection,
                session_key,
                self._agent(session_key, agent_id),
                expected_updated_at=expected_updated_at,
            )

    # Inside

    def _create_missing(self) -> None:
        if self.location.state_dir is not None:
            return
        if not os.path.exists(self.path) or not os.path.getsize(self.path):
            create_embedded(self.path)

    def _default_surroundings(self) -> Surroundings:
        if self.location.state_dir is not None:
            from .host.surroundings import StateDirectory

            return StateDirectory(self.location.state_dir)
        return Embedded() if self._database.shape.embedded else Detached()

    def _agent(self, session_key: str, agent_id: str | None) -> str:
        owner = keys.agent_of(session_key)
        if self._strict and agent_id is not None:
            return agent_id
        if owner is None and agent_id is None:
            raise UsageError(f"the key {session_key!r} names no agent", hint="say whose it is with agent_id")
        if owner is not None and agent_id is not None and agent_id != owner:
            raise UsageError(f"agent {agent_id!r} contradicts the key {session_key!r}")
        return agent_id or owner or ""

    def _append(self, draft_of: Callable[[], events.Draft], *, only_if_watched: bool = False) -> Recorded:
        try:
            return self._append_now(draft_of(), only_if_watched)
        except StateError as error:
            if not self._best_effort:
                raise
            import logging

            logging.getLogger("openclaw_state").warning("signal not recorded: %s", error.message)
            return Recorded(None, False, ())

    def _append_now(self, draft: events.Draft, only_if_watched: bool) -> Recorded:
        if not self._strict:
            _check_draft(draft)
        now = self._clock()
        with self._database.writing() as connection:
            if only_if_watched and not watches.is_watched(connection, draft.session_key):
                return Recorded(None, False, ())
            appended = events.append(
                connection, self._database.shape, self._surroundings, draft, now=now, strict=self._strict
            )
        for item in appended.raised:
            self._queue.push(item.cursor, item.delivery)
        opened = tuple(
            notices.build(
                item.cursor,
                item.delivery,
                head=item.cursor.material,
                kind=draft.kind,
                since=appended.event.occurred_at if appended.event else None,
            )
            for item in appended.raised
            if item.opened
        )
        return Recorded(appended.event, appended.duplicate, opened, self._prune_hourly(now))

    def _prune_hourly(self, now: int) -> Pruned | None:
        if not self._auto_prune or now - self._pruned_at <= retention.HOURLY_MS:
            return None
        self._pruned_at = now
        return retention.apply(self._database, self._limits, now=now)

    def _acknowledge(self, connection: Any, watcher: str, targets: Iterable[str]) -> Acknowledged:
        now = self._clock()
        done = watches.acknowledge(
            connection,
            self._database.shape,
            self._surroundings,
            watcher=watcher,
            targets=targets,
            now=now,
        )
        reopened = [
            watches.Raised(
                watches.acknowledged(cursor, now),
                delivery(cursor, self._database.shape, self._surroundings),
                opened=True,
            )
            for cursor in done.cursors
            if cursor.reopening
        ]
        described = tuple(notices.describe(connection, reopened))
        for item in reopened:
            self._queue.push(item.cursor, item.delivery)
        return Acknowledged(done.cursors, described, done.skipped)

    def _raised(self, found: Iterable[Cursor]) -> list[watches.Raised]:
        return [
            watches.Raised(cursor, delivery(cursor, self._database.shape, self._surroundings), opened=False)
            for cursor in found
            if cursor.pending
        ]

    def _delivery(self, line: QueuedLine) -> Any:
        cursor = Cursor(line.watcher, "", 0, 0, 0, "explicit", 0, line.store_path)
        return delivery(cursor, self._database.shape, self._surroundings)


def _check_draft(draft: events.Draft) -> None:
    for name, value in (
        ("session key", draft.session_key),
        ("kind", draft.kind),
        ("actor type", draft.actor_type),
    ):
        if not value.strip():
            raise UsageError(f"the {name} is blank")
    for text in (draft.session_key, draft.agent_id, *draft.watchers):
        if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text):
            raise UsageError(f"the key {text!r} contains control characters")


def _new_run_id() -> str:
    import uuid

    return str(uuid.uuid4())


__all__ = ["NoDatabaseError", "SignalLog"]
