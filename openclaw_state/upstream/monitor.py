"""One tick of the upstream monitor: every watched link is looked at once (contract, upstream 3).

Checks run in a thread of their own and touch no database; everything that is written is
written by the handler. A link that cannot be judged keeps its marker.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from ..errors import StateError, TimedOutError
from ..model import Link
from ..results import CatalogFailure, LinkReport, Tick, Verdict
from . import streaks
from .findings import Finding, Missing, Outcome, Probe, Silence
from .handling import Handler, Log
from .sessions import LinkKey, Sessions, link_key

TIMEOUT_S = 45.0
_STOP_POLL_S = 0.1

T = TypeVar("T")


class Catalog(NamedTuple):
    """What stands behind one catalog id.

    check answers for all probes at once; None when the program offers no check. peek, where
    there is one, tells at a glance what a link that has not moved answers. elsewhere names the
    links that only a gateway can check. source, for transcript files that may be looked at, gives
    a link's file and the offset to read from.
    """

    check: Callable[[Sequence[Probe]], Iterable[Outcome]] | None
    peek: Callable[[Link], Silence | Missing | None] | None = None
    elsewhere: Callable[[Link], bool] | None = None
    source: Callable[[Link], tuple[str, int] | Silence] | None = None


class _Stopped(Exception):  # noqa: N818 - no error: the way out of a tick
    """The monitor was stopped: nothing more is written in this tick."""


class Monitor:
    """The monitor of one signal log; `tick` may be called again and again."""

    def __init__(
        self,
        log: Log,
        sessions: Sessions,
        catalogs: Mapping[str, Catalog],
        *,
        clock: Callable[[], int],
        kept: streaks.Streaks | None = None,
        policy: streaks.Policy = streaks.Policy(),  # noqa: B008 - a frozen value
        timeout_s: float = TIMEOUT_S,
        stopped: Callable[[], bool] = lambda: False,
        handle: Callable[[Probe, Finding], LinkReport] | None = None,
    ) -> None:
        """log raises what it cannot record: one opened with best_effort would hide it from here.

        kept holds the streaks of missing checks between ticks; by default this object does.
        policy says when they change, by default as OpenClaw's. handle is what a finding does; by
        default the log and the streaks are written as it asks.

        clock is epoch ms; timeout_s is how long one catalog may take; stopped is asked between
        steps, and a tick then writes nothing more. OpenClaw's own behaviour where it differs
        (`strict`) is chosen with log, sessions and catalogs.
        """
        self._log = log
        self._sessions = sessions
        self._catalogs = catalogs
        self._clock = clock
        self._streaks: streaks.Streaks = {} if kept is None else kept
        self._policy = policy
        self._timeout_s = timeout_s
        self._stopped = stopped
        self._do = handle

    def tick(self, only: Collection[str] | None = None) -> Tick:
        """Look at every link once, or at those of some sessions.

        Failures are part of the answer; none of them ends the tick.
        """
        at = self._clock()
        reports: dict[LinkKey, LinkReport] = {}
        failures: list[CatalogFailure] = []
        listed: list[tuple[Link, bool]] = []
        failure: Exception | None = None
        stopped = False
        try:
            self._go_on()
            try:
                listed = self._log.links()
                if only is not None:
                    listed = [row for row in listed if row[0].session_key in only]
            except (StateError, sqlite3.Error) as error:
                failure = error
            self._go_on()
            if failure is None or not self._policy.lasting:
                self._scan(listed, reports, failures, only)
        except _Stopped:
            stopped = True
        finally:
            self._sessions.close()
        found = tuple(
            reports.get(link_key(link)) or LinkReport(link, Verdict.SKIPPED, "the monitor was stopped")
            for link, _ in listed
        )
        return Tick(at, found, tuple(failures), failure, stopped)

    def _go_on(self) -> None:
        if self._stopped():
            raise _Stopped

    def _scan(
        self,
        listed: Sequence[tuple[Link, bool]],
        reports: dict[LinkKey, LinkReport],
        failures: list[CatalogFailure],
        only: Collection[str] | None,
    ) -> None:
        owners = Counter(link.session_key for link, watched in listed if watched)
        visited = []
        for link, watched in listed:
            if not watched:
                reports[link_key(link)] = LinkReport(link, Verdict.UNWATCHED)
            elif owners[link.session_key] > 1:
                reason = f"{owners[link.session_key]} agents have a link of this session"
                reports[link_key(link)] = LinkReport(link, Verdict.AMBIGUOUS, reason)
            else:
                visited.append(link)
        missed = streaks.keep_only(self._streaks, visited, of=only)
        for catalog_id, group in groupby(visited, key=lambda link: link.catalog_id):
            links = list(group)
            try:
                self._scan_catalog(catalog_id, links, missed, reports)
            except _Stopped:
                raise
            except Exception as error:
                failures.append(CatalogFailure(catalog_id, _words(error)))
                for link in links:
                    reports.setdefault(link_key(link), LinkReport(link, Verdict.FAILED, _words(error)))

    def _scan_catalog(
        self,
        catalog_id: str,
        links: Sequence[Link],
        missed: set[LinkKey],
        reports: dict[LinkKey, LinkReport],
    ) -> None:
        catalog = self._catalogs.get(catalog_id)
        if catalog is None or catalog.check is None:
            reason = "its provider checks nothing" if catalog else "nothing here knows this catalog"
            reports |= {link_key(link): LinkReport(link, Verdict.SKIPPED, reason) for link in links}
            return
        probes = self._probes(catalog, links, missed, reports)
        self._go_on()
        if not probes:
            return
        outcomes = self._outcomes(catalog.check, probes)
        self._go_on()
        self._handle(probes, outcomes, reports)

    def _probes(
        self,
        catalog: Catalog,
        links: Sequence[Link],
        missed: set[LinkKey],
        reports: dict[LinkKey, LinkReport],
    ) -> dict[str, Probe]:
        """The links to check, by session key; every other one is reported."""
        here = self._checkable(catalog, links, reports)
        moved = self._moved(catalog, here, missed, reports)
        entries = self._sessions.entries(moved) if moved else {}
        probes = {}
        for link in moved:
            session_id = entries.get(link_key(link))
            if isinstance(session_id, str) and session_id and not self._sessions.run_active(session_id):
                try:
                    own_texts = self._sessions.own_texts(link, session_id)
                    probes[link.session_key] = Probe(link, own_texts, session_id)
                    continue
                except Exception as error:
                    reason = f"own texts unreadable: {_words(error)}"
            else:
                reason = _why_not(session_id)
            reports[link_key(link)] = LinkReport(link, Verdict.SKIPPED, reason)
        return probes

    def _checkable(
        self, catalog: Catalog, links: Sequence[Link], reports: dict[LinkKey, LinkReport]
    ) -> Sequence[Link]:
        """The links that do not need a gateway."""
        if catalog.elsewhere is None:
            return links
        here = []
        for link in links:
            if catalog.elsewhere(link):
                reports[link_key(link)] = LinkReport(link, Verdict.ELSEWHERE)
            else:
                here.append(link)
        return here

    def _moved(
        self,
        catalog: Catalog,
        links: Sequence[Link],
        missed: set[LinkKey],
        reports: dict[LinkKey, LinkReport],
    ) -> Sequence[Link]:
        """Leave out the links where nothing moved: reading their sessions would change nothing.

        A link with a streak is never left out, because its streak depends on all of it.
        """
        if catalog.peek is None or not links:
            return links
        peek = catalog.peek
        glances = self._within(links, lambda asked: list(map(peek, asked)))
        moved = []
        for link, glance in zip(links, glances, strict=True):
            if isinstance(glance, Silence) and not (missed and link_key(link) in missed):
                reports[link_key(link)] = LinkReport(link, *glance)
            else:
                moved.append(link)
        return moved

    def _outcomes(
        self, check: Callable[[Sequence[Probe]], Iterable[Outcome]], probes: Mapping[str, Probe]
    ) -> list[Outcome]:
        return self._within(list(probes.values()), lambda asked: list(check(asked)))

    def _handle(
        self, probes: Mapping[str, Probe], outcomes: Sequence[Outcome], reports: dict[LinkKey, LinkReport]
    ) -> None:
        missing = {outcome.session_key for outcome in outcomes if isinstance(outcome.finding, Missing)}
        for probe in probes.values():
            if probe.link.session_key not in missing:
                streaks.drop(self._streaks, probe.link)
        handle = self._do or self._handler().handle
        for outcome in outcomes:
            about = probes.get(outcome.session_key)
            if about is None:
                continue
            if isinstance(outcome.finding, Missing):
                self._go_on()
            report = handle(about, outcome.finding)
            # Of two outcomes for one session the first is the one that did something.
            reports.setdefault(link_key(about.link), report)
        for probe in probes.values():
            reports.setdefault(link_key(probe.link), LinkReport(probe.link, Verdict.QUIET))

    def _handler(self) -> Handler:
        return Handler(
            self._log,
            self._sessions,
            self._streaks,
            policy=self._policy,
            clock=self._clock,
            stopped=self._stopped,
        )

    def _within(self, asked: Sequence[Link] | Sequence[Probe], call: Callable[..., list[T]]) -> list[T]:
        """Let a catalog answer in a thread of its own. Raises TimedOutError, or what it raised."""
        answer: list[list[T]] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                answer.append(call(asked))
            except BaseException as error:
                raised.append(error)

        # A daemon: a file system that hangs must not keep the process from ending.
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self._await(thread)
        if raised:
            raise raised[0]
        if not answer:
            raise TimedOutError(f"no answer within {self._timeout_s:g} s")
        return answer[0]

    def _await(self, thread: threading.Thread) -> None:
        """Until it has ended or its time is up. Raises _Stopped when the monitor was stopped meanwhile."""
        end = time.monotonic() + self._timeout_s
        while thread.is_alive() and (left := end - time.monotonic()) > 0:
            thread.join(min(left, _STOP_POLL_S))
            if thread.is_alive():
                self._go_on()


def _why_not(entry: str | Exception | None) -> str:
    if isinstance(entry, Exception):
        return f"session unreadable: {_words(entry)}"
    return "a run of the session is active" if entry else "no session entry"


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
