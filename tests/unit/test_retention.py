"""Retention: what goes, what stays, in which order, and that the plan says the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection
from threading import Barrier

import pytest

from openclaw_state import Limits, SignalLog
from openclaw_state.core import retention
from openclaw_state.core.database import Database
from openclaw_state.errors import UsageError
from tests.support import CHILD, DAY, PARENT, Clock, T, change, goal, note, query, statements

AGE = 30 * DAY


def fill(path: Path, events: int, *, sessions: int = 7, age: int = 0) -> None:
    """Many events at once, newest last, with their heads."""
    first = query(path, "SELECT ifnull(max(sequence), 0) FROM session_state_events")[0][0]
    change(
        path,
        f"""WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {events})
            INSERT INTO session_state_events
              (sequence, session_key, agent_id, kind, actor_type, occurred_at, summary)
            SELECT {first} + i, 'agent:main:s' || (i % {sessions}), 'main', 'compacted', 'system',
              {T - age}, 's' FROM n""",
        f"""INSERT INTO session_state_heads (session_key, agent_id, last_sequence, updated_at)
            SELECT session_key, agent_id, max(sequence), {T} FROM session_state_events
            WHERE true GROUP BY 1, 2 ON CONFLICT DO UPDATE SET last_sequence = excluded.last_sequence""",
    )


def sequences(path: Path) -> list[int]:
    return [row[0] for row in query(path, "SELECT sequence FROM session_state_events ORDER BY 1")]


def test_what_is_exactly_thirty_days_old_stays(log: SignalLog, clock: Clock) -> None:
    goal(log)
    clock.now += 1
    goal(log, watchers=[PARENT])
    clock.now = T + 1 + AGE
    pruned = log.prune()
    assert (pruned.events_by_age, pruned.events_by_rows, pruned.cursors_expired) == (1, 0, 0)
    assert [event.sequence for event in log.events()] == [2]
    clock.now += 1
    again = log.prune()
    assert (again.events_by_age, again.cursors_expired, again.cursors_pending) == (1, 1, 1)


def test_exactly_as_many_rows_as_allowed_stay_and_they_are_the_newest(log: SignalLog, path: Path) -> None:
    for _ in range(10):
        note(log)
    assert log.prune(Limits(max_rows=10)).nothing
    pruned = log.prune(Limits(max_rows=4))
    assert (pruned.events_by_age, pruned.events_by_rows, pruned.sessions) == (0, 6, 1)
    assert sequences(path) == [7, 8, 9, 10]
    assert log.prune(Limits(max_rows=0)).events == 4


def test_the_gateways_limits_are_the_usual_ones() -> None:
    assert Limits() == (2_592_000_000, 50_000)


@pytest.mark.parametrize("limits", [Limits(max_rows=-1), Limits(max_age_ms=-1)])
def test_a_negative_limit_is_a_mistake_and_no_wish_to_lose_everything(log: SignalLog, limits: Limits) -> None:
    note(log)
    for attempt in (log.plan_prune, log.prune):
        with pytest.raises(UsageError, match="cannot be negative"):
            attempt(limits)
    assert log.newest_sequence() == log.version(CHILD) == 1


def test_the_watermark_is_the_greatest_removed_and_heads_never_go(log: SignalLog, clock: Clock) -> None:
    note(log)
    note(log, PARENT)
    note(log)
    clock.now += AGE + 1
    note(log, PARENT)
    clock.now += 5
    pruned = log.prune()
    assert (pruned.sessions, pruned.heads_kept) == (2, 2)
    assert log.head(CHILD) == (CHILD, "main", 3, 3, clock.now)
    assert log.head(PARENT) == (PARENT, "main", 4, 2, clock.now)
    assert log.version(CHILD) == 3


def test_a_head_is_touched_only_when_its_watermark_rises(log: SignalLog, clock: Clock, path: Path) -> None:
    note(log)
    change(path, "UPDATE session_state_heads SET pruned_max_sequence = 5")
    clock.now += AGE + 1
    assert log.prune().events == 1
    assert log.head(CHILD) == (CHILD, "main", 1, 5, T)


def test_events_without_a_head_go_without_a_watermark(log: SignalLog, clock: Clock, path: Path) -> None:
    note(log)
    change(path, "DELETE FROM session_state_heads")
    clock.now += AGE + 1
    assert log.prune().events == 1
    assert log.head(CHILD) is None


def test_times_out_of_order_leave_older_numbers_behind_a_gap(log: SignalLog, clock: Clock) -> None:
    note(log)
    note(log, occurred_at=T - DAY)
    note(log)
    clock.now += AGE - DAY + 1
    assert log.prune().events_by_age == 1
    found = log.changes_since(CHILD, 1)
    assert ([event.sequence for event in found.events], found.history_gap) == ([3], True)
    assert found.earliest_available == 1


def test_out_of_order_times_across_batches_never_lower_a_watermark(
    log: SignalLog, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH_ROWS", 2)
    for age in (1, 2, 3, 4, 5):
        note(log, occurred_at=T - age)
    clock.now += AGE + 1
    log.prune()
    head = log.head(CHILD)
    assert head is not None
    assert head.watermark == 5


@pytest.mark.parametrize("seed", range(4))
def test_the_plan_is_what_is_done(path: Path, clock: Clock, seed: int) -> None:
    chance = random.Random(seed)
    limits = Limits(max_age_ms=10 * DAY, max_rows=chance.choice([5, 20, 1_000]))
    with SignalLog(path, change=True, create=True, limits=limits, clock=clock) as log:
        for _ in range(60):
            clock.now += chance.randrange(DAY)
            goal(
                log,
                f"agent:main:s{chance.randrange(5)}",
                occurred_at=clock.now - chance.randrange(DAY),
                watchers=[PARENT] if chance.random() < 0.3 else (),
            )
            if chance.random() < 0.1:
                log.drain(PARENT)
        before = path.read_bytes(), sequences(path)
        planned = log.plan_prune()
        assert (path.read_bytes(), sequences(path)) == before
        done = log.prune()
        assert done == planned._replace(applied=True)
        assert len(before[1]) - len(sequences(path)) == done.events > 0
        assert log.plan_prune().nothing
        assert log.prune().nothing


def test_every_batch_stamps_before_it_deletes(path: Path) -> None:
    with statements() as seen, SignalLog(path, change=True, create=True, clock=Clock()) as log:
        fill(path, 12_000)
        seen.clear()
        log.prune(Limits(max_rows=1_000))
        words = [
            text.split()[0] for text in seen if text.startswith(("BEGIN I", "UPDATE", "DELETE", "COMMIT"))
        ]
    batches = " ".join(words).split("BEGIN")[1:]
    stamped = [batch.split() for batch in batches if "UPDATE" in batch]
    assert len(stamped) >= 3
    for batch in stamped:
        assert batch == ["UPDATE"] * (len(batch) - 2) + ["DELETE", "COMMIT"]


class Counting(Database):
    """Notes how many events each write transaction removed."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), writable=True)
        self.removed: list[int] = []

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        count = "SELECT count(*) FROM session_state_events"
        with super().writing() as connection:
            before = connection.execute(count).fetchone()[0]
            yield connection
            self.removed.append(before - connection.execute(count).fetchone()[0])


