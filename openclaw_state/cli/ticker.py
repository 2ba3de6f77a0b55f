"""The upstream monitor of one opened log: what it may do here, when its ticks fall, and one tick."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from typing import NamedTuple

from ..errors import ConfigurationError, RefusedError
from ..host.liveness import Gateway
from ..log.planning import Plan
from ..log.reading import Reading
from ..log.signal_log import SignalLog
from ..results import Streak, StreakKey, Tick, Verdict
from ..upstream import streaks
from ..upstream.monitor import TIMEOUT_S, Monitor
from .options import Call
from .overview import gateway_of
from .upstream import catalogs_of, sessions_of, streaks_of

EVERY_S = 60.0
FIRST_S = 15.0

_MOVED = {Verdict.RECORDED, Verdict.KNOWN, Verdict.ADVANCED}


class BesideError(RefusedError):
    """A gateway that may be alive runs a monitor of its own (contract, upstream section 17, item 10)."""

    def __init__(self, gateway: Gateway) -> None:
        alive = gateway.state == "alive"
        who = (
            f"the gateway at pid {gateway.pid}"
            if alive
            else f"a gateway that may be alive ({gateway.detail})"
        )
        super().__init__(
            f"{who} runs its own monitor; recording first would cost its watchers the push",
            hint="leave it to the gateway, or go on with --anyway",
            gateway={"state": gateway.state, "pid": gateway.pid},
        )
        self.gateway = gateway


class Settings(NamedTuple):
    """How the monitor is to run; every_s is the pace, provider_timeout_s what one catalog may take.

    anyway goes on beside a gateway that may be alive, and looks at the account's own programs
    although the state is an isolated one.
    """

    only: frozenset[str] | None = None
    strict: bool = False
    anyway: bool = False
    catch_up: bool = False
    every_s: float = EVERY_S
    provider_timeout_s: float = TIMEOUT_S


class Schedule:
    """Ticks 15 s after the start and then at whole multiples of the pace; what one overruns is dropped."""

    def __init__(self, every_s: float, started: float) -> None:
        """started, and every now below, is a time of one monotonic clock (s)."""
        self._every_s = every_s
        self._started = started
        self._next = min(FIRST_S, every_s)

    def left(self, now: float) -> float:
        """Seconds until the next tick."""
        return max(0.0, self._started + self._next - now)

    def passed(self, now: float) -> None:
        """The due tick was done."""
        elapsed = max(now - self._started, self._next)
        self._next = (math.floor(elapsed / self._every_s) + 1) * self._every_s
        if elapsed < FIRST_S:
            self._next = min(self._next, FIRST_S)


class Ticker:
    """The monitor on one log, which is the caller's; one opened for reading is only planned on.

    Ask `due`, then call `tick`; both in the thread that uses the log.
    """

    def __init__(
        self, call: Call, log: Reading, settings: Settings, *, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        """Raises ConfigurationError where sessions cannot be known."""
        self._call = call
        self._log = log
        self._settings = settings
        self._stopped = stopped
        self._schedule = Schedule(settings.every_s, time.monotonic())
        # What kept a streak of missing checks from being written down.
        self.unsaved: Exception | None = None
        if log.location.state_dir is None and not log.embedded:
            raise ConfigurationError(
                f"{log.path} has no agent stores beside it, so what a session sent itself is unknown",
                hint="name the state directory with --state-dir",
            )
        self.gateway: Gateway | None = None
        self._writable = False
        self._plan = None if isinstance(log, SignalLog) else self._planned()

    def require_allowed(self) -> None:
        """Raise BesideError where a gateway that may be alive runs a monitor of its own, and what
        the first change would raise: RefusedError, BusyError."""
        self.gateway = gateway_of(self._log, self._call.clock())
        if not isinstance(self._log, SignalLog):
            return
        if self.gateway is not None and self.gateway.maybe_alive and not self._settings.anyway:
            raise BesideError(self.gateway)
        if not self._writable:
            self._log.ensure_writable()
            self._writable = True

    def due(self, now: float) -> bool:
        """Is it time for a tick? now is time.monotonic()."""
        return self.left(now) == 0

    def left(self, now: float) -> float:
        """Seconds until the next tick is due."""
        return self._schedule.left(now)

    def tick(self) -> Tick:
        """One tick; with catch_up as many as it takes until no link moves, in one answer.

        Raises BesideError when a gateway came meanwhile, and StorageError when the streaks of
        missing checks cannot be read; one that cannot be written is in `unsaved`.
        """
        try:
            self.require_allowed()
            found = last = self._tick(self._settings.only)
            while self._settings.catch_up and (moved := _moved(last)) and not last.stopped:
                last = self._tick(moved)
                found = _joined(found, last)
            return found
        finally:
            self._schedule.passed(time.monotonic())

    def _tick(self, only: Collection[str] | None) -> Tick:
        if self._plan is not None:
            return self._monitor(*self._plan).tick(only)
        kept = streaks_of(self._log)
        assert isinstance(self._log, SignalLog)
        tick = self._monitor(self._log, kept).tick(only)
        self.unsaved = kept.failure or self.unsaved
        return tick

    def _planned(self) -> tuple[Plan, dict[StreakKey, Streak]]:
        plan = Plan(self._log, strict=self._settings.strict, clock=self._call.clock)
        return plan, dict(streaks_of(self._log))

    def _monitor(self, log: SignalLog | Plan, kept: streaks.Streaks) -> Monitor:
        environ, strict = self._call.terminal.environ, self._settings.strict
        return Monitor(
            log,
            sessions_of(self._log, environ, self.gateway, strict=strict),
            catalogs_of(self._log, environ, ungated=self._settings.anyway, strict=strict),
            clock=self._call.clock,
            kept=kept,
            policy=streaks.ACROSS_RUNS,
            timeout_s=self._settings.provider_timeout_s,
            stopped=self._stopped,
        )


def ticker(call: Call, log: Reading, settings: Settings = Settings()) -> Ticker:  # noqa: B008
    """The monitor on a log that is open already, refused as the command would be."""
    made = Ticker(call, log, settings)
    made.require_allowed()
    return made


def _moved(tick: Tick) -> set[str]:
    """The sessions whose links may have more to read."""
    last = {report.link[:2]: report for report in tick.links}
    return {
        report.link.session_key
        for report in last.values()
        if report.verdict in _MOVED and report.next_marker not in (None, report.link.marker)
    }


def _joined(before: Tick, after: Tick) -> Tick:
    """Two ticks as one answer; that a link which moved is quiet at last need not be said."""
    news = [report for report in after.links if report.verdict is not Verdict.QUIET]
    return Tick(
        before.at,
        (*before.links, *news),
        (*before.failures, *after.failures),
        before.listing_failure or after.listing_failure,
        after.stopped,
    )
