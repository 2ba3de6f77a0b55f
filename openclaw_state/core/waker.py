"""Waiting until a database may have changed, without keeping it open (design section 6).

A wake-up only says "look again"; what a look finds is the truth. A connection at rest would keep
a closing writer from checkpointing and removing its write-ahead log, so one is held only while
changes follow each other; otherwise the signs are inotify events and the state of the files.
"""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..errors import BusyError
from .database import Database

if TYPE_CHECKING:
    from .inotify import Inotify

T = TypeVar("T")

# How often the files are looked at where no event announces a change, and where events do.
POLL_S = 0.05
FLOOR_S = 1.0
# A commit may become visible a moment after its bytes were written: looked for after these pauses.
_BACKOFF_S = (0.0, 0.000_05, 0.000_1, 0.000_2, 0.000_4, 0.001, 0.002, 0.004, 0.008)
# Shorter pauses than poll() can make.
_NAP_S = 0.001
# How long the connection outlives a look: alone, and in a run of changes at most _RUN_S apart.
_LINGER_S = 0.015
_LINGER_IN_RUN_S = 0.06
_RUN_S = 0.05
_RUN_LENGTH = 3
# A commit that a slow disk held back shows no sign of its own: these looks after a change find it.
_AGAIN_S = (0.1, 1.0)
_AT_LEAST_S = 30.0
# Two changes within one tick of the file system's clock leave the same time.
_SETTLED_NS = 20_000_000


class _Signs(NamedTuple):
    """What the files of a database look like; a commit changes it."""

    file: tuple[int, int] | None
    log: tuple[int, int] | None
    journal: bool
    main: tuple[int, int] | None

    @property
    def alone(self) -> bool:
        """Is everything in the main file, with no log or journal beside it?"""
        return self.log is None and not self.journal


