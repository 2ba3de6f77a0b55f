"""A writer that is killed loses nothing that it was told is stored, and leaves a whole file."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from tests.support import CHILD, PARENT, Script, goal, query, triples

RECORD_FOR_EVER = """
import sys
from openclaw_state import SignalLog
log = SignalLog(sys.argv[1], change=True)
while True:
    done = log.record("agent:main:subagent:child", "goal_changed", actor_type="human", summary="s")
    print(done.event.sequence, flush=True)
"""

STOP_HALF_WAY = """
import sys
from openclaw_state.core.database import Database
database = Database(sys.argv[1], writable=True)
with database.writing() as connection:
    connection.execute("DELETE FROM session_state_heads")
    connection.execute("UPDATE session_watch_cursors SET material_sequence = 99")
    print("half way", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.sqlite"
    with SignalLog(path, change=True, create=True) as log:
        log.watch(PARENT, CHILD)
        goal(log)
    return path


def is_whole(path: Path) -> bool:
    return query(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("after", [1, 10, 40])
def test_killed_between_events_it_keeps_all_that_it_reported(path: Path, after: int) -> None:
    with Script(RECORD_FOR_EVER, path) as writer:
        reported = [int(writer.line()) for _ in range(after)]
        writer.process.send_signal(signal.SIGKILL)
        reported += [int(line) for line in writer.rest() if line]
    with SignalLog(path) as log:
        stored = [event.sequence for event in log.events()]
        head = log.version(CHILD)
    assert is_whole(path)
    assert stored == list(range(1, head + 1))
    assert set(reported) <= set(stored)
    assert len(stored) - len(reported) in (1, 2)
    assert triples(path) == {(PARENT, CHILD): (0, 1, head)}


def test_killed_half_way_through_a_change_it_leaves_none_of_it(path: Path) -> None:
    with Script(STOP_HALF_WAY, path) as writer:
        assert writer.line() == "half way"
        writer.process.send_signal(signal.SIGKILL)
    with SignalLog(path, change=True) as log:
        assert log.version(CHILD) == 1
        assert triples(path) == {(PARENT, CHILD): (0, 1, 1)}
        goal(log)
        assert log.version(CHILD) == 2
    assert is_whole(path)


def test_readers_see_what_a_killed_writer_left_in_the_log_beside_the_file(path: Path) -> None:
    with Script(RECORD_FOR_EVER, path) as writer:
        for _ in range(5):
            writer.line()
        writer.process.send_signal(signal.SIGKILL)
        writer.rest()
    before = path.read_bytes()
    assert path.with_name(path.name + "-wal").stat().st_size > 0
    with SignalLog(path) as log:
        assert log.version(CHILD) >= 6
    assert path.read_bytes() == before
