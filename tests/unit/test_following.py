"""Following through the Python API: batches, changes of one session, notices, and what is held at rest."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from openclaw_state import Batch, EventFilter, Gap, Limits, SignalLog
from openclaw_state.core import inotify
from openclaw_state.errors import AheadError, HistoryGapError, NoDatabaseError, UsageError
from tests.support import CHILD, PARENT, goal, note, statements

LIMIT_S = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.sqlite"
    SignalLog(path, change=True, create=True).close()
    return path


@pytest.fixture
def writer(path: Path) -> Iterator[SignalLog]:
    with SignalLog(path, change=True) as log:
        yield log


@contextmanager
def soon(*actions: Callable[[], object]) -> Iterator[None]:
    """Do something in another thread a moment after the block was entered."""

    def act() -> None:
        for action in actions:
            action()

    timer = threading.Timer(0.05, act)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def open_files(path: Path) -> list[str]:
    """What this process holds open of a database."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue
        if target.startswith(str(path)):
            found.append(target)
    return found


def test_batches_hold_at_most_five_hundred_events_and_cover_the_log(path: Path, writer: SignalLog) -> None:
    for _ in range(1200):
        note(writer)
    with SignalLog(path) as log:
        batches = list(log.follow(after=100, timeout=0))
    assert [len(batch.events) for batch in batches] == [500, 500, 100]
    assert [batch.position for batch in batches] == [600, 1100, 1200]
    assert [event.sequence for batch in batches for event in batch.events] == list(range(101, 1201))


def test_without_a_sequence_it_starts_at_the_head_less_the_newest_that_match(
    path: Path, writer: SignalLog
) -> None:
    for _ in range(4):
        goal(writer)
        note(writer)
    with SignalLog(path) as log:
        assert list(log.follow(timeout=0)) == []
        (batch,) = log.follow(EventFilter(kinds=("goal_changed",)), newest=2, timeout=0)
    assert [event.sequence for event in batch.events] == [5, 7]
    assert (batch.position, batch.newest) == (8, 8)


def test_a_batch_without_a_match_moves_the_position_all_the_same(path: Path, writer: SignalLog) -> None:
    goal(writer)
    note(writer)
    with SignalLog(path) as log:
        assert list(log.follow(EventFilter(kinds=("created",)), after=0, timeout=0)) == [Batch((), 2, 2)]


@pytest.mark.parametrize("events", [True, False])
def test_a_commit_of_another_connection_wakes_it(
    path: Path, writer: SignalLog, events: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not events:

        def refuse(_: str) -> None:
            raise OSError("no watch left")

        monkeypatch.setattr(inotify, "Inotify", refuse)
    goal(writer)
    with SignalLog(path) as log:
        following = log.follow(timeout=LIMIT_S)
        for expected in (2, 3, 4):
            with soon(lambda: goal(writer)):
                batch = next(following)
            assert [event.sequence for event in batch.events] == [expected]


def test_it_holds_no_transaction_and_at_rest_no_connection(path: Path, writer: SignalLog) -> None:
    goal(writer)
    writer.close()
    with SignalLog(path) as log, statements() as seen, log.waker() as waker:
        follower = log.follower(waker, after=0)
        follower.read()
        assert not follower.wait(0.5)
        assert open_files(path) == []
        with closing(sqlite3.connect(path, timeout=0)) as other:
            assert other.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    assert seen.count("BEGIN ") == seen.count("ROLLBACK")


def test_a_closed_file_is_read_without_making_files_beside_it(path: Path) -> None:
    with SignalLog(path) as log, log.waker() as waker:
        follower = log.follower(waker, after=0)
        follower.read()
        assert not follower.wait(0.5)
        for number in range(1, 4):
            with SignalLog(path, change=True) as writer:
                goal(writer)
            assert follower.wait(LIMIT_S)
            while follower.position < number:
                follower.read()
                follower.wait(0.2)
            assert os.listdir(path.parent) == [path.name]


def test_retention_that_overtakes_the_position_is_a_gap_of_the_chosen_sessions(
    path: Path, writer: SignalLog
) -> None:
    for _ in range(3):
        goal(writer)
        goal(writer, PARENT)
    writer.prune(Limits(max_rows=2))
    gap = Gap(CHILD, "main", 3, 5)
    with SignalLog(path) as log:
        with pytest.raises(HistoryGapError, match="events after 1 are gone for"):
            next(log.follow(after=1))
        (batch,) = log.follow(EventFilter(session_keys=(CHILD,)), after=1, on_gap="snapshot", timeout=0)
        assert batch.gaps == (gap,)
        assert [event.sequence for event in batch.events] == [5]
        assert [batch.gaps for batch in log.follow(after=4, timeout=0)] == [()]
        assert next(log.follow(newest=9)).gaps == ()


def test_a_gap_is_told_once(path: Path, writer: SignalLog) -> None:
    for _ in range(1100):
        goal(writer)
    writer.prune(Limits(max_rows=1050))
    with SignalLog(path) as log:
        batches = list(log.follow(after=10, on_gap="skip", timeout=0))
    assert [len(batch.gaps) for batch in batches] == [1, 0, 0]


def test_an_unknown_way_with_gaps_is_refused(path: Path) -> None:
    with SignalLog(path) as log, pytest.raises(UsageError, match="on_gap is one of fail, snapshot, skip"):
        next(log.follow(on_gap="ignore"))


def test_a_log_that_went_back_is_an_error(path: Path) -> None:
    with SignalLog(path) as log, pytest.raises(AheadError, match="only reached sequence 0, 5 lies ahead"):
        next(log.follow(after=5))


def test_a_file_that_is_removed_is_an_error(path: Path, writer: SignalLog) -> None:
    goal(writer)
    with SignalLog(path) as log:
        following = log.follow(timeout=LIMIT_S)
        with (
            soon(path.unlink),
            pytest.raises(NoDatabaseError, match="was removed or replaced while it was open"),
        ):
            next(following)


def test_an_event_loop_follows_beside_other_work(path: Path, writer: SignalLog) -> None:
    async def follow() -> list[int]:
        seen: list[int] = []
        with SignalLog(path) as log:
            following = log.follow_async(after=0)
            async for batch in following:
                seen += [event.sequence for event in batch.events]
                if len(seen) == 5:
                    break
                await asyncio.sleep(0)
                goal(writer)
            await following.aclose()
        return seen

    goal(writer)
    assert asyncio.run(asyncio.wait_for(follow(), LIMIT_S)) == [1, 2, 3, 4, 5]


def test_a_cancelled_follower_ends_and_leaves_nothing_open(path: Path) -> None:
    threads = threading.active_count()

    async def follow() -> None:
        with SignalLog(path) as log:
            async for _ in log.follow_async():
                pass

    async def cancel() -> None:
        task = asyncio.create_task(follow())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancel(), LIMIT_S))
    assert threading.active_count() == threads
    assert open_files(path) == []


