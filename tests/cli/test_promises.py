"""What must hold when things go wrong half-way: nothing lost, nothing unusable, nothing silent."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.core.opening import create_embedded
from openclaw_state.errors import NoDatabaseError
from openclaw_state.host.surroundings import StateDirectory
from tests.cli.harness import Cli
from tests.support import CHILD, PARENT, query


def test_a_file_without_tables_is_filled_by_the_next_change(cli: Cli) -> None:
    cli.path.parent.mkdir(parents=True)
    connection = sqlite3.connect(cli.path)
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("VACUUM")
    connection.close()
    assert cli.path.stat().st_size > 0
    assert cli.process("record", CHILD, "--kind", "goal_changed").status == 0
    assert query(cli.path, "SELECT count(*) FROM session_state_events") == [(1,)]


def test_the_file_appears_complete_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own" / "openclaw.sqlite"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", killed)
    with pytest.raises(KeyboardInterrupt):
        create_embedded(str(path))
    assert list(path.parent.iterdir()) == []


def test_the_file_is_made_in_place_where_there_are_no_hard_links(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", unsupported)
    cli("record", CHILD, "--kind", "goal_changed")
    assert query(cli.path, "SELECT count(*) FROM session_state_events") == [(1,)]
    assert cli.path.stat().st_mode & 0o777 == 0o600
    assert not list(cli.path.parent.glob("*.new"))


def test_a_change_of_an_existing_log_opens_it_once(story: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    connect = sqlite3.connect

    def counted(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(arguments[0])
        return connect(*arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", counted)
    with SignalLog(story.path, change=True, create=True):
        assert len(opened) == 1


def test_a_file_that_vanishes_while_it_is_opened_is_missing(
    story: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanish(path: str, mode: int) -> bool:
        Path(path).unlink()
        return False

    monkeypatch.setattr(os, "access", vanish)
    with pytest.raises(NoDatabaseError):
        SignalLog(story.path)


def test_a_yes_given_beforehand_costs_no_plan(story: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a plan was made for a question that is not asked")

    monkeypatch.setattr(SignalLog, "plan_prune", never)
    story("prune", "--max-rows", "1", "-y")


def test_a_foreign_database_is_never_filled(cli: Cli) -> None:
    cli.path.parent.mkdir(parents=True)
    connection = sqlite3.connect(cli.path)
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    cli("record", CHILD, "--kind", "goal_changed", status=65)
    assert query(cli.path, "SELECT name FROM sqlite_schema") == [("mine",)]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("form", ["text", "json"])
def test_notices_that_could_not_be_printed_stay_pending(story: Cli, form: str) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = story.start("notices", PARENT, "--ack", "--format", form, stdout=full)
        process.communicate()
    assert process.returncode == 74
    assert story.json("notices", PARENT)["total"] == 1


def test_exactly_what_was_printed_is_acknowledged(story: Cli) -> None:
    assert story.json("notices", PARENT, "--ack")["notices"][0]["sinceVersion"] == 1
    assert story.json("notices", PARENT, "--ack")["notices"][0]["sinceVersion"] == 2
    assert story.json("notices", PARENT, "--ack")["total"] == 0


def test_a_notice_that_changed_meanwhile_is_not_acknowledged(story: Cli) -> None:
    with SignalLog(story.path, change=True) as log:
        shown = log.notices(PARENT)
        log.acknowledge(PARENT, [CHILD])
        assert log.acknowledge_notices(shown).cursors == ()
        assert [notice.since for notice in log.notices(PARENT)] == [2]


@pytest.mark.parametrize(
    ("parent", "status"), [("main", 2), ("global", 2), (CHILD, 9)], ids=["bare", "global", "the child itself"]
)
def test_a_parent_that_could_not_watch_is_refused(cli: Cli, parent: str, status: int) -> None:
    done = cli("run", "--parent", parent, "--child", CHILD, "--", "true", status=status)
    assert "cannot" in done.err
    assert not cli.path.exists()


def test_a_session_is_not_recorded_as_its_own_watcher(cli: Cli) -> None:
    done = cli("record", CHILD, "--kind", "goal_changed", "--watcher", CHILD, status=9)
    assert "a session cannot watch itself" in done.err


def test_a_run_that_the_log_knows_says_that_its_end_was_not_recorded(cli: Cli) -> None:
    run = ("run", "--parent", PARENT, "--child", CHILD, "--run", "run-1", "--")
    assert cli.process(*run, "true").status == 0
    again = cli.process(*run, "false")
    assert again.status == 1
    assert "run run-1 is in the log already" in again.err


def test_a_directory_without_agent_stores_knows_of_no_orphans(tmp_path: Path) -> None:
    assert StateDirectory(str(tmp_path), environ={}).sessions_exist([PARENT]) == {PARENT: None}
    (tmp_path / "agents").mkdir()
    assert StateDirectory(str(tmp_path), environ={}).sessions_exist([PARENT]) == {PARENT: False}


def test_a_hot_journal_says_what_has_to_happen(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    SignalLog(path, change=True, create=True).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO session_state_heads VALUES (?, 'main', 1, 0, 0)", [(str(n),) for n in range(5_000)]
    )
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(path.read_bytes())
    Path(f"{copy}-journal").write_bytes(Path(f"{path}-journal").read_bytes())
    connection.close()
    done = Cli(copy)("list", status=77)
    assert "must be rolled back first" in done.err
