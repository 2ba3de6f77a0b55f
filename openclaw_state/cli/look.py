"""version and list, and what every look at a session needs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..errors import NotFoundError, UsageError
from ..log.reading import Reading
from ..report.lines import Style, session_table
from ..report.text import plural
from ..report.views import SESSION_FIELDS, session_view
from ..timespec import whole_number
from .options import Call, Result, command

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


def parse_count(text: str | None, option: str, *, least: int = 1) -> int | None:
    """The number of -n: a whole number, or `all` (None)."""
    if text is None or text == "all":
        return None
    count = whole_number(text)
    if count is None or count < least:
        raise UsageError(f"{option} is a whole number from {least} on, or all, not {text!r}")
    return count


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
