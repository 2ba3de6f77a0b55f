"""What one finding does to the log: counted, recorded, or left for the next tick.

Nothing is written unless link, session and own texts still are what the check was made on
(contract, upstream sections 3.1 and 3.2).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Protocol

from ..core import producers
from ..core.events import Draft
from ..core.javascript import is_finite, safe_count
from ..errors import StateError
from ..model import Link
from ..results import LinkReport, Recorded, Verdict
from . import streaks
from .findings import Activity, Finding, Missing, Probe, Silence
from .links import KEEP, source_key
from .sessions import Sessions, link_key

_RUN_ACTIVE = "a run of the session is active"


class Log(Protocol):
    """What the monitor needs of a signal log; SignalLog has it."""

    def links(self) -> list[tuple[Link, bool]]: ...

    def link(self, session_key: str, *, agent_id: str | None = None) -> Link | None: ...

    def append(self, draft: Draft, *, only_if_watched: bool = False) -> Recorded: ...

    def set_link_marker(
        self,
        session_key: str,
        marker: Any,
        *,
        agent_id: str | None = None,
        expected_updated_at: int | None = None,
    ) -> bool: ...

    def delete_link(
        self, session_key: str, *, agent_id: str | None = None, expected_updated_at: int | None = None
    ) -> str: ...


class Handler:
    """Handles the findings of one tick, one after another."""

    def __init__(
        self,
        log: Log,
        sessions: Sessions,
        kept: streaks.Streaks,
        *,
        policy: streaks.Policy,
        clock: Callable[[], int],
        stopped: Callable[[], bool],
    ) -> None:
        self._log = log
        self._sessions = sessions
        self._streaks = kept
        self._policy = policy
        self._clock = clock
        self._stopped = stopped

    def handle(self, probe: Probe, finding: Finding) -> LinkReport:
        """Do what a finding asks for. Raises what keeps a missing link's session from being read."""
        if isinstance(finding, Silence):
            return LinkReport(probe.link, finding.verdict, finding.reason)
        if isinstance(finding, Missing):
            return self._missing(probe)
        report = self._activity(probe, finding)
        turns = safe_count(finding.turns) or 0
        return report._replace(turns=turns, echoes=finding.echoes, own_texts=probe.own_texts)

    def _missing(self, probe: Probe) -> LinkReport:
        link = probe.link
        if changed := self._link_changed(link) or self._session_changed(probe):
            streaks.drop(self._streaks, link)
            return _ignored(link, changed)
        if self._sessions.run_active(probe.session_id):
            counted = self._streaks.get(streaks.key_of(link))
            return _ignored(link, _RUN_ACTIVE, misses=counted.misses if counted else 0)
        now = self._clock()
        before = streaks.current(self._streaks, link)
        if before and streaks.is_too_soon(before, now, self._policy):
            return LinkReport(link, Verdict.MISSING, "counted a moment ago", misses=before.misses)
        count = before.misses + 1 if before else 1
        if count >= streaks.LIMIT:
            return self._gone(link, now)
        streaks.store(self._streaks, link, count, now=now)
        return LinkReport(link, Verdict.MISSING, misses=count)

    def _gone(self, link: Link, now: int) -> LinkReport:
        """The last miss: the log says so, then the link goes; unrecorded, it waits for one more."""
        recorded, reason, failure = None, "not recorded", None
        try:
            recorded = self._log.append(producers.upstream_missing(link, source_key(link)))
        except (StateError, sqlite3.Error) as error:
            reason, failure = f"not recorded: {error}", _expected(error)
        if recorded is None or recorded.event is None:
            streaks.store(self._streaks, link, streaks.LIMIT - 1, now=now)
            return LinkReport(link, Verdict.MISSING, reason, misses=streaks.LIMIT - 1, failure=failure)
        self._log.delete_link(link.session_key, agent_id=link.agent_id, expected_updated_at=link.updated_at)
        streaks.drop(self._streaks, link)
        return LinkReport(
            link,
            Verdict.REMOVED,
            misses=streaks.LIMIT,
            event=recorded.event,
            notices=recorded.opened,
            pruned=recorded.pruned,
        )

    def _activity(self, probe: Probe, found: Activity) -> LinkReport:
        link = probe.link
        streaks.drop(self._streaks, link)
        turns = safe_count(found.turns)
        if turns is None:
            return _ignored(link, "the check counted no whole number of turns")
        if changed := self._provenance_changed(probe) or self._link_changed(link):
            return _ignored(link, changed)
        if not turns:
            return self._moved(LinkReport(link, Verdict.ADVANCED), found.next_marker)
        named = isinstance(found.dedupe_id, str) and found.dedupe_id
        if not is_finite(found.occurred_at) or not named:
            return _ignored(link, "the check names no time or no message")
        draft = producers.upstream_message(
            link, source_key(link), turns=turns, occurred_at=found.occurred_at, dedupe_id=found.dedupe_id
        )
        try:
            recorded = self._log.append(draft, only_if_watched=True)
        except (StateError, sqlite3.Error) as error:
            return _ignored(link, f"not recorded: {error}")._replace(failure=_expected(error))
        if recorded.event is None:
            return _ignored(link, "nobody watches the session any more")
        report = LinkReport(
            link,
            Verdict.KNOWN if recorded.duplicate else Verdict.RECORDED,
            event=recorded.event,
            notices=recorded.opened,
            pruned=recorded.pruned,
        )
        return self._moved(report, found.next_marker)

    def _moved(self, report: LinkReport, marker: Any) -> LinkReport:
        """Move the marker if the link still is the one that was scanned; a failure is only told."""
        link = report.link
        try:
            moved = self._log.set_link_marker(
                link.session_key, marker, agent_id=link.agent_id, expected_updated_at=link.updated_at
            )
        except (StateError, sqlite3.Error, TypeError, ValueError) as error:
            return report._replace(reason=f"the marker was not moved: {error}")
        if not moved:
            return report._replace(reason="the marker was not moved: the link was changed meanwhile")
        return report._replace(next_marker=link.marker if marker is KEEP else marker)

    def _link_changed(self, link: Link) -> str:
        """What changed about the link since it was listed; empty when it is the same."""
        now = self._log.link(link.session_key, agent_id=link.agent_id)
        if now is None:
            return "the link was removed during the check"
        same = now.updated_at == link.updated_at and source_key(now) == source_key(link)
        return "" if same else "the link was changed during the check"

    def _session_changed(self, probe: Probe) -> str:
        """What changed about the session; raises when it cannot be read."""
        entry = self._sessions.entries([probe.link]).get(link_key(probe.link))
        if isinstance(entry, Exception):
            raise entry
        return "" if entry == probe.session_id else "the session was replaced during the check"

    def _provenance_changed(self, probe: Probe) -> str:
        """Why the own texts that the check compared with may be outdated; empty when they are not."""
        try:
            if changed := self._busy_or_changed(probe):
                return changed
            own_texts = self._sessions.own_texts(probe.link, probe.session_id)
            if changed := self._busy_or_changed(probe):
                return changed
        except Exception as error:
            return f"the session could not be read again: {error}"
        if own_texts != probe.own_texts:
            return "the session sent something during the check"
        return "the monitor was stopped" if self._stopped() else ""

    def _busy_or_changed(self, probe: Probe) -> str:
        changed = self._session_changed(probe)
        return changed or (_RUN_ACTIVE if self._sessions.run_active(probe.session_id) else "")


def _expected(error: Exception) -> StateError | None:
    return error if isinstance(error, StateError) else None


def _ignored(link: Link, reason: str, *, misses: int = 0) -> LinkReport:
    return LinkReport(link, Verdict.IGNORED, reason, misses=misses)
