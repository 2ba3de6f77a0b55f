"""Files that cannot be used: a status of its own, one clear sentence, and not a byte changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from openclaw_state import SignalLog
from openclaw_state.cli.app import COMMANDS
from openclaw_state.cli.run import run
from openclaw_state.cli.terminal import Terminal
from tests.cli.harness import Outcome, Stream
from tests.fault.commands import ALL, CHANGING, CREATING, KEPT, PLANNING, READING, assert_both_fail, each
from tests.fault.console import invoke
from tests.support import PARENT, Script, change, needs_permissions, note


def test_every_command_that_opens_a_database_is_tried() -> None:
    # watch goes on until it is stopped: tests/cli/test_watch.py tries it. Sessions have stores of their own.
    others = {name for name in COMMANDS if name.startswith("sessions ")} | {"demo", "help", "watch"}
    assert {name for name, _ in ALL} == set(COMMANDS) - others


def cut(keep: Callable[[int], int]) -> Callable[[bytes], bytes]:
    return lambda whole: whole[: keep(len(whole))]


class FileFault(NamedTuple):
    """What stands in the place of a log, made from the bytes of a whole one; and what is said of it."""

    content: Callable[[bytes], bytes]
    words: str


FILE_FAULTS = {
    "text file": FileFault(
        lambda _: b"[settings]\nvalue = true\n", "is not an SQLite database, or was cut off"
    ),
    "long text file": FileFault(lambda _: b"four letters and" * 512, "is not an SQLite database"),
    "cut inside the header": FileFault(cut(lambda _: 50), "was cut off at 50 bytes"),
    "cut inside a page": FileFault(cut(lambda size: size - 100), "was cut off at"),
    "cut after one page": FileFault(cut(lambda _: 4096), "damaged or truncated"),
    "cut in half": FileFault(cut(lambda size: size // 8192 * 4096), "damaged or truncated"),
    "cut of its last page": FileFault(cut(lambda size: size - 4096), "damaged or truncated"),
}


@pytest.mark.parametrize("fault", FILE_FAULTS.values(), ids=FILE_FAULTS)
@each(ALL)
def test_what_is_no_signal_log(path: Path, whole: bytes, fault: FileFault, argv: tuple[str, ...]) -> None:
    content = fault.content(whole)
    path.write_bytes(content)
    assert_both_fail(argv, path, 65, fault.words)
    assert path.read_bytes() == content


@each(ALL)
def test_a_directory(path: Path, argv: tuple[str, ...]) -> None:
    path.mkdir()
    assert_both_fail(argv, path, 65, "is a directory, not a database")
    assert list(path.iterdir()) == []


@each(ALL)
def test_the_database_of_another_program(path: Path, argv: tuple[str, ...]) -> None:
    change(path, "CREATE TABLE shopping (item TEXT)")
    before = path.read_bytes()
    assert_both_fail(argv, path, 65, "holds no signal log: table session_state_events is missing")
    assert path.read_bytes() == before


@each(KEPT)
def test_a_missing_file(path: Path, argv: tuple[str, ...]) -> None:
    assert_both_fail(argv, path, 66, r"there is no database at .*openclaw.sqlite \(chosen by --db\)")
    assert list(path.parent.iterdir()) == []


@each(ALL)
def test_a_missing_file_of_openclaw(tmp_path: Path, argv: tuple[str, ...]) -> None:
    """In a state directory nothing is ever created."""
    path = tmp_path / "state" / "openclaw.sqlite"
    path.parent.mkdir()
    assert_both_fail(argv, path, 66, "there is no database at")
    assert list(path.parent.iterdir()) == []


@each(KEPT)
def test_an_empty_file(path: Path, argv: tuple[str, ...]) -> None:
    path.touch()
    assert_both_fail(argv, path, 65, "is an empty file, not a database")
    assert path.read_bytes() == b""


@each(ALL)
def test_an_sqlite_that_is_too_old(log: Path, argv: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    before = log.read_bytes()
    assert_both_fail(argv, log, 78, r"SQLite 3\.36\.0 cannot read OpenClaw's STRICT tables")
    assert log.read_bytes() == before


@each(list(CREATING.items()))
def test_an_sqlite_that_is_too_old_creates_nothing(
    path: Path, argv: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    assert_both_fail(argv, path, 78, r"SQLite 3\.36\.0 cannot read OpenClaw's STRICT tables")
    assert list(path.parent.iterdir()) == []


@needs_permissions
@each(ALL)
def test_an_unreadable_file(log: Path, argv: tuple[str, ...]) -> None:
    log.chmod(0)
    assert_both_fail(argv, log, 77, "cannot be opened: permission denied")


@needs_permissions
@each(ALL)
def test_an_unreadable_write_ahead_log(log: Path, argv: tuple[str, ...]) -> None:
    with SignalLog(log, change=True) as writer:
        note(writer)
        wal = log.with_name(log.name + "-wal")
        wal.chmod(0)
        before = log.read_bytes()
        assert_both_fail(argv, log, 77, "cannot be (read|opened)")
        assert log.read_bytes() == before
        wal.chmod(0o600)


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[None]:
    """The folder takes no new files until the test is over."""
    tmp_path.chmod(0o500)
    yield
    tmp_path.chmod(0o700)


@needs_permissions
@each(list(CHANGING.items()))
def test_changing_in_a_folder_that_may_only_be_read(log: Path, closed: None, argv: tuple[str, ...]) -> None:
    before = log.read_bytes()
    assert_both_fail(argv, log, 77, "is not writable")
    assert log.read_bytes() == before


@needs_permissions
@each(list(CREATING.items()))
def test_creating_in_a_folder_that_may_only_be_read(path: Path, closed: None, argv: tuple[str, ...]) -> None:
    assert_both_fail(argv, path, 77, "permission denied")


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, whole: bytes) -> Iterator[Path]:
    """A log whose write lock another process holds."""
    path = tmp_path_factory.mktemp("locked") / "openclaw.sqlite"
    path.write_bytes(whole)
    with Script(HOLD, path) as holder:
        assert holder.line() == "held"
        yield path


@each(list(CHANGING.items()))
def test_a_lock_held_past_the_wait(locked: Path, argv: tuple[str, ...]) -> None:
    wal = locked.with_name(locked.name + "-wal")
    before = locked.read_bytes(), wal.read_bytes()
    assert_both_fail(("--lock-wait", "1ms", *argv), locked, 75, "is locked by another process")
    assert (locked.read_bytes(), wal.read_bytes()) == before


class Grabbing(Stream):
    """Standard output beside another process that takes the write lock once the answer is printed."""

    def __init__(self, other: sqlite3.Connection) -> None:
        super().__init__()
        self._other = other

    def flush(self) -> None:
        super().flush()
        if not self._other.in_transaction:
            self._other.execute("BEGIN IMMEDIATE")


def test_a_lock_taken_after_the_answer_adds_no_second_document(log: Path) -> None:
    with closing(sqlite3.connect(log, isolation_level=None)) as other:
        out, err = Grabbing(other), Stream()
        argv = ["notices", PARENT, "--ack", "--json", "--db", str(log), "--lock-wait", "1ms"]
        status = run(argv, Terminal(Stream(), out, err, os.environ))
    assert (status, err.getvalue().splitlines()[0]) == (75, f"error: {log} is locked by another process")
    assert Outcome(status, out.getvalue(), "").document["total"] == 1
    assert invoke("notices", PARENT, "--json", "--db", log).document["total"] == 1


@each([*READING.items(), *PLANNING.items()])
def test_a_held_lock_disturbs_no_reader(locked: Path, argv: tuple[str, ...]) -> None:
    assert invoke("--db", locked, *argv).status == 0
