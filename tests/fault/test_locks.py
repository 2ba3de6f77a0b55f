"""Beside a writer that holds the lock, reading goes on and writing says busy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.errors import BusyError, ExitStatus
from tests.support import CHILD, PARENT, Script, change, goal

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(sys.argv[2])
connection.execute("UPDATE session_state_heads SET updated_at = 1")
print("held", flush=True)
sys.stdin.read()
connection.execute("COMMIT")
"""


@pytest.fixture(params=["WAL", "DELETE"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "log.sqlite"
    with SignalLog(path, change=True, create=True) as log:
        log.watch(PARENT, CHILD)
        goal(log)
    change(path, f"PRAGMA journal_mode = {request.param}")
    return path


@pytest.fixture
def holder(path: Path) -> Iterator[Script]:
    with Script(HOLD, path, "BEGIN IMMEDIATE") as script:
        assert script.line() == "held"
        yield script


@pytest.mark.usefixtures("holder")
def test_every_reading_succeeds_beside_a_writer(path: Path) -> None:
    with SignalLog(path, lock_wait_ms=0) as log:
        assert log.version(CHILD) == 1
        assert [event.sequence for event in log.events()] == [1]
        assert log.changes_since(CHILD, 0).history_gap is False
        assert len(log.cursors()) == len(log.notices()) == len(list(log.sessions())) == 1
        assert log.plan_prune().applied is False
        assert log.plan_forget(CHILD).events == 1


@pytest.mark.usefixtures("holder")
def test_a_write_that_waited_long_enough_says_busy_and_changed_nothing(path: Path) -> None:
    with SignalLog(path, change=True, lock_wait_ms=30) as log:
        for attempt in (
            lambda: goal(log),
            lambda: log.watch(PARENT, "agent:main:other"),
            lambda: log.drain(PARENT),
            lambda: log.acknowledge(PARENT, [CHILD]),
            log.sweep,
            log.prune,
            lambda: log.forget(CHILD),
        ):
            with pytest.raises(BusyError, match="locked by another process") as caught:
                attempt()
            assert caught.value.status == ExitStatus.BUSY
        assert (log.newest_sequence(), len(log.notices()), log.queued(PARENT)) == (1, 1, [])


def test_a_write_waits_for_a_writer_that_ends_in_time(path: Path, holder: Script) -> None:
    with SignalLog(path, change=True, lock_wait_ms=60_000) as log:
        holder.release()
        assert goal(log).event is not None
        assert log.version(CHILD) == 2
