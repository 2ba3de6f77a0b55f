"""status, version, list: what stands in the log now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ..core.changes import SAFE_MAX
from ..errors import AheadError, ExitStatus, NotFoundError, UsageError
from ..log.reading import Reading
from ..model import Changes, CursorReport
from ..report.escape import escape
from ..report.lines import Style, event_line, session_table, watcher_line
from ..report.text import plural
from ..report.views import CHANGE_FIELDS, SESSION_FIELDS, cursor_view, event_view, session_view
from ..timespec import parse_point
from .options import Call, Result, command, lines

LATEST = 10


def style_of(call: Call) -> Style:
    return Style(call.palette, call.width, call.now, call.utc)


def require_known(log: Reading, key: str) -> None:
    """Raise NotFoundError, with close spellings, for a key that nothing in the database names."""
    if log.session_known(key):
        return
    close = log.similar_keys(key)
    hint = (
        f"did you mean {', '.join(close)}?" if close else "openclaw-state list shows the sessions there are"
    )
    raise NotFoundError(f"nothing in {log.path} has the key {key}", hint=hint, sessionKey=key, similar=close)


@command("agent", fields=CHANGE_FIELDS)
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
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 when there are changes.")] = False,
) -> Result:
    """Show a session's state version, its watchers and, with --since, exactly what changed."""
    if since is None and (every or exit_code or call.format in ("jsonl", "tsv")):
        raise UsageError("this needs --since", hint="openclaw-state status KEY --since N")
    if key is None:
        if since is not None or children:
            raise UsageError("--since and --children need a session key")
        from .overview import overview

        return overview(call)
    point = None if since is None else parse_point(since, now=call.now, utc=call.utc)
    log = call.read()
    require_known(log, key)
    agent = log.resolve_agent(key, call.agent)
    head = log.head(key, agent_id=agent) if agent else None
    version = head.version if head else 0
    body: dict[str, Any] = {
        "sessionKey": key,
        "agentId": agent,
        "stateVersion": version,
        "prunedMaxSequence": head.watermark if head else 0,
        "oldestSequence": log.oldest_sequence(key, agent_id=agent) if agent else None,
        "watchers": [cursor_view(report) for report in log.cursors(target=key)],
    }
    text: list[Any] = []
    if children:
        ended = list(log.ended_children(key))
        body["children"] = [event_view(event) for event in ended]
        text = (
            ["child runs that ended since (log only, no notice):"] if ended else ["no child runs ended since"]
        )
        text += [event_line(event, style_of(call)) for event in ended]
    if point is None:
        return Result("status", body, text=lines(_session_text(call, log, body), text), log=log)
    start = point.version
    if start is None:
        start = log.version_at(key, point.instant or 0, agent_id=agent) if agent else 0
        body["sinceInstant"] = point.instant
    if start > version:
        raise AheadError(
            f"{key} has only reached version {version}, {start} lies ahead of it",
            hint="a restored or another database? read the session again and go on from its version",
            requested=start,
            head=version,
        )
    return _changes(call, log, key, agent, start, body, text, every=every, exit_code=exit_code)


def _changes(
    call: Call,
    log: Reading,
    key: str,
    agent: str | None,
    since: int,
    body: dict[str, Any],
    more: list[Any],
    *,
    every: bool,
    exit_code: bool,
) -> Result:
    found = log.changes_since(key, since, agent_id=agent) if agent else Changes((), False, 0, False)
    if every and found.truncated:
        rest = log.all_changes(key, found.events[-1].sequence, agent_id=agent)
        found = Changes((*found.events, *rest), False, found.earliest_available, found.history_gap)
    body |= {"since": since, "historyGap": found.history_gap, "stateChanges": found.view()}
    if found.truncated:
        body["nextSince"] = found.events[-1].sequence
    if found.history_gap:
        from .gaps import explain

        body["gap"] = explain(call, log, key, since, found, body["stateVersion"])
    return Result(
        "status",
        body,
        text=lines(_changes_text(call, log, body, found), more),
        rows=(event.change() for event in found.events),
        notes=lambda: _change_notes(body),
        log=log,
        status=ExitStatus.HISTORY_GAP
        if found.history_gap
        else ExitStatus.FINDINGS
        if exit_code and found.events
        else ExitStatus.OK,
    )


