"""Whatever order people, agents and retention act in, the log keeps its promises."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from openclaw_state import Limits, SignalLog
from openclaw_state.model import KINDS
from tests.support import DAY, Clock, query, triples

KEYS = ["agent:main:main", "agent:main:subagent:a", "agent:work:main", "agent:work:subagent:b"]
key = st.sampled_from(KEYS)
LIMITS = Limits(max_age_ms=3 * DAY, max_rows=12)


class Log(RuleBasedStateMachine):
    """Every change that the API offers, and beside it the little that must follow from them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "log.sqlite"
        self.clock = Clock()
        self.log = self.open(create=True)
        self.given: dict[str, int] = {}
        self.announced: dict[tuple[str, str], str] = {}

    def open(self, **options: Any) -> SignalLog:
        return SignalLog(self.path, change=True, limits=LIMITS, clock=self.clock, **options)

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.folder)

    @rule(
        session=key,
        kind=st.sampled_from(KINDS),
        actor=st.none() | key,
        named=st.lists(key, max_size=2),
        age=st.integers(0, DAY),
    )
    def record(self, session: str, kind: str, actor: str | None, named: list[str], age: int) -> None:
        before = self.log.newest_sequence()
        event = self.log.record(
            session,
            kind,
            actor_type="agent",
            summary="s",
            actor_id=actor,
            watchers=named,
            occurred_at=self.clock.now - age,
        ).event
        assert event is not None
        assert event.sequence == before + 1
        self.given[session] = event.sequence
        if kind == "child_spawned":
            for watcher in named:
                self.announced.pop((watcher, session), None)

    @rule(session=key, name=st.sampled_from(["x", "y"]))
    def record_once(self, session: str, name: str) -> None:
        before = self.log.newest_sequence()
        done = self.log.record(session, "compacted", actor_type="system", summary="s", dedupe_key=name)
        assert done.event is not None
        assert self.log.newest_sequence() == before + 1
        if not done.duplicate:
            self.given[session] = done.event.sequence

    @rule(watcher=key, session=key)
    def watch(self, watcher: str, session: str) -> None:
        before = triples(self.path)
        watched = self.log.watch(watcher, session)
        assert watched.watched is (watcher != session)
        if not watched.created:
            assert triples(self.path) == before

    @rule(watcher=key, sessions=st.lists(key, max_size=3))
    def acknowledge(self, watcher: str, sessions: list[str]) -> None:
        before = triples(self.path)
        reopened = self.log.acknowledge(watcher, sessions).reopened
        assert {(notice.watcher, notice.target) for notice in reopened} == {
            (watcher, target)
            for target in sessions
            if (watcher, target) in before and before[watcher, target][2] > before[watcher, target][1]
        }
        for target in sessions:
            self.announced.pop((watcher, target), None)

    @rule(watcher=key)
    def drain(self, watcher: str) -> None:
        before, pending = triples(self.path), self.log.notices(watcher)
        assert self.log.drain(watcher) == pending
        still = {notice.target for notice in self.log.notices(watcher)}
        assert still == {
            notice.target
            for notice in pending
            if before[watcher, notice.target][2] > before[watcher, notice.target][1]
        }
        for notice in pending:
            self.announced.pop((watcher, notice.target), None)

    @rule()
    def sweep(self) -> None:
        pending = self.log.notices()
        assert [notice.text for notice in self.log.sweep().notices] == [notice.text for notice in pending]

    @rule(days=st.integers(0, 4))
    def wait(self, days: int) -> None:
        self.clock.now += days * DAY + 1

    @rule()
    def prune(self) -> None:
        planned = self.log.plan_prune()
        assert self.log.prune() == planned._replace(applied=True)
        assert self.log.plan_prune().nothing
        times = query(self.path, "SELECT min(occurred_at), count(*) FROM session_state_events")[0]
        assert times[1] <= LIMITS.max_rows
        assert times[0] is None or times[0] >= self.clock.now - LIMITS.max_age_ms
        self.forget_announcements_without_cursor()

    @rule(session=key)
    def forget(self, session: str) -> None:
        planned = self.log.plan_forget(session)
        assert self.log.forget(session) == planned._replace(applied=True)
        self.given.pop(session, None)
        self.forget_announcements_without_cursor()

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.log = self.open()

    @rule(session=key, limit=st.integers(1, 5), grows=st.booleans())
    @precondition(lambda self: self.given)
    def page(self, session: str, limit: int, grows: bool) -> None:
        head = self.log.head(session)
        since = head.watermark if head else 0
        kept = [
            row[0]
            for row in query(
                self.path,
                "SELECT sequence FROM session_state_events WHERE session_key = ? AND sequence > ? ORDER BY 1",
                session,
                since,
            )
        ]
        seen: list[int] = []
        while True:
            found = self.log.changes_since(session, since, limit=limit)
            assert not found.history_gap
            seen += [event.sequence for event in found.events]
            if not found.truncated:
                break
            since = seen[-1]
            if grows and len(kept) < 20:
                self.record(session, "compacted", None, [], 0)
                kept.append(self.given[session])
        assert seen == kept

    def forget_announcements_without_cursor(self) -> None:
        left = triples(self.path)
        self.announced = {pair: text for pair, text in self.announced.items() if pair in left}

    @invariant()
    def a_head_is_the_newest_number_that_its_session_was_given(self) -> None:
        assert {row.session_key: row.version for row in self.log.sessions()} == self.given

    @invariant()
    def a_cursor_has_seen_no_more_than_it_was_told_and_no_more_than_there_is(self) -> None:
        newest = self.log.newest_sequence()
        for seen, notified, material in triples(self.path).values():
            assert 0 <= seen <= notified <= material <= newest

    @invariant()
    def a_pair_has_one_notice_whose_text_stands_until_it_is_acknowledged(self) -> None:
        found = {(notice.watcher, notice.target): notice.text for notice in self.log.notices()}
        assert len(found) == len(self.log.notices())
        pending = {pair for pair, (seen, _, material) in triples(self.path).items() if material > seen}
        assert found.keys() == pending
        assert {pair: found.get(pair) for pair in self.announced} == self.announced
        self.announced = found

    @invariant()
    def the_watermark_is_the_oldest_version_without_a_gap(self) -> None:
        for row in self.log.sessions():
            assert not self.log.changes_since(row.session_key, row.watermark).history_gap
            assert self.log.changes_since(row.session_key, row.watermark - 1).history_gap


TestLog = Log.TestCase
TestLog.settings = settings(settings.default, max_examples=40, stateful_step_count=25)
