"""tail -f: events as they are committed, from a position on, printed or handed to a command."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from ..core.follow import Batch, Follower, Gap
from ..core.listing import EventFilter
from ..core.waker import Waker
from ..errors import HookError, StateError
from ..log.following import Following
from ..model import Event
from ..report.escape import escape
from ..report.lines import event_line
from ..report.views import EVENT_FIELDS, event_view
from ..timespec import Point, format_clock
from .hooks import Task, chosen_runner, in_environment
from .look import require_known, style_of
from .options import Call, Part, Stream
from .position import Position
from .stream import Vigil, telling

if TYPE_CHECKING:
    from .beside import Beside


class Request(NamedTuple):
    """What `tail -f` was asked for.

    newest: how many older events to print first, None for all after `since`. goes_on: also
    with what comes, instead of ending at the head. beside: the upstream monitor, whose ticks
    are told too.
    """

    chosen: EventFilter
    since: Point | None
    until: Point | None
    newest: int | None
    heartbeat: str | None
    on_gap: str
    position: Position | None
    goes_on: bool = True
    beside: Beside | None = None


def follow(call: Call, request: Request) -> Stream:
    """The stream of `tail -f`."""
    lines = request.beside is not None and call.format == "text" and not call.terminal.stdout.isatty()
    return Stream("tail", _Tail(call, request).parts(), EVENT_FIELDS, "jsonl" if lines else None)


class _Tail:
    """One run of `tail -f`; reached is the sequence up to which everything was printed."""

    def __init__(self, call: Call, request: Request) -> None:
        self._call = call
        self._request = request
        self._left: int | None = call.flag("count")
        self._command: str | None = call.flag("exec")
        self._runner = chosen_runner(call)
        self._reached: int | None = None
        self._printed = False

    def parts(self) -> Generator[Part, None, None]:
        """Ends with the count or the bound; raises what ends it otherwise."""
        request = self._request
        self._reached = saved = request.position.load() if request.position else None
        with (
            telling(self._where),
            request.beside or nullcontext(),
            Vigil(self._call, heartbeat=request.heartbeat) as self._vigil,
            self._open() as log,
            log.waker() as waker,
        ):
            yield opening(self._call, log, waker)
            yield from self._batches(self._start(log, waker, saved))

    def _open(self) -> Following:
        log = self._vigil.open()
        self._database = log.path
        if not self._vigil.new_file:
            for key in self._request.chosen.session_keys:
                require_known(log, key)
        return log

    def _start(self, log: Following, waker: Waker, saved: int | None) -> Follower:
        request = self._request
        version = (request.since.version if request.since else None) or 0
        exact: int | None = None
        if saved is not None:
            exact = max(saved, version)
        elif request.newest is None:
            exact = version or None
        # A saved position goes on from there, whatever time --since names this time.
        chosen = request.chosen if saved is None else request.chosen._replace(later_than=None)
        return log.follower(waker, chosen, after=exact, newest=request.newest, on_gap=request.on_gap)

    def _batches(self, follower: Follower) -> Iterator[Part]:
        while True:
            start = follower.position
            batch = self._vigil.patiently(follower.read)
            self._reach(start)
            yield from self._told(batch)
            if self._left == 0 or self._is_past_end(batch):
                return
            if batch.position < batch.newest:
                self._vigil.check()
                continue
            if not self._request.goes_on:
                return
            yield from self._ticks()
            beside = self._request.beside
            also = () if beside is None else (beside.descriptor,)
            while not self._vigil.wait(follower.waker, timeout=self._until_instant(), also=also):
                yield from self._ticks()
                if self._until_instant() == 0:
                    return
                if self._vigil.heartbeat_due():
                    yield self._heartbeat(batch)

    def _ticks(self) -> Iterator[Part]:
        """What the monitor beside it has done since."""
        for told in self._request.beside.take() if self._request.beside else ():
            if told.ended_by is not None:
                raise told.ended_by
            self._vigil.spoke()
            records = [] if told.record is None else [told.record]
            yield Part(text=[f"-- {escape(told.words)}"], records=records)

    def _told(self, batch: Batch) -> Iterator[Part]:
        """The parts of one batch: its gaps, then its events, then the position behind it."""
        if batch.gaps:
            yield self._gaps(batch.gaps)
        events, reached = self._wanted(batch)
        if self._command is not None:
            yield from self._executed(events)
            events = []
        if reached == self._reached:
            return
        style = style_of(self._call)._replace(now=self._call.clock())
        if events:
            self._printed = True
            self._vigil.spoke()
        yield Part(
            text=[event_line(event, style) for event in events],
            rows=[event_view(event) for event in events],
            after=lambda: self._reach(reached),
        )

    def _wanted(self, batch: Batch) -> tuple[list[Event], int]:
        """The events up to the bound and the count, and the sequence that is reached with them."""
        reached = batch.position
        if self._request.until and self._request.until.version is not None:
            reached = max(self._reached or 0, min(reached, self._request.until.version))
        events = [event for event in batch.events if event.sequence <= reached]
        if self._left is not None:
            if len(events) >= self._left:
                events = events[: self._left]
                reached = events[-1].sequence
            self._left -= len(events)
        return events, reached

    def _executed(self, events: Sequence[Event]) -> Iterator[Part]:
        """The position follows each command that succeeded."""
        for event in events:
            self._vigil.check()
            try:
                self._runner.run(_task(self._database, self._command or "", event), self._vigil)
            except HookError as error:
                error.hint = self._where()
                error.details |= {"sequence": event.sequence}
                raise
            self._reach(event.sequence)
            self._vigil.spoke()
            yield Part()

    def _gaps(self, gaps: Sequence[Gap]) -> Part:
        words = [
            f"{escape(gap.session_key)} lost its events up to {gap.watermark}; its version is {gap.version}"
            for gap in gaps
        ]
        if self._request.on_gap == "skip" or self._call.format == "tsv":
            return Part(notes=[f"gap: {line}" for line in words])
        records = [{"type": "gap", **gap.view()} for gap in gaps]
        return Part(text=[f"-- {line}" for line in words], records=records)

    def _heartbeat(self, batch: Batch) -> Part:
        now = self._call.clock()
        self._vigil.spoke()
        record = {"type": "heartbeat", "at": now, "newestSequence": batch.newest}
        return Part(
            text=[f"-- {format_clock(now, utc=self._call.utc)}  head {batch.newest}"], records=[record]
        )

    def _is_past_end(self, batch: Batch) -> bool:
        until = self._request.until
        if until is None:
            return False
        if until.version is not None:
            return batch.position >= until.version
        return batch.position == batch.newest and self._until_instant() == 0

    def _until_instant(self) -> float | None:
        """Seconds until the instant of --until."""
        until = self._request.until
        if until is None or until.instant is None:
            return None
        return max(0, until.instant - self._call.clock()) / 1000

    def _reach(self, sequence: int) -> None:
        if self._request.position and sequence != self._reached:
            self._save(sequence)
        self._reached = sequence

    def _save(self, sequence: int) -> None:
        assert self._request.position
        try:
            self._request.position.save(sequence)
        except StateError as error:
            printed = f"all up to {sequence} was printed, but " if self._printed else ""
            raise type(error)(
                f"{printed}the position could not be saved: {error.message}",
                hint=f"free the place, then go on with --since {sequence}",
                sequence=sequence,
            ) from error

    def _where(self) -> str:
        if self._reached is None:
            return "stopped before anything was read"
        if self._request.position:
            return f"stopped after {self._reached}; go on with {self._request.position.resume}"
        return f"stopped after {self._reached}; go on with --since {self._reached}"


def opening(call: Call, log: Following, waker: Waker) -> Part:
    """What is said before the first event: warnings and, with -v, how changes are noticed."""
    notes = [f"warning: {escape(warning)}" for warning in log.warnings]
    if call.flag("verbose"):
        notes.insert(0, f"database: {escape(log.path)} (chosen by {log.location.via})")
        notes.append(f"following by {waker.method}")
    return Part(notes=notes)


def _task(database: str, command: str, event: Event) -> Task:
    values: Mapping[str, object] = {
        "SESSION_KEY": event.session_key,
        "AGENT_ID": event.agent_id,
        "SEQUENCE": event.sequence,
        "KIND": event.kind,
        "ACTOR": event.actor_type,
        "ACTOR_ID": event.actor_id,
        "RUN_ID": event.run_id,
    }
    return Task(f"event {event.sequence}", command, in_environment(database, values), event_view(event))
