"""cursors: who watches whom; adding, removing, acknowledging and pruning watches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

import typer

from ..core.keys import fold
from ..core.watches import refusal
from ..errors import NotFoundError, RefusedError, UsageError
from ..log.reading import Reading
from ..log.signal_log import SignalLog
from ..model import Cursor, CursorReport, Limits
from ..report.escape import escape
from ..report.lines import cursor_table, notice_lines
from ..report.text import plural
from ..report.views import CURSOR_FIELDS, NOTICE_FIELDS, cursor_view, notice_view
from ..timespec import parse_duration
from .look import require_known, style_of
from .options import Call, Result, command
from .overview import queue_warnings

Watcher = Annotated[str, typer.Argument(metavar="WATCHER", help="The session that watches.")]
Target = Annotated[str, typer.Argument(metavar="TARGET", help="The session that is watched.")]


@command(fields=CURSOR_FIELDS)
def list_cursors(
    call: Call,
    watcher: Annotated[
        str | None, typer.Option("--watcher", metavar="W", help="Only watches of this session.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="T", help="Only watches on this session.")
    ] = None,
) -> Result:
    """List the watches: marks, lag, state, and whether a gateway would deliver."""
    log = call.read()
    for key in filter(None, (watcher, target)):
        require_known(log, key)
    reports = log.cursors(watcher=watcher, target=target)
    rows = [cursor_view(report) for report in reports]
    pending = sum(report.cursor.pending for report in reports)
    undelivered = [report for report in reports if report.delivery.ok is not True]

    def notes() -> Iterator[str]:
        summary = f"{plural(len(reports), 'watch', 'watches')}, {pending} pending"
        if undelivered and not call.flag("verbose"):
            summary += (
                f", {len(undelivered)} that a gateway may not deliver (see: openclaw-state cursors list -v)"
            )
        yield summary
        if call.flag("verbose"):
            for report in undelivered:
                where = f"{escape(report.cursor.watcher)} -> {escape(report.cursor.target)}"
                yield f"{where}: {report.delivery.reason}, {escape(report.delivery.detail)}"

    return Result(
        "cursors list",
        {"cursors": rows, "total": len(rows), "pending": pending},
        text=cursor_table(reports, style_of(call)) if reports else (),
        rows=rows,
        notes=notes,
        log=log,
    )


@command("agent", "write", fields=CURSOR_FIELDS)
def add(
    call: Call,
    watcher: Watcher,
    target: Target,
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="PATH", help="The watcher's agent database, as a gateway names it."),
    ] = None,
) -> Result:
    """Watch a session from its present version on; an existing watch keeps its pending state."""
    for name, key in (("watcher", watcher), ("target", target)):
        if not key.isprintable():
            raise UsageError(f"the {name} key {key!r} contains control characters")
    rule = refusal(watcher, target, call.agent)
    if rule and not os.path.exists(call.location().path):
        raise _refused(rule)
    log = call.change(create=True)
    warnings = [*_spelling_warnings(watcher, target), *_target_warnings(log, target)]
    done = log.watch(watcher, target, agent_id=call.agent or log.resolve_agent(target), store_path=store)
    if done.cursor is None:
        raise _refused(done.refusal)
    if done.replaced is not None and done.replaced.pending:
        warnings.append("the watch that stood here named another store; its pending notice is gone")
    report = _report(log, done.cursor)
    if report.delivery.ok is not True:
        warnings.append(
            f"a gateway may not deliver this watch: {report.delivery.reason}, {report.delivery.detail}"
        )
    view = cursor_view(report)
    word = "now watches" if done.created else "already watches"
    return Result(
        "cursors add",
        {"watched": True, "created": done.created, "cursor": view},
        text=[f"{escape(watcher)} {word} {escape(target)}, seen {done.cursor.seen}"],
        rows=[view],
        log=log,
        warnings=warnings,
    )


def _refused(rule: str | None) -> RefusedError:
    return RefusedError(f"the watch was refused: {rule}", watched=False, rule=rule)


def _spelling_warnings(*session_keys: str) -> list[str]:
    return [
        f"{key} is not the spelling that a gateway uses; {fold(key)} is"
        for key in session_keys
        if fold(key) != key
    ]


def _target_warnings(log: Reading, target: str) -> list[str]:
    if log.session_known(target):
        return []
    similar = log.similar_keys(target)
    aliases = f"; did you mean {', '.join(similar)}?" if similar else ""
    return [f"nothing is known of {target} yet{aliases}"]


def _report(log: Reading, cursor: Cursor) -> CursorReport:
    return next(
        report
        for report in log.cursors(watcher=cursor.watcher, target=cursor.target)
        if report.cursor == cursor
    )


@command("write", "ask", fields=("watcher", "target", "removed"))
def remove(call: Call, watcher: Watcher, target: Target) -> Result:
    """Stop watching a session; its log and other watches stay."""
    log = call.change()
    cursor = next((report.cursor for report in log.cursors(watcher=watcher, target=target)), None)
    if cursor is None:
        raise NotFoundError(
            f"{watcher} does not watch {target}", hint="openclaw-state cursors list shows the watches"
        )
    call.confirm(lambda: f"Remove the watch of {escape(watcher)} on {escape(target)}?")
    removed = log.unwatch(watcher, target)
    body = {"watcher": watcher, "target": target, "removed": int(removed)}
    return Result(
        "cursors remove",
        body,
        text=[f"{escape(watcher)} no longer watches {escape(target)}"],
        rows=[body],
        log=log,
    )


@command("write", fields=NOTICE_FIELDS)
def ack(
    call: Call,
    watcher: Watcher,
    target: Annotated[
        list[str] | None, typer.Argument(metavar="[TARGET]...", help="Sessions; without one, all pending.")
    ] = None,
) -> Result:
    """Acknowledge notices; what came after one was announced opens a follow-up."""
    log = call.change()
    watched = {report.cursor.target: report.cursor for report in log.cursors(watcher=watcher)}
    if not watched:
        raise NotFoundError(
            f"{watcher} watches nothing", hint="openclaw-state cursors list shows the watches"
        )
    for name in target or ():
        if name not in watched:
            raise NotFoundError(f"{watcher} does not watch {name}", hint="openclaw-state cursors list")
    chosen = target or [name for name, cursor in watched.items() if cursor.pending]
    done = log.acknowledge(watcher, chosen)
    warnings = [
        f"{cursor.target} was left alone: {reason.reason}, {reason.detail}" for cursor, reason in done.skipped
    ]
    if done.cursors:
        warnings += queue_warnings(call, log)
    body = {
        "watcher": watcher,
        "acknowledged": [cursor.target for cursor in done.cursors],
        "skipped": [{"target": cursor.target, "reason": reason.reason} for cursor, reason in done.skipped],
        "notices": [notice_view(notice) for notice in done.reopened],
    }

    def text() -> Iterator[str]:
        yield f"acknowledged {plural(len(done.cursors), 'watch', 'watches')} of {escape(watcher)}"
        for notice in done.reopened:
            yield from notice_lines(notice, style_of(call))

    return Result(
        "cursors ack",
        body,
        text=text(),
        rows=[notice_view(notice) for notice in done.reopened],
        log=log,
        warnings=warnings,
    )


@command("write", "ask", fields=("watcher", "removed"))
def reset(call: Call, watcher: Watcher) -> Result:
    """Remove all watches of a watcher, as its session's reset does."""
    log = call.change()
    count = len(log.cursors(watcher=watcher))
    if not count:
        raise NotFoundError(
            f"{watcher} watches nothing", hint="openclaw-state cursors list shows the watches"
        )
    call.confirm(lambda: f"Remove {plural(count, 'watch', 'watches')} of {escape(watcher)}?")
    removed = log.reset_watches(watcher)
    body = {"watcher": watcher, "removed": removed}
    return Result(
        "cursors reset",
        body,
        text=[f"removed {plural(removed, 'watch', 'watches')} of {escape(watcher)}"],
        rows=[body],
        log=log,
    )


