"""The upstream monitor beside a live view: in a thread of its own, so that nothing waits for it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Self

from ..core.opening import is_blank
from ..errors import StateError
from ..report.monitoring import summary
from ..timespec import format_clock
from .monitor import Shown, failure_of
from .options import Call
from .ticker import BesideError, Settings, Ticker

_CREATION_POLL_S = 0.25
_LAST_STEP_S = 1.0


class Told(NamedTuple):
    """One tick as a line and as JSON, or what ended the monitor."""

    words: str
    record: Mapping[str, Any] | None = None
    ended_by: StateError | None = None


class Beside:
    """The monitor at its usual pace; a context manager, in which it runs."""

    def __init__(self, call: Call) -> None:
        """Refused as the command is: raises BesideError, RefusedError, BusyError, ConfigurationError."""
        self._call = call
        self._settings = Settings()
        self._end = threading.Event()
        self._told: deque[Told] = deque()
        self.words = "monitor waits"
        if self._is_there():
            with call.changing(clock=call.clock) as log:
                try:
                    Ticker(call, log, self._settings).require_allowed()
                except BesideError as error:
                    error.hint = "leave it to the gateway: watch without --monitor"
                    raise

    def __enter__(self) -> Self:
        self.descriptor, self._told_to = os.pipe()
        os.set_blocking(self.descriptor, False)
        self._thread = threading.Thread(target=self._run, name="openclaw-state-monitor", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(_LAST_STEP_S)
        if not self._thread.is_alive():
            os.close(self.descriptor)
            os.close(self._told_to)

    def take(self) -> list[Told]:
        """What was told since the last call; the descriptor can be read while there is something."""
        with suppress(BlockingIOError):
            while os.read(self.descriptor, 4096):
                pass
        found = []
        while self._told:
            found.append(self._told.popleft())
            self.words = found[-1].words
        return found

    def _is_there(self) -> bool:
        location = self._call.location()
        return not (location.embedded and is_blank(location.path))

    def _run(self) -> None:
        try:
            while not self._is_there():
                if self._end.wait(_CREATION_POLL_S):
                    return
            with self._call.changing(clock=self._call.clock) as log:
                ticker = Ticker(self._call, log, self._settings, stopped=self._end.is_set)
                log.release()
                while not self._end.wait(ticker.left(time.monotonic())):
                    self._tick(ticker)
                    log.release()
        except StateError as error:
            self._tell(Told(f"monitor ended: {error.message}", ended_by=error))

    def _tick(self, ticker: Ticker) -> None:
        try:
            tick = ticker.tick()
        except BesideError:
            raise
        except StateError as error:
            self._tell(Told(f"monitor: {error.message}"))
            return
        if tick.stopped:
            return
        view = Shown(self._call, tick, ticker, explain=False).view()
        failure = tick.listing_failure or failure_of(tick, ticker)
        words = str(failure) if failure else summary(tick)
        at = format_clock(tick.at, utc=self._call.utc)
        self._tell(Told(f"monitor {at}: {words}", {"type": "tick", **view, "links": list(view["links"])}))

    def _tell(self, told: Told) -> None:
        self._told.append(told)
        os.write(self._told_to, b"!")
