"""tail: events of the log, the newest ten by default, and with -f those to come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.listing import EventFilter
from ..errors import UsageError
from ..model import ON_GAP, Event
from ..report.lines import event_line
from ..report.views import EVENT_FIELDS, event_view
from ..timespec import Point, parse_point
from .look import parse_count, require_known, style_of
from .options import Call, Result, Stream, command

if TYPE_CHECKING:
    from .position import Position

DEFAULT_LINES = "10"


@command("agent", "follow", fields=EVENT_FIELDS)
def tail(
    call: Call,
    key: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="Only these sessions.")] = None,
    lines_: Annotated[
        str | None, typer.Option("-n", "--lines", metavar="N|all", help="How many of the newest events.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="Events after this sequence or time.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="WHEN", help="Events up to this sequence or time.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Only this kind; repeatable.")
    ] = None,
    actor: Annotated[
        list[str] | None,
        typer.Option("--actor", metavar="TYPE[:ID]", help="Only events of this actor; repeatable."),
    ] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only events of this run.")] = None,
    heartbeat: Annotated[
        str | None,
        typer.Option("--heartbeat", metavar="D", help="Print the head after each silence."),
    ] = None,
    position_file: Annotated[
        str | None, typer.Option("--position-file", metavar="FILE", help="Keep the position in this file.")
    ] = None,
    on_gap: Annotated[
        str | None,
        typer.Option(
            "--on-gap", metavar="|".join(ON_GAP), help="What to do when retention overtook the position."
        ),
    ] = None,
) -> Result | Stream:
    """Print events in order: the newest ten, or all after --since; with -f also those to come."""
    if on_gap not in (None, *ON_GAP):
        raise UsageError(f"--on-gap is one of {', '.join(ON_GAP)}, not {on_gap!r}")
    first = _point(call, since)
    last = _point(call, until)
    position = _position(call, call.flag("position"), position_file)
    chosen = EventFilter(
        session_keys=tuple(key or ()),
        agent_id=call.agent,
        kinds=tuple(kind or ()),
        actors=tuple(actor or ()),
        run_id=run,
        after=first.version if first else None,
        through=last.version if last else None,
        later_than=first.instant if first else None,
        until=last.instant if last else None,
    )
    if call.flag("follow") or position:
        newest = parse_count(lines_, "-n", least=0)
        if lines_ is None and first is None:
            newest = 0 if position else int(DEFAULT_LINES)
        from .follow import Request, follow

        request = Request(
            chosen, first, last, newest, heartbeat, on_gap or ON_GAP[0], position, call.flag("follow")
        )
        return follow(call, request)
    call.refuse_alone("count", "timeout", "exec", "exec_timeout", "exec_retry", needs="-f")
    if heartbeat is not None or on_gap is not None:
        raise UsageError(f"{'--heartbeat' if heartbeat else '--on-gap'} needs -f")
    newest = parse_count(lines_ or (DEFAULT_LINES if since is None else None), "-n")
    log = call.read()
    for name in key or ():
        require_known(log, name)
    returned = 0

    def counted() -> Iterator[Event]:
        nonlocal returned
        for event in log.events(chosen, newest=newest):
            returned += 1
            yield event

    style = style_of(call)
    return Result(
        "tail",
        {
            "events": (event_view(event) for event in counted()),
            "returned": lambda: returned,
            "newestSequence": log.newest_sequence(),
        },
        text=(event_line(event, style) for event in counted()),
        rows=(event_view(event) for event in counted()),
        notes=lambda: [] if returned else ["no events match"],
        log=log,
    )


def _position(call: Call, name: str | None, file: str | None) -> Position | None:
    if name is None and file is None:
        return None
    from .position import chosen_position

    return chosen_position(call, name, file)


def _point(call: Call, text: str | None) -> Point | None:
    return None if text is None else parse_point(text, now=call.now, utc=call.utc)
