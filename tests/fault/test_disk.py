"""A disk that is full or broken fails the change as a whole, with words and a status of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from tests.support import CHILD, PARENT, change, goal, query, run_python, triples

RECORD = """
import sys
from openclaw_state import SignalLog
from openclaw_state.errors import StateError
try:
    with SignalLog(sys.argv[1], change=True) as log:
        log.record("agent:main:subagent:child", "goal_changed", actor_type="human", summary="s")
    print("stored")
except StateError as error:
    print(type(error).__name__, int(error.status), error.message)
"""


@pytest.fixture(scope="module")
def strace() -> str:
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace, which makes a disk fail, is not installed")
    command = [program, "-f", "-o", "/dev/null", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"strace may not trace here: {tried.stderr.strip()}")
    return program


@pytest.fixture(params=["WAL", "DELETE"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A log that stays open elsewhere, so that its files beside it are there already."""
    path = tmp_path / "log.sqlite"
    with SignalLog(path, change=True, create=True) as log:
        log.watch(PARENT, CHILD)
        goal(log)
    change(path, f"PRAGMA journal_mode = {request.param}")
    with SignalLog(path, change=True) as log:
        goal(log)
        yield path


def record_under(strace: str, fault: str, path: Path, *files: Path) -> str:
    traced = [part for file in files for part in ("-P", str(file))]
    command = [strace, "-f", "-qq", "-o", "/dev/null", *traced, "-e", f"inject={fault}"]
    return run_python([*command, sys.executable, "-c", RECORD, str(path)]).stdout.strip()


def files_of(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in ("", "-wal", "-journal")]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("pwrite64:error=ENOSPC", "there is no space left for"),
        ("pwrite64:error=ENOSPC:when=2+", "there is no space left for"),
        ("pwrite64:error=EIO", "the disk failed under"),
    ],
)
def test_a_write_that_fails_stores_nothing_and_says_so(
    strace: str, path: Path, fault: str, words: str
) -> None:
    said = record_under(strace, fault, path, *files_of(path))
    assert said.startswith(f"StorageError 74 {words} {path}")
    assert query(path, "SELECT max(sequence), count(*) FROM session_state_events") == [(2, 2)]
    assert triples(path) == {(PARENT, CHILD): (0, 1, 2)}
    assert query(path, "PRAGMA integrity_check") == [("ok",)]
    with SignalLog(path, change=True) as log:
        assert goal(log).event is not None


@pytest.mark.parametrize("path", ["DELETE"], indirect=True)
def test_a_flush_that_fails_stores_nothing_and_says_so(strace: str, path: Path) -> None:
    said = record_under(strace, "fdatasync,fsync:error=EIO", path, *files_of(path))
    assert said.startswith("StorageError 74 the disk failed under ")
    assert query(path, "SELECT max(sequence) FROM session_state_events") == [(2,)]
    assert query(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_read_that_fails_is_an_error_and_no_empty_answer(strace: str, path: Path) -> None:
    said = record_under(strace, "pread64:error=EIO", path, path)
    assert said.startswith("StorageError 74 the disk failed under ")
