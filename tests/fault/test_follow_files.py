"""What becomes of a follower whose file, disk or output changes under it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import Limits, SignalLog
from openclaw_state.report.jsonout import dumps
from tests.cli.harness import Outcome
from tests.fault.followers import running
from tests.following import LIMIT_S, Following
from tests.support import CHILD, ROOT, change, goal, note

FOLLOW = ("tail", "-f", "--since", 0, "--format", "jsonl")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with two events, cleanly closed, in a folder of its own."""
    path = tmp_path / "logs" / "log.sqlite"
    with SignalLog(path, change=True, create=True) as log:
        goal(log)
        note(log)
    return path


def read_to(follower: Following, sequence: int) -> None:
    while follower.row()["sequence"] != sequence:
        pass


def append(path: Path, count: int = 1) -> int:
    with SignalLog(path, change=True) as log:
        for _ in range(count):
            goal(log)
        return log.newest_sequence()


def bare(*argv: object, db: Path) -> subprocess.Popen[bytes]:
    """A command whose output is taken only where the test takes it."""
    return subprocess.Popen(
        [sys.executable, "-m", "openclaw_state", *map(str, argv)],
        cwd=ROOT,
        env={**os.environ, "OPENCLAW_STATE_DB": str(db)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def assert_says(ended: Outcome, status: int, *words: str) -> None:
    assert ended.status == status, ended
    for word in words:
        assert word in ended.err


def test_a_deleted_file_ends_it_with_66(path: Path) -> None:
    with running(*FOLLOW, db=path) as follower:
        read_to(follower, 2)
        for file in path.parent.iterdir():
            file.unlink()
        assert_says(follower.end(), 66, f"{path} was removed or replaced while it was open", "next: ")
        assert '"code":"no_database"' in follower.rest()[-1]


@pytest.mark.parametrize("events", [1, 5])
def test_a_file_replaced_by_another_database_ends_it_with_66(path: Path, events: int) -> None:
    other = path.with_name("other.sqlite")
    SignalLog(other, change=True, create=True).close()
    append(other, events)
    with running(*FOLLOW, db=path) as follower:
        read_to(follower, 2)
        os.replace(other, path)
        assert_says(follower.end(), 66, "was removed or replaced")


def test_an_older_copy_restored_in_place_ends_it_with_5(path: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as copy:
        with closing(sqlite3.connect(path)) as source:
            source.backup(copy)
        append(path, 3)
        with running(*FOLLOW, db=path) as follower:
            read_to(follower, 5)
            with closing(sqlite3.connect(path)) as target:
                copy.backup(target)
            ended = follower.end()
    assert_says(ended, 5, "the log has only reached sequence 2, 5 lies ahead of it", "older copy")


def test_a_position_ahead_of_the_log_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "position").write_text("7\n")
    with running(*FOLLOW, "--position-file", tmp_path / "position", db=path) as follower:
        assert_says(follower.end(), 5, "only reached sequence 2, 7 lies ahead")
    assert (tmp_path / "position").read_text() == "7\n"


@pytest.mark.parametrize(("before", "after"), [("WAL", "DELETE"), ("DELETE", "WAL")])
def test_a_switch_of_the_journal_mode_is_possible_and_followed(path: Path, before: str, after: str) -> None:
    change(path, f"PRAGMA journal_mode = {before}")
    with running(*FOLLOW, "--heartbeat", "200ms", db=path) as follower:
        read_to(follower, 2)
        read_to(follower, append(path))
        follower.settle()
        with closing(sqlite3.connect(path, timeout=5)) as switch:
            assert switch.execute(f"PRAGMA journal_mode = {after}").fetchone() == (after.lower(),)
        for _ in range(3):
            read_to(follower, append(path))
        assert_says(follower.end(signal.SIGTERM), -signal.SIGTERM, "stopped after 6; go on with --since 6")


def test_retention_that_overtakes_a_stopped_follower_is_a_gap(path: Path) -> None:
    with running(*FOLLOW, "-v", db=path) as follower:
        read_to(follower, 2)
        follower.send(signal.SIGSTOP)
        append(path, 10)
        with SignalLog(path, change=True) as log:
            log.prune(Limits(max_rows=3))
        follower.send(signal.SIGCONT)
        ended = follower.end()
        assert '"code":"history_gap"' in follower.rest()[-1]
    assert_says(ended, 3, f"events after 2 are gone for {CHILD}", "read these sessions again", "--since 9")


@pytest.mark.parametrize("silence_s", [0, 0.2])
def test_suspended_and_resumed_it_goes_on_where_it_was(path: Path, silence_s: float) -> None:
    with running(*FOLLOW, db=path) as follower:
        read_to(follower, 2)
        time.sleep(silence_s)
        follower.send(signal.SIGSTOP)
        newest = append(path, 700)
        follower.send(signal.SIGCONT)
        assert [follower.row()["sequence"] for _ in range(700)] == list(range(3, newest + 1))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_after_the_line_with_the_position_saved(
    path: Path, tmp_path: Path, number: signal.Signals
) -> None:
    position = tmp_path / "position"
    with running(*FOLLOW, "--position-file", position, db=path) as follower:
        read_to(follower, 2)
        ended = follower.end(number)
    assert ended.err == f"stopped after 2; go on with --position-file {position}\n"
    assert position.read_text() == "2\n"


def test_a_hang_up_that_the_caller_ignores_stays_ignored(path: Path) -> None:
    with running(*FOLLOW, db=path, before=("nohup",)) as follower:
        read_to(follower, 2)
        follower.send(signal.SIGHUP)
        read_to(follower, append(path))
        follower.end(signal.SIGTERM)


def test_a_second_signal_ends_it_though_nobody_takes_its_output(path: Path) -> None:
    with SignalLog(path, change=True) as log:
        for _ in range(1000):
            note(log, payload={"channel": "x" * 500})
    with bare(*FOLLOW, db=path) as silent:
        assert silent.stdout is not None
        silent.stdout.read(1)
        silent.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            silent.wait(0.3)
        silent.send_signal(signal.SIGINT)
        assert silent.wait(LIMIT_S) == -signal.SIGINT


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize("later", [False, True])
def test_a_closed_output_ends_it_quietly(path: Path, later: bool, form: tuple[str, ...]) -> None:
    """At once where it waits, and not only when it would print the next line."""
    with bare("tail", "-f", "--since", 0, *form, db=path) as follower:
        assert follower.stdout is not None
        follower.stdout.readline(), follower.stdout.readline()
        follower.stdout.close()
        if later:
            append(path)
        assert follower.stderr is not None
        assert follower.stderr.read() == b""
        assert follower.wait(LIMIT_S) == 0


@pytest.fixture(scope="module")
def strace() -> str:
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace, which makes a disk fail, is not installed")
    return program


@pytest.mark.parametrize("named", [True, False])
def test_a_disk_full_while_the_position_is_saved_is_74_and_says_how_to_go_on(
    path: Path, tmp_path: Path, strace: str, named: bool
) -> None:
    words: tuple[Any, ...] = ("--position", "reader") if named else ("--position-file", tmp_path / "position")
    state = tmp_path / "state"
    with running("tail", *words, db=path, XDG_STATE_HOME=str(state)) as first:
        assert first.end(status=0).err == ""
    newest = append(path)
    command = [strace, "-f", "-qq", "-o", "/dev/null"]
    if named:
        sidecar = state / "openclaw-state" / "sidecar.sqlite"
        command += [part for end in ("", "-journal", "-wal") for part in ("-P", f"{sidecar}{end}")]
    command += ["-e", f"inject={'pwrite64' if named else 'fsync'}:error=ENOSPC"]
    with running("tail", *words, "--json", db=path, before=tuple(command), XDG_STATE_HOME=str(state)) as full:
        rows = full.rest()
        ended = full.end()
    assert_says(
        ended, 74, f"all up to {newest} was printed, but the position could not be saved", "go on with"
    )
    assert [f'"sequence":{newest},' in rows[0], '"code":"io_error"' in rows[-1]] == [True, True]
    with running("tail", *words, "--json", db=path, XDG_STATE_HOME=str(state)) as again:
        assert [dumps(row) for row in [again.row()]] == rows[:1]


def test_a_lock_held_for_long_delays_it_and_ends_nothing(path: Path) -> None:
    change(path, "PRAGMA journal_mode = DELETE")
    with running(*FOLLOW, db=path) as follower, closing(sqlite3.connect(path, isolation_level=None)) as other:
        read_to(follower, 2)
        other.execute("BEGIN EXCLUSIVE")
        other.execute("UPDATE session_state_heads SET updated_at = updated_at + 1")
        time.sleep(6.0)
        assert follower.is_running()
        other.execute("COMMIT")
        read_to(follower, append(path))
        follower.end(signal.SIGTERM)
