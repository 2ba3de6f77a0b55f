"""tail: events of the log, the newest ten by default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from ..core.listing import EventFilter
from ..model import Event
from ..report.lines import event_line
from ..report.views import EVENT_FIELDS, event_view
from ..timespec import Point, parse_point
from .look import parse_count, require_known, style_of
from .options import Call, Result, command

DEFAULT_LINES = "10"


@command("agent", fields=EVENT_FIELDS)
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
) -> Result:
    """Print events in order: the newest ten, or all after --since."""
    first = _point(call, since)
    last = _point(call, until)
    newest = parse_count(lines_ or (DEFAULT_LINES if since is None else None), "-n")
    log = call.read()
    for name in key or ():
        require_known(log, name)
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


def _point(call: Call, text: str | None) -> Point | None:
    return None if text is None else parse_point(text, now=call.now, utc=call.utc)


def follow_plain(call: Call, keys: Sequence[str]) -> Result:
    """Stand-in until `tail -f` is here: the newest ten events, and no following."""
    events = call.read().events(EventFilter(session_keys=tuple(keys), agent_id=call.agent), newest=10)
    return Result("tail", {}, text=(event_line(event, style_of(call)) for event in events))
