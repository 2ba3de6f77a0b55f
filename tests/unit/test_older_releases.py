"""Files of older releases: no store column, and their own rules (contract, signal-log section 17)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from tests.support import CHILD, DAY, PARENT, Clock, change, goal, openclaw_file, query, statements, triples

GROUP = "agent:main:telegram:group:-100"
PAIR = (PARENT, CHILD)


@pytest.fixture(params=[6, 15])
def old(request: pytest.FixtureRequest, path: Path) -> Path:
    return openclaw_file(path, version=request.param, store_column=False)


def provenance(path: Path) -> list[tuple[str, ...]]:
    return query(path, "SELECT provenance FROM session_watch_cursors")


def test_watching_works_without_a_column_for_stores(old: Path) -> None:
    with statements() as seen, SignalLog(old, change=True, clock=Clock()) as log:
        log.watch(PARENT, CHILD, store_path="/ignored.sqlite")
        goal(log)
        goal(log, watchers=[PARENT, "agent:work:main"])
        assert [report.cursor.store_path for report in log.cursors()] == [None, None]
        assert {report.delivery.reason for report in log.cursors()} == {"yes"}
        assert len(log.drain(PARENT)) == 1
        assert log.sweep().notices == ()
        assert not any("watcher_store_path" in text for text in seen if not text.startswith("SELECT"))
    assert triples(old)[PAIR] == (1, 2, 2)


def test_a_spawn_keeps_the_provenance_that_newer_releases_overwrite(old: Path, tmp_path: Path) -> None:
    newer = openclaw_file(tmp_path / "newer.sqlite")
    for path, kept in ((old, "ambient-group"), (newer, "explicit")):
        with SignalLog(path, change=True) as log:
            log.watch_group(GROUP, agent_id="main")
            log.child_spawned(GROUP, requester=PARENT, run_id="r1")
        assert provenance(path) == [(kept,)]
        assert triples(path) == {(PARENT, GROUP): (1, 1, 1)}


def test_watching_again_keeps_any_cursor_whatever_the_store(old: Path, tmp_path: Path) -> None:
    newer = openclaw_file(tmp_path / "newer.sqlite")
    for path, created in ((old, False), (newer, True)):
        with SignalLog(path, change=True) as log:
            log.watch(PARENT, CHILD, store_path="/a.sqlite")
            goal(log)
            assert log.watch(PARENT, CHILD, store_path="/b.sqlite").created is created
        assert triples(path) == {PAIR: (1, 1, 1) if created else (0, 1, 1)}


@pytest.mark.parametrize(
    ("version", "watcher"), [(6, PARENT), (15, "agent:main:home"), (18, "agent:main:home")]
)
def test_version_six_knows_no_other_main_key(path: Path, version: int, watcher: str) -> None:
    openclaw_file(path, version=version, store_column=version == 18)
    with SignalLog(path, change=True) as log:
        watched = log.watch_group(GROUP, agent_id="main", main_key="home")
    assert watched.cursor is not None
    assert watched.cursor.watcher == watcher


@pytest.mark.parametrize(("version", "left"), [(6, 0), (15, 1), (18, 1)])
def test_version_six_ends_a_group_watch_under_another_dm_scope(path: Path, version: int, left: int) -> None:
    openclaw_file(path, version=version, store_column=version == 18)
    with SignalLog(path, change=True) as log:
        assert log.watch_group(GROUP, agent_id="main").watched
        again = log.watch_group(GROUP, agent_id="main", dm_scope="per-peer")
    assert again.watched is bool(left)
    assert len(provenance(path)) == left


def test_a_column_that_came_last_is_found_by_its_name(path: Path) -> None:
    openclaw_file(path, store_column=False)
    change(path, "ALTER TABLE session_watch_cursors ADD COLUMN watcher_store_path TEXT")
    with SignalLog(path, change=True) as log:
        log.watch(PARENT, CHILD, store_path="/a.sqlite")
        goal(log)
        (report,) = log.cursors()
    assert (report.cursor.store_path, report.cursor.material) == ("/a.sqlite", 1)


@pytest.mark.parametrize("name", ["2026.7.2-beta.7", "2026.8.2", "2026.9.6", "2026.9.6-pending"])
def test_a_database_of_each_release_takes_every_change_and_stays_itself(
    peer: Path, tmp_path: Path, clock: Clock, name: str
) -> None:
    path = tmp_path / "copy.sqlite"
    shutil.copyfile(peer / f"peer-state-{name}.sqlite", path)
    schema = "SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2"
    before = query(path, schema), query(path, "PRAGMA user_version")
    with SignalLog(path, change=True, clock=clock) as log:
        for row in log.sessions():
            found = log.changes_since(row.session_key, -1, agent_id=row.agent_id)
            assert len(found.events) == row.events > 0
        clock.now = max(event.occurred_at for event in log.events())
        log.watch(PARENT, CHILD)
        assert goal(log, watchers=[PARENT]).event is not None
        with log.child_run(PARENT, "agent:main:subagent:another"):
            pass
        log.drain(PARENT)
        log.acknowledge(PARENT, [CHILD])
        log.sweep()
        log.reset_watches(PARENT)
        log.forget(CHILD)
        clock.now += 40 * DAY
        assert not log.prune().nothing
        assert list(log.events()) == []
    assert (query(path, schema), query(path, "PRAGMA user_version")) == before
    assert query(path, "PRAGMA integrity_check") == [("ok",)]
