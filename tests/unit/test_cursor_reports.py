"""What is reported about a watch: its state, its lag, its sessions, its store."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_state import CursorReport, SignalLog
from openclaw_state.host.agentdb import default_store
from tests.support import CHILD, PARENT, T, change, goal, note, openclaw_file, triples

OTHER = "agent:work:main"
PAIR = (PARENT, CHILD)
SESSIONS = "session_nodes (session_key TEXT PRIMARY KEY, status TEXT)"


def only(reports: list[CursorReport]) -> CursorReport:
    (report,) = reports
    return report


def store_of(state_dir: Path, agent: str, table: str, *rows: str) -> None:
    """An agent's session database, as far as this tool looks at it."""
    store = Path(default_store(str(state_dir), agent))
    store.parent.mkdir(parents=True)
    change(store, f"CREATE TABLE {table}", *rows)


def session_row(key: str) -> str:
    return f"INSERT INTO session_nodes VALUES ('{key}', 'done')"


def seen_notified_material(path: Path, values: tuple[int, int, int], *, head: int = 12) -> None:
    """Put a cursor with these numbers, and a head, into the file."""
    change(
        path,
        f"INSERT OR REPLACE INTO session_state_heads VALUES ('{CHILD}', 'main', {head}, 0, {T})",
        "INSERT OR REPLACE INTO session_watch_cursors (watcher_session_key, target_session_key,"
        " last_seen_sequence, notified_sequence, material_sequence, updated_at)"
        f" VALUES ('{PARENT}', '{CHILD}', {values[0]}, {values[1]}, {values[2]}, {T})",
    )


@pytest.mark.parametrize(
    ("values", "state", "since"),
    [
        ((5, 9, 12), "reopening", 5),
        ((5, 12, 12), "pending", 5),
        ((9, 12, 12), "pending", 9),
        ((12, 12, 12), "quiet", None),
        ((0, 0, 0), "quiet", None),
    ],
)
def test_three_numbers_tell_the_state_of_a_watch(
    log: SignalLog, path: Path, values: tuple[int, int, int], state: str, since: int | None
) -> None:
    seen_notified_material(path, values)
    assert only(log.cursors()).state == state
    assert [notice.since for notice in log.notices()] == ([] if since is None else [since])


def test_lag_counts_retained_notifying_events_and_no_numbers_between(log: SignalLog, path: Path) -> None:
    log.watch(PARENT, CHILD)
    goal(log)
    for _ in range(5):
        goal(log, OTHER)
        note(log)
    goal(log)
    report = only(log.cursors())
    assert (report.head, report.lag) == (12, 2)
    change(path, "DELETE FROM session_state_events WHERE sequence = 1")
    assert only(log.cursors()).lag == 1


def test_a_cursor_ahead_of_its_head_lags_by_nothing(log: SignalLog, path: Path) -> None:
    goal(log)
    seen_notified_material(path, (999, 999, 999), head=1)
    report = only(log.cursors())
    assert (report.lag, report.head, report.state) == (0, 1, "quiet")


def test_a_session_that_neither_log_nor_store_has_orphans_its_watch(tmp_path: Path) -> None:
    store_of(tmp_path, "main", SESSIONS, session_row(PARENT))
    with SignalLog(openclaw_file(tmp_path / "state" / "openclaw.sqlite"), change=True) as log:
        log.watch(PARENT, CHILD)
        assert only(log.cursors()).state == "orphaned"
        note(log)
        assert only(log.cursors()).state == "quiet"
        log.watch("agent:main:gone", CHILD)
        assert [report.orphaned for report in log.cursors()] == [True, False]


def test_a_store_that_cannot_be_read_leaves_the_question_open(tmp_path: Path) -> None:
    store_of(tmp_path, "main", "something_else (a)")
    with SignalLog(openclaw_file(tmp_path / "state" / "openclaw.sqlite"), change=True) as log:
        log.watch(PARENT, CHILD)
        report = only(log.cursors())
    assert (report.orphaned, report.state) == (None, "quiet")


def test_nothing_is_orphaned_in_the_tools_own_file(log: SignalLog) -> None:
    log.watch(PARENT, "global", agent_id="main")
    assert only(log.cursors()).orphaned is False


