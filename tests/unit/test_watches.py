"""Watch cursors: registration, the frozen watermark, acknowledging, sweeping, reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_state import CursorReport, SignalLog
from tests.support import (
    CHILD,
    DAY,
    PARENT,
    Clock,
    T,
    goal,
    note,
    query,
    statements,
    triples,
)

OTHER = "agent:work:main"
PAIR = (PARENT, CHILD)


def only(reports: list[CursorReport]) -> CursorReport:
    (report,) = reports
    return report


def test_a_watch_starts_at_the_present_and_replays_nothing(log: SignalLog, path: Path) -> None:
    goal(log)
    goal(log)
    watched = log.watch(PARENT, CHILD)
    assert (watched.watched, watched.created, watched.refusal) == (True, True, None)
    assert triples(path) == {PAIR: (2, 2, 2)}
    assert log.notices() == []


def test_watching_again_keeps_what_is_pending(log: SignalLog, path: Path, clock: Clock) -> None:
    log.watch(PARENT, CHILD)
    goal(log)
    clock.now += 1
    watched = log.watch(PARENT, CHILD)
    assert (watched.watched, watched.created) == (True, False)
    assert triples(path) == {PAIR: (0, 1, 1)}
    assert query(path, "SELECT updated_at FROM session_watch_cursors") == [(T,)]
    assert [notice.since for notice in log.notices(PARENT)] == [0]


@pytest.mark.parametrize(
    ("watcher", "target", "rule"),
    [
        (CHILD, CHILD, "cannot watch itself"),
        ("main", CHILD, "agent-qualified"),
        ("agent:main", CHILD, "agent-qualified"),
        ("agent:main:", CHILD, "agent-qualified"),
        ("agent::x", CHILD, "agent-qualified"),
        ("agent: :x", CHILD, "agent-qualified"),
        ("agent:main::x", CHILD, "agent-qualified"),
        ("", CHILD, "agent-qualified"),
        (PARENT, "global", "needs its agent"),
    ],
)
def test_a_refusal_names_its_rule_and_stores_nothing(
    log: SignalLog, path: Path, watcher: str, target: str, rule: str
) -> None:
    watched = log.watch(watcher, target)
    assert (watched.watched, watched.created, watched.cursor) == (False, False, None)
    assert rule in (watched.refusal or "")
    assert triples(path) == {}


def test_a_bare_target_is_watched_under_the_agent_that_is_named_and_heard_of_any(
    log: SignalLog, path: Path
) -> None:
    goal(log, "global", agent_id="work")
    assert log.watch(PARENT, "global", agent_id="main").created
    assert triples(path) == {(PARENT, "global"): (0, 0, 0)}
    goal(log, "global", agent_id="work")
    assert triples(path) == {(PARENT, "global"): (0, 2, 2)}


def test_the_first_change_freezes_the_watermark_until_it_is_acknowledged(log: SignalLog, path: Path) -> None:
    log.watch(PARENT, CHILD)
    texts = set()
    for expected in [(0, 1, 1), (0, 1, 2), (0, 1, 3)]:
        goal(log)
        assert triples(path) == {PAIR: expected}
        texts.add(log.notices()[0].text)
    assert len(texts) == 1


def test_acknowledging_reopens_what_came_after_the_announcement(log: SignalLog, path: Path) -> None:
    log.watch(PARENT, CHILD)
    goal(log)
    goal(log)
    done = log.acknowledge(PARENT, [CHILD])
    assert triples(path) == {PAIR: (1, 2, 2)}
    assert [notice.since for notice in done.reopened] == [1]
    assert log.acknowledge(PARENT, [CHILD]).reopened == ()
    assert triples(path) == {PAIR: (2, 2, 2)}


def test_acknowledging_ignores_strangers_and_postpones_the_expiry_of_the_quiet(
    log: SignalLog, path: Path, clock: Clock
) -> None:
    log.watch(PARENT, CHILD)
    clock.now += DAY
    done = log.acknowledge(PARENT, [CHILD, "agent:main:never seen"])
    assert [cursor.target for cursor in done.cursors] == [CHILD]
    assert log.acknowledge(OTHER, [CHILD]).cursors == ()
    assert triples(path) == {PAIR: (0, 0, 0)}
    assert only(log.cursors()).expires_at == T + DAY + 30 * DAY


def test_the_actor_itself_is_not_told(log: SignalLog, path: Path) -> None:
    log.watch(PARENT, CHILD)
    log.watch(OTHER, CHILD)
    opened = goal(log, actor_id=PARENT, watchers=[PARENT]).opened
    assert [notice.watcher for notice in opened] == [OTHER]
    assert triples(path)[PAIR] == (0, 0, 0)
    assert [notice.watcher for notice in goal(log, actor_id=PARENT.upper()).opened] == [PARENT]


def test_named_watchers_are_told_once_and_bare_ones_never(log: SignalLog, path: Path) -> None:
    opened = goal(log, watchers=[OTHER, PARENT, OTHER, "main", "", "agent:x:"]).opened
    assert [notice.watcher for notice in opened] == [OTHER, PARENT]
    assert triples(path) == {(OTHER, CHILD): (0, 1, 1), PAIR: (0, 1, 1)}


def test_only_a_change_that_opens_a_notice_is_reported_as_opening(log: SignalLog) -> None:
    log.watch(PARENT, CHILD)
    assert len(goal(log).opened) == 1
    assert goal(log).opened == ()


def test_what_only_the_log_shows_touches_no_cursor(log: SignalLog, path: Path, clock: Clock) -> None:
    log.watch(PARENT, CHILD)
    clock.now += 1
    note(log, watchers=[OTHER])
    assert triples(path) == {PAIR: (0, 0, 0)}
    assert query(path, "SELECT updated_at FROM session_watch_cursors") == [(T,)]


def test_a_spawn_starts_its_requester_anew_and_nobody_else(log: SignalLog, path: Path) -> None:
    log.watch(PARENT, CHILD)
    log.watch(OTHER, CHILD)
    goal(log)
    log.child_spawned(CHILD, requester=PARENT, run_id="r1")
    assert triples(path) == {PAIR: (2, 2, 2), (OTHER, CHILD): (0, 1, 1)}


def test_groups_are_watched_by_their_main_session_for_its_next_turn(log: SignalLog) -> None:
    group = "agent:main:telegram:group:-100"
    watched = log.watch_group(group, agent_id="Main", main_key=" Home ")
    assert watched.cursor is not None
    assert (watched.cursor.watcher, watched.cursor.ambient) == ("agent:main:home", True)
    notice = goal(log, group).opened[0]
    assert (notice.wake, notice.wake_reason) == ("next-turn", "ambient group watch")
    assert log.watch("agent:main:home", group).created is False
    assert [report.cursor.provenance for report in log.cursors()] == ["explicit"]
    assert log.watch_group(group, agent_id="main", main_key="home").watched
    assert [report.cursor.provenance for report in log.cursors()] == ["explicit"]


@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("agent:main:main", {}),
        ("agent:main:telegram:direct:1", {}),
        ("global", {"chatType": "group"}),
        ("unknown", {"chatType": "group"}),
        ("agent:main:cron:job:group:1", {"chatType": "group"}),
        ("agent:main:telegram:group:1", {"spawnedBy": PARENT}),
    ],
)
def test_what_is_no_group_is_not_watched_as_one(
    log: SignalLog, path: Path, key: str, entry: dict[str, str]
) -> None:
    assert log.watch_group(key, agent_id="main", entry=entry).watched is False
    assert triples(path) == {}


def test_a_chat_type_makes_a_group_of_any_key(log: SignalLog) -> None:
    assert log.watch_group("agent:main:thing", agent_id="main", entry={"chatType": "channel"}).watched


def test_a_sweep_announces_again_what_is_pending(log: SignalLog, path: Path, clock: Clock) -> None:
    log.watch(PARENT, CHILD)
    goal(log)
    goal(log)
    log.watch(OTHER, CHILD)
    clock.now += 5
    swept = log.sweep()
    assert [(notice.watcher, notice.since) for notice in swept.notices] == [(PARENT, 0)]
    assert triples(path) == {PAIR: (0, 2, 2), (OTHER, CHILD): (2, 2, 2)}
    assert query(path, "SELECT updated_at FROM session_watch_cursors ORDER BY 1") == [(T,), (T + 5,)]


def test_watches_end_one_by_one_by_watcher_and_with_their_sessions(log: SignalLog, path: Path) -> None:
    pairs = [(PARENT, CHILD), (PARENT, OTHER), (OTHER, CHILD), (CHILD, PARENT)]

    def watch_all() -> None:
        for watcher, target in pairs:
            log.watch(watcher, target)

    watch_all()
    assert [log.unwatch(PARENT, OTHER), log.unwatch(PARENT, OTHER)] == [True, False]
    watch_all()
    assert log.reset_watches(PARENT) == 2
    assert set(triples(path)) == {(OTHER, CHILD), (CHILD, PARENT)}
    watch_all()
    planned = log.plan_forget(CHILD)
    assert (planned.cursors, planned.applied) == (3, False)
    assert log.forget(CHILD) == planned._replace(applied=True)
    assert set(triples(path)) == {(PARENT, OTHER)}


def test_forgetting_takes_the_watermark_but_never_a_number(log: SignalLog, clock: Clock) -> None:
    goal(log)
    clock.now += 31 * DAY
    log.prune()
    goal(log)
    forgotten = log.forget(CHILD)
    assert (forgotten.events, forgotten.heads) == (1, 1)
    assert (log.version(CHILD), log.changes_since(CHILD, 0).history_gap) == (0, False)
    event = goal(log).event
    assert event is not None
    assert event.sequence == 3


@pytest.mark.parametrize("named", [False, True], ids=["registered", "named"])
def test_a_thousand_watchers_cost_no_more_statements_than_one(path: Path, named: bool) -> None:
    watchers = [f"agent:main:watcher-{number}" for number in range(1_000)]
    with statements() as seen, SignalLog(path, change=True, create=True) as log:
        if not named:
            goal(log, watchers=watchers)
        seen.clear()
        goal(log, watchers=watchers if named else ())
        begin, guard, *work, commit = seen
    assert (begin, commit) == ("BEGIN IMMEDIATE", "COMMIT")
    assert guard.startswith("SELECT (SELECT schema_version")
    assert len(work) <= 6
    assert set(triples(path).values()) == {(0, 1, 1) if named else (0, 1, 2)}
