"""State versions and changesSince: the exact delta, its pages, the gap, and what lies ahead."""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.core.changes import parse_since
from openclaw_state.errors import UsageError
from tests.support import CHILD, PARENT, Clock, T, change, goal, note

OTHER = "agent:work:main"


@pytest.mark.parametrize(
    ("value", "since"),
    [
        (None, None),
        ("", None),
        (" \t\u00a0\ufeff", None),
        (0, 0),
        (12, 12),
        (12.0, 12),
        (-0.0, 0),
        (2**53 - 1, 2**53 - 1),
        ("1", 1),
        (" 1 ", 1),
        ("1e0", 1),
        ("1.0", 1),
        ("1.", 1),
        ("+1", 1),
        ("01", 1),
        ("9007199254740991.0", 2**53 - 1),
    ],
)
def test_changes_since_takes_whole_numbers_also_as_text(value: Any, since: int | None) -> None:
    assert parse_since(value) == since


@pytest.mark.parametrize(
    "value",
    [
        -1,
        1.5,
        math.nan,
        math.inf,
        2**53,
        2.0**53,
        10**400,
        True,
        False,
        [],
        {},
        "0x1",
        "1.5",
        "abc",
        "-1",
        "1_0",
        "1e400",
        "inf",
        "nan",
        "9007199254740992",
        "1 2",
        "\u0661",
        "--1",
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_anything_else_is_refused_in_openclaws_words(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^changesSince must be a non-negative integer$"):
        parse_since(value)


def test_the_delta_is_exact_and_advances_nothing(log: SignalLog) -> None:
    for key in (CHILD, OTHER, CHILD, CHILD):
        goal(log, key)
    for _ in range(2):
        found = log.changes_since(CHILD, 1)
        assert [event.sequence for event in found.events] == [3, 4]
        assert (found.truncated, found.earliest_available, found.history_gap) == (False, 1, False)
    assert log.changes_since(CHILD, 4).events == ()


def test_a_session_is_known_by_its_exact_key_and_agent(log: SignalLog) -> None:
    goal(log, "agent:main:caf\u00e9")
    assert log.version("agent:main:caf\u00e9") == 1
    assert log.version("agent:main:cafe\u0301") == 0
    assert log.version("agent:main:CAF\u00c9") == 0
    goal(log, "global", agent_id="work")
    assert log.changes_since("global", 0, agent_id="main").events == ()
    assert log.versions(["global", "", CHILD]) == {"work": {"global": 2}}
    assert log.versions([]) == {}


@pytest.mark.parametrize(
    ("limit", "most"),
    [(1, 1), (2.9, 2), (0, 1), (-7, 1), (-math.inf, 1), (200, 200), (201, 200), (math.inf, 200)],
)
def test_a_limit_is_floored_and_held_between_1_and_200(log: SignalLog, limit: float, most: int) -> None:
    for _ in range(203):
        note(log)
    found = log.changes_since(CHILD, 0, limit=limit)
    assert (len(found.events), found.truncated) == (most, True)


def test_exactly_as_many_as_the_limit_are_not_truncated(log: SignalLog) -> None:
    note(log)
    note(log)
    assert log.changes_since(CHILD, 0, limit=2).truncated is False


@pytest.mark.parametrize(
    "numbers", [{"since": math.nan}, {"since": 0, "limit": math.nan}, {"since": 10**400}]
)
def test_what_is_no_number_is_refused(log: SignalLog, numbers: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        log.changes_since(CHILD, **numbers)


def test_a_fractional_version_stands_between_two(log: SignalLog) -> None:
    goal(log)
    goal(log)
    assert [event.sequence for event in log.changes_since(CHILD, 1.5).events] == [2]


def test_pages_neither_lose_nor_repeat_even_when_the_log_grows_between_them(log: SignalLog) -> None:
    for number in range(450):
        note(log, PARENT if number % 9 == 0 else CHILD)
    since, pages = 0, []
    while True:
        page = log.changes_since(CHILD, since)
        pages.append([event.sequence for event in page.events])
        if not page.truncated:
            break
        since = pages[-1][-1]
        note(log)
    assert [len(page) for page in pages] == [200, 200, 2]
    assert list(chain(*pages)) == [number for number in range(1, 453) if number > 450 or number % 9 != 1]


def test_all_changes_goes_through_the_pages(log: SignalLog) -> None:
    for _ in range(450):
        note(log)
    found = log.all_changes(CHILD, 10)
    assert next(found).sequence == 11
    note(log)
    assert [event.sequence for event in found] == list(range(12, 452))


@pytest.mark.parametrize(
    ("since", "gap"), [(-1, True), (0, True), (39, True), (39.5, True), (40, False), (45, False), (60, False)]
)
def test_the_gap_is_judged_by_the_watermark_alone(
    log: SignalLog, path: Path, since: float, gap: bool
) -> None:
    change(
        path,
        f"INSERT INTO session_state_heads VALUES ('{CHILD}', 'main', 60, 40, {T})",
        *(
            "INSERT INTO session_state_events (sequence, session_key, agent_id, kind, actor_type,"
            f" occurred_at, summary) VALUES ({number}, '{key}', 'main', 'compacted', 'system', {T}, 's')"
            for number, key in [(41, OTHER), (44, OTHER), (45, CHILD), (60, CHILD)]
        ),
    )
    found = log.changes_since(CHILD, since)
    assert found.history_gap is gap
    assert found.earliest_available == 45


def test_before_the_first_event_there_is_only_a_gap_below_zero(log: SignalLog) -> None:
    goal(log)
    assert [log.changes_since(CHILD, since).history_gap for since in (-1, 0)] == [True, False]


def test_a_version_ahead_of_the_head_is_neither_a_change_nor_a_gap(log: SignalLog) -> None:
    goal(log)
    found = log.changes_since(CHILD, 999)
    assert (found.events, found.truncated, found.history_gap) == ((), False, False)
    assert log.version(CHILD) == 1


def test_the_earliest_available_is_the_next_one_once_nothing_is_left(log: SignalLog, clock: Clock) -> None:
    assert log.changes_since(CHILD, 0).earliest_available == 0
    goal(log)
    goal(log)
    assert log.changes_since(CHILD, 0).earliest_available == 1
    clock.now += 31 * 86_400_000
    log.prune()
    found = log.changes_since(CHILD, 2)
    assert (found.earliest_available, found.history_gap) == (3, False)
    assert log.changes_since(CHILD, 1).history_gap is True


def test_the_view_is_what_session_status_shows(log: SignalLog) -> None:
    log.record(
        CHILD,
        "run_failed",
        actor_type="system",
        summary="child run failed",
        actor_id="",
        run_id="r1",
        session_id="hidden",
        dedupe_key="hidden",
        payload={"outcome": "error", "channel": 7, "turns": 2, "secret": "hidden"},
    )
    assert log.changes_since(CHILD, 0).view() == {
        "events": [
            {
                "sequence": 1,
                "kind": "run_failed",
                "actorType": "system",
                "occurredAt": T,
                "summary": "child run failed",
                "runId": "r1",
                "payload": {"outcome": "error", "turns": 2},
            }
        ],
        "truncated": False,
        "earliestAvailableSequence": 1,
        "historyGap": False,
    }


def test_a_time_becomes_the_version_that_was_current_then(log: SignalLog, clock: Clock, path: Path) -> None:
    for _ in range(3):
        goal(log)
        clock.now += 1_000
    assert [log.version_at(CHILD, T + offset) for offset in (0, 1, 1_000, 1_001, 9_000)] == [0, 1, 1, 2, 3]
    change(path, "UPDATE session_state_heads SET pruned_max_sequence = 1", "DELETE FROM session_state_events")
    assert log.version_at(CHILD, T + 9_000) == 1


def test_a_bare_key_of_several_agents_needs_one_named(log: SignalLog) -> None:
    assert log.resolve_agent("global") is None
    goal(log, "global", agent_id="work")
    assert log.resolve_agent("global") == "work"
    goal(log, "global", agent_id="main")
    with pytest.raises(UsageError, match="several agents have the key global: main, work"):
        log.resolve_agent("global")
    assert log.resolve_agent("global", "main") == "main"
    assert log.resolve_agent(CHILD) == "main"
