"""Stand-in for core/follow.py, to be replaced by it: a wake-up that only polls."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..core.database import Database

POLL_S = 0.25


class Waker:
    """Waits until the database may have changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen = self._version()

    def _version(self) -> int:
        with self._database.reading() as connection:
            return int(connection.execute("PRAGMA data_version").fetchone()[0])

    def wait(self, timeout_s: float | None, also: Sequence[int] = ()) -> bool:
        """True when there may be something new; False when a descriptor is readable or time is up."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            if (now := self._version()) != self._seen:
                self._seen = now
                return True
            left = POLL_S if end is None else min(POLL_S, max(0.0, end - time.monotonic()))
            if select.select(also, (), (), left)[0] or (end is not None and time.monotonic() >= end):
                return False


@contextmanager
def waking(database: Database) -> Iterator[Waker]:
    yield Waker(database)
