"""Watching sessions: registration, notices, acknowledge, sweep, and this process's queue."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from ..core import cursors, keys, notices, retention, watches
from ..core.surroundings import Surroundings, delivery
from ..model import Cursor, Delivery, Notice
from ..results import Acknowledged, QueuedLine, Swept, Wake, Watched
from .changing import Changing


class Watching(Changing):
    """The methods that move cursors (contract, signal-log sections 7 to 11)."""

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

    def remove_watches(self, found: Iterable[Cursor], *, unless_pending: bool = False) -> int:
        """Remove watches that still are as they were found; returns how many.

        A watch that was touched meanwhile stays; with unless_pending so does one that is pending.
        """
        with self._database.writing() as connection:
            return sum(
                watches.remove_unchanged(connection, cursor, unless_pending=unless_pending)
                for cursor in found
            )

    def acknowledge(self, watcher: str, targets: Iterable[str]) -> Acknowledged:
        """Acknowledge notices; what came after one was announced reopens it (section 9)."""
        with self._database.writing() as connection:
            done, reopened = self._acknowledge(connection, watcher, targets)
        self._push(reopened)
        return done

    def acknowledge_notices(self, found: Iterable[Notice]) -> Acknowledged:
        """Acknowledge exactly these notices, as far as they are still the pending ones.

        A watch that was acknowledged or seeded again meanwhile is left alone.
        """
        told = {(notice.watcher, notice.target, notice.since) for notice in found}
        moved: list[Cursor] = []
        raised: list[cursors.Raised] = []
        with self._database.writing() as connection:
            for watcher in {watcher for watcher, _, _ in told}:
                same = [
                    cursor.target
                    for cursor in cursors.select(connection, self._database.shape, watcher=watcher)
                    if (watcher, cursor.target, cursor.seen) in told and cursor.pending
                ]
                done, reopened = self._acknowledge(connection, watcher, same)
                moved += done.cursors
                raised += reopened
        self._push(raised)
        return Acknowledged(tuple(moved), (), ())

    def drain(self, watcher: str) -> list[Notice]:
        """The pending notices of a watcher, acknowledged as returned, in one transaction.

        Their lines leave this process's queue; what came after one was announced reopens it.
        """
        with self._database.writing() as connection:
            found = cursors.select(connection, self._database.shape, watcher=watcher)
            raised = [item for item in self._raised(found) if item.delivery.ok is not False]
            pending = list(notices.describe(connection, raised))
            _, reopened = self._acknowledge(connection, watcher, [notice.target for notice in pending])
        self._queue.settle(watcher, {notice.context_key for notice in pending})
        self._push(reopened)
        return pending

    def sweep(self) -> Swept:
        """Re-arm every pending notice whose watcher exists, as a gateway does when it starts.

        With auto_prune, retention follows at the same instant (section 11).
        """
        now = self._clock()
        exists = self._pending_watchers_exist()
        with self._database.writing() as connection:
            raised, skipped = watches.rearm(
                connection, self._database.shape, self._surroundings, exists=exists, now=now
            )
            described = list(notices.describe(connection, raised))
        self._push(raised)
        pruned = retention.apply(self._database, self._limits, now=now) if self._auto_prune else None
        return Swept(tuple(described), tuple(skipped), pruned)

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

    def _acknowledge(
        self, connection: sqlite3.Connection, watcher: str, targets: Iterable[str]
    ) -> tuple[Acknowledged, list[cursors.Raised]]:
        now = self._clock()
        done = watches.acknowledge(
            connection,
            self._database.shape,
            self._surroundings,
            watcher=watcher,
            targets=targets,
            now=now,
        )
        reopened = self._raised(
            watches.acknowledged(cursor, now) for cursor in done.cursors if cursor.reopening
        )
        return done._replace(reopened=tuple(notices.describe(connection, reopened))), reopened

    def _pending_watchers_exist(self) -> dict[str, bool | None]:
        """Asked before the write transaction: an agent's database may keep its readers waiting."""
        with self._database.reading() as connection:
            found = cursors.select(connection, self._database.shape)
        pending = {cursor.watcher for cursor in found if cursor.pending}
        qualified = {watcher for watcher in pending if keys.is_agent_qualified(watcher)}
        return dict.fromkeys(pending - qualified, False) | self._surroundings.sessions_exist(qualified)

    def _delivery(self, line: QueuedLine) -> Delivery:
        cursor = Cursor(line.watcher, "", 0, 0, 0, "explicit", 0, line.store_path)
        return delivery(cursor, self._database.shape, self._surroundings)
