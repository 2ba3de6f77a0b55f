"""How every link stands: a tick of the monitor that only looks, and what a tick does not tell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from ..core.javascript import safe_count
from ..model import Link
from ..results import Health, LinkHealth, LinkReport, Streak, StreakKey, Verdict
from . import streaks, transcripts
from .adopted import Unlinked
from .findings import Finding, Missing, Probe, Silence
from .handling import Log
from .monitor import Catalog, Monitor
from .sessions import Sessions

_NODE = "node:"
_ON_NODES = "claude"


def inspect(
    log: Log,
    sessions: Sessions,
    catalogs: Mapping[str, Catalog],
    kept: Mapping[StreakKey, Streak] | None,
    *,
    clock: Callable[[], int],
    only: Collection[str] | None = None,
) -> list[LinkHealth]:
    """Every link, or those of some sessions, as the monitor would find them now; nothing is written.

    kept are the streaks so far, None where they cannot be read. Raises what keeps the links from
    being listed.
    """
    monitor = Monitor(log, sessions, catalogs, clock=clock, kept=dict(kept or {}), handle=_looked_at)
    tick = monitor.tick(only)
    if tick.listing_failure is not None:
        raise tick.listing_failure
    misses = partial(_misses, kept)
    return [_health(report, catalogs.get(report.link.catalog_id), misses) for report in tick.links]


def without_link(session: Unlinked) -> LinkHealth:
    """How an adopted session stands that nothing follows."""
    if session.lost:
        reason = "its source was gone"
    elif session.host_id and session.host_id.startswith(_NODE) and session.catalog_id != _ON_NODES:
        reason = f"a gateway makes none for {session.host_id}"
    else:
        reason = "continue it once from the catalog"
    return LinkHealth(session.session_key, session.agent_id, session.catalog_id, Health.UNLINKED, reason)


def _looked_at(probe: Probe, finding: Finding) -> LinkReport:
    """What a finding says, with nothing done about it."""
    if isinstance(finding, Silence):
        return LinkReport(probe.link, finding.verdict, finding.reason)
    if isinstance(finding, Missing):
        return LinkReport(probe.link, Verdict.MISSING, finding.reason)
    turns = safe_count(finding.turns) or 0
    return LinkReport(probe.link, Verdict.ADVANCED, turns=turns, echoes=finding.echoes)


def _misses(kept: Mapping[StreakKey, Streak] | None, link: Link) -> int | None:
    if kept is None:
        return None
    found = streaks.current(kept, link)
    return found.misses if found else 0


def _health(report: LinkReport, catalog: Catalog | None, misses: Callable[[Link], int | None]) -> LinkHealth:
    link = report.link
    offset, size = _extent(link, catalog)
    state = Health.BEHIND if report.verdict is Verdict.ADVANCED else Health[report.verdict.name]
    reason = report.reason
    if state is Health.QUIET and offset is not None and size is not None and size < offset:
        state, reason = Health.SHRUNK, f"the file ends at {size}, before the marker"
    return LinkHealth(
        link.session_key,
        link.agent_id,
        link.catalog_id,
        state,
        reason,
        link,
        misses(link),
        report.turns,
        offset,
        size,
    )


def _extent(link: Link, catalog: Catalog | None) -> tuple[int | None, int | None]:
    """The offset to read from and the size of the transcript, where it may be looked at."""
    if catalog is None or catalog.source is None or (catalog.elsewhere and catalog.elsewhere(link)):
        return None, None
    found = catalog.source(link)
    return (None, None) if isinstance(found, Silence) else (found[1], transcripts.size_of(found[0]))
