"""What a tick of the upstream monitor found, as JSON shapes and as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..results import LinkReport, RowReport, Tick, Verdict
from .escape import escape
from .jsonout import stored
from .lines import Style
from .text import plural
from .views import event_view

LINK_FIELDS = (
    "sessionKey",
    "agentId",
    "catalogId",
    "hostId",
    "threadId",
    "verdict",
    "reason",
    "humanTurns",
    "ownEchoes",
    "misses",
    "marker",
    "nextMarker",
    "event",
    "rows",
)
TICK_FIELDS = ("at", "dryRun", "gateway", "summary", "links", "failures", "notices")

_NOT_PROBED = {
    Verdict.ISOLATED,
    Verdict.ELSEWHERE,
    Verdict.SKIPPED,
    Verdict.AMBIGUOUS,
    Verdict.FAILED,
    Verdict.UNWATCHED,
}
# What is not told unless it was asked for: nothing is to be done about it.
_UNREMARKABLE = {Verdict.QUIET, Verdict.WAITING, Verdict.UNWATCHED, Verdict.BLOCKED}
_WARNED = {Verdict.MISSING, Verdict.REMOVED, Verdict.BLOCKED, Verdict.FAILED, Verdict.UNREADABLE}
_WIDEST = max(len(verdict) for verdict in Verdict)


def link_view(
    report: LinkReport, *, dry_run: bool = False, rows: Sequence[RowReport] | None = None
) -> dict[str, Any]:
    """One link in one tick; rows are those of its transcript, where they were asked for."""
    link = report.link
    view: dict[str, Any] = {
        "sessionKey": link.session_key,
        "agentId": link.agent_id,
        "catalogId": link.catalog_id,
        "hostId": link.host_id,
        "threadId": link.thread_id,
        "verdict": report.verdict.name.lower(),
        "reason": report.reason,
        "humanTurns": report.turns,
        "ownEchoes": [echo._asdict() for echo in report.echoes],
        "misses": report.misses,
        "marker": stored(link.marker),
        "nextMarker": report.next_marker,
        "event": None if report.event is None or dry_run else event_view(report.event),
    }
    return view if rows is None else view | {"rows": [row._asdict() for row in rows]}


def counts(tick: Tick) -> dict[str, int]:
    """The numbers of a tick. A link that was read window by window is one link."""
    verdicts = {report.link[:2]: report.verdict for report in tick.links}
    found = list(verdicts.values())
    every = [report.verdict for report in tick.links]
    return {
        "links": len(found),
        "probed": sum(verdict not in _NOT_PROBED for verdict in found),
        "recorded": every.count(Verdict.RECORDED) + every.count(Verdict.REMOVED),
        "humanTurns": sum(report.turns for report in tick.links if report.verdict is Verdict.RECORDED),
        "ownEchoes": sum(len(report.echoes) for report in tick.links),
        "missing": found.count(Verdict.MISSING),
        "removed": found.count(Verdict.REMOVED),
        "blocked": found.count(Verdict.BLOCKED),
        "notCheckable": found.count(Verdict.ELSEWHERE),
        "skipped": sum(map(found.count, (Verdict.SKIPPED, Verdict.AMBIGUOUS, Verdict.ISOLATED))),
        "failed": found.count(Verdict.FAILED),
        "unwatched": found.count(Verdict.UNWATCHED),
    }


def summary(tick: Tick, *, dry_run: bool = False) -> str:
    """The numbers of a tick in one line; what there is none of is left out, but for the first three."""
    found = counts(tick)
    parts = [f"{found['probed']} probed", plural(found["humanTurns"], "human turn")]
    words = {
        "ownEchoes": "own echoes suppressed",
        "missing": "missing",
        "removed": "removed",
        "blocked": "blocked",
        "notCheckable": "not checkable here",
        "skipped": "skipped",
        "failed": "failed",
        "unwatched": "without a watcher",
    }
    parts += [f"{found[name]} {about}" for name, about in words.items() if found[name]]
    planned = " (nothing was written)" if dry_run else ""
    return f"{plural(found['links'], 'link')}: {', '.join(parts)}{planned}"


def link_lines(
    report: LinkReport, style: Style, *, dry_run: bool = False, rows: Sequence[RowReport] | None = None
) -> Iterator[str]:
    """One link in one tick; nothing for one without news unless its rows were asked for."""
    if rows is None and (report.verdict in _UNREMARKABLE or _is_routine(report)):
        return
    verdict = report.verdict.ljust(_WIDEST)
    if report.verdict in _WARNED:
        verdict = style.palette.warn(verdict)
    line = f"{verdict}  {escape(report.link.session_key)}  {escape(report.link.catalog_id)}"
    about = ", ".join(_details(report, dry_run))
    yield f"{line}  {about}" if about else line
    for row in rows or ():
        yield style.palette.dim(f"  {row.offset:>10}  {escape(row.reason)}")
    if rows is not None and not rows:
        for echo in report.echoes:
            yield style.palette.dim(f"  own echo, message {echo.position} of {echo.of}")


def blocked_words(reports: Iterable[LinkReport]) -> list[str]:
    """A warning for each link that cannot go on by itself."""
    return [
        f"{report.link.session_key} is blocked {report.reason}"
        for report in reports
        if report.verdict is Verdict.BLOCKED
    ]


def _is_routine(report: LinkReport) -> bool:
    """Did the marker pass rows that nobody need hear of?"""
    return report.verdict is Verdict.ADVANCED and not report.reason and not report.echoes


def _details(report: LinkReport, dry_run: bool) -> Iterator[str]:
    if report.turns:
        yield plural(report.turns, "human turn")
    if report.echoes:
        yield plural(len(report.echoes), "own echo", "own echoes") + " suppressed"
    if report.misses:
        yield f"{report.misses} of 3 checks in a row"
    if report.event is not None and not dry_run:
        yield f"event {report.event.sequence}"
    if report.reason:
        yield escape(report.reason)