@pytest.mark.parametrize("age", [0, AGE + 1], ids=["too many", "too old"])
@pytest.mark.parametrize("slow", [False, True], ids=["a fast disk", "a slow disk"])
def test_no_transaction_removes_more_than_five_thousand_and_fewer_where_it_takes_long(
    log: SignalLog, path: Path, monkeypatch: pytest.MonkeyPatch, age: int, slow: bool
) -> None:
    monkeypatch.setattr(retention, "_HOLD_S", 0 if slow else 1_000)
    monkeypatch.setattr(retention, "_PAUSE", 0)
    fill(path, 20_500, age=age)
    database = Counting(path)
    pruned = retention.apply(database, Limits(max_rows=500), now=T)
    database.close()
    assert pruned.events == sum(database.removed) == (20_500 if age else 20_000)
    assert max(database.removed) == (1_000 if slow else 5_000)
    assert sum(size > 100 for size in database.removed) == 1 or not slow


def test_two_prunes_at_once_both_finish_and_account_for_every_row(log: SignalLog, path: Path) -> None:
    fill(path, 13_000, age=AGE + 1)
    fill(path, 13_000)
    start = Barrier(2)

    def prune() -> int:
        with SignalLog(path, change=True, clock=Clock()) as own:
            start.wait()
            return own.prune(Limits(max_rows=1_000)).events

    with ThreadPoolExecutor(2) as pool:
        removed = [task.result() for task in [pool.submit(prune), pool.submit(prune)]]
    assert sum(removed) == 25_000
    assert len(sequences(path)) == 1_000


def test_a_writer_between_two_batches_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, log: SignalLog
) -> None:
    fill(path, 30, age=AGE + 1)
    monkeypatch.setattr(retention, "BATCH_ROWS", 10)

    class Visited(Database):
        @contextmanager
        def writing(self) -> Iterator[Connection]:
            with super().writing() as connection:
                yield connection
            note(log)

    database = Visited(str(path), writable=True)
    assert retention.apply(database, Limits(), now=T).events_by_age == 30
    database.close()
    assert sequences(path) == list(range(31, 31 + len(sequences(path))))
