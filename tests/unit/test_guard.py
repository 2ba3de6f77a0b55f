"""Supervision, newer schemas, and changes of the file under an open connection."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.errors import BadDatabaseError, NewerSchemaError, NoDatabaseError, RefusedError
from tests.support import CHILD, PARENT, change, goal, openclaw_file, query

SUPERVISED = (
    "INSERT INTO config_machine_state VALUES ('gateway.supervision',"
    """ '{"version":1,"mode":"external","managerId":"fleet-7","claimedAt":1}', 1)"""
)


def test_external_supervision_refuses_writes_but_not_reads(path: Path) -> None:
    openclaw_file(path)
    with SignalLog(path, change=True) as log:
        goal(log)
        change(path, SUPERVISED)
        with pytest.raises(RefusedError, match=r"external supervisor .*\(fleet-7\)"):
            goal(log)
        assert log.version(CHILD) == 1


@pytest.mark.parametrize(
    ("mode", "allowed"), [("external", True), (" external\n", True), ("internal", False), ("", False)]
)
def test_the_supervisor_itself_may_write(
    path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, allowed: bool
) -> None:
    openclaw_file(path)
    change(path, SUPERVISED)
    monkeypatch.setenv("OPENCLAW_SUPERVISOR_MODE", mode)
    with SignalLog(path, change=True) as log:
        if allowed:
            assert goal(log).event is not None
        else:
            with pytest.raises(RefusedError):
                goal(log)


@pytest.mark.parametrize("value", ["{}", "[1]", "not json"])
def test_a_supervision_row_that_cannot_be_read_still_refuses(path: Path, value: str) -> None:
    openclaw_file(path)
    change(path, f"INSERT INTO config_machine_state VALUES ('gateway.supervision', '{value}', 1)")
    with SignalLog(path, change=True) as log, pytest.raises(RefusedError, match="cannot be read"):
        goal(log)


def test_supervision_is_seen_in_the_first_write_after_a_gateway_adopted_the_file(path: Path) -> None:
    with SignalLog(path, change=True, create=True) as log:
        goal(log)
        openclaw_file(path)
        change(path, SUPERVISED)
        with pytest.raises(RefusedError):
            goal(log)


@pytest.mark.parametrize(
    "raise_version",
    [
        "PRAGMA user_version = 19",
        "INSERT INTO config_machine_state VALUES ('state.schema.contentVersion', '19', 1)",
    ],
    ids=["user_version", "contentVersion"],
)
def test_a_newer_schema_is_read_with_a_warning_and_never_written(path: Path, raise_version: str) -> None:
    openclaw_file(path)
    change(path, raise_version)
    with SignalLog(path) as log:
        assert log.version(CHILD) == 0
        assert log.warnings == ["schema version 19 is newer than the known 18; read with care"]
    with pytest.raises(NewerSchemaError, match="schema version 19, newer than the 18"):
        SignalLog(path, change=True)


def test_a_newer_schema_without_a_known_column_is_not_read(path: Path) -> None:
    openclaw_file(path, version=19)
    change(path, "ALTER TABLE session_state_events RENAME COLUMN summary TO headline")
    with pytest.raises(NewerSchemaError, match="lacks column summary of table session_state_events"):
        SignalLog(path)


def test_a_version_raised_under_an_open_writer_stops_its_next_write(path: Path) -> None:
    openclaw_file(path)
    with SignalLog(path, change=True) as log:
        goal(log)
        change(path, "PRAGMA user_version = 19")
        with pytest.raises(NewerSchemaError):
            goal(log)
    assert query(path, "SELECT count(*) FROM session_state_events") == [(1,)]


def test_a_column_added_under_an_open_connection_is_used_at_once(path: Path) -> None:
    openclaw_file(path, version=15, store_column=False)
    with SignalLog(path, change=True) as log:
        log.watch(PARENT, CHILD, store_path="/a")
        change(path, "ALTER TABLE session_watch_cursors ADD COLUMN watcher_store_path TEXT")
        assert log.watch(PARENT, CHILD, store_path="/b").created
        assert [report.cursor.store_path for report in log.cursors()] == ["/b"]


def test_a_table_dropped_under_an_open_connection_is_named(path: Path) -> None:
    openclaw_file(path)
    with SignalLog(path) as log:
        change(path, "DROP TABLE session_state_heads")
        with pytest.raises(BadDatabaseError, match="table session_state_heads is missing"):
            log.version(CHILD)


@pytest.mark.parametrize("replace", [True, False], ids=["replaced", "removed"])
def test_another_file_in_its_place_is_never_taken_for_it(path: Path, tmp_path: Path, replace: bool) -> None:
    with SignalLog(path, change=True, create=True) as log:
        goal(log)
        if replace:
            os.replace(openclaw_file(tmp_path / "new.sqlite"), path)
        else:
            path.unlink()
        with pytest.raises(NoDatabaseError, match="removed or replaced"):
            log.version(CHILD)
        with pytest.raises(NoDatabaseError, match="removed or replaced"):
            goal(log)
