"""record and run: appending to the log."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core import producers
from ..core.events import clamp
from ..core.keys import is_agent_qualified, owner
from ..errors import ExitStatus, RefusedError, StateError, UsageError
from ..log.recording import ChildRun, check_draft
from ..log.signal_log import SignalLog
from ..model import ACTORS, KINDS, OUTCOMES
from ..report.escape import escape
from ..report.lines import event_line, notice_lines
from ..report.views import EVENT_FIELDS, event_view, notice_view
from ..results import Recorded
from ..timespec import parse_duration, parse_point
from .look import style_of
from .options import Call, Result, command
from .overview import gateway_of

if TYPE_CHECKING:
    from subprocess import Popen

SUMMARY_LIMIT = 200
METADATA = ("outcome", "channel", "turns", "catalogId", "hostId")
TERM_GRACE_SECONDS = 5


@command("agent", "write", fields=EVENT_FIELDS)
def record(
    call: Call,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The session that changed.")],
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help=f"One of {', '.join(KINDS)}.")],
    actor: Annotated[
        str | None,
        typer.Option("--actor", metavar="TYPE[:ID]", help="human, agent or system, and who exactly."),
    ] = None,
    summary: Annotated[
        str | None, typer.Option("--summary", metavar="TEXT", help="One line; known kinds have their own.")
    ] = None,
    watcher: Annotated[
        list[str] | None,
        typer.Option("--watcher", metavar="W", help="A session that is to hear of it; repeatable."),
    ] = None,
    dedupe_key: Annotated[
        str | None, typer.Option("--dedupe-key", metavar="KEY", help="Record at most once under this key.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="JSON", help="Metadata, never content.")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", metavar="|".join(OUTCOMES), help="How a failed run ended.")
    ] = None,
    run_id: Annotated[str | None, typer.Option("--run", metavar="RUN", help="The run it belongs to.")] = None,
    session_id: Annotated[
        str | None, typer.Option("--session-id", metavar="ID", help="The session's own id.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="WHEN", help="When it happened, within the last 24 hours.")
    ] = None,
    only_if_watched: Annotated[
        bool, typer.Option("--only-if-watched", help="Record nothing when nobody watches the session.")
    ] = False,
    best_effort: Annotated[
        bool, typer.Option("--best-effort", help="Where recording fails, say so in a line and exit 0.")
    ] = False,
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="Accept kinds and actors that OpenClaw does not know.")
    ] = False,
    allow_multiline: Annotated[
        bool,
        typer.Option("--allow-multiline", help="Accept a summary of several lines or over 200 characters."),
    ] = False,
) -> Result:
    """Append one event, move the cursors of its watchers and show the notices that open."""
    if not allow_unknown and kind not in KINDS:
        raise UsageError(
            f"{kind!r} is no kind of event", hint=f"one of {', '.join(KINDS)}; or --allow-unknown"
        )
    occurred_at = None if at is None else parse_point(at, now=call.now, utc=call.utc, versions=False).instant
    draft = producers.typed(
        kind,
        key,
        owner(key, call.agent),
        actor=_actor(actor, allow_unknown),
        summary=summary,
        dedupe_key=dedupe_key,
        payload=_payload(payload),
        outcome=outcome,
        run_id=run_id,
        session_id=session_id,
        watchers=_watchers(watcher, key),
    )
    draft = draft._replace(occurred_at=occurred_at)
    check_draft(draft)
    if not allow_multiline and (len(draft.summary) > SUMMARY_LIMIT or len(draft.summary.splitlines()) > 1):
        raise UsageError(
            f"a summary is one line of at most {SUMMARY_LIMIT} characters", hint="or --allow-multiline"
        )
    warnings = [
        f"payload key {name!r} is not metadata that OpenClaw shows; the log is no place for content"
        for name in draft.payload or ()
        if name not in METADATA
    ]
    if occurred_at is not None and clamp(occurred_at, call.now) != occurred_at:
        warnings.append("the time lies outside the last 24 hours and was moved to their edge")
    try:
        log = call.change(create=True)
        done = log.append(draft, only_if_watched=only_if_watched)
    except UsageError:
        raise
    except StateError as error:
        if not best_effort:
            raise
        return Result(
            "record",
            {"recorded": False, "duplicate": False, "event": None, "notices": []},
            warnings=[f"not recorded: {error.message}"],
        )
    return _recorded(call, log, done, warnings)


def _watchers(named: list[str] | None, target: str) -> tuple[str, ...]:
    for watcher in named or ():
        if watcher == target:
            raise RefusedError("the watch was refused: a session cannot watch itself")
        if not is_agent_qualified(watcher):
            raise UsageError(
                f"{watcher!r} cannot be a watcher",
                hint="a watcher has an agent-qualified key: agent:<id>:<rest>",
            )
    return tuple(named or ())


def _recorded(call: Call, log: SignalLog, done: Recorded, warnings: Sequence[str]) -> Result:
    view = event_view(done.event) if done.event else None
    gateway = gateway_of(log, call.now) if done.opened else None
    if gateway is not None and gateway.maybe_alive:
        warnings = [*warnings, "a live gateway hears of this with its next event for the watcher, not before"]

    def text() -> Iterator[str]:
        style = style_of(call)
        if done.event is None:
            yield "nothing recorded: nobody watches the session"
            return
        yield event_line(done.event, style)
        if done.duplicate:
            yield "already recorded under that dedupe key; nothing moved"
        for notice in done.opened:
            yield from notice_lines(notice, style)

    return Result(
        "record",
        {
            "recorded": done.event is not None and not done.duplicate,
            "duplicate": done.duplicate,
            "event": view,
            "notices": [notice_view(notice) for notice in done.opened],
        },
        text=text(),
        rows=[view] if view else [],
        log=log,
        warnings=warnings,
    )


def _actor(text: str | None, allow_unknown: bool) -> tuple[str, str | None] | None:
    if text is None:
        return None
    kind, colon, identity = text.partition(":")
    if kind not in ACTORS and not allow_unknown:
        raise UsageError(f"{kind!r} is no actor", hint=f"one of {', '.join(ACTORS)}, or --allow-unknown")
    return kind, identity if colon else None


def _payload(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--payload is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError("--payload is a JSON object", hint='for example {"channel":"telegram"}')
    return value


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON number")


@command("agent", "write", fields=("parent", "child", "runId", "outcome", "exitStatus"))
def run(
    call: Call,
    program: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command to run.")],
    parent: Annotated[str, typer.Option("--parent", metavar="P", help="The session that starts the child.")],
    child: Annotated[str, typer.Option("--child", metavar="C", help="The child session.")],
    run_id: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="The run id; a new one by default.")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="D", help="End CMD after this long (exit 124).")
    ] = None,
    best_effort: Annotated[
        bool, typer.Option("--best-effort", help="Run CMD also where recording fails.")
    ] = False,
) -> Result:
    """Record that a child session was spawned, run CMD, record how it ended; exits with CMD's status.

    With a machine format, what CMD prints goes to stderr, so that stdout stays one document.
    """
    seconds = None if timeout is None else parse_duration(timeout) / 1000
    check_draft(
        producers.child_spawned(child, owner(child, call.agent), requester=parent, run_id=run_id or "")
    )
    _watchers([parent], child)
    log: SignalLog | None = None
    warnings: list[str] = []
    try:
        log = call.change(create=True, best_effort=best_effort)
    except StateError as error:
        if not best_effort:
            raise
        warnings.append(f"not recorded: {error.message}")
    recorded = (
        log.child_run(parent, child, run_id=run_id, agent_id=call.agent)
        if log is not None
        else nullcontext(ChildRun(run_id or ""))
    )
    with recorded as run:
        ended = _execute(call, program, seconds)
        run.outcome = ended.outcome
    if run.known:
        warnings.append(f"run {run.run_id} is in the log already; how it ended now was not recorded")
    body = {
        "parent": parent,
        "child": child,
        "runId": run.run_id or None,
        "outcome": ended.outcome or "ok",
        "exitStatus": ended.status,
    }
    return Result("run", body, rows=[body], log=log, warnings=warnings, status=ended.status)


class _Ended:
    """How a program ended: its status by the shell's rules, and the outcome to record."""

    def __init__(self, status: int, outcome: str | None) -> None:
        self.status = status
        self.outcome = outcome


