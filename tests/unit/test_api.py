"""The package as others import it: names, the embedded file, limits, draining."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import openclaw_state
from openclaw_state import Limits, SignalLog
from openclaw_state.errors import NoDatabaseError, RefusedError, UsageError
from openclaw_state.host.location import locate
from tests.support import CHILD, PARENT, goal, note, openclaw_file, query, run_python, triples

EXPENSIVE = ("sqlite3", "json", "typer", "click", "rich", "sqlite_utils", "platformdirs", "pydantic")


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has after running this."""
    done = run_python([sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"])
    return set(done.stdout.split())


def test_importing_the_package_loads_next_to_nothing() -> None:
    new = loaded_by("import openclaw_state") - loaded_by("import __future__, typing")
    assert not new & set(EXPENSIVE)
    assert {name for name in new if name.startswith("openclaw_state")} == {"openclaw_state"}


def test_using_the_log_loads_no_library() -> None:
    new = loaded_by("from openclaw_state import SignalLog")
    assert "sqlite3" in new
    assert not new & {"typer", "click", "rich", "sqlite_utils", "platformdirs", "pydantic"}


@pytest.mark.parametrize("name", [name for name in openclaw_state.__all__ if name != "__version__"])
def test_every_public_name_leads_somewhere(name: str) -> None:
    found = getattr(openclaw_state, name)
    assert found.__name__ == name
    assert found.__doc__


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Database'"):
        openclaw_state.Database  # noqa: B018


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_the_tools_own_file_is_private_and_fit_for_adoption(path: Path) -> None:
    with SignalLog(path, change=True, create=True) as log:
        goal(log)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {path.name + end: 0o600 for end in ("", "-wal", "-shm")}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert query(path, "PRAGMA user_version") == [(0,)]
    assert query(path, "PRAGMA journal_mode") == [("wal",)]
    assert query(path, "SELECT name FROM sqlite_schema WHERE name LIKE '%meta%' OR type = 'trigger'") == []
    tables = "SELECT DISTINCT strict FROM pragma_table_list WHERE name LIKE 'session%'"
    assert query(path, tables) == [(1,)]


def test_the_environment_selects_the_embedded_file_which_only_change_creates(home: Path) -> None:
    with pytest.raises(NoDatabaseError, match="chosen by embedded"):
        SignalLog()
    assert list(home.rglob("*")) == []
    with SignalLog(change=True) as log:
        assert log.location == locate()
        assert log.embedded
        assert Path(log.path).is_relative_to(home)


def test_creating_is_asked_for_and_never_done_in_a_state_directory(tmp_path: Path) -> None:
    with pytest.raises(NoDatabaseError):
        SignalLog(tmp_path / "own.sqlite", change=True)
    with pytest.raises(NoDatabaseError):
        SignalLog(tmp_path / "state" / "openclaw.sqlite", change=True, create=True)
    with pytest.raises(NoDatabaseError):
        SignalLog(tmp_path / "own.sqlite", create=True)
    assert list(tmp_path.iterdir()) == []


def test_creating_twice_at_once_makes_one_log(path: Path) -> None:
    def create(number: int) -> None:
        with SignalLog(path, change=True, create=True) as log:
            goal(log, f"agent:main:{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, range(8)))
    assert query(path, "SELECT count(*), max(sequence) FROM session_state_events") == [(8, 8)]


def test_limits_belong_to_the_tools_own_file(tmp_path: Path, path: Path) -> None:
    with SignalLog(path, change=True, create=True, limits=Limits(max_rows=2)) as log:
        for _ in range(5):
            note(log)
        assert log.prune().events_by_rows == 3
    with pytest.raises(RefusedError, match="keeps OpenClaw's retention limits"):
        SignalLog(openclaw_file(tmp_path / "openclaw.sqlite"), limits=Limits(max_rows=2))


def test_a_log_for_reading_refuses_every_change(path: Path, log: SignalLog) -> None:
    goal(log)
    with SignalLog(path) as reader:
        for attempt in (
            lambda: goal(reader),
            lambda: reader.watch(PARENT, CHILD),
            lambda: reader.drain(PARENT),
            reader.sweep,
            reader.prune,
            lambda: reader.forget(CHILD),
        ):
            with pytest.raises(UsageError, match="for reading only"):
                attempt()


def test_draining_returns_what_is_pending_and_acknowledges_exactly_that(log: SignalLog, path: Path) -> None:
    others = ["agent:main:subagent:b", "agent:main:subagent:c"]
    for target in (CHILD, *others):
        log.watch(PARENT, target)
    log.watch("agent:work:main", CHILD)
    goal(log)
    goal(log, others[0])
    goal(log, others[0])
    assert [(notice.target, notice.since) for notice in log.drain(PARENT)] == [(others[0], 0), (CHILD, 0)]
    assert triples(path) == {
        (PARENT, CHILD): (1, 1, 1),
        (PARENT, others[0]): (2, 3, 3),
        (PARENT, others[1]): (0, 0, 0),
        ("agent:work:main", CHILD): (0, 1, 1),
    }
    assert [(notice.target, notice.since) for notice in log.drain(PARENT)] == [(others[0], 2)]
    assert log.drain(PARENT) == []


def test_draining_leaves_no_line_behind_in_this_process(log: SignalLog) -> None:
    log.watch(PARENT, CHILD)
    goal(log)
    log.drain(PARENT)
    assert log.queued(PARENT) == []
    goal(log)
    goal(log)
    log.drain(PARENT)
    assert [line.text for line in log.queued(PARENT)] == [notice.text for notice in log.notices(PARENT)]


def test_a_change_during_a_drain_is_announced_by_the_next(log: SignalLog, path: Path) -> None:
    log.watch(PARENT, CHILD)
    goal(log)
    with SignalLog(path, change=True) as other:
        drained = log.drain(PARENT)
        goal(other)
    assert [notice.since for notice in drained] == [0]
    assert [notice.since for notice in log.drain(PARENT)] == [1]


def test_threads_record_at_once_without_losing_a_number(log: SignalLog) -> None:
    log.watch(PARENT, CHILD)
    with ThreadPoolExecutor(4) as pool:
        events = list(pool.map(lambda _: goal(log).event, range(40)))
    assert sorted(event.sequence for event in events if event) == list(range(1, 41))
    assert log.version(CHILD) == 40