def _change_notes(body: dict[str, Any]) -> Iterator[str]:
    if gap := body.get("gap"):
        yield f"error: {escape(gap['message'])}"
        yield from (f"  {escape(line)}" for line in gap["because"])
        yield f"  next: {escape(gap['advice'])}"
    if "nextSince" in body:
        yield f"more than 200 changes: go on with --since {body['nextSince']}, or use --all"


def _head_line(call: Call, body: dict[str, Any]) -> str:
    return call.palette.head(escape(body["sessionKey"])) + f"   version {body['stateVersion']}"


def _session_text(call: Call, log: Reading, body: dict[str, Any]) -> Iterator[str]:
    oldest = body["oldestSequence"]
    kept = f"   retained from {oldest}" if oldest is not None else "   no events retained"
    yield _head_line(call, body) + kept
    yield from _watchers(call, log, body["sessionKey"])


def _changes_text(call: Call, log: Reading, body: dict[str, Any], found: Changes) -> Iterator[str]:
    count = f"{len(found.events)}+" if found.truncated else str(len(found.events))
    word = "change" if count == "1" else "changes"
    yield _head_line(call, body) + f"   {count} {word} since {body['since']}"
    style = style_of(call)
    yield from (event_line(event, style, session=False) for event in found.events)
    yield from _watchers(call, log, body["sessionKey"])


def _watchers(call: Call, log: Reading, key: str) -> Iterator[str]:
    reports: list[CursorReport] = log.cursors(target=key)
    if not reports:
        yield "not watched"
        return
    pending = {notice.watcher: notice for notice in log.notices() if notice.target == key}
    style = style_of(call)
    yield from (watcher_line(report, pending.get(report.cursor.watcher), style) for report in reports)


@command("agent")
def version(
    call: Call,
    key: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY]...", help="Sessions; without one, the whole log.")
    ] = None,
) -> Result:
    """Print the state version of each session, or the newest sequence of the log."""
    log = call.read()
    if not key:
        newest = log.newest_sequence()
        body: dict[str, Any] = {"newestSequence": newest}
        return Result("version", body, text=[str(newest)], rows=[body], fields=tuple(body), log=log)
    rows = []
    for name in key:
        require_known(log, name)
        agent = log.resolve_agent(name, call.agent)
        number = log.version(name, agent_id=agent) if agent else 0
        rows.append({"sessionKey": name, "agentId": agent, "stateVersion": number})
    return Result(
        "version",
        {"versions": rows},
        text=[str(row["stateVersion"]) for row in rows],
        rows=rows,
        fields=("sessionKey", "agentId", "stateVersion"),
        log=log,
    )


def parse_count(text: str | None, option: str) -> int | None:
    """The number of -n: a whole number, or `all` (None)."""
    if text is None or text == "all":
        return None
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= SAFE_MAX:
        raise UsageError(f"{option} is a whole number above 0 or all, not {text!r}")
    return int(text)


@command("agent", fields=SESSION_FIELDS)
def list_sessions(
    call: Call,
    lines_: Annotated[
        str, typer.Option("-n", "--lines", metavar="N|all", help="How many sessions to show.")
    ] = "all",
) -> Result:
    """List the sessions that have a state version, the latest change first."""
    most = parse_count(lines_, "-n")
    log = call.read()
    total = log.count_sessions(agent_id=call.agent)
    shown = total if most is None else min(most, total)
    rows = log.sessions(agent_id=call.agent, most=most)
    return Result(
        "list",
        {
            "sessions": (session_view(row) for row in rows),
            "total": total,
            "returned": shown,
            "truncated": shown < total,
        },
        text=session_table(rows, style_of(call)),
        rows=(session_view(row) for row in rows),
        notes=lambda: [f"{shown} of {plural(total, 'session')}"],
        log=log,
    )