@command("write", "plan", fields=(*CURSOR_FIELDS, "why"))
def prune(
    call: Call,
    expired: Annotated[bool, typer.Option("--expired", help="Not touched for 30 days.")] = False,
    orphaned: Annotated[bool, typer.Option("--orphaned", help="Watcher or target is gone.")] = False,
    undeliverable: Annotated[
        bool, typer.Option("--undeliverable", help="A gateway would not deliver to the watcher.")
    ] = False,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="D", help="Not touched for this long.")
    ] = None,
    include_pending: Annotated[
        bool, typer.Option("--include-pending", help="Also watches with a pending notice.")
    ] = False,
) -> Result:
    """Remove watches that any of the tests names; pending ones only when asked."""
    age = None if older_than is None else parse_duration(older_than)
    tests: dict[str, Callable[[CursorReport], bool]] = {}
    if expired:
        tests["expired"] = lambda report: call.now - report.cursor.updated_at > Limits().max_age_ms
    if orphaned:
        tests["orphaned"] = lambda report: report.orphaned is True
    if undeliverable:
        tests["undeliverable"] = lambda report: report.delivery.ok is False
    if age is not None:
        tests["older"] = lambda report: call.now - report.cursor.updated_at > age
    if not tests:
        raise UsageError(
            "say which watches",
            hint="--expired, --orphaned, --undeliverable or --older-than D; try --dry-run first",
        )
    dry = bool(call.flag("dry_run"))
    log: Reading = call.read() if dry else call.change()
    named = [(report, _why(report, tests)) for report in log.cursors()]
    doomed = [
        (report, why) for report, why in named if why and (include_pending or not report.cursor.pending)
    ]
    kept = sum(1 for report, why in named if why) - len(doomed)
    removed = 0
    if isinstance(log, SignalLog):
        removed = log.remove_watches((item.cursor for item, _ in doomed), unless_pending=not include_pending)
    rows = [cursor_view(report) | {"why": why} for report, why in doomed]

    def text() -> Iterator[str]:
        yield from _doomed_lines(doomed, "would remove" if dry else "removed")
        if not doomed:
            yield "no watches to remove"

    def notes() -> Iterable[str]:
        return (
            [f"{plural(kept, 'pending watch', 'pending watches')} kept (--include-pending)"] if kept else []
        )

    return Result(
        "cursors prune",
        {"dryRun": dry, "cursors": rows, "planned": len(rows), "removed": removed, "pendingKept": kept},
        text=text(),
        rows=rows,
        notes=notes,
        log=log,
    )


def _why(report: CursorReport, tests: dict[str, Callable[[CursorReport], bool]]) -> list[str]:
    return [name for name, test in tests.items() if test(report)]


def _doomed_lines(doomed: list[tuple[CursorReport, list[str]]], verb: str) -> Iterator[str]:
    for report, why in doomed:
        yield f"{verb} {escape(report.cursor.watcher)} -> {escape(report.cursor.target)}  ({', '.join(why)})"
