"""One method per kind: what each fills in, and when it records nothing."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.core import producers
from openclaw_state.errors import UsageError
from tests.support import CHILD, PARENT, Clock


def test_only_if_watched_records_for_somebody_or_not_at_all(log: SignalLog) -> None:
    plain = producers.typed("goal_changed", CHILD, "main")
    assert log.append(plain, only_if_watched=True).event is None
    assert log.append(plain._replace(watchers=(PARENT,)), only_if_watched=True).event is not None
    assert log.append(plain, only_if_watched=True).event is not None


TYPED: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
    (
        "session_created",
        {"session_id": "s1", "actor_type": "human", "actor_id": "anna"},
        ("created", "human", "anna", None, f"created:main:{CHILD}:s1", "session created", None),
    ),
    (
        "human_message",
        {"channel": " telegram ", "parent": PARENT},
        ("human_direct_message", "human", None, None, None, "human message via telegram", None),
    ),
    (
        "human_message",
        {"spawned_by": PARENT},
        ("human_direct_message", "human", None, None, None, "human message via unknown", None),
    ),
    (
        "goal_changed",
        {"summary": "goal cleared"},
        ("goal_changed", "system", None, None, None, "goal cleared", None),
    ),
    (
        "child_spawned",
        {"requester": PARENT, "run_id": "r1"},
        ("child_spawned", "agent", PARENT, "r1", "child-spawned:r1", "child session spawned", None),
    ),
    (
        "run_ended",
        {"run_id": "r1"},
        ("run_completed", "system", None, "r1", "run-terminal:r1", "child run completed", None),
    ),
    (
        "run_ended",
        {"run_id": "r1", "outcome": "timeout"},
        (
            "run_failed",
            "system",
            None,
            "r1",
            "run-terminal:r1",
            "child run timed out",
            {"outcome": "timeout"},
        ),
    ),
    (
        "compacted",
        {"operation_id": "o1"},
        ("compacted", "system", None, None, "compacted:o1", "session compacted", None),
    ),
    (
        "adopted",
        {"catalog_id": "claude", "host_id": "h"},
        (
            "adopted",
            "human",
            None,
            None,
            f"adopted:{CHILD}",
            "adopted from claude",
            {"catalogId": "claude", "hostId": "h"},
        ),
    ),
]


@pytest.mark.parametrize(("method", "arguments", "stored"), TYPED)
def test_each_kind_has_a_method_that_fills_it_in(
    log: SignalLog, method: str, arguments: dict[str, Any], stored: tuple[Any, ...]
) -> None:
    event = getattr(log, method)(CHILD, **arguments).event
    assert event is not None
    assert (
        event.kind,
        event.actor_type,
        event.actor_id,
        event.run_id,
        event.dedupe_key,
        event.summary,
        event.payload,
    ) == stored


def test_an_unknown_outcome_is_refused(log: SignalLog) -> None:
    with pytest.raises(UsageError, match="error, timeout, cancelled"):
        log.run_ended(CHILD, run_id="r", outcome="lost")


def test_a_missing_source_is_recorded_once_per_generation_of_its_link(log: SignalLog, clock: Clock) -> None:
    def link() -> Any:
        log.upsert_link(CHILD, catalog_id="claude", host_id="h", thread_id="t", upstream_kind="claude-cli")
        return log.link(CHILD)

    first = log.upstream_missing(link()).event
    assert first is not None
    assert (first.summary, first.payload) == ("upstream missing via claude", {"channel": "claude"})
    assert log.upstream_missing(link()).duplicate
    clock.now += 1
    assert not log.upstream_missing(link()).duplicate


def test_a_message_is_recorded_where_somebody_hears_of_it(log: SignalLog) -> None:
    assert log.human_message(CHILD, channel="web").event is None
    log.watch(PARENT, CHILD)
    assert log.human_message(CHILD, channel="web").opened[0].watcher == PARENT
    spawned = log.human_message("agent:main:subagent:b", spawned_by="agent:x:y", parent=PARENT)
    assert [notice.watcher for notice in spawned.opened] == ["agent:x:y"]
