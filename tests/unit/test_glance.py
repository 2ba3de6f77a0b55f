"""A glance: what a board shows of one moment, chosen like sessions and no dearer for more of them."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.core.listing import EventFilter, SessionFilter
from openclaw_state.model import Glance
from tests.support import CHILD, PARENT, Clock, goal, note, statements

OTHER = "agent:work:main"


def glance(log: SignalLog, most: int = 10, **chosen: Any) -> Glance:
    return log.glance(
        SessionFilter(**chosen),
        EventFilter(**chosen),
        most_sessions=most,
        most_behind=most,
        most_events=most,
    )


@pytest.fixture
def filled(log: SignalLog) -> SignalLog:
    """The parent waits for two changes of the child, the other session for one; the other works too."""
    log.watch(PARENT, CHILD)
    goal(log)
    log.watch(OTHER, CHILD)
    goal(log)
    note(log, OTHER)
    return log


def keys(found: Glance) -> list[str]:
    return [row.session_key for row in found.sessions]


def waiting(found: Glance) -> list[tuple[str, int]]:
    return [(one.notice.watcher, one.lag) for one in found.behind]


def test_a_glance_is_the_newest_of_everything(filled: SignalLog) -> None:
    found = glance(filled)
    assert keys(found) == [OTHER, CHILD]
    assert waiting(found) == [(PARENT, 2), (OTHER, 1)]
    assert found.lags == {CHILD: 2}
    assert [event.sequence for event in found.events] == [1, 2, 3]
    assert (found.total_sessions, found.total_pending, found.newest) == (2, 2, 3)


def test_what_does_not_fit_is_counted(filled: SignalLog) -> None:
    found = glance(filled, most=1)
    assert (keys(found), waiting(found), len(found.events)) == ([OTHER], [(PARENT, 2)], 1)
    assert (found.total_sessions, found.total_pending) == (2, 2)


def test_sessions_are_chosen_by_key_with_the_notices_at_either_end(filled: SignalLog) -> None:
    found = glance(filled, session_keys=(OTHER,))
    assert (keys(found), waiting(found)) == ([OTHER], [(OTHER, 1)])
    assert [event.session_key for event in found.events] == [OTHER]
    assert waiting(glance(filled, session_keys=(CHILD,))) == [(PARENT, 2), (OTHER, 1)]


@pytest.mark.parametrize("part", ["subagent", "SUBAGENT", ":child"])
def test_sessions_are_chosen_by_a_part_of_their_key_in_any_case(filled: SignalLog, part: str) -> None:
    found = glance(filled, containing=part)
    assert (keys(found), found.total_sessions) == ([CHILD], 1)
    assert {event.session_key for event in found.events} == {CHILD}
    assert len(waiting(found)) == 2


@pytest.mark.parametrize("part", ["%", "_", "*", "'", "nothing"])
def test_no_character_of_a_part_is_a_wildcard(filled: SignalLog, part: str) -> None:
    found = glance(filled, containing=part)
    assert (found.sessions, found.behind, found.events, found.newest) == ((), (), (), 3)


def test_sessions_are_chosen_by_agent_and_notices_by_their_target(filled: SignalLog) -> None:
    assert keys(glance(filled, agent_id="work")) == [OTHER]
    assert waiting(glance(filled, agent_id="work")) == []
    assert len(waiting(glance(filled, agent_id="main"))) == 2


def test_an_acknowledged_notice_is_gone(filled: SignalLog, clock: Clock) -> None:
    filled.acknowledge(PARENT, [CHILD])
    filled.acknowledge(PARENT, [CHILD])
    assert waiting(glance(filled)) == [(OTHER, 1)]
    assert glance(filled).lags == {CHILD: 1}


def test_more_sessions_than_are_shown_cost_not_one_statement_more(filled: SignalLog) -> None:
    costs = []
    for count in (20, 200):
        for number in range(count):
            key = f"agent:main:subagent:{count}-{number}"
            filled.watch(PARENT, key)
            goal(filled, key)
        with statements() as seen, SignalLog(filled.path) as log:
            glance(log)
        costs.append(len(seen))
    assert costs[0] == costs[1]