def test_waiting_for_a_change_answers_with_the_delta(path: Path, writer: SignalLog) -> None:
    goal(writer)
    with SignalLog(path) as log:
        at_once = log.wait_for_change(CHILD, 0)
        assert at_once is not None
        assert [event.sequence for event in at_once.events] == [1]
        assert log.wait_for_change(CHILD, 1, timeout=0.05) is None
        with soon(lambda: goal(writer, PARENT), lambda: goal(writer)):
            found = log.wait_for_change(CHILD, 1, timeout=LIMIT_S)
        assert found is not None
        assert [event.sequence for event in found.events] == [3]
        with pytest.raises(AheadError, match="has only reached version 3, 9 lies ahead"):
            log.wait_for_change(CHILD, 9)


def test_waiting_answers_a_gap_at_once(path: Path, writer: SignalLog) -> None:
    for _ in range(3):
        goal(writer)
    writer.prune(Limits(max_rows=0))
    with SignalLog(path) as log:
        found = log.wait_for_change(CHILD, 1)
    assert found is not None
    assert (found.events, found.history_gap) == ((), True)


def test_notices_come_once_when_they_open_and_again_when_they_reopen(path: Path, writer: SignalLog) -> None:
    goal(writer)
    writer.watch(PARENT, CHILD)
    with SignalLog(path) as log:
        following = log.follow_notices(PARENT, timeout=LIMIT_S)
        seen = []
        for _ in range(2):
            with soon(lambda: goal(writer), lambda: note(writer)):
                (notice,) = next(following)
            seen.append(notice.identity)
            writer.acknowledge(PARENT, [CHILD])
        assert seen == [(PARENT, CHILD, 1), (PARENT, CHILD, 2)]
        goal(writer)
        (pending,) = log.notices()
        assert list(log.follow_notices(announced=[pending.identity], timeout=0)) == []
        assert list(log.follow_notices("agent:other:main", timeout=0)) == []


def test_a_wait_ends_when_a_descriptor_can_be_read_or_nobody_reads_the_output(path: Path) -> None:
    with SignalLog(path) as log, log.waker() as waker:
        waker.look(log.newest_sequence)
        reading, writing = os.pipe()
        with soon(lambda: os.write(writing, b"!")):
            assert not waker.wait(LIMIT_S, (reading,))
        os.close(reading)
        began = time.monotonic()
        assert not waker.wait(LIMIT_S, closing=(writing,))
        assert time.monotonic() - began < LIMIT_S / 2
        os.close(writing)


def test_the_way_of_noticing_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SignalLog(path) as log:
        with log.waker() as waker:
            assert waker.method.startswith("inotify, and the files' state every")
        with log.waker(events=False) as waker:
            assert waker.method == "the files' state every 50 ms"
