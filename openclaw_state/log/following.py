"""Following a signal log as it grows: events, changes of one session, notices.

Any process sees a commit of any other, typically within a millisecond (design section 6).
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Collection, Iterator

from ..core import changes
from ..core.follow import Batch, Follower
from ..core.listing import EventFilter, before_newest
from ..core.waker import Waker
from ..errors import AheadError, UsageError
from ..model import ON_GAP, Changes, Notice
from .reading import Reading


class Following(Reading):
    """The methods that wait for what happens next; none holds a transaction, or at rest a connection."""

    def waker(self, *, events: bool = True) -> Waker:
        """What waits until this database may have changed, in the calling thread.

        events: use the system's file events where it has them.
        """
        return Waker(self._database, events=events)

    def follower(
        self,
        waker: Waker,
        chosen: EventFilter | None = None,
        *,
        after: int | None = None,
        newest: int | None = 0,
        on_gap: str = "fail",
    ) -> Follower:
        """What reads on from a sequence; from the log's head, less its `newest` events, without one.

        newest None: from the oldest event that is retained.

        Raises UsageError for an unknown on_gap.
        """
        if on_gap not in ON_GAP:
            raise UsageError(f"on_gap is one of {', '.join(ON_GAP)}, not {on_gap!r}")
        chosen = chosen or EventFilter()
        gaps_from = 0
        if after is None:
            gaps_from, after = waker.look(lambda: self._start(chosen, newest))
        return Follower(
            self._database.reading, waker, chosen, position=after, on_gap=on_gap, gaps_from=gaps_from
        )

    def follow(
        self,
        chosen: EventFilter | None = None,
        *,
        after: int | None = None,
        newest: int = 0,
        on_gap: str = "fail",
        timeout: float | None = None,
    ) -> Iterator[Batch]:
        """Batches of at most 500 events in order, as they are committed; endless without a timeout.

        after: the sequence to go on from; without it the log's head, less its `newest` events.
        timeout: seconds after which the iterator ends. A batch whose events do not match is
        empty, and its position is still the one to go on from. Raises HistoryGapError when
        retention overtook the position and on_gap is `fail` (`snapshot` and `skip` go on, with
        the gaps in the batch), AheadError when the log went back, NoDatabaseError when the file
        was removed or replaced.
        """
        end = None if timeout is None else time.monotonic() + timeout
        with self.waker() as waker:
            follower = self.follower(waker, chosen, after=after, newest=newest, on_gap=on_gap)
            while True:
                before = follower.position
                batch = follower.read()
                if batch.position != before:
                    yield batch
                    if batch.position < batch.newest:
                        continue
                if not follower.wait(_left(end)):
                    return

    async def follow_async(
        self,
        chosen: EventFilter | None = None,
        *,
        after: int | None = None,
        newest: int = 0,
        on_gap: str = "fail",
    ) -> AsyncIterator[Batch]:
        """What `follow` yields, for an event loop: waiting and reading happen in a thread of its own."""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        self._database.release()
        stop, stopping = os.pipe()
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "openclaw-state-follow") as thread, self.waker() as waker:
            try:
                follower = await loop.run_in_executor(
                    thread,
                    lambda: self.follower(waker, chosen, after=after, newest=newest, on_gap=on_gap),
                )
                while True:
                    before = follower.position
                    batch = await loop.run_in_executor(thread, follower.read)
                    if batch.position != before:
                        yield batch
                        if batch.position < batch.newest:
                            continue
                    await loop.run_in_executor(thread, follower.wait, None, (stop,))
            finally:
                os.write(stopping, b"!")
                await asyncio.shield(loop.run_in_executor(thread, self._database.release))
                os.close(stop)
                os.close(stopping)

    def wait_for_change(
        self, session_key: str, since: int, *, agent_id: str | None = None, timeout: float | None = None
    ) -> Changes | None:
        """The changes after a version as soon as there is one; None when the timeout (s) passes first.

        A gap is answered at once. Raises AheadError when the session has not reached `since`.
        """
        end = None if timeout is None else time.monotonic() + timeout
        with self.waker() as waker:
            while True:
                found = waker.look(lambda: self._changes_or_ahead(session_key, since, agent_id))
                if found.events or found.history_gap:
                    return found
                if not waker.wait(_left(end)):
                    return None

    def follow_notices(
        self,
        watcher: str | None = None,
        *,
        announced: Collection[tuple[str, str, int]] = (),
        timeout: float | None = None,
    ) -> Iterator[list[Notice]]:
        """Pending notices, each once when it opens or reopens; endless without a timeout (s).

        announced names those already told, as (watcher, target, seen).
        """
        end = None if timeout is None else time.monotonic() + timeout
        told = set(announced)
        with self.waker() as waker:
            while True:
                pending = {notice.identity: notice for notice in waker.look(lambda: self.notices(watcher))}
                if opened := [notice for identity, notice in pending.items() if identity not in told]:
                    yield opened
                told = set(pending)
                if not waker.wait(_left(end)):
                    return

    def _start(self, chosen: EventFilter, newest: int | None) -> tuple[int, int]:
        """(the log's head, the sequence after which the newest matching events stand)."""
        least = chosen.after or 0
        with self._database.reading() as connection:
            head = changes.newest_sequence(connection)
            if newest is None:
                return head, least
            return head, max(least, before_newest(connection, chosen, head, newest))

    def _changes_or_ahead(self, session_key: str, since: int, agent_id: str | None) -> Changes:
        with self.snapshot():
            version = self.version(session_key, agent_id=agent_id)
            if since > version:
                raise AheadError(
                    f"{session_key} has only reached version {version}, {since} lies ahead of it",
                    requested=since,
                    head=version,
                )
            return self.changes_since(session_key, since, agent_id=agent_id)


def _left(end: float | None) -> float | None:
    """Seconds until a monotonic instant."""
    return None if end is None else max(0.0, end - time.monotonic())
