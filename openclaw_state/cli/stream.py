"""Waiting between the parts of an endless answer, and what ends it: signal, deadline, closed output."""

from __future__ import annotations

import os
import select
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..errors import AccessError, BadDatabaseError, BusyError, StopError, TimedOutError, UsageError
from ..report.escape import escape
from ..timespec import parse_duration
from .options import Call

if TYPE_CHECKING:
    from ..core.waker import Waker
    from ..host.location import Location
    from ..log.following import Following

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CREATION_POLL_S = 0.25
_BUSY_PAUSE_S = 1.0
# For how long a file that cannot be read may be one that is just changing.
_PASSING_S = 2.0
_PASSING_PAUSE_S = 0.1
# How long an output that nobody takes may hold up the end that a signal asked for.
_STUCK_S = 1.0

T = TypeVar("T")


@contextmanager
def telling(where: Callable[[], str]) -> Iterator[None]:
    """Whatever ends the block by signal or deadline says where it stopped, and how to go on."""
    try:
        yield
    except StopError as stopped:
        stopped.note = where()
        raise
    except TimedOutError as error:
        error.hint = error.hint or where()
        raise


class Vigil:
    """Waits between the parts of a stream, and notices what ends it.

    The first SIGINT, SIGTERM or SIGHUP asks for an end between two parts, a second one ends the
    process at once, with the command that it runs; what the caller had ignored (nohup) stays ignored.
    """

    def __init__(self, call: Call, *, heartbeat: str | None = None) -> None:
        """--timeout ends the stream with TimedOutError; heartbeat is how long it may be silent."""
        self._call = call
        self._timeout = timeout = call.flag("timeout")
        self._end = None if timeout is None else time.monotonic() + parse_duration(timeout) / 1000
        self._heartbeat = None if heartbeat is None else parse_duration(heartbeat) / 1000
        if self._heartbeat == 0:
            raise UsageError("--heartbeat is a silence longer than 0", hint="for example --heartbeat 30s")
        self._spoke_at = time.monotonic()
        # Of --exec, the commands alone write there.
        self._output = None if call.flag("exec") else _pipe_behind(call)
        self._signal = 0
        self._saved: dict[signal.Signals, Any] = {}
        # Was the tool's own file made only while it was waited for?
        self.new_file = False
        self.child: int | None = None

    def __enter__(self) -> Self:
        self._asked, self._asking = os.pipe()
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._saved[number] = signal.signal(number, self._ask)
            self._saved[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._insist)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._saved.items():
            signal.signal(number, handler)
        os.close(self._asked)
        os.close(self._asking)

    def open(self) -> Following:
        """Open the chosen database for following; the tool's own file is waited for."""
        return self._call.follow(self.located())

    def located(self) -> Location:
        """The chosen database, once it is there: the tool's own file is waited for."""
        from ..core.opening import is_blank

        location = self._call.location()
        if location.embedded and is_blank(location.path):
            self.new_file = True
            self.say(f"waiting for {escape(location.path)} to be created")
            while is_blank(location.path):
                self.pause(_CREATION_POLL_S)
        return location

    def wait(self, waker: Waker, *, timeout: float | None = None, also: Iterable[int] = ()) -> bool:
        """Wait for a change; False when a heartbeat is due, the timeout (s) passed, or a descriptor
        of `also` can be read.

        Raises StopError, TimedOutError, or BrokenPipeError when nobody reads the output any more.
        """
        self.check()
        limits = [limit for limit in (self._until_heartbeat(), self._left(), timeout) if limit is not None]
        closing = () if self._output is None else (self._output,)
        changed = waker.wait(min(limits, default=None), (self._asked, *also), closing=closing)
        if self._signal:
            raise StopError(self._signal)
        if self._output is not None and _is_closed(self._output):
            raise BrokenPipeError
        return changed

    def say(self, words: str) -> None:
        """A note on stderr, at once."""
        if not self._call.flag("quiet"):
            self._call.terminal.stderr.write(f"{words}\n")
            self._call.terminal.stderr.flush()

    def patiently(self, look: Callable[[], T]) -> T:
        """Look, again and again while another process holds the lock: a follower has time."""
        passing = 0.0
        while True:
            try:
                return look()
            except BusyError:
                self.pause(_BUSY_PAUSE_S)
            except (AccessError, BadDatabaseError):
                # A writer that is just starting, or a copy that is just being put in place.
                passing = passing or time.monotonic()
                if time.monotonic() - passing > _PASSING_S:
                    raise
                self.pause(_PASSING_PAUSE_S)

    def heartbeat_due(self) -> bool:
        """Has the stream been silent for long enough?"""
        return self._until_heartbeat() == 0

    def spoke(self) -> None:
        """Something was printed."""
        self._spoke_at = time.monotonic()

    def pause(self, seconds: float) -> None:
        """Sleep, unless the stream is to end. Raises StopError or TimedOutError."""
        left = self._left()
        select.select([self._asked], [], [], seconds if left is None else min(seconds, left))
        self.check()

    def rest(self, seconds: float) -> None:
        """Like pause; raises BrokenPipeError, too, when nobody reads the output any more."""
        left = self._left()
        poll = select.poll()
        poll.register(self._asked, select.POLLIN)
        if self._output is not None:
            poll.register(self._output, 0)
        poll.poll(1000 * (seconds if left is None else min(seconds, left)))
        if self._output is not None and _is_closed(self._output):
            raise BrokenPipeError
        self.pause(0)

    @property
    def over(self) -> bool:
        """Has a signal asked for the end, or the time run out?"""
        return self._signal != 0 or self._left() == 0

    def check(self) -> None:
        """Raise StopError when a signal asked for the end, TimedOutError when the time is over."""
        if self._signal:
            raise StopError(self._signal)
        if self._left() == 0:
            raise TimedOutError(f"nothing more came within {self._timeout}")

    def _left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def _until_heartbeat(self) -> float | None:
        if self._heartbeat is None:
            return None
        return max(0.0, self._spoke_at + self._heartbeat - time.monotonic())

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._signal:
            self._pass_on(signal.SIGKILL)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._signal = number
        os.write(self._asking, b"!")
        self._pass_on(number)
        signal.setitimer(signal.ITIMER_REAL, _STUCK_S)

    def _pass_on(self, number: int) -> None:
        """Send a signal also to the command that runs, with all that it started."""
        if self.child is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.child, number)

    def _insist(self, number: int, frame: FrameType | None) -> None:
        if self.child is None:
            raise StopError(self._signal, stuck=True)


def _pipe_behind(call: Call) -> int | None:
    """The descriptor of stdout where its reader may go away."""
    try:
        descriptor = call.terminal.stdout.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return None
    return descriptor if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


def _is_closed(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))
