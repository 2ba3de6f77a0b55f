"""Reading a database in whatever state another process left it: right answers, and no trace.

As shipped, closed cleanly in WAL mode, after a killed writer, beside a writer that lives, and
beside one that holds the write lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from tests.fault.console import assert_fails, invoke
from tests.fault.peers import BETA, LATE, PLACES, RARE_STATES, STATES, Found, find, in_state
from tests.fault.truth import Truth, event, shown_change, without
from tests.support import CHILD, PARENT, change, goal, needs_permissions, note, openclaw_file, query


@pytest.fixture(
    scope="module",
    params=[(place, state) for place in PLACES for state in (*STATES, *RARE_STATES[: "own" in place])],
    ids="-".join,
)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Found, Truth]]:
    """One database in one state, and what its rows say."""
    place, state = request.param
    found = find(place, tmp_path_factory.mktemp("place"), request)
    with in_state(found, state):
        truth = Truth(found, tmp_path_factory.mktemp("truth") / "copy.sqlite")
        if state not in ("as shipped", "closed"):
            _assert_newest_rows_are_in_the_log(found, truth)
        yield found, truth


def _assert_newest_rows_are_in_the_log(found: Found, truth: Truth) -> None:
    with closing(sqlite3.connect(f"file:{found.path}?immutable=1", uri=True)) as alone:
        newest = alone.execute("SELECT max(sequence) FROM session_state_events").fetchone()[0] or 0
    assert newest < truth.newest == truth.events[-1]["sequence"]


@pytest.fixture
def found(case: tuple[Found, Truth]) -> Found:
    return case[0]


@pytest.fixture
def truth(case: tuple[Found, Truth]) -> Truth:
    return case[1]


def test_an_overview_and_the_newest_version(found: Found, truth: Truth) -> None:
    overview = found.json("status")
    assert overview["newestSequence"] == found.json("version")["newestSequence"] == truth.newest
    assert (overview["sessions"], overview["pendingNotices"]) == (len(truth.heads), len(truth.notices()))
    assert overview["latest"] == [event(row) for row in truth.events[-10:]]
    assert overview["database"]["path"] == str(found.path)


def test_a_session_and_its_changes(found: Found, truth: Truth) -> None:
    head = next((head for head in truth.heads if head["session_key"] == BETA), None)
    if head is None:
        assert found.json("status", BETA, status=4)["error"]["code"] == "not_found"
        return
    own = truth.of(head)
    shown = found.json("status", BETA)
    assert shown["stateVersion"] == found.json("version", BETA)["versions"][0]["stateVersion"]
    assert shown["stateVersion"] == head["last_sequence"]
    assert [without(row, "deliveryDetail") for row in shown["watchers"]] == truth.watches(target=BETA)
    since = own[0]["sequence"]
    assert found.json("status", BETA, "--since", since)["stateChanges"] == {
        "events": [shown_change(row) for row in own[1:]],
        "truncated": False,
        "earliestAvailableSequence": since,
        "historyGap": False,
    }


def test_child_runs_that_ended(found: Found, truth: Truth) -> None:
    if not any(row["watcher_session_key"] == PARENT for row in truth.cursors):
        pytest.skip("nobody watches in this database")
    assert found.json("status", PARENT, "--children")["children"] == truth.ended_children(PARENT)


def test_the_sessions_and_the_events(found: Found, truth: Truth) -> None:
    assert found.json("list")["sessions"] == [truth.session(head) for head in truth.heads]
    assert found.json("tail", "-n", "all")["events"] == [event(row) for row in truth.events]
    chosen = [event(row) for row in truth.events if row["kind"] == "goal_changed"]
    assert found.json("tail", "--kind", "goal_changed", "-n", "2")["events"] == chosen[-2:]


def test_the_watches_and_the_notices(found: Found, truth: Truth) -> None:
    watches = found.json("cursors", "list")["cursors"]
    assert [without(row, "deliveryDetail") for row in watches] == truth.watches()
    notices = found.json("notices")["notices"]
    assert [without(row, "wakeReason") for row in notices] == truth.notices()


def test_plans_of_what_would_be_removed(found: Found, truth: Truth) -> None:
    pruned = found.json("prune", "--dry-run", "--max-rows", "1", "--max-age", "999d")
    assert (pruned["dryRun"], pruned["eventsByRows"]) == (True, max(0, len(truth.events) - 1))
    watches = found.json("cursors", "prune", "--older-than", "0", "--include-pending", "--dry-run")
    assert watches["planned"] == sum(row["updated_at"] < found.now for row in truth.cursors)
    for head in truth.heads[:1]:
        forgotten = found.json("forget", head["session_key"], "--agent", head["agent_id"], "--dry-run")
        assert (forgotten["dryRun"], forgotten["events"]) == (True, len(truth.of(head)))


def test_the_same_for_people(found: Found, truth: Truth) -> None:
    assert found.look("version").out == f"{truth.newest}\n"
    listed = found.look("list").out
    assert all(head["session_key"] in listed for head in truth.heads)
    assert found.look("tail", "-n", "all").out.count("\n") == len(truth.events)
    notices = found.look("notices").out
    assert all(notice["text"] in notices for notice in truth.notices())
    rows = found.look("cursors", "list", "--format", "tsv").out.splitlines()[1:]
    assert [tuple(row.split("\t")[:2]) for row in rows] == [
        (row["watcher"], row["target"]) for row in truth.watches()
    ]


def reading_commands(key: str = CHILD) -> list[tuple[str, ...]]:
    """Every command that only reads, and every plan of one that changes."""
    return [
        ("status",),
        ("status", key),
        ("status", key, "--since", "0"),
        ("status", key, "--children"),
        ("version",),
        ("version", key),
        ("list",),
        ("tail",),
        ("tail", key, "-n", "all", "--kind", "goal_changed"),
        ("cursors", "list"),
        ("notices",),
        ("links", "list"),
        ("prune", "--dry-run"),
        ("forget", key, "--dry-run"),
        ("cursors", "prune", "--expired", "--dry-run"),
    ]


# A1


def _by_option(folder: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    return ("--state-dir", str(folder)), {}


def _by_variable(folder: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    return (), {"OPENCLAW_STATE_DIR": str(folder)}


def _by_home(folder: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    return (), {"OPENCLAW_HOME": str(folder.parent)}


@pytest.mark.parametrize("chosen", [_by_option, _by_variable, _by_home])
@pytest.mark.parametrize("command", reading_commands(), ids=" ".join)
def test_an_offline_host_stays_as_empty_as_it_was(
    tmp_path: Path,
    home: Path,
    command: tuple[str, ...],
    chosen: Callable[[Path], tuple[tuple[str, ...], dict[str, str]]],
) -> None:
    """A1: looking at a state directory without a database creates none."""
    folder = tmp_path / ".openclaw"
    folder.mkdir()
    options, env = chosen(folder)
    assert_fails(invoke(*command, *options, env=env), 66, "there is no database at")
    assert_fails(invoke(*command, *options, "--json", env=env), 66, "there is no database at")
    assert list(tmp_path.rglob("*")) == [folder]
    assert list(home.rglob("*")) == []


# A2


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A file of an older release that never had one of the tables."""
    path = openclaw_file(tmp_path / "openclaw.sqlite", version=6, store_column=False)
    with SignalLog(path, change=True) as log:
        log.watch(PARENT, CHILD)
        goal(log)
    change(path, "DROP TABLE session_upstream_links", "PRAGMA journal_mode = DELETE")
    return path