def test_a_sweep_leaves_watchers_alone_that_do_not_exist(tmp_path: Path) -> None:
    file = openclaw_file(tmp_path / "state" / "openclaw.sqlite")
    store_of(tmp_path, "main", SESSIONS)
    store_of(tmp_path, "work", "something_else (a)")
    with SignalLog(file, change=True) as log:
        goal(log, watchers=[PARENT, OTHER])
        swept = log.sweep()
        assert [(cursor.watcher, why) for cursor, why in swept.skipped] == [
            (PARENT, "no such session"),
            (OTHER, "session stores unknown"),
        ]
        assert triples(file) == {PAIR: (0, 1, 1), (OTHER, CHILD): (0, 1, 1)}
        change(Path(default_store(str(tmp_path), "main")), session_row(PARENT))
        assert [notice.watcher for notice in log.sweep().notices] == [PARENT]


def test_a_watch_names_the_store_of_its_watcher(tmp_path: Path) -> None:
    file = openclaw_file(tmp_path / "state" / "openclaw.sqlite")
    with SignalLog(file, change=True) as log:
        log.watch(OTHER, CHILD)
        goal(log, watchers=[PARENT])
        stores = {report.cursor.watcher: report.cursor.store_path for report in log.cursors()}
        assert stores == {
            PARENT: str(tmp_path / "agents" / "main" / "agent" / "openclaw-agent.sqlite"),
            OTHER: str(tmp_path / "agents" / "work" / "agent" / "openclaw-agent.sqlite"),
        }
        assert {report.delivery.reason for report in log.cursors()} == {"yes"}


def test_a_configured_store_is_named_and_decides_delivery(tmp_path: Path) -> None:
    file = openclaw_file(tmp_path / "state" / "openclaw.sqlite")
    (tmp_path / "openclaw.json").write_text('{ session: { store: "/elsewhere/{agentId}.json" } }')
    with SignalLog(file, change=True) as log:
        log.watch(PARENT, CHILD)
        log.watch(OTHER, CHILD, store_path="/old/work.sqlite")
        found = {
            report.cursor.watcher: (report.cursor.store_path, report.delivery.reason)
            for report in log.cursors()
        }
    assert found == {
        PARENT: ("/elsewhere/main.sqlite", "yes"),
        OTHER: ("/old/work.sqlite", "other store"),
    }


def test_where_the_store_is_in_doubt_it_is_copied_or_unknown(tmp_path: Path) -> None:
    file = openclaw_file(tmp_path / "state" / "openclaw.sqlite")
    (tmp_path / "openclaw.json").write_text('{ session: { store: "/elsewhere/{agentId}.json" ')
    with SignalLog(file, change=True) as log:
        log.watch(PARENT, CHILD, store_path="/elsewhere/main.sqlite")
        log.watch(PARENT, OTHER)
        log.watch(OTHER, CHILD)
        found = {
            (report.cursor.watcher, report.cursor.target): (report.cursor.store_path, report.delivery.ok)
            for report in log.cursors()
        }
    assert found == {
        PAIR: ("/elsewhere/main.sqlite", None),
        (PARENT, OTHER): ("/elsewhere/main.sqlite", None),
        (OTHER, CHILD): (None, False),
    }


def test_another_store_is_never_told_nor_acknowledged(tmp_path: Path) -> None:
    file = openclaw_file(tmp_path / "state" / "openclaw.sqlite")
    with SignalLog(file, change=True) as log:
        log.watch(PARENT, CHILD, store_path="/old/store.sqlite")
        goal(log)
        assert only(log.cursors()).delivery.reason == "other store"
        assert log.queued(PARENT) == []
        assert log.drain(PARENT) == []
        skipped = log.acknowledge(PARENT, [CHILD]).skipped
        assert [(cursor.target, why.reason) for cursor, why in skipped] == [(CHILD, "other store")]
        goal(log, watchers=[PARENT])
        assert triples(file) == {PAIR: (0, 1, 1)}
        assert log.watch(PARENT, CHILD).created
        assert triples(file) == {PAIR: (2, 2, 2)}
