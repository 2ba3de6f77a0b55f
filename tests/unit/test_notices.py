"""Notices: the exact line, its context key, the queue of this process, and wakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.core.notices import context_key, decode_context_key, notice_text
from openclaw_state.host.surroundings import StateDirectory
from tests.support import CHILD, DAY, PARENT, Clock, T, goal, note, openclaw_file, triples

GROUP = "agent:main:telegram:group:-100"


@pytest.mark.parametrize("target", [CHILD, 'agent:main:a"b\\c', "agent:main:ü", "global"])
def test_the_line_is_openclaws_to_the_letter(target: str) -> None:
    assert notice_text(target, 12) == (
        f'Session "{target}" changed (other actor). Reconcile before acting: session_status'
        f' sessionKey "{target}" changesSince 12.'
    )


@pytest.mark.parametrize("target", [CHILD, "ü", "\ufeffx", "a\0b", "😀"])
def test_a_context_key_names_its_target(target: str) -> None:
    encoded = context_key(target)
    assert encoded == "session-state:" + target.encode().hex()
    assert decode_context_key(encoded) == target


@pytest.mark.parametrize(
    "text",
    [
        "session-state:",
        "session-state:6",
        "session-state:616",
        "session-state:6G",
        "session-state:AB",
        "session-state:ff",
        "session-state:61\n",
        "session-state: 61",
        "Session-State:61",
        "other:61",
        "61",
        "",
    ],
)
def test_other_context_keys_are_not_ours(text: str) -> None:
    assert decode_context_key(text) is None


def test_a_notice_says_what_changed_since_when_and_how_to_reconcile(log: SignalLog, clock: Clock) -> None:
    log.watch(PARENT, CHILD)
    goal(log)
    clock.now += 1
    goal(log)
    (notice,) = log.notices()
    assert (notice.watcher, notice.target, notice.since, notice.head) == (PARENT, CHILD, 0, 2)
    assert (notice.kind, notice.pending_since) == ("goal_changed", T)
    assert (notice.wake, notice.wake_reason) == ("immediate", "explicit watch")
    assert notice.reconcile == ("openclaw-state", "status", CHILD, "--since", "0")
    assert notice.context_key == context_key(CHILD)


def test_a_notice_outlives_the_event_that_opened_it(log: SignalLog, clock: Clock) -> None:
    log.watch(PARENT, CHILD)
    goal(log)
    clock.now += 20 * DAY
    goal(log)
    clock.now += 20 * DAY
    log.prune()
    (notice,) = log.notices()
    assert (notice.kind, notice.pending_since, notice.since, notice.head) == (None, None, 0, 2)


@pytest.mark.parametrize("watcher", ["agent:main:subagent:x", "agent:work:SubAgent:x"])
def test_sub_agents_hear_at_their_next_turn(log: SignalLog, watcher: str) -> None:
    (notice,) = goal(log, watchers=[watcher]).opened
    assert (notice.wake, notice.wake_reason) == ("next-turn", "sub-agent watcher")
    assert log.take_wakes() == []
    assert len(log.queued(watcher)) == 1


def test_every_notice_asks_for_a_wake_and_each_is_handed_out_once(log: SignalLog) -> None:
    log.watch(PARENT, CHILD)
    goal(log)
    goal(log)
    (wake,) = log.take_wakes()
    assert (wake.session_key, wake.reason, wake.intent) == (PARENT, f"session-state:{CHILD}", "immediate")
    assert (wake.coalesce_ms, wake.current) == (20_000, True)
    assert log.take_wakes() == []
    goal(log)
    assert log.take_wakes() == [wake]


def test_twenty_changes_are_one_line(log: SignalLog) -> None:
    log.watch(PARENT, CHILD)
    for _ in range(20):
        goal(log)
    assert [line.text for line in log.queued(PARENT)] == [notice_text(CHILD, 0)]


def test_the_twenty_first_line_displaces_the_first_whose_notice_stays_pending(log: SignalLog) -> None:
    targets = [f"agent:main:subagent:{number}" for number in range(21)]
    for target in targets:
        goal(log, target, watchers=[PARENT])
    queued = [decode_context_key(line.context_key) for line in log.queued(PARENT)]
    assert queued == targets[1:]
    assert sorted(notice.target for notice in log.notices(PARENT)) == sorted(targets)


def test_a_queue_belongs_to_its_watcher_in_any_spelling(log: SignalLog) -> None:
    goal(log, watchers=["AGENT:Main:MAIN"])
    assert log.queued_watchers() == [PARENT]
    assert len(log.queued(" agent:MAIN:main ")) == 1


def test_taking_the_lines_acknowledges_their_targets_and_reopens(log: SignalLog, path: Path) -> None:
    log.watch(PARENT, CHILD)
    goal(log)
    goal(log)
    assert [line.text for line in log.consume(PARENT)] == [notice_text(CHILD, 0)]
    assert triples(path) == {(PARENT, CHILD): (1, 2, 2)}
    assert [line.text for line in log.consume(PARENT)] == [notice_text(CHILD, 1)]
    assert log.consume(PARENT) == []
    assert log.queued_watchers() == []


def test_an_explicit_line_is_joined_and_an_ambient_one_replaced(log: SignalLog) -> None:
    log.watch(PARENT, CHILD)
    log.watch_group(GROUP, agent_id="main")
    for target in (CHILD, GROUP):
        goal(log, target)
        log.acknowledge(PARENT, [target])
        goal(log, target)
    assert [line.text for line in log.queued(PARENT)] == [
        notice_text(CHILD, 0),
        notice_text(CHILD, 1),
        notice_text(GROUP, 3),
    ]


def test_a_line_for_a_store_that_is_no_longer_current_is_dropped(tmp_path: Path) -> None:
    file = openclaw_file(tmp_path / "state" / "openclaw.sqlite")
    with SignalLog(file, change=True) as log:
        goal(log, watchers=[PARENT])
        assert log.queued_watchers() == [PARENT]
        log.use_surroundings(StateDirectory(str(tmp_path), store="/new/{agentId}/sessions.json", environ={}))
        assert log.queued_watchers() == []
        goal(log)
        assert log.queued(PARENT) == []
        assert {wake.current for wake in log.take_wakes()} == {True, False}


def test_another_process_finds_the_notice_though_not_the_line(log: SignalLog, path: Path) -> None:
    goal(log, watchers=[PARENT])
    with SignalLog(path, change=True) as other:
        assert other.queued(PARENT) == []
        assert [notice.target for notice in other.notices(PARENT)] == [CHILD]
        other.sweep()
        assert len(other.queued(PARENT)) == 1


def test_children_that_ended_are_listed_though_they_open_no_notice(log: SignalLog) -> None:
    log.child_spawned(CHILD, requester=PARENT, run_id="r1")
    log.run_ended(CHILD, run_id="r1", outcome="cancelled", requester=PARENT)
    note(log)
    assert log.notices() == []
    assert [(event.kind, event.payload) for event in log.ended_children(PARENT)] == [
        ("run_failed", {"outcome": "cancelled"})
    ]
