"""Followers lose nothing and double nothing: beside bursts, killed at any moment, beside killed writers."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.core.listing import BATCH_ROWS
from tests.fault.followers import BURSTS, running
from tests.following import Following
from tests.support import CHILD, PARENT, Script, goal

FOLLOW = ("tail", "-f", "--format", "jsonl")


def write(path: Path, key: str, count: int, *, every: int = 97, seed: int = 1) -> Script:
    return Script(BURSTS, path, key, count, every, seed)


def reported(lines: list[str]) -> list[int]:
    return [int(line) for line in lines if line.isdigit()]


def numbers(lines: list[str]) -> list[int]:
    return [json.loads(line)["sequence"] for line in lines]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.sqlite"
    SignalLog(path, change=True, create=True).close()
    return path


def test_two_writers_in_bursts_and_the_follower_has_every_event_once_and_in_order(path: Path) -> None:
    with (
        running(*FOLLOW, "--since", 0, "--count", 3000, db=path) as follower,
        write(path, PARENT, 1500) as one,
        write(path, CHILD, 1500, seed=2) as two,
    ):
        rows = [json.loads(line) for line in follower.rest()]
        assert follower.end(status=0).err == ""
        said = [one.rest(), two.rest()]
    assert [row["sequence"] for row in rows] == list(range(1, 3001))
    for key, lines in zip((PARENT, CHILD), said, strict=True):
        own = [row for row in rows if row["sessionKey"] == key]
        assert [row["summary"] for row in own] == [f"{key} {number}" for number in range(1, 1501)]
        assert [row["sequence"] for row in own] == reported(lines)


def test_a_follower_never_keeps_another_connection_from_emptying_the_log(path: Path) -> None:
    with (
        closing(sqlite3.connect(path, timeout=5)) as other,
        running(*FOLLOW, "--since", 0, "--count", 1500, db=path) as follower,
        write(path, PARENT, 1500, every=0) as writer,
    ):
        tried = []
        while follower.is_running():
            follower.pump()
            tried.append(other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            time.sleep(0.01)
        assert follower.end(status=0).err == ""
        writer.rest()
    assert len(tried) > 10
    assert not any(tried)


def test_a_consumer_killed_at_fifty_points_loses_nothing_and_repeats_at_most_the_last_batch(
    path: Path, tmp_path: Path
) -> None:
    chance = random.Random(50)
    resume = ("--since", 0, "--format", "jsonl", "--position-file", tmp_path / "position")
    runs = []
    with SignalLog(path, change=True) as log:
        for _ in range(50):
            goal(log)
            with running("tail", "-f", *resume, db=path) as follower:
                first = follower.line()
                for _ in range(chance.randrange(60)):
                    goal(log)
                follower.end(signal.SIGKILL)
                runs.append(numbers([first, *follower.rest()]))
            for _ in range(chance.randrange(5)):
                goal(log)
        newest = log.newest_sequence()
    with running("tail", *resume, db=path) as last:
        runs.append(numbers(last.rest()))
        assert last.end(status=0).err == ""
    seen = 0
    for run in filter(None, runs):
        assert run == list(range(run[0], run[0] + len(run)))
        assert seen - BATCH_ROWS < run[0] <= seen + 1
        seen = max(seen, run[-1])
    assert seen == newest
    assert sum(map(len, runs)) < newest + 50 * 61


@pytest.mark.parametrize("seed", range(3))
def test_what_a_killed_writer_committed_is_followed_and_the_next_writer_goes_on(
    path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    committed: list[int] = []
    with running(*FOLLOW, "--since", 0, db=path) as follower:
        for run in range(8):
            with write(path, PARENT, 2000, seed=run) as writer:
                committed += reported([writer.line() for _ in range(chance.randrange(1, 60))])
                writer.process.send_signal(signal.SIGKILL)
                committed += reported(writer.rest())
        with SignalLog(path, change=True) as log:
            done = goal(log)
        assert done.event is not None
        seen = []
        while not seen or seen[-1] < done.event.sequence:
            seen.append(follower.row()["sequence"])
        follower.end(signal.SIGTERM)
    assert seen == list(range(1, done.event.sequence + 1))
    assert set(committed) <= set(seen)


def test_beside_a_waiting_follower_a_clean_close_leaves_the_main_file_alone(path: Path) -> None:
    with running(*FOLLOW, "--since", 0, "--heartbeat", "60ms", db=path) as follower:
        for number in range(1, 4):
            log = SignalLog(path, change=True)
            for _ in range(number):
                goal(log)
            until(follower, log.newest_sequence())
            log.close()
            assert until_alone(follower, path), "the log beside the file is still there"
        follower.end(signal.SIGINT)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def until(follower: Following, sequence: int) -> None:
    """Read to an event, and some silence more."""
    while follower.row()["sequence"] != sequence:
        pass
    for _ in range(3):
        follower.settle()


def until_alone(follower: Following, path: Path) -> bool:
    """A few heartbeats after the close: nothing stands beside the file, and the follower goes on."""
    for _ in range(3):
        follower.settle()
    return [entry.name for entry in path.parent.iterdir()] == [path.name]
