"""status: one session, exactly, or an overview of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from ..errors import AheadError, ExitStatus, UsageError
from ..log.reading import Reading
from ..model import Changes, CursorReport, Event, Head, Notice
from ..report.escape import escape
from ..report.lines import event_line, watcher_line
from ..report.text import plural
from ..report.views import CHANGE_FIELDS, cursor_view, event_view
from ..timespec import Point, parse_point
from .look import require_known, style_of
from .options import Call, Result, command


@command("agent", "wait", fields=CHANGE_FIELDS)
def status(
    call: Call,
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="The session; without it, an overview.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", "--changes-since", metavar="N", help="Show the changes after this version (or time)."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Page through more than 200 changes.")] = False,
    children: Annotated[
        bool, typer.Option("--children", help="Also the child runs that ended since this session looked.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Answer as soon as there is a change after --since.")
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 when there are changes.")] = False,
) -> Result:
    """Show a session's state version, its watchers and, with --since, exactly what changed."""
    if since is None and (every or exit_code or wait or call.format in ("jsonl", "tsv")):
        raise UsageError("this needs --since", hint="openclaw-state status KEY --since N")
    if not wait:
        call.refuse_alone("timeout", needs="--wait")
    if key is None:
        if since is not None or children:
            raise UsageError("--since and --children need a session key")
        from .overview import overview

        return overview(call)
    point = None if since is None else parse_point(since, now=call.now, utc=call.utc)
    if wait and point:
        log = _awaited(call, key, point)
        call = call._replace(now=call.clock())
    else:
        log = call.read()
    with log.snapshot():
        seen = _see(log, key, call.agent, point, every=every, children=children)
    gap = _gap(call, log, seen)
    found = seen.changes
    status = ExitStatus.OK
    if found is not None and found.history_gap:
        status = ExitStatus.HISTORY_GAP
    elif exit_code and found is not None and found.events:
        status = ExitStatus.FINDINGS
    return Result(
        "status",
        _body(seen, gap),
        text=_text(call, seen),
        rows=[event.change() for event in found.events] if found else (),
        notes=lambda: _notes(seen, gap),
        log=log,
        status=status,
    )


class Seen(NamedTuple):
    """One session as one read transaction saw it; changes only where --since was given."""

    key: str
    agent: str | None
    head: Head | None
    oldest: int | None
    watchers: list[CursorReport]
    notices: dict[str, Notice]
    ended: list[Event] | None
    point: Point | None
    since: int | None
    changes: Changes | None

    @property
    def version(self) -> int:
        return self.head.version if self.head else 0


def _see(
    log: Reading, key: str, agent_id: str | None, point: Point | None, *, every: bool, children: bool
) -> Seen:
    require_known(log, key)
    agent = log.resolve_agent(key, agent_id)
    head = log.head(key, agent_id=agent) if agent else None
    since = None if point is None else _since(log, key, agent, point)
    if since is not None:
        _refuse_ahead(key, since, head)
    return Seen(
        key,
        agent,
        head,
        log.oldest_sequence(key, agent_id=agent) if agent else None,
        log.cursors(target=key),
        {notice.watcher: notice for notice in log.notices(target=key)},
        list(log.ended_children(key)) if children else None,
        point,
        since,
        None if since is None else _changes(log, key, agent, since, every=every),
    )


def _awaited(call: Call, key: str, point: Point) -> Reading:
    """The log, once the session has a change, or a gap, after a point."""
    from .wait import await_change

    since: int | None = None

    def changed(log: Reading, new_file: bool) -> bool:
        nonlocal since
        with log.snapshot():
            if new_file and not log.session_known(key):
                return False
            if since is None:
                if not log.embedded or log.newest_sequence():
                    require_known(log, key)
                since = _since(log, key, log.resolve_agent(key, call.agent), point)
            head = _head(log, key, call.agent)
            _refuse_ahead(key, since, head)
            return head is not None and (head.version > since or head.watermark > since)

    return await_change(call, changed)


def _since(log: Reading, key: str, agent: str | None, point: Point) -> int:
    if point.instant is None:
        return point.version or 0
    return log.version_at(key, point.instant, agent_id=agent) if agent else 0


def _head(log: Reading, key: str, agent_id: str | None) -> Head | None:
    agent = log.resolve_agent(key, agent_id)
    return log.head(key, agent_id=agent) if agent else None


def _refuse_ahead(key: str, since: int, head: Head | None) -> None:
    version = head.version if head else 0
    if since > version:
        raise AheadError(
            f"{key} has only reached version {version}, {since} lies ahead of it",
            hint="a restored or another database? read the session again and go on from its version",
            requested=since,
            head=version,
        )


def _changes(log: Reading, key: str, agent: str | None, since: int, *, every: bool) -> Changes:
    if agent is None:
        return Changes((), False, 0, False)
    found = log.changes_since(key, since, agent_id=agent)
    if not (every and found.truncated):
        return found
    rest = log.all_changes(key, found.events[-1].sequence, agent_id=agent)
    return found._replace(events=(*found.events, *rest), truncated=False)


def _gap(call: Call, log: Reading, seen: Seen) -> dict[str, Any] | None:
    if seen.changes is None or not seen.changes.history_gap:
        return None
    from .gaps import explain

    return explain(call, log, seen.key, seen.since or 0, seen.changes, seen.version)


def _body(seen: Seen, gap: dict[str, Any] | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "sessionKey": seen.key,
        "agentId": seen.agent,
        "stateVersion": seen.version,
        "prunedMaxSequence": seen.head.watermark if seen.head else 0,
        "oldestSequence": seen.oldest,
        "watchers": [cursor_view(report) for report in seen.watchers],
    }
    if seen.ended is not None:
        body["children"] = [event_view(event) for event in seen.ended]
    if seen.changes is None:
        return body
    if seen.point is not None and seen.point.instant is not None:
        body["sinceInstant"] = seen.point.instant
    body |= {
        "since": seen.since,
        "historyGap": seen.changes.history_gap,
        "stateChanges": seen.changes.view(),
    }
    if seen.changes.truncated:
        body["nextSince"] = seen.changes.events[-1].sequence
    if gap is not None:
        body["gap"] = gap
    return body


def _notes(seen: Seen, gap: dict[str, Any] | None) -> Iterator[str]:
    if gap is not None:
        yield f"error: {escape(gap['message'])}"
        yield from (f"  {escape(line)}" for line in gap["because"])
        yield f"  next: {escape(gap['advice'])}"
    if seen.changes is not None and seen.changes.truncated:
        yield f"more than 200 changes: go on with --since {seen.changes.events[-1].sequence}, or use --all"


def _text(call: Call, seen: Seen) -> Iterator[str]:
    style = style_of(call)
    first = call.palette.head(escape(seen.key)) + f"   version {seen.version}"
    if seen.changes is None:
        yield first + (f"   retained from {seen.oldest}" if seen.oldest else "   no events retained")
    else:
        events = seen.changes.events
        count = f"{len(events)}+ changes" if seen.changes.truncated else plural(len(events), "change")
        yield first + f"   {count} since {seen.since}"
        yield from (event_line(event, style, session=False) for event in events)
    if not seen.watchers:
        yield "not watched"
    for report in seen.watchers:
        yield watcher_line(report, seen.notices.get(report.cursor.watcher), style)
    if seen.ended is not None:
        yield (
            "child runs that ended since (log only, no notice):"
            if seen.ended
            else "no child runs ended since"
        )
        yield from (event_line(event, style) for event in seen.ended)
