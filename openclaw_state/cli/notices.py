"""notices: what watchers have not yet been told, and re-arming it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ..errors import ConfigurationError, RefusedError, UsageError
from ..log.reading import Reading
from ..log.signal_log import SignalLog
from ..model import Notice
from ..report.escape import escape
from ..report.lines import notice_lines
from ..report.text import plural
from ..report.views import NOTICE_FIELDS, notice_view
from .look import require_known, style_of
from .options import Call, Result, Stream, command
from .overview import gateway_of, queue_warnings

# The only receiver that --deliver knows.
GATEWAY_PROGRAM = "openclaw"


@command("write", "follow", fields=NOTICE_FIELDS)
def notices(
    call: Call,
    watcher: Annotated[
        str | None, typer.Argument(metavar="[WATCHER]", help="Only notices of this session.")
    ] = None,
    ack: Annotated[bool, typer.Option("--ack", help="Acknowledge what is shown; needs a watcher.")] = False,
    deliver: Annotated[
        str | None,
        typer.Option("--deliver", metavar=GATEWAY_PROGRAM, help="With -f, hand each line to its session."),
    ] = None,
) -> Result | Stream:
    """Show pending notices with the exact line; with --ack, acknowledge exactly those."""
    if ack and watcher is None and not call.flag("follow"):
        raise UsageError("--ack needs a watcher", hint="openclaw-state notices WATCHER --ack")
    if deliver not in (None, GATEWAY_PROGRAM):
        raise UsageError(f"--deliver knows only {GATEWAY_PROGRAM}", hint="--exec runs any other command")
    if call.flag("follow"):
        if deliver and call.flag("exec"):
            raise UsageError("--deliver and --exec contradict each other")
        from .follow_notices import Request, follow

        return follow(call, Request(watcher, ack, deliver is not None))
    call.refuse_alone("count", "timeout", "position", "exec", "exec_timeout", "exec_retry", needs="-f")
    if deliver:
        raise UsageError("--deliver needs -f")
    log: Reading = call.change() if ack else call.read()
    if watcher is not None:
        require_known(log, watcher)
    if isinstance(log, SignalLog):
        log.ensure_writable()
    found = log.notices(watcher)
    if ack:
        found = [notice for notice in found if notice.delivery.ok is not False]
    rows = [notice_view(notice) for notice in found]

    def acknowledge() -> None:
        if isinstance(log, SignalLog):
            log.acknowledge_notices(found)

    def text() -> Iterator[str]:
        for notice in found:
            yield from notice_lines(notice, style_of(call))

    def notes() -> Iterator[str]:
        yield plural(len(found), "notice") + (" acknowledged" if ack else " pending")
        yield from _left_lines(log.notices(watcher) if ack else [])

    return Result(
        "notices",
        {"notices": rows, "total": len(rows), "acknowledged": ack},
        text=text(),
        rows=rows,
        notes=notes,
        log=log,
        warnings=queue_warnings(call, log) if ack and found else [],
        after=acknowledge,
    )


def _left_lines(left: list[Notice]) -> Iterator[str]:
    if left:
        yield f"{plural(len(left), 'notice')} still pending (followed up, or not deliverable)"


@command("write", fields=NOTICE_FIELDS)
def sweep(call: Call) -> Result:
    """Re-arm every pending notice whose watcher exists, as a gateway does when it starts."""
    log = call.change()
    if log.location.state_dir is None and not log.embedded:
        raise ConfigurationError(
            f"{log.path} has no agent stores beside it, so no watcher can be known to exist",
            hint="name the state directory with --state-dir",
        )
    gateway = gateway_of(log, call.now)
    if gateway is not None and gateway.maybe_alive:
        raise RefusedError(
            f"a gateway may be running ({gateway.detail}); sweeping beside it would swallow follow-ups",
            hint="the gateway sweeps by itself when it starts",
        )
    done = log.sweep()
    rows = [notice_view(notice) for notice in done.notices]
    skipped = [
        {"watcher": cursor.watcher, "target": cursor.target, "reason": reason}
        for cursor, reason in done.skipped
    ]

    def text() -> Iterator[str]:
        for notice in done.notices:
            yield from notice_lines(notice, style_of(call))
        for cursor, reason in done.skipped:
            yield f"skipped {escape(cursor.watcher)} -> {escape(cursor.target)}: {reason}"

    return Result(
        "notices sweep",
        {"notices": rows, "skipped": skipped, "total": len(rows)},
        text=text(),
        rows=rows,
        notes=lambda: [f"{plural(len(rows), 'notice')} re-armed, {len(skipped)} skipped"],
        log=log,
    )