@pytest.mark.parametrize("command", reading_commands(), ids=" ".join)
def test_looking_at_an_older_file_migrates_nothing(older: Path, command: tuple[str, ...]) -> None:
    """A2: neither the version nor the schema moves, and the missing table is named."""
    before = older.read_bytes(), older.stat()
    outcome = invoke(*command, "--db", older, "--json")
    assert_fails(outcome, 65, "holds no signal log: table session_upstream_links is missing")
    assert (older.read_bytes(), older.stat().st_mtime_ns) == (before[0], before[1].st_mtime_ns)
    assert query(older, "PRAGMA user_version") == [(6,)]
    assert not query(older, "SELECT 1 FROM sqlite_schema WHERE name = 'session_upstream_links'")
    assert list(older.parent.iterdir()) == [older]


# Folders and logs that this user may not touch


@pytest.fixture
def closed_folder(tmp_path: Path) -> Iterator[Path]:
    """A log in WAL mode, cleanly closed, in a folder that may only be read."""
    folder = tmp_path / "closed"
    path = folder / "openclaw.sqlite"
    with SignalLog(path, change=True, create=True) as log:
        log.watch(PARENT, CHILD)
        goal(log)
    folder.chmod(0o500)
    yield path
    folder.chmod(0o700)


@needs_permissions
@pytest.mark.parametrize("command", reading_commands(), ids=" ".join)
def test_without_a_log_a_closed_folder_is_read_and_that_is_said(
    closed_folder: Path, command: tuple[str, ...]
) -> None:
    before = closed_folder.read_bytes()
    outcome = invoke(*command, "--db", closed_folder)
    assert outcome.status == 0
    assert f"warning: {closed_folder} was opened immutable" in outcome.err
    (warning,) = invoke(*command, "--db", closed_folder, "--json").document["warnings"]
    assert "opened immutable" in warning
    assert closed_folder.read_bytes() == before
    assert list(closed_folder.parent.iterdir()) == [closed_folder]


@needs_permissions
@pytest.mark.parametrize("command", reading_commands(), ids=" ".join)
def test_the_main_file_never_answers_for_a_log_that_cannot_be_read(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    path = tmp_path / "openclaw.sqlite"
    with SignalLog(path, change=True, create=True) as log:
        goal(log)
        note(log)
        wal = path.with_name(path.name + "-wal")
        wal.chmod(0)
        before = path.read_bytes()
        outcome = invoke(*command, "--db", path, "--json")
        assert path.read_bytes() == before
        wal.chmod(0o600)
    assert_fails(outcome, 77, "openclaw.sqlite-wal cannot be read")


def test_the_newest_session_is_known_only_through_the_log(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The very file without its log would not know the session: no answer comes from it alone."""
    found = find("own file", tmp_path, request)
    with in_state(found, "killed"):
        assert found.json("version", LATE)["versions"][0]["stateVersion"] > 0
        found.path.with_name(found.path.name + "-wal").unlink()
        assert found.json("version", LATE, status=4)["error"]["code"] == "not_found"
