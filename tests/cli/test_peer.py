"""The commands on databases that OpenClaw wrote: every answer is right, every change keeps the file sound."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.fault.peers import BETA, FILES, LATE, PLACES, Found, find, settle
from tests.fault.truth import Row, Truth, event, shown_change, without
from tests.support import PARENT, query

OTHER = "agent:work:main"


@pytest.fixture(scope="module", params=PLACES)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    return find(request.param, tmp_path_factory.mktemp("place"), request)


@pytest.fixture(scope="module")
def truth(found: Found, tmp_path_factory: pytest.TempPathFactory) -> Truth:
    return Truth(found, tmp_path_factory.mktemp("truth") / "copy.sqlite")


def test_every_state_database_is_covered(peer: Path) -> None:
    names = {path.name for path in peer.glob("peer-state-*.sqlite")}
    assert names == {f"peer-state-{name}.sqlite" for name in FILES}


def named(head: Row) -> tuple[str, ...]:
    """The arguments that name a session, whoever else has its key."""
    return head["session_key"], "--agent", head["agent_id"]


def test_every_session_is_shown_as_its_rows_say(found: Found, truth: Truth) -> None:
    for head in truth.heads:
        shown = found.json("status", *named(head), "--children")
        own = truth.of(head)
        assert (shown["stateVersion"], shown["agentId"]) == (head["last_sequence"], head["agent_id"])
        assert shown["prunedMaxSequence"] == head["pruned_max_sequence"]
        assert shown["oldestSequence"] == own[0]["sequence"]
        expected = truth.watches(target=head["session_key"])
        assert [without(row, "deliveryDetail") for row in shown["watchers"]] == expected
        assert shown["children"] == truth.ended_children(head["session_key"])
    versions = [found.json("version", *named(head))["versions"][0] for head in truth.heads]
    assert [row["stateVersion"] for row in versions] == [head["last_sequence"] for head in truth.heads]
    assert found.json("list")["sessions"] == [truth.session(head) for head in truth.heads]


def test_every_delta_is_exact_and_a_gap_is_one_only_below_the_watermark(found: Found, truth: Truth) -> None:
    """A23: the watermark itself is no gap; one below it is."""
    for head in truth.heads:
        version, watermark, own = head["last_sequence"], head["pruned_max_sequence"], truth.of(head)
        for since in sorted({0, max(0, watermark - 1), watermark, own[0]["sequence"], version}):
            gap = since < watermark
            shown = found.json("status", *named(head), "--since", since, status=3 if gap else 0)
            assert shown["stateChanges"] == {
                "events": [shown_change(row) for row in own if row["sequence"] > since],
                "truncated": False,
                "earliestAvailableSequence": own[0]["sequence"],
                "historyGap": gap,
            }
            assert (shown["historyGap"], "gap" in shown) == (gap, gap)


def test_a_version_ahead_of_the_head_is_never_up_to_date(found: Found, truth: Truth) -> None:
    """A22"""
    for head in truth.heads:
        wanted = head["last_sequence"] + 1
        error = found.json("status", *named(head), "--since", wanted, status=5)["error"]
        assert (error["requested"], error["head"]) == (wanted, head["last_sequence"])


def test_a_bare_key_of_several_agents_needs_one_of_them(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = find("2026.9.6-pending", tmp_path, request)
    assert found.json("status", "global", status=2)["error"]["agents"] == ["main", "ops"]


FILTERS: list[tuple[tuple[str, ...], Callable[[Row], bool]]] = [
    ((), lambda _: True),
    (("--kind", "goal_changed", "--kind", "adopted"), lambda row: row["kind"] in ("goal_changed", "adopted")),
    (("--actor", "human"), lambda row: row["actor_type"] == "human"),
    (("--actor", "agent:agent:main:main"), lambda row: row["actor_id"] == PARENT),
    (("--agent", "ops"), lambda row: row["agent_id"] == "ops"),
    (("--run", "run2-gamma"), lambda row: row["run_id"] == "run2-gamma"),
    (("--since", "9", "--until", "13"), lambda row: 9 < row["sequence"] <= 13),
    (("--until", "2027-02-15T00:00:00Z"), lambda row: row["occurred_at"] <= 1_802_649_600_000),
    ((BETA,), lambda row: row["session_key"] == BETA),
]


@pytest.mark.parametrize(("chosen", "belongs"), FILTERS, ids=[" ".join(chosen) for chosen, _ in FILTERS])
def test_events_are_filtered(
    found: Found, truth: Truth, chosen: tuple[str, ...], belongs: Callable[[Row], bool]
) -> None:
    if BETA in chosen and not truth.heads:
        found.look("tail", *chosen, status=4)
        return
    expected = [event(row) for row in truth.events if belongs(row)]
    assert found.json("tail", "-n", "all", *chosen)["events"] == expected
    assert found.json("tail", "-n", "2", *chosen)["events"] == expected[-2:]


def test_watches_by_watcher_and_target(found: Found, truth: Truth) -> None:
    for row in truth.watches():
        for name in ("watcher", "target"):
            shown = found.json("cursors", "list", f"--{name}", row[name])["cursors"]
            assert [without(view, "deliveryDetail") for view in shown] == truth.watches(**{name: row[name]})
        mine = [notice for notice in truth.notices() if notice["watcher"] == row["watcher"]]
        notices = found.json("notices", row["watcher"])["notices"]
        assert [without(view, "wakeReason") for view in notices] == mine


def test_row_formats_hold_the_same_rows(found: Found, truth: Truth) -> None:
    for argv, expected in (
        (("tail", "-n", "all"), [row["sequence"] for row in truth.events]),
        (("list",), [head["session_key"] for head in truth.heads]),
        (("cursors", "list"), [row["watcher"] for row in truth.watches()]),
        (("notices",), [row["watcher"] for row in truth.notices()]),
    ):
        rows = found.look(*argv, "--format", "jsonl").rows
        assert [next(iter(row.values())) for row in rows] == expected
        cells = found.look(*argv, "--format", "tsv").cells[1:]
        assert [row[0] for row in cells] == [str(value) for value in expected]


# Changes


class Change(NamedTuple):
    """A command that changes, and what it must have done: rows by SQL after it."""

    argv: tuple[str, ...]
    sql: str = "SELECT NULL"
    rows: Sequence[tuple[Any, ...]] = ((None,),)


_WATCHES = "SELECT count(*) FROM session_watch_cursors WHERE watcher_session_key = "
CHANGES = [
    Change(
        ("record", BETA, "--kind", "goal_changed", "--actor", "human:user:1"),
        "SELECT kind, actor_id FROM session_state_events ORDER BY sequence DESC LIMIT 1",
        [("goal_changed", "user:1")],
    ),
    Change(
        ("run", "--parent", PARENT, "--child", "agent:main:subagent:new", "--", "true"),
        "SELECT kind FROM session_state_events ORDER BY sequence DESC LIMIT 2",
        [("run_completed",), ("child_spawned",)],
    ),
    Change(("cursors", "add", OTHER, LATE), f"{_WATCHES} '{OTHER}'", [(1,)]),
    Change(
        ("cursors", "remove", PARENT, LATE, "-y"),
        f"{_WATCHES} '{PARENT}' AND target_session_key = '{LATE}'",
        [(0,)],
    ),
    Change(("cursors", "ack", PARENT, LATE)),
    Change(("cursors", "reset", PARENT, "-y"), f"{_WATCHES} '{PARENT}'", [(0,)]),
    Change(
        (
            "cursors",
            "prune",
            "--older-than",
            "0",
            "--expired",
            "--orphaned",
            "--undeliverable",
            "--include-pending",
        )
    ),
    Change(("notices", PARENT, "--ack")),
    Change(
        ("prune", "--max-rows", "1", "-y"),
        "SELECT count(*) <= 1 FROM session_state_events",
        [(1,)],
    ),
    Change(
        ("forget", LATE, "-y"),
        f"SELECT session_key FROM session_state_events WHERE session_key = '{LATE}'"
        f" UNION SELECT session_key FROM session_state_heads WHERE session_key = '{LATE}'"
        f" UNION SELECT target_session_key FROM session_watch_cursors WHERE target_session_key = '{LATE}'",
        [],
    ),
]


@pytest.fixture
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Found:
    """A copy to change, which holds a pending watch on LATE."""
    copy = find(request.param, tmp_path, request)
    settle(copy)
    return copy


def soundness(path: Path) -> Any:
    """What no change may move: schema, versions, mode; and the file must be whole."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        rows = {
            text: connection.execute(text).fetchall()
            for text in (
                "PRAGMA integrity_check",
                "PRAGMA user_version",
                "PRAGMA journal_mode",
                "SELECT type, name, tbl_name, sql FROM sqlite_schema",
                "SELECT * FROM schema_meta",
                "SELECT * FROM config_machine_state",
            )
            if "config_machine_state" not in text or _has_machine_state(connection)
        }
    assert rows["PRAGMA integrity_check"] == [("ok",)]
    return rows, path.stat().st_mode


