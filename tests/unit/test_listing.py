"""Long readings: events by filter and sessions by latest change, in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openclaw_state import EventFilter, SignalLog
from tests.support import CHILD, PARENT, Clock, T, goal, note, statements


@pytest.fixture
def story(log: SignalLog, clock: Clock) -> SignalLog:
    """Six events, a millisecond apart."""
    for key, kind, actor, more in [
        (CHILD, "goal_changed", "human", {"actor_id": "anna"}),
        (CHILD, "goal_changed", "human", {"actor_id": "bert"}),
        (PARENT, "compacted", "system", {}),
        ("global", "run_completed", "system", {"run_id": "r1", "agent_id": "work"}),
        (CHILD, "run_failed", "system", {"run_id": "r2"}),
        (PARENT, "child_spawned", "agent", {"actor_id": "agent:a:b", "run_id": "r2"}),
    ]:
        log.record(key, kind, actor_type=actor, summary="s", **more)
        clock.now += 1
    return log


@pytest.mark.parametrize(
    ("chosen", "sequences"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"session_keys": (CHILD,)}, [1, 2, 5]),
        ({"session_keys": (PARENT, "global")}, [3, 4, 6]),
        ({"agent_id": "work"}, [4]),
        ({"kinds": ("compacted", "run_failed")}, [3, 5]),
        ({"actors": ("human",)}, [1, 2]),
        ({"actors": ("human:anna", "agent:agent:a:b")}, [1, 6]),
        ({"actors": ("human:",)}, []),
        ({"run_id": "r2"}, [5, 6]),
        ({"after": 2, "through": 4}, [3, 4]),
        ({"later_than": T, "until": T + 2}, [2, 3]),
        ({"session_keys": (CHILD,), "kinds": ("goal_changed",), "actors": ("human:bert",)}, [2]),
        ({"session_keys": ("agent:main:nobody",)}, []),
    ],
)
def test_events_are_chosen_by_all_conditions_together(
    story: SignalLog, chosen: dict[str, Any], sequences: list[int]
) -> None:
    assert [event.sequence for event in story.events(EventFilter(**chosen))] == sequences
    newest = story.events(EventFilter(**chosen), newest=2)
    assert [event.sequence for event in newest] == sequences[-2:]


@pytest.mark.parametrize(("newest", "count"), [(0, 0), (1, 1), (6, 6), (7, 6), (None, 6)])
def test_as_many_of_the_newest_as_asked_for(story: SignalLog, newest: int | None, count: int) -> None:
    assert [event.sequence for event in story.events(newest=newest)] == list(range(1, 7))[6 - count :]


def test_what_is_recorded_meanwhile_is_not_part_of_a_reading(path: Path) -> None:
    with statements() as seen, SignalLog(path, change=True, create=True, clock=Clock()) as log:
        for _ in range(1_100):
            note(log)
        seen.clear()
        found = log.events()
        assert next(found).sequence == 1
        goal(log)
        assert [event.sequence for event in found] == list(range(2, 1_101))
        assert sum(text.endswith("LIMIT 500") for text in seen) == 3


def test_sessions_come_by_latest_change_and_say_what_is_kept_of_them(log: SignalLog, clock: Clock) -> None:
    goal(log, watchers=[PARENT, "agent:work:main"])
    note(log)
    goal(log, "global", agent_id="work")
    goal(log, "global", agent_id="main")
    log.drain("agent:work:main")
    rows = list(log.sessions())
    assert [(row.session_key, row.agent_id, row.version) for row in rows] == [
        ("global", "main", 4),
        ("global", "work", 3),
        (CHILD, "main", 2),
    ]
    child = rows[-1]
    assert (child.events, child.oldest, child.watchers, child.pending, child.watermark) == (2, 1, 2, 1, 0)
    assert child.last is not None
    assert child.last.kind == "compacted"
    assert [row.version for row in log.sessions(agent_id="main")] == [4, 2]
    assert [row.version for row in log.sessions(most=1)] == [4]
    assert (log.count_sessions(), log.count_sessions(agent_id="work")) == (3, 1)


def test_a_session_of_which_nothing_is_kept_is_still_listed(log: SignalLog, clock: Clock) -> None:
    note(log)
    clock.now += 40 * 86_400_000
    log.prune()
    (row,) = log.sessions()
    assert (row.version, row.watermark, row.events, row.oldest, row.last) == (1, 1, 0, None, None)


def test_more_sessions_than_one_batch_are_each_listed_once(log: SignalLog) -> None:
    for number in range(1_001):
        note(log, f"agent:main:{number}")
    assert [row.version for row in log.sessions()] == list(range(1_001, 0, -1))
    assert len(list(log.sessions(most=700))) == 700


def test_a_key_is_known_by_anything_that_names_it(log: SignalLog) -> None:
    goal(log)
    log.watch(PARENT, "agent:main:only watched")
    log.upsert_link("agent:main:linked", catalog_id="c", host_id="h", thread_id="t", upstream_kind="k")
    for key in (CHILD, PARENT, "agent:main:only watched", "agent:main:linked"):
        assert log.session_known(key) is True
    assert log.session_known("agent:main:nobody") is False


def test_a_wrong_key_is_answered_with_those_like_it(log: SignalLog) -> None:
    goal(log)
    goal(log, "agent:main:subagent:other")
    assert log.similar_keys("agent:main:subagent:chidl")[0] == CHILD
    assert log.similar_keys(CHILD.upper())[0] == CHILD
    assert log.similar_keys("nothing like it") == []
