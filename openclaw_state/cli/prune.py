"""prune and forget: what removes events for good."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ..errors import StateError, UsageError
from ..log.reading import Reading
from ..log.signal_log import SignalLog
from ..model import Limits
from ..report.escape import escape
from ..report.text import plural
from ..report.views import FORGOTTEN_FIELDS, PRUNED_FIELDS, forgotten_view, pruned_view
from ..results import Forgotten, Pruned
from ..timespec import parse_duration, whole_number
from .look import require_known
from .options import Call, Result, command


@command("write", "plan", "ask", fields=PRUNED_FIELDS)
def prune(
    call: Call,
    max_age: Annotated[
        str | None,
        typer.Option("--max-age", metavar="D", help="Keep events and watches younger than this (30d)."),
    ] = None,
    max_rows: Annotated[
        str | None, typer.Option("--max-rows", metavar="N", help="Keep at most this many events (50000).")
    ] = None,
) -> Result:
    """Apply retention: events past the age, events past the count, watches not touched for that age."""
    usual = Limits()
    limits = Limits(
        usual.max_age_ms if max_age is None else parse_duration(max_age),
        usual.max_rows if max_rows is None else _rows(max_rows),
    )
    dry = bool(call.flag("dry_run"))
    log: Reading = call.read() if dry else call.change()
    tighter = limits.max_age_ms < usual.max_age_ms or limits.max_rows < usual.max_rows
    if tighter and not dry:
        call.confirm(
            lambda: f"Limits tighter than the gateway's own. {_sentence(log.plan_prune(limits), 'Remove')}?"
        )
    done = log.prune(limits) if isinstance(log, SignalLog) else log.plan_prune(limits)
    warnings = _remember(call, log, done, limits) if done.applied and not done.nothing else []
    view = pruned_view(done)
    return Result(
        "prune",
        view,
        text=_prune_text(done),
        rows=[view],
        log=log,
        warnings=warnings,
    )


def _rows(text: str) -> int:
    rows = whole_number(text)
    if rows is None:
        raise UsageError(f"--max-rows is a whole number, not {text!r}")
    return rows


def _sentence(pruned: Pruned, verb: str) -> str:
    return (
        f"{verb} {plural(pruned.events, 'event')}"
        f" ({pruned.events_by_age} by age, {pruned.events_by_rows} by count)"
        f" of {plural(pruned.sessions, 'session')} and {plural(pruned.cursors_expired, 'watch', 'watches')}"
        f" ({pruned.cursors_pending} pending)"
    )


def _prune_text(pruned: Pruned) -> Iterator[str]:
    yield _sentence(pruned, "removed" if pruned.applied else "would remove")
    yield f"{plural(pruned.heads_kept, 'state version')} kept"


def _remember(call: Call, log: Reading, done: Pruned, limits: Limits) -> list[str]:
    from ..sidecar import Sidecar

    try:
        Sidecar().add_prune(log.path, done, at=call.now, command="prune", max_age_ms=limits.max_age_ms)
    except StateError as error:
        return [f"the prune ledger was not written: {error.message}"]
    return []


@command("agent", "write", "plan", "ask", fields=FORGOTTEN_FIELDS)
def forget(
    call: Call,
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", help="The session to forget.")] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="D", help="Sessions without a change for so long.")
    ] = None,
    synthetic_only: Annotated[
        bool, typer.Option("--synthetic-only", help="Of these, only what no person opened.")
    ] = False,
    max_sessions: Annotated[
        str | None, typer.Option("--max-sessions", metavar="N", help="Sessions beyond the latest N.")
    ] = None,
) -> Result:
    """Delete a session's events, state version and link, and every watch by or on it."""
    many = older_than is not None or max_sessions is not None
    if (key is None) != many:
        raise UsageError("say which sessions", hint="a key, or --older-than D and --max-sessions N")
    if synthetic_only and not many:
        raise UsageError("--synthetic-only needs --older-than or --max-sessions")
    dry = bool(call.flag("dry_run"))
    log: Reading = call.read() if dry else call.change()
    if key is None:
        return _forget_old(call, log, older_than, max_sessions, synthetic_only=synthetic_only)
    require_known(log, key)
    agent = log.resolve_agent(key, call.agent)
    done = log.plan_forget(key, agent_id=agent)
    if isinstance(log, SignalLog):
        plan = done
        call.confirm(lambda: f"{_forget_sentence(plan, 'Remove')}?")
        done = log.forget(key, agent_id=agent)
    view = forgotten_view(done)
    return Result(
        "forget",
        view,
        text=[_forget_sentence(done, "would remove" if dry else "removed")],
        rows=[view],
        log=log,
    )


def _forget_old(
    call: Call, log: Reading, older_than: str | None, max_sessions: str | None, *, synthetic_only: bool
) -> Result:
    from .forgetting import choose_old, doomed_lines

    doomed = choose_old(
        log,
        call.now,
        older_than_ms=None if older_than is None else parse_duration(older_than),
        synthetic_only=synthetic_only,
        max_sessions=None if max_sessions is None else _count(max_sessions),
        agent_id=call.agent,
    )
    if isinstance(log, SignalLog) and doomed.rows:
        call.confirm(lambda: f"Remove all traces of {plural(len(doomed.rows), 'session')}?")
    views = []
    for row, planned in doomed.rows:
        wanted = {"agent_id": row.agent_id}
        done = (
            log.forget(row.session_key, **wanted)
            if isinstance(log, SignalLog)
            else log.plan_forget(row.session_key, **wanted)
        )
        views.append(forgotten_view(done) | {"kind": planned.kind, "why": planned.reason})
    dry = bool(call.flag("dry_run"))
    return Result(
        "forget",
        {"dryRun": dry, "sessions": views, "total": len(views), "protected": doomed.protected},
        text=doomed_lines(doomed, "would remove" if dry else "removed") if views else ["nothing to remove"],
        rows=views,
        fields=(*FORGOTTEN_FIELDS, "kind", "why"),
        notes=lambda: (
            [f"{plural(doomed.protected, 'session')} kept by a rule of maintenance"]
            if doomed.protected
            else []
        ),
        log=log,
    )


def _count(text: str) -> int:
    count = whole_number(text)
    if count is None:
        raise UsageError(f"--max-sessions is a whole number, not {text!r}")
    return count


def _forget_sentence(forgotten: Forgotten, verb: str) -> str:
    return (
        f"{verb} {plural(forgotten.events, 'event')}, {plural(forgotten.heads, 'state version')},"
        f" {plural(forgotten.links, 'link')} and {plural(forgotten.cursors, 'watch', 'watches')}"
        f" of {escape(forgotten.session_key)}"
    )