def _has_machine_state(connection: sqlite3.Connection) -> bool:
    sql = "SELECT 1 FROM sqlite_schema WHERE name = 'config_machine_state'"
    return connection.execute(sql).fetchone() is not None


@pytest.mark.parametrize("change", CHANGES, ids=[" ".join(change.argv[:2]) for change in CHANGES])
@pytest.mark.parametrize("own", PLACES, indirect=True)
def test_a_change_moves_rows_and_nothing_else(own: Found, change: Change) -> None:
    before, others = soundness(own.path), beside(own)
    outcome = own.run(*change.argv)
    assert outcome.status == 0, outcome
    assert query(own.path, change.sql) == list(change.rows)
    assert soundness(own.path) == before
    assert beside(own) == others


@pytest.mark.parametrize("own", PLACES, indirect=True)
def test_only_files_that_know_stores_refuse_to_acknowledge_without_one(own: Found) -> None:
    """Contract, signal-log 9 and 17."""
    sql = (
        "SELECT last_seen_sequence, material_sequence FROM session_watch_cursors WHERE target_session_key = ?"
    )
    ((seen, material),) = query(own.path, sql, LATE)
    names = [name for _, name, *_ in query(own.path, "PRAGMA table_info(session_watch_cursors)")]
    document = own.run("cursors", "ack", PARENT, LATE, "--json").document
    if "watcher_store_path" in names:
        assert document["skipped"] == [{"target": LATE, "reason": "store unknown"}]
        assert query(own.path, sql, LATE) == [(seen, material)]
    else:
        assert document["acknowledged"] == [LATE]
        assert query(own.path, sql, LATE) == [(material, material)]


@pytest.mark.parametrize("own", PLACES, indirect=True)
def test_a_sweep_needs_agent_stores_and_no_gateway(own: Found) -> None:
    before, others = soundness(own.path), beside(own)
    outcome = own.run("notices", "sweep")
    assert outcome.status == (78 if own.state_dir is None else 9 if (own.folder / "tmp").exists() else 0)
    assert (soundness(own.path), beside(own)) == (before, others)


def beside(own: Found) -> dict[str, Any]:
    """Every other file of the folder: the agents' stores, locks, the configuration."""
    return {name: trace for name, trace in own.trace().items() if not own.path.match(name)}
