"""monitor --every: one tick after another, each told as soon as it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import HookError, NoDatabaseError
from ..log.reading import Reading
from ..report.escape import escape
from ..report.monitoring import TICK_FIELDS
from ..results import Tick
from ..timespec import format_clock
from .hooks import Runner
from .monitor import UNDONE, Shown, deliver_all, failure_of, opened, require_links
from .options import Call, Part, Stream
from .stream import Vigil, telling
from .ticker import BesideError, Settings, Ticker


class Request(NamedTuple):
    """What `monitor --every` was asked for; runner delivers the notices that open."""

    settings: Settings
    runner: Runner | None
    explain: bool
    unless_gateway: bool


def follow(call: Call, request: Request) -> Stream:
    """The stream of `monitor --every`."""
    return Stream("monitor", _Ticks(call, request).parts(), TICK_FIELDS)


class _Ticks:
    """One run of `monitor --every`."""

    def __init__(self, call: Call, request: Request) -> None:
        self._call = call
        self._request = request
        self._left: int | None = call.flag("count")

    def parts(self) -> Iterator[Part]:
        """Ends with the count; raises what ends it otherwise."""
        with telling(lambda: f"stopped; {UNDONE}"), Vigil(self._call) as self._vigil:
            self._vigil.located()
            self._log = self._open()
            yield Part(notes=[f"warning: {escape(warning)}" for warning in self._log.warnings])
            yield from self._ticks()

    def _open(self) -> Reading:
        log = opened(self._call, self._request.settings)
        require_links(log, self._request.settings.only or ())
        vigil = self._vigil
        self._ticker = Ticker(self._call, log, self._request.settings, stopped=lambda: vigil.over)
        if not self._request.unless_gateway:
            self._ticker.require_allowed()
        return log

    def _ticks(self) -> Iterator[Part]:
        while self._left != 0:
            self._log.release()
            self._vigil.rest(self._ticker.left(time.monotonic()))
            if not self._ticker.due(time.monotonic()):
                continue
            try:
                tick = self._vigil.patiently(self._ticker.tick)
            except BesideError:
                if not self._request.unless_gateway:
                    raise
                continue
            if isinstance(tick.listing_failure, NoDatabaseError):
                raise tick.listing_failure
            yield self._told(tick)
            if tick.stopped:
                self._vigil.pause(0)
            if self._left is not None:
                self._left -= 1

    def _told(self, tick: Tick) -> Part:
        shown = Shown(self._call, tick, self._ticker, explain=self._request.explain)
        *lines, last = shown.lines()
        view = shown.view()
        notes = [f"warning: {escape(warning)}" for warning in shown.warnings()]
        failure = tick.listing_failure or failure_of(tick, self._ticker)
        if failure is not None:
            notes.append(f"error: {escape(str(failure))}")
        self._ticker.unsaved = None
        return Part(
            text=[*lines, f"{format_clock(tick.at, utc=self._call.utc)}  {last}"],
            rows=[view | {"links": list(view["links"])}],
            notes=notes,
            after=lambda: self._deliver(tick),
        )

    def _deliver(self, tick: Tick) -> None:
        """A refused delivery must not keep the next tick waiting: its notice stays pending."""
        try:
            deliver_all(self._log, tick, self._request.runner, self._vigil)
        except HookError as error:
            self._vigil.say(f"error: {escape(error.message)}; its notice stays pending")
