"""Recording: times, dedupe keys, payloads, refusals, best effort, the hourly prune."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.core.events import clamp
from openclaw_state.errors import BusyError, UsageError
from openclaw_state.model import KINDS
from tests.support import CHILD, DAY, PARENT, Clock, T, goal, note, query


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (None, T),
        (T - 1_000, T - 1_000),
        (T - DAY, T - DAY),
        (T - DAY - 1, T - DAY),
        (T + 1, T),
        (0, T - DAY),
        (-5, T - DAY),
        (10**400, T),
        (-(10**400), T - DAY),
        (math.inf, T),
        (-math.inf, T),
        (math.nan, T),
        ("1799999999000", T),
        (True, T),
        (T - 0.5, T - 1),
    ],
)
def test_a_time_is_held_to_the_last_day(given: Any, stored: int) -> None:
    kept = clamp(given, T)
    assert (kept, type(kept)) == (stored, int)


def test_strict_passes_a_fraction_on_which_the_database_refuses(path: Path) -> None:
    assert clamp(T - 0.5, T, strict=True) == T - 0.5
    with SignalLog(path, change=True, create=True, strict=True, clock=Clock()) as log:
        with pytest.raises(UsageError, match="does not accept this value"):
            goal(log, occurred_at=T - 0.5)
        assert log.newest_sequence() == 0


def test_a_fraction_of_a_millisecond_is_dropped(log: SignalLog) -> None:
    event = goal(log, occurred_at=T - 0.25).event
    assert event is not None
    assert event.occurred_at == T - 1


def test_the_stored_event_is_returned_whole(log: SignalLog, path: Path) -> None:
    done = log.record(
        CHILD,
        "goal_changed",
        actor_type="human",
        summary="goal created",
        session_id="s1",
        actor_id="anna",
        run_id="r1",
        dedupe_key="d1",
        payload={"channel": "télégram"},
    )
    assert done.event is not None
    assert (done.event.sequence, done.duplicate, done.opened, done.pruned) == (1, False, (), None)
    assert [done.event] == list(log.events())
    assert done.event.payload == {"channel": "télégram"}
    assert log.head(CHILD) == (CHILD, "main", 1, 0, T)
    assert query(path, "SELECT payload_json FROM session_state_events") == [('{"channel":"télégram"}',)]


def test_a_known_dedupe_key_returns_its_event_and_burns_a_number(log: SignalLog, clock: Clock) -> None:
    first = goal(log, dedupe_key="once")
    clock.now += 1
    again = goal(log, "agent:work:other", dedupe_key="once")
    assert (again.event, again.duplicate, again.opened) == (first.event, True, ())
    assert log.version("agent:work:other") == 0
    assert [log.newest_sequence(), log.version(CHILD)] == [2, 1]
    third = goal(log).event
    assert third is not None
    assert third.sequence == 3


def test_an_empty_dedupe_key_is_a_key_that_hides_its_event(log: SignalLog) -> None:
    assert goal(log, dedupe_key="").event is not None
    again = goal(log, dedupe_key="")
    assert (again.event, again.duplicate) == (None, True)


@pytest.mark.parametrize(
    ("payload", "stored"),
    [
        (None, None),
        (False, None),
        (0, None),
        (0.0, None),
        (math.nan, None),
        ("", None),
        ({}, "{}"),
        ([], "[]"),
        (True, "true"),
        ({"turns": 2.0, "none": None, "bad": math.inf}, '{"turns":2,"none":null,"bad":null}'),
        ({"channel": "ü\u2028"}, '{"channel":"ü\u2028"}'),
        ({"half": "\ud800"}, '{"half":"\\ud800"}'),
        ((1, [2]), "[1,[2]]"),
    ],
)
def test_payloads_are_the_text_that_javascript_writes(
    log: SignalLog, path: Path, payload: Any, stored: str | None
) -> None:
    goal(log, payload=payload)
    assert query(path, "SELECT payload_json FROM session_state_events") == [(stored,)]


def endless() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("payload", [object(), {"when": {1, 2}}, b"bytes", endless()])
def test_a_payload_that_json_cannot_hold_is_refused(log: SignalLog, payload: Any) -> None:
    with pytest.raises(UsageError, match="cannot be written as JSON"):
        goal(log, payload=payload)
    assert log.newest_sequence() == 0


@pytest.mark.parametrize("stored", ["[1]", "7", "not json", '{"a":', "[" * 100_000, "", None])
def test_only_an_object_is_a_payload(log: SignalLog, path: Path, stored: str | None) -> None:
    goal(log)
    with_payload = next(log.events())._replace(payload_json=stored)
    assert with_payload.payload is None
    assert "payload" not in with_payload.view()
    assert "payload" not in with_payload.change()


@pytest.mark.parametrize(
    ("turns", "shown"),
    [
        ("3", 3),
        ("2.0", 2),
        ("0", None),
        ("-1", None),
        ("1.5", None),
        ("1e999", None),
        ('"3"', None),
        ("true", None),
    ],
)
def test_agents_are_shown_whole_positive_turns_only(log: SignalLog, turns: str, shown: int | None) -> None:
    goal(log)
    event = next(log.events())._replace(payload_json=f'{{"turns":{turns},"secret":"x"}}')
    assert event.change().get("payload") == (None if shown is None else {"turns": shown})


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "names no agent"),
        ("  ", "names no agent"),
        ("agent:main:", "names no agent"),
        ("global", "names no agent"),
        ("agent:main:a\nb", "control characters"),
        ("agent:main:a\0b", "control characters"),
        ("agent:main:\x1b[31m", "control characters"),
        ("agent:main:\x9b", "control characters"),
    ],
)
def test_keys_that_no_session_has_are_refused(log: SignalLog, key: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        goal(log, key)
    assert log.newest_sequence() == 0


def test_blank_words_and_control_characters_elsewhere_are_refused_too(log: SignalLog) -> None:
    with pytest.raises(UsageError, match="control characters"):
        goal(log, watchers=["agent:main:\r"])
    with pytest.raises(UsageError, match="control characters"):
        goal(log, "global", agent_id="ma\nin")
    with pytest.raises(UsageError, match="session key is blank"):
        goal(log, " ", agent_id="main")
    with pytest.raises(UsageError, match="kind is blank"):
        log.record(CHILD, " ", actor_type="human", summary="s")
    assert log.newest_sequence() == 0


def test_an_agent_may_not_contradict_the_key(log: SignalLog) -> None:
    with pytest.raises(UsageError, match="contradicts"):
        goal(log, CHILD, agent_id="work")


def test_bare_keys_belong_to_the_agent_that_is_named(log: SignalLog) -> None:
    goal(log, "global", agent_id="main")
    goal(log, "global", agent_id="work")
    assert log.versions(["global"]) == {"main": {"global": 1}, "work": {"global": 2}}
    assert [event.sequence for event in log.changes_since("global", 0, agent_id="main").events] == [1]


def test_a_kind_of_every_name_is_stored_and_only_three_notify(log: SignalLog) -> None:
    log.watch(PARENT, CHILD)
    opened = [
        kind
        for kind in (*KINDS, "toString", "anything")
        if kind != "child_spawned" and log.record(CHILD, kind, actor_type="someone", summary="s").opened
    ]
    assert opened == ["human_direct_message"]
    assert log.newest_sequence() == len(KINDS) + 1


@pytest.fixture
def held(path: Path, log: SignalLog) -> SignalLog:
    """A second log on the file of `log`, which hardly waits for it."""
    return SignalLog(path, change=True, lock_wait_ms=10, best_effort=True, clock=Clock())


def test_best_effort_logs_one_line_and_returns(
    held: SignalLog, log: SignalLog, caplog: pytest.LogCaptureFixture
) -> None:
    with log._database.writing():
        done = goal(held)
    assert (done.event, done.duplicate, done.opened) == (None, False, ())
    assert [(record.name, record.levelno) for record in caplog.records] == [
        ("openclaw_state", logging.WARNING)
    ]
    assert caplog.messages[0].startswith("signal not recorded: ")
    assert "\n" not in caplog.messages[0]
    assert goal(held).event is not None
    held.close()


def test_best_effort_also_spares_the_caller_its_own_mistakes(
    held: SignalLog, caplog: pytest.LogCaptureFixture
) -> None:
    assert goal(held, "").event is None
    assert held.run_ended(CHILD, run_id="r", outcome="unheard of").event is None
    assert goal(held, payload=object()).event is None
    assert len(caplog.records) == 3
    held.close()


def test_auto_prune_works_at_most_hourly(path: Path, clock: Clock) -> None:
    hour = 3_600_000
    with SignalLog(path, change=True, create=True, auto_prune=True, clock=clock) as log:
        first = note(log).pruned
        assert first is not None
        assert first.nothing
        clock.now += hour
        assert note(log).pruned is None
        clock.now += 1
        assert note(log).pruned is not None
        clock.now += 31 * DAY
        pruned = note(log).pruned
        assert pruned is not None
        assert pruned.events_by_age == 3


def test_without_auto_prune_recording_removes_nothing(log: SignalLog, clock: Clock) -> None:
    note(log)
    clock.now += 40 * DAY
    assert note(log).pruned is None
    assert [event.sequence for event in log.events()] == [1, 2]


def test_a_failing_hourly_prune_denies_no_stored_event(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(*_: Any, **__: Any) -> None:
        raise BusyError("locked")

    monkeypatch.setattr("openclaw_state.core.retention.apply", busy)
    with SignalLog(path, change=True, create=True, auto_prune=True, clock=clock) as log:
        done = note(log)
        assert done.event is not None
        assert done.pruned is None
        assert log.newest_sequence() == 1
    assert caplog.messages == ["retention not applied: locked"]