class _Signals:
    """Signals while a program runs are noted and handed on to it.

    An interrupt is only noted: the terminal sends it to the program as well.
    """

    def __init__(self) -> None:
        self.received: list[int] = []
        self._process: Popen[bytes] | None = None

    def __enter__(self) -> _Signals:
        numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
        self._before = {number: signal.signal(number, self._note) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hand_on_to(self, process: Popen[bytes]) -> None:
        """Name the program; it also gets what came while it was being started."""
        self._process = process
        for number in self.received:
            self._hand_on(number)

    def _note(self, number: int, _frame: object) -> None:
        self.received.append(number)
        self._hand_on(number)

    def _hand_on(self, number: int) -> None:
        if self._process is not None and number != signal.SIGINT:
            self._process.send_signal(number)


def _execute(call: Call, program: Sequence[str], seconds: float | None) -> _Ended:
    import subprocess

    stderr = call.terminal.stderr
    with _Signals() as signals:
        try:
            process = subprocess.Popen(program, stdout=None if call.format == "text" else stderr.fileno())
        except FileNotFoundError:
            stderr.write(f"error: there is no program {escape(program[0])}\n")
            return _Ended(127, "error")
        except OSError as error:
            stderr.write(f"error: {escape(program[0])} cannot be run: {error.strerror}\n")
            return _Ended(126, "error")
        signals.hand_on_to(process)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            return _Ended(ExitStatus.TIMED_OUT, "timeout")
    if status < 0:
        return _Ended(128 - status, "cancelled" if signals.received else "error")
    return _Ended(status, "cancelled" if signals.received and status else "error" if status else None)


def _end(process: Popen[bytes]) -> None:
    """Ask the program to end, and after a while do not ask."""
    import subprocess

    process.terminate()
    try:
        process.wait(TERM_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
