"""Opening: every fault has its own error, and reading leaves no trace."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.core.database import Database
from openclaw_state.core.opening import require_strict_tables
from openclaw_state.errors import (
    AccessError,
    BadDatabaseError,
    ConfigurationError,
    NoDatabaseError,
    StateError,
    UsageError,
)
from tests.support import (
    CHILD,
    change,
    goal,
    needs_permissions,
    note,
    query,
    run_python,
    triples,
)


def fill(path: Path, events: int = 60) -> bytes:
    """A cleanly closed log of several pages."""
    with SignalLog(path, change=True, create=True) as log:
        for _ in range(events):
            note(log, payload={"channel": "x" * 400})
    return path.read_bytes()


def missing(path: Path) -> None:
    path.parent.mkdir()


def a_directory(path: Path) -> None:
    path.mkdir(parents=True)


def a_pipe(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)


def written(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.parent.mkdir()
        path.write_bytes(content)

    return write


def cut(keep: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def cut_off(path: Path) -> None:
        whole = fill(path)
        for file in path.parent.iterdir():
            file.unlink()
        path.write_bytes(keep(whole))

    return cut_off


def another_database(path: Path) -> None:
    path.parent.mkdir()
    change(path, "CREATE TABLE shopping (item TEXT)")


@pytest.mark.parametrize("writing", [False, True], ids=["reading", "writing"])
@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (missing, NoDatabaseError, "there is no database at"),
        (a_directory, BadDatabaseError, "is a directory"),
        (a_pipe, BadDatabaseError, "not an ordinary file"),
        (written(b""), BadDatabaseError, "is an empty file"),
        (written(b"[some]\nsettings = true\n"), BadDatabaseError, "not an SQLite database"),
        (written(b"four letters and" * 512), BadDatabaseError, "not an SQLite database"),
        (cut(lambda whole: whole[:20]), BadDatabaseError, "cut off at 20 bytes"),
        (cut(lambda whole: whole[:-100]), BadDatabaseError, "cut off"),
        (cut(lambda whole: whole[:4096]), BadDatabaseError, "damaged or truncated"),
        (cut(lambda whole: whole[: len(whole) // 8192 * 4096]), BadDatabaseError, "damaged or truncated"),
        (another_database, BadDatabaseError, "table session_state_events is missing"),
    ],
    ids=[
        "missing",
        "directory",
        "pipe",
        "empty",
        "text",
        "text as long as pages",
        "part of a header",
        "part of a page missing",
        "one page",
        "half",
        "another database",
    ],
)
def test_what_is_no_signal_log_is_refused_and_left_as_it_is(
    path: Path, fault: Callable[[Path], None], error: type[StateError], words: str, writing: bool
) -> None:
    fault(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(error, match=words) as caught:
        SignalLog(path, change=writing)
    assert str(path) in caught.value.message
    assert (path.read_bytes() if path.is_file() else None) == before
    if fault is missing:
        assert list(path.parent.iterdir()) == []


def test_damage_further_in_is_found_by_the_read_that_meets_it(path: Path) -> None:
    whole = fill(path)
    path.write_bytes(whole[:-8192] + b"\xaa" * 8192)
    with SignalLog(path) as log, pytest.raises(BadDatabaseError, match="damaged or truncated"):
        list(log.events())


@needs_permissions
@pytest.mark.parametrize("writing", [False, True], ids=["reading", "writing"])
def test_an_unreadable_file_is_a_matter_of_permission(path: Path, writing: bool) -> None:
    fill(path)
    path.chmod(0)
    with pytest.raises(AccessError, match="permission denied"):
        SignalLog(path, change=writing)


@needs_permissions
def test_a_file_that_may_only_be_read_is_not_opened_for_change(path: Path) -> None:
    fill(path)
    path.chmod(0o400)
    with pytest.raises(AccessError, match="is not writable"):
        SignalLog(path, change=True)
    with SignalLog(path) as log:
        assert log.newest_sequence() == 60


@pytest.fixture
def locked_folder(path: Path) -> Iterator[Path]:
    """The folder of the log; the test closes it for writing, this opens it again."""
    path.parent.mkdir()
    yield path.parent
    path.parent.chmod(0o700)


@needs_permissions
def test_without_a_log_beside_it_a_file_in_a_closed_folder_is_read_as_it_is(
    path: Path, locked_folder: Path
) -> None:
    fill(path)
    locked_folder.chmod(0o500)
    with SignalLog(path) as log:
        assert log.newest_sequence() == 60
        assert any("opened immutable" in warning for warning in log.warnings)
    with pytest.raises(AccessError, match="is not writable"):
        SignalLog(path, change=True)


@needs_permissions
def test_the_main_file_alone_never_answers_for_a_log_that_cannot_be_read(
    path: Path, locked_folder: Path
) -> None:
    with SignalLog(path, change=True, create=True) as writer:
        goal(writer)
        wal = path.with_name(path.name + "-wal")
        wal.chmod(0)
        with pytest.raises(AccessError, match="-wal cannot be read"):
            SignalLog(path)
        wal.chmod(0o600)
        whole, newest = path.read_bytes(), wal.read_bytes()
    path.write_bytes(whole)
    wal.write_bytes(newest)
    locked_folder.chmod(0o500)
    with pytest.raises(AccessError, match="has a write-ahead log"):
        SignalLog(path)


def test_an_sqlite_without_strict_tables_is_refused() -> None:
    require_strict_tables((3, 37, 0))
    with pytest.raises(ConfigurationError, match=r"SQLite 3\.36\.0 cannot read"):
        require_strict_tables((3, 36, 0))


def test_reading_changes_nothing_about_the_main_file(path: Path) -> None:
    fill(path)
    os.utime(path, ns=(1, 1))
    path.chmod(0o640)
    before = path.read_bytes(), os.stat(path)
    with SignalLog(path) as log:
        assert len(list(log.events())) == 60
        assert log.cursors() == []
        assert log.notices() == []
    after = os.stat(path)
    assert path.read_bytes() == before[0]
    assert (after.st_mtime_ns, after.st_mode, after.st_ino) == (1, before[1].st_mode, before[1].st_ino)
    assert {file.name.removeprefix(path.name) for file in path.parent.iterdir()} <= {"", "-wal", "-shm"}


def test_reading_a_file_without_wal_leaves_nothing_beside_it(path: Path) -> None:
    fill(path)
    change(path, "PRAGMA journal_mode = DELETE")
    with SignalLog(path) as log:
        assert log.newest_sequence() == 60
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_reading_connection_cannot_write(path: Path) -> None:
    fill(path)
    database = Database(str(path))
    with pytest.raises(AccessError), database.reading() as connection:
        connection.execute("DELETE FROM session_state_events")
    with pytest.raises(UsageError, match="for reading only"), database.writing():
        pass
    database.close()


def test_every_thread_has_a_connection_of_its_own_which_ends_with_it(path: Path) -> None:
    fill(path)
    database = Database(str(path))

    def connection() -> sqlite3.Connection:
        with database.reading() as own:
            return own

    mine = connection()
    assert connection() is mine
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(connection).result()
        assert other is not mine
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        other.execute("SELECT 1")
    database.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        mine.execute("SELECT 1")


def test_opening_once_more_keeps_the_locks_of_this_process(path: Path) -> None:
    with SignalLog(path, change=True, create=True) as log:
        goal(log)
        SignalLog(path).close()
        visit = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA user_version').fetchone()"
        run_python([sys.executable, "-c", visit, str(path)])
        assert path.with_name(path.name + "-wal").exists()
        goal(log)
        assert query(path, "SELECT max(sequence) FROM session_state_events") == [(2,)]


def test_text_that_is_not_utf8_hides_no_other_row(path: Path) -> None:
    with SignalLog(path, change=True, create=True) as log:
        goal(log)
        goal(log)
        change(path, "UPDATE session_state_events SET summary = CAST(x'61ff62' AS TEXT) WHERE sequence = 1")
        assert [event.summary for event in log.events()] == ["a\ufffdb", "goal updated"]


@pytest.mark.parametrize("key", ["agent:main:\udcff", "agent:main:\ud800x"])
def test_text_that_no_database_can_hold_is_refused(path: Path, key: str) -> None:
    with SignalLog(path, change=True, create=True) as log:
        with pytest.raises(UsageError, match="does not accept"):
            log.version(key)
        with pytest.raises(UsageError, match="does not accept"):
            goal(log, key)
        with pytest.raises(UsageError, match="does not accept"):
            log.changes_since(CHILD, 2**70)
    assert triples(path) == {}