class Waker:
    """Waits for changes of one database in one thread; close it, or use it as a context manager."""

    def __init__(self, database: Database, *, events: bool = True) -> None:
        """events: use the system's file events where it has them."""
        self._database = database
        path = os.path.realpath(database.path)
        self._path, self._log, self._journal = path, path + "-wal", path + "-journal"
        self._base = os.path.basename(path)
        self._events: Inotify | None = None
        if events:
            from .inotify import Inotify

            with suppress(OSError):
                self._events = Inotify(os.path.dirname(path))
        self._poll = select.poll()
        if self._events:
            self._poll.register(self._events.descriptor, select.POLLIN)
        self._version: int | None = None
        self._signs: _Signs | None = None
        self._looked_at = self._changed_at = 0.0
        self._run = 0
        self._again: Sequence[float] = ()
        self._repeated = False

    def __enter__(self) -> Waker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the system's watch back."""
        if self._events:
            self._poll.unregister(self._events.descriptor)
            self._events.close()
            self._events = None

    @property
    def method(self) -> str:
        """How changes are noticed."""
        if self._events:
            return f"inotify, and the files' state every {FLOOR_S * 1000:.0f} ms"
        return f"the files' state every {POLL_S * 1000:.0f} ms"

    def look(self, question: Callable[[], T]) -> T:
        """Ask something of the database in its present state.

        A file that nobody has open is read without making side files beside it. Raises what
        the question raises; BusyError; NoDatabaseError when the file was removed or replaced.
        """
        while True:
            try:
                return self._look(question)
            except _DisturbedError:
                continue

    def wait(
        self, timeout: float | None = None, also: Iterable[int] = (), *, closing: Iterable[int] = ()
    ) -> bool:
        """Wait until the database may have changed since the last look.

        timeout is in seconds; False when it passed, when one of the descriptors in `also` can
        be read, or when nobody reads any more what is written to one of those in `closing`.
        Raises NoDatabaseError when the file was removed or replaced.
        """
        end = None if timeout is None else time.monotonic() + timeout
        others = {**dict.fromkeys(closing, 0), **dict.fromkeys(also, select.POLLIN)}
        for descriptor, event in others.items():
            self._poll.register(descriptor, event)
        try:
            return self._wait(end)
        finally:
            for descriptor in others:
                self._poll.unregister(descriptor)

    def _look(self, question: Callable[[], T]) -> T:
        self._looked_at = time.monotonic()
        if not self._database.connected:
            signs = self._read_signs()
            if signs.alone and self._database.has_log:
                return self._glance(question, signs)
        self._version = self._database.data_version()
        return question()

    def _glance(self, question: Callable[[], T], signs: _Signs) -> T:
        with self._database.glancing():
            answer = question()
        if not _settled(signs) or self._read_signs() != signs:
            time.sleep(_SETTLED_NS / 1e9)
            raise _DisturbedError
        self._signs = signs
        return answer

    def _wait(self, end: float | None) -> bool:
        step = 0
        while True:
            now = time.monotonic()
            rest = self._while_held(now) if self._database.connected else self._at_rest(now)
            if rest is None:
                return True
            left = math.inf if end is None else end - now
            if left <= 0:
                return False
            rest = min(rest, left, FLOOR_S if self._events else POLL_S)
            if self._database.connected and step < len(_BACKOFF_S):
                rest, step = min(rest, _BACKOFF_S[step]), step + 1
            if rest < _NAP_S:
                time.sleep(rest)
                rest = 0
            if self._other_ready(rest):
                return False
            if self._touched():
                step = 0
                if not self._database.connected:
                    return self._changed(time.monotonic())

    def _while_held(self, now: float) -> float | None:
        """Seconds for which nothing need be done; None when it is time to look."""
        if self._committed():
            self._changed(now)
            return None
        rest = self._hold_until() - now
        if rest > 0:
            return rest
        if self._let_go():
            self._changed(now)
            return None
        return 0.0

    def _at_rest(self, now: float) -> float | None:
        """Seconds for which nothing need be done; None when it is time to look."""
        if self._signs != self._read_signs():
            self._changed(now)
            return None
        rest = self._next_look() - now
        if rest > 0:
            return rest
        self._again = self._again[1:]
        self._repeated = True
        return None

    def _committed(self) -> bool:
        try:
            return self._version != self._database.data_version()
        except BusyError:  # only beside a rollback journal, while another connection commits
            return False

    def _changed(self, now: float) -> bool:
        self._run = self._run + 1 if now - self._changed_at <= _RUN_S else 0
        self._changed_at = now
        self._again = _AGAIN_S
        self._repeated = False
        return True

    def _hold_until(self) -> float:
        """When to let go of the connection, if nothing becomes visible until then."""
        if self._repeated:
            return self._looked_at
        in_run = self._run >= _RUN_LENGTH
        return self._looked_at + (_LINGER_IN_RUN_S if in_run else _LINGER_S)

    def _next_look(self) -> float:
        """When to look although nothing seems to have changed."""
        if self._signs is not None and self._signs.log is None:
            return math.inf
        return self._changed_at + self._again[0] if self._again else self._looked_at + _AT_LEAST_S

    def _let_go(self) -> bool:
        """Close the connection; True when a change slipped in before that."""
        self._database.require_same_file()
        self._signs = self._read_signs()
        if self._committed():
            return True
        self._database.release()
        return False

    def _touched(self) -> bool:
        """Did an event announce that the log, the journal or the file itself may have changed?"""
        if self._events is None:
            return False
        names = self._events.drain()
        if names is None:
            self.close()
            return True
        if not names.isdisjoint((self._base + "-wal", self._base + "-journal")):
            return True
        return self._base in names and self._signs != self._read_signs()

    def _other_ready(self, timeout: float) -> bool:
        own = self._events.descriptor if self._events else -1
        return any(descriptor != own for descriptor, _ in self._poll.poll(timeout * 1000))

    def _read_signs(self) -> _Signs:
        main, log = _stat(self._path), _stat(self._log)
        if main is None:
            return _Signs(None, None, False, None)
        changed = (main.st_size, main.st_mtime_ns)
        return _Signs(
            (main.st_dev, main.st_ino),
            (log.st_size, log.st_mtime_ns) if log else None,
            log is None and os.path.exists(self._journal),
            None if log and log.st_size else changed,
        )


class _DisturbedError(Exception):
    """The file changed while it was glanced at."""


def _settled(signs: _Signs) -> bool:
    return signs.main is None or time.time_ns() - signs.main[1] > _SETTLED_NS


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
