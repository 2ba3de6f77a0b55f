"""notices -f: each pending notice once, when it opens or reopens; printed, run or delivered."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..core.waker import Waker
from ..errors import HookError, StateError, StorageError
from ..log.following import Following
from ..log.signal_log import SignalLog
from ..model import Notice
from ..report.escape import escape
from ..report.lines import notice_lines
from ..report.views import NOTICE_FIELDS, notice_view
from .follow import opening
from .hooks import Task, chosen_runner, deliverer, delivery, growing_pauses, in_environment, named
from .look import style_of
from .options import Call, Part, Stream
from .overview import queue_warnings
from .stream import Vigil, telling

Identity = tuple[str, str, int]


class Request(NamedTuple):
    """What `notices -f` was asked for; deliver hands each line to OpenClaw itself."""

    watcher: str | None
    ack: bool
    deliver: bool


def follow(call: Call, request: Request) -> Stream:
    """The stream of `notices -f`."""
    return Stream("notices", _Notices(call, request).parts(), NOTICE_FIELDS)


class _Notices:
    """One run of `notices -f`; announced are those told already that are still pending."""

    def __init__(self, call: Call, request: Request) -> None:
        self._call = call
        self._request = request
        self._left: int | None = call.flag("count")
        self._command: str | None = call.flag("exec")
        self._position: str | None = call.flag("position")
        self._runner = deliverer(call) if request.deliver else chosen_runner(call)
        # Deliveries that were refused: when each is due again (monotonic s), and the pauses after it.
        self._refused: dict[Identity, tuple[float, Iterator[float]]] = {}
        self._announced: set[Identity] = set()
        self._saved: set[Identity] | None = None

    def parts(self) -> Iterator[Part]:
        """Ends with the count; raises what ends it otherwise."""
        self._load()
        with (
            telling(self._where),
            Vigil(self._call) as self._vigil,
            self._vigil.open() as log,
            log.waker() as waker,
        ):
            yield self._opening(log, waker)
            yield from self._opened(log, waker)

    def _opening(self, log: Following, waker: Waker) -> Part:
        part = opening(self._call, log, waker)
        warnings = queue_warnings(self._call, log) if self._request.ack else []
        if self._request.ack:
            with self._change() as changing:
                changing.ensure_writable()
        return part._replace(notes=[*part.notes, *(f"warning: {warning}" for warning in warnings)])

    def _opened(self, log: Following, waker: Waker) -> Iterator[Part]:
        while True:
            found = self._vigil.patiently(lambda: waker.look(lambda: log.notices(self._request.watcher)))
            pending = {notice.identity: notice for notice in found}
            self._announced &= pending.keys()
            self._refused = {one: due for one, due in self._refused.items() if one in pending}
            for notice in pending.values():
                if self._is_due(notice):
                    yield from self._told(log, notice)
                    if self._left == 0:
                        return
                    self._vigil.check()
            self._save()
            while not self._vigil.wait(waker, timeout=self._until_due()) and self._until_due() != 0:
                pass

    def _is_due(self, notice: Notice) -> bool:
        """What cannot be acknowledged or delivered is not told by --ack and --deliver."""
        if notice.identity in self._announced:
            return False
        if (self._request.ack or self._request.deliver) and notice.delivery.ok is False:
            return False
        due, _ = self._refused.get(notice.identity, (0.0, None))
        return due <= time.monotonic()

    def _until_due(self) -> float | None:
        """Seconds until a refused delivery is tried again."""
        if not self._refused:
            return None
        return max(0.0, min(due for due, _ in self._refused.values()) - time.monotonic())

    def _told(self, log: Following, notice: Notice) -> Iterator[Part]:
        task = self._task(log, notice)
        if task is None:
            yield self._shown(notice)._replace(after=lambda: self._told_of(notice))
        else:
            try:
                self._runner.run(task, self._vigil)
            except HookError as error:
                self._failed(notice, error)
                return
            self._told_of(notice)
            yield self._shown(notice) if self._request.deliver else Part()
        if self._left is not None:
            self._left -= 1

    def _shown(self, notice: Notice) -> Part:
        style = style_of(self._call)._replace(now=self._call.clock())
        return Part(text=list(notice_lines(notice, style)), rows=[notice_view(notice)])

    def _failed(self, notice: Notice, error: HookError) -> None:
        """A delivery is tried again later, while others go on; any other command ends the stream."""
        if not self._request.deliver:
            error.hint = "the notice stays pending and unacknowledged"
            error.details |= {"watcher": notice.watcher, "target": notice.target}
            raise error
        _, pauses = self._refused.get(notice.identity, (0.0, growing_pauses()))
        pause = next(pauses)
        self._refused[notice.identity] = time.monotonic() + pause, pauses
        self._vigil.say(f"{escape(error.message)}; it is tried again in {pause:.0f} s")

    def _told_of(self, notice: Notice) -> None:
        if self._request.ack:
            with self._change() as log:
                log.acknowledge_notices([notice])
        self._refused.pop(notice.identity, None)
        self._announced.add(notice.identity)
        self._save()

    def _task(self, log: Following, notice: Notice) -> Task | None:
        if self._request.deliver:
            return delivery(notice, log.location.state_dir)
        if self._command is None:
            return None
        values: dict[str, Any] = {
            "WATCHER": notice.watcher,
            "TARGET": notice.target,
            "SEQUENCE": notice.since,
            "KIND": notice.kind,
            "WAKE": notice.wake,
            "TEXT": notice.text,
        }
        environ = in_environment(log.path, values)
        return Task(named(notice), self._command, environ, notice_view(notice))

    def _change(self) -> SignalLog:
        return self._call.changing()

    def _load(self) -> None:
        if self._position is None:
            return
        from ..sidecar import Sidecar

        self._sidecar = Sidecar()
        self._key = (self._call.location().path, "notices", self._position)
        found = self._sidecar.position(*self._key) or []
        try:
            self._announced = {(str(watcher), str(target), int(seen)) for watcher, target, seen in found}
        except (TypeError, ValueError) as error:
            raise StorageError(f"{self._sidecar.path} holds no notices under {self._key[2]!r}") from error

    def _save(self) -> None:
        if self._position is None or self._announced == self._saved:
            return
        try:
            self._sidecar.save_position(*self._key, sorted(self._announced))
        except StateError as error:
            raise StorageError(
                f"the position could not be saved: {error.message}", hint="free the place, then start again"
            ) from error
        self._saved = set(self._announced)

    def _where(self) -> str:
        if self._position is None:
            return "stopped; started again, it tells of every notice that is still pending"
        return f"stopped; go on with --position {shlex.quote(self._position)}"
