"""Ticks of the upstream monitor: what each link is told, and what never ends a tick."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.model import Link
from openclaw_state.results import Echo, LinkReport, Tick, Verdict
from openclaw_state.upstream.catalogs import standard_catalogs
from openclaw_state.upstream.embedded import EmbeddedSessions
from openclaw_state.upstream.findings import Activity, Finding, Missing, Outcome, Probe, Silence
from openclaw_state.upstream.monitor import Catalog, Monitor
from openclaw_state.upstream.sessions import LinkKey, link_key
from openclaw_state.upstream.streaks import Streak, StreakKey
from tests.support import PARENT, Clock, change, query, statements

KEY = "agent:main:adopted"
HUMAN = '{"type":"user","timestamp":"2027-01-15T08:00:00.000Z","message":{"role":"user","content":"hello"}}\n'


class Sessions(EmbeddedSessions):
    """Sessions that a test may take away, and own texts that it sets."""

    def __init__(self) -> None:
        self.own: dict[str, tuple[str, ...]] = {}
        self.gone: set[str] = set()
        self.active: set[str] = set()
        self.asked = 0

    def entries(self, links: Iterable[Link]) -> dict[LinkKey, str | Exception]:
        self.asked += 1
        return {link_key(link): link.session_key for link in links if link.session_key not in self.gone}

    def own_texts(self, link: Link, session_id: str) -> tuple[str, ...]:
        return self.own.get(link.session_key, ())

    def run_active(self, session_id: str) -> bool:
        return session_id in self.active


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
def log(path: Path, clock: Clock) -> Iterator[SignalLog]:
    with SignalLog(path, change=True, create=True, clock=clock) as found:
        yield found


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


def adopt(
    log: SignalLog, key: str = KEY, *, catalog: str = "claude", file: Path | str = "/nowhere", **more: Any
) -> None:
    words = {"host_id": "gateway:local", "upstream_kind": "claude-cli", "marker": {"offset": 0}} | more
    log.upsert_link(key, catalog_id=catalog, thread_id="t", upstream_ref={"filePath": str(file)}, **words)
    log.watch(PARENT, key)


def answering(*findings: Finding, key: str = KEY) -> dict[str, Catalog]:
    return {"claude": Catalog(lambda _: [Outcome(key, finding) for finding in findings])}


def tick(log: SignalLog, sessions: Sessions, catalogs: dict[str, Catalog] | None = None, **more: Any) -> Tick:
    return Monitor(
        log, sessions, standard_catalogs({}) if catalogs is None else catalogs, clock=Clock(), **more
    ).tick()


def only(found: Tick) -> LinkReport:
    [report] = found.links
    return report


def markers(path: Path) -> list[Any]:
    return [
        json.loads(text)
        for (text,) in query(
            path, "SELECT last_marker_json FROM session_upstream_links ORDER BY catalog_id, session_key"
        )
    ]


def test_people_are_recorded_and_the_watcher_hears_of_it(
    log: SignalLog, path: Path, sessions: Sessions, tmp_path: Path
) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(HUMAN * 2 + HUMAN.replace("hello", "mine"))
    adopt(log, file=file)
    sessions.own[KEY] = ("earlier", "mine")
    found = tick(log, sessions)
    report = only(found)
    assert (report.verdict, report.turns, report.echoes) == (Verdict.RECORDED, 2, (Echo(2, 2),))
    assert report.event is not None
    assert report.event.payload == {"turns": 2}
    assert report.next_marker == {"offset": file.stat().st_size}
    assert markers(path) == [report.next_marker]
    assert [notice.watcher for notice in found.notices] == [PARENT]
    again = only(tick(log, sessions))
    assert (again.verdict, again.event) == (Verdict.QUIET, None)


def test_a_known_message_moves_the_marker_and_is_no_new_event(
    log: SignalLog, path: Path, sessions: Sessions, tmp_path: Path
) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(HUMAN)
    adopt(log, file=file)
    tick(log, sessions)
    change(path, "UPDATE session_upstream_links SET last_marker_json = '{\"offset\":0}'")
    assert only(tick(log, sessions)).verdict is Verdict.KNOWN
    assert log.newest_sequence() == 2
    assert markers(path) == [{"offset": len(HUMAN)}]


def test_three_misses_end_a_link_and_the_streak_may_live_elsewhere(
    log: SignalLog, path: Path, sessions: Sessions
) -> None:
    adopt(log)
    kept: dict[StreakKey, Streak] = {}
    for count in (1, 2):
        report = only(tick(log, sessions, kept=kept))
        assert (report.verdict, report.misses) == (Verdict.MISSING, count)
        assert [streak.misses for streak in kept.values()] == [count]
    report = only(tick(log, sessions, kept=kept))
    assert (report.verdict, report.misses) == (Verdict.REMOVED, 3)
    assert report.event is not None
    assert report.event.kind == "upstream_missing"
    assert kept == {}
    assert query(path, "SELECT 1 FROM session_upstream_links") == []


def test_a_streak_survives_a_tick_that_skips_the_link_though_its_file_is_back(
    log: SignalLog, sessions: Sessions, tmp_path: Path
) -> None:
    file = tmp_path / "t.jsonl"
    adopt(log, file=file)
    kept: dict[StreakKey, Streak] = {}
    tick(log, sessions, kept=kept)
    file.touch()
    sessions.gone.add(KEY)
    assert only(tick(log, sessions, kept=kept)).reason == "no session entry"
    assert [streak.misses for streak in kept.values()] == [1]
    sessions.gone.clear()
    assert only(tick(log, sessions, kept=kept)).verdict is Verdict.QUIET
    assert kept == {}


def test_links_that_have_not_moved_cost_no_question_about_their_sessions(
    log: SignalLog, sessions: Sessions, tmp_path: Path
) -> None:
    for number in range(20):
        file = tmp_path / f"{number}.jsonl"
        file.touch()
        adopt(log, f"agent:main:{number}", file=file)
    with statements() as seen:
        found = tick(log, sessions)
    assert {report.verdict for report in found.links} == {Verdict.QUIET}
    assert sessions.asked == 0
    assert not [sql for sql in seen if "session_nodes" in sql]


def test_every_link_is_told_why_it_was_not_checked(
    log: SignalLog, sessions: Sessions, tmp_path: Path
) -> None:
    (tmp_path / "t.jsonl").write_text(HUMAN)
    file = tmp_path / "t.jsonl"
    adopt(log, "agent:a:twice", agent_id="a", file=file)
    adopt(log, "agent:a:twice", agent_id="b", file=file)
    adopt(log, "agent:c:busy", file=file)
    adopt(log, "agent:d:gone", file=file)
    adopt(log, "agent:e:node", host_id="node:n1")
    adopt(log, "agent:f:codex", catalog="codex")
    adopt(log, "agent:g:unknown", catalog="weather")
    adopt(log, "agent:h:marker", marker={"uuid": "x"})
    adopt(log, "agent:i:unwatched", file=file)
    log.unwatch(PARENT, "agent:i:unwatched")
    sessions.active.add("agent:c:busy")
    sessions.gone.add("agent:d:gone")
    found = {report.link.session_key: (report.verdict, report.reason) for report in tick(log, sessions).links}
    assert found == {
        "agent:a:twice": (Verdict.AMBIGUOUS, "2 agents have a link of this session"),
        "agent:c:busy": (Verdict.SKIPPED, "a run of the session is active"),
        "agent:d:gone": (Verdict.SKIPPED, "no session entry"),
        "agent:e:node": (Verdict.ELSEWHERE, ""),
        "agent:f:codex": (Verdict.ELSEWHERE, ""),
        "agent:g:unknown": (Verdict.SKIPPED, "nothing here knows this catalog"),
        "agent:h:marker": (Verdict.UNUSABLE, "the marker holds no offset"),
        "agent:i:unwatched": (Verdict.UNWATCHED, ""),
    }


def test_an_isolated_state_checks_no_local_file(log: SignalLog, sessions: Sessions) -> None:
    adopt(log)
    kept = {StreakKey(KEY, "main", "x" * 16): Streak(2, 0)}
    report = only(tick(log, sessions, standard_catalogs({}, home_allowed=False), kept=kept))
    assert (report.verdict, report.reason) == (Verdict.ISOLATED, "isolated state")
    assert kept == {}
    elsewhere = standard_catalogs({"CLAUDE_CONFIG_DIR": "/c"}, home_allowed=False)
    assert only(tick(log, sessions, elsewhere)).verdict is Verdict.MISSING


def test_a_catalog_that_fails_hurts_no_other(log: SignalLog, sessions: Sessions, tmp_path: Path) -> None:
    def broken(probes: Sequence[Probe]) -> list[Outcome]:
        raise RuntimeError("out of order")

    (tmp_path / "t.jsonl").write_text(HUMAN)
    adopt(log, "agent:main:a", catalog="broken")
    adopt(log, file=tmp_path / "t.jsonl")
    found = tick(log, sessions, standard_catalogs({}) | {"broken": Catalog(broken)})
    assert found.failures == (("broken", "out of order"),)
    assert [report.verdict for report in found.links] == [Verdict.FAILED, Verdict.RECORDED]


@pytest.mark.parametrize("asked", ["check", "peek"])
def test_a_catalog_that_never_answers_is_a_failure_after_the_timeout(
    log: SignalLog, sessions: Sessions, asked: str
) -> None:
    released = threading.Event()

    def wait(_: Any) -> list[Outcome]:
        released.wait()
        return [Outcome(KEY, Activity(0, {"offset": 9}))]

    def glance(_: Link) -> None:
        released.wait()

    adopt(log)
    catalog = Catalog(wait) if asked == "check" else Catalog(lambda _: (), glance)
    found = tick(log, sessions, {"claude": catalog}, timeout_s=0.01)
    released.set()
    assert found.failures == (("claude", "no answer within 0.01 s"),)
    assert only(found).link.marker == {"offset": 0}


def test_a_listing_that_fails_is_told_and_drops_the_streaks(
    log: SignalLog, path: Path, sessions: Sessions
) -> None:
    adopt(log)
    kept: dict[StreakKey, Streak] = {}
    tick(log, sessions, kept=kept)
    change(path, "ALTER TABLE session_upstream_links RENAME TO hidden")
    found = tick(log, sessions, kept=kept)
    assert found.listing_failure is not None
    assert "session_upstream_links" in str(found.listing_failure)
    assert (found.links, kept) == ((), {})


@pytest.mark.parametrize("steps", range(6))
def test_nothing_is_written_once_the_monitor_is_stopped(
    log: SignalLog, path: Path, sessions: Sessions, tmp_path: Path, steps: int
) -> None:
    (tmp_path / "t.jsonl").write_text(HUMAN)
    adopt(log, file=tmp_path / "t.jsonl")
    asked = iter(range(100))
    found = tick(log, sessions, stopped=lambda: next(asked) >= steps)
    recorded = steps > 4
    assert query(path, "SELECT count(*) FROM session_state_events") == [(int(recorded),)]
    assert markers(path) == [{"offset": len(HUMAN) if recorded else 0}]
    assert found.stopped is (steps < 4)


@pytest.mark.parametrize(
    ("finding", "reason"),
    [
        (Activity(-1, {"offset": 1}, 1, "x"), "the check counted no whole number of turns"),
        (Activity(True, {"offset": 1}, 1, "x"), "the check counted no whole number of turns"),
        (Activity(1, {"offset": 1}, float("inf"), "x"), "the check names no time or no message"),
        (Activity(1, {"offset": 1}, None, "x"), "the check names no time or no message"),
        (Activity(1, {"offset": 1}, 1, ""), "the check names no time or no message"),
        (Activity(1, {"offset": 1}, 1, None), "the check names no time or no message"),
    ],
)
def test_a_finding_that_makes_no_sense_leaves_the_marker(
    log: SignalLog, path: Path, sessions: Sessions, finding: Finding, reason: str
) -> None:
    adopt(log)
    report = only(tick(log, sessions, answering(finding)))
    assert (report.verdict, report.reason) == (Verdict.IGNORED, reason)
    assert markers(path) == [{"offset": 0}]


def test_what_happens_during_a_check_leaves_the_finding_for_the_next_tick(
    log: SignalLog, path: Path, sessions: Sessions, clock: Clock
) -> None:
    def while_checking(edit: Callable[[], Any]) -> str:
        def check(probes: Sequence[Probe]) -> list[Outcome]:
            edit()
            return [Outcome(KEY, Activity(1, {"offset": 1}, clock.now, "1"))]

        report = only(tick(log, sessions, {"claude": Catalog(check)}))
        assert report.verdict is Verdict.IGNORED
        return report.reason

    def touch() -> None:
        clock.now += 1
        adopt(log)

    adopt(log)
    assert while_checking(touch) == "the link was changed during the check"
    assert while_checking(lambda: sessions.own.update({KEY: ("new",)})).startswith("the session sent")
    assert while_checking(lambda: log.unwatch(PARENT, KEY)) == "nobody watches the session any more"
    log.watch(PARENT, KEY)
    assert while_checking(lambda: sessions.active.add(KEY)) == "a run of the session is active"
    sessions.active.clear()
    assert while_checking(lambda: sessions.gone.add(KEY)) == "the session was replaced during the check"
    sessions.gone.clear()
    assert while_checking(lambda: log.delete_link(KEY)) == "the link was removed during the check"
    assert log.newest_sequence() == 0


def test_of_two_findings_for_a_session_the_first_is_reported(log: SignalLog, sessions: Sessions) -> None:
    adopt(log)
    findings = answering(Activity(0, {"offset": 1}), Silence(Verdict.BLOCKED, "x"), Missing())
    assert only(tick(log, sessions, findings)).verdict is Verdict.ADVANCED


def test_findings_about_sessions_that_were_not_asked_for_are_ignored(
    log: SignalLog, sessions: Sessions
) -> None:
    adopt(log)
    found = tick(log, sessions, answering(Activity(1, None, 1, "x"), key="agent:main:other"))
    assert only(found).verdict is Verdict.QUIET
    assert log.newest_sequence() == 0


def test_a_marker_may_be_null_and_may_stay(log: SignalLog, path: Path, sessions: Sessions) -> None:
    adopt(log)
    tick(log, sessions, answering(Activity(0)))
    assert markers(path) == [{"offset": 0}]
    tick(log, sessions, answering(Activity(0, None)))
    assert markers(path) == [None]


def test_a_locked_log_leaves_everything_for_the_next_tick(
    path: Path, clock: Clock, sessions: Sessions, tmp_path: Path
) -> None:
    (tmp_path / "t.jsonl").write_text(HUMAN)
    with SignalLog(path, change=True, create=True, clock=clock, lock_wait_ms=1) as log:
        adopt(log, file=tmp_path / "t.jsonl")
        with SignalLog(path, change=True, clock=clock) as other, other._database.writing():
            report = only(tick(log, sessions))
        assert report.verdict is Verdict.IGNORED
        assert report.reason.startswith("not recorded: ")
        assert only(tick(log, sessions)).verdict is Verdict.RECORDED


def test_rows_that_are_no_utf8_are_listed_all_the_same(
    log: SignalLog, path: Path, sessions: Sessions
) -> None:
    adopt(log)
    change(path, "UPDATE session_upstream_links SET thread_id = CAST(x'74ff' AS TEXT)")
    assert only(tick(log, sessions)).link.thread_id == "t\ufffd"
