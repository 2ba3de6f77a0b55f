"""sessions list and show: OpenClaw's rows, the filters and their totals, and stores that are not well."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from tests.cli.conftest import StateDir
from tests.cli.harness import Cli
from tests.sessions import HOUR, AgentStore
from tests.support import CHILD, PARENT, Clock, T, change, copy_tree, goal, unpack_state_directory

OURS = {"stateVersion", "watchers", "pending", "freshness", "archivedAt", "archiveReason", "inconsistent"}


@pytest.fixture
def store(state_dir: StateDir) -> AgentStore:
    """The store of agent main."""
    return AgentStore(state_dir.root)


@pytest.fixture
def cli(state_dir: StateDir) -> Cli:
    return Cli(state_dir.path)


def keys_of(document: Any) -> list[str]:
    return [row["key"] for row in document["sessions"]]


def test_the_list_is_the_one_that_openclaw_printed(peer: Path, tmp_path: Path) -> None:
    live = peer / "agent-loop-live"
    copy_tree(live / "statedir", tmp_path / "state-dir")
    shutil.copyfile(live / "openclaw.json", tmp_path / "state-dir" / "openclaw.json")
    cli = Cli(tmp_path / "state-dir" / "state" / "openclaw.sqlite")
    cli.now = 1_796_071_849_678
    found = cli.json("sessions", "list")
    printed = json.loads((live / "expected" / "sessions.json").read_text("utf-8"))
    # The database was copied after this run had ended; OpenClaw read its clock for each row.
    for document in (found, printed):
        for row in document["sessions"]:
            row.pop("ageMs")
            if row["key"] == "agent:main:g7":
                del row["updatedAt"], row["status"]
    rows = [{name: value for name, value in row.items() if name not in OURS} for row in found["sessions"]]
    assert [list(row) for row in rows] == [list(row) for row in printed["sessions"]]
    assert rows == printed["sessions"]
    for name in ("count", "totalCount", "limitApplied", "hasMore", "activeMinutes"):
        assert found[name] == printed[name]


def _sums(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


def test_a_real_state_directory_is_read_and_left_as_it_was(peer: Path, tmp_path: Path) -> None:
    folder = unpack_state_directory(peer / "peer-statedir.tar.gz", tmp_path / "unpacked")
    before = _sums(folder)
    cli = Cli(folder / "state" / "openclaw.sqlite")
    found = cli.json("sessions", "list", "--all-agents", "--limit", "all")
    assert {store["agentId"] for store in found["stores"]} == {"main", "work"}
    assert found["problems"] == []
    for row in found["sessions"]:
        assert cli.json("sessions", "show", row["key"])["session"]["key"] == row["key"]
    assert _sums(folder) == before


def test_an_agent_database_on_its_own_is_read(peer: Path, tmp_path: Path) -> None:
    path = tmp_path / "agent.sqlite"
    shutil.copyfile(peer / "peer-agent-2026.9.6.sqlite", path)
    found = Cli(path).json("sessions", "list")
    assert found["count"] == 50
    own = {row["key"]: (row["model"], row["contextTokens"], row["agentRuntime"]) for row in found["sessions"]}
    implicit = {"id": "codex", "source": "implicit"}
    assert own.pop("agent:main:main") == ("gpt-x", 200_000, implicit)
    assert own.pop("agent:main:cli-owned") == ("opus", 200_000, implicit)
    assert all(shown == ("gpt-6-astra", 200_000, implicit) for shown in own.values())


def test_a_limited_list_says_how_many_there_are(cli: Cli, store: AgentStore) -> None:
    for number in range(250):
        store.add(f"agent:main:s{number:03}", updatedAt=T - number)
    found = cli.json("sessions", "list")
    assert (found["count"], found["totalCount"], found["limitApplied"], found["hasMore"]) == (
        100,
        250,
        100,
        True,
    )
    assert keys_of(found)[:2] == ["agent:main:s000", "agent:main:s001"]
    assert "100 of 250 sessions" in cli("sessions", "list").err
    everything = cli.json("sessions", "list", "--limit", "all")
    assert (everything["count"], everything["limitApplied"], everything["hasMore"]) == (250, None, False)


def test_archived_sessions_are_flagged_and_can_be_had_alone(cli: Cli, store: AgentStore) -> None:
    store.add(PARENT)
    old = store.add("agent:main:old", archivedAt=T - 1, archiveReason="age-retention")
    found = cli.json("sessions", "list")
    assert (found["storedCount"], found["archivedCount"], found["count"]) == (2, 1, 2)
    flagged = {row["key"]: row.get("archivedAt") for row in found["sessions"]}
    assert flagged == {PARENT: None, old: T - 1}
    alone = cli.json("sessions", "list", "--archived")
    assert (keys_of(alone), alone["filteredOut"]["archived"]) == ([old], 1)
    assert "archived" in cli("sessions", "list").out


def test_a_run_that_has_ended_is_not_shown_as_running(cli: Cli, store: AgentStore) -> None:
    key = store.add("agent:main:odd", status="running", startedAt=T - 5, endedAt=T - 1)
    (row,) = cli.json("sessions", "list")["sessions"]
    assert (row["status"], row["inconsistent"]) == (
        "running",
        f"the status is running, but the run ended at {T - 1}",
    )
    assert cli("sessions", "list").out.splitlines()[1].split()[:3] == [key, "direct", "inconsistent"]


def test_each_filter_says_what_it_left_out(cli: Cli, store: AgentStore) -> None:
    big = store.add("agent:main:telegram:group:-1", updatedAt=T - 3 * HOUR, chatType="group")
    store.say(big, "x" * 2_000)
    store.add("agent:main:cron:job", updatedAt=T - 2 * HOUR)
    store.add(PARENT, updatedAt=T - 60_000)
    store.add("agent:main:internal-session-effects:x")
    assert keys_of(cli.json("sessions", "list", "--active", 1)) == [PARENT]
    assert keys_of(cli.json("sessions", "list", "--kind", "cron")) == ["agent:main:cron:job"]
    assert keys_of(cli.json("sessions", "list", "--older-than", "150m")) == [big]
    large = cli.json("sessions", "list", "--larger-than", "1kb", "--active", 200)
    assert [row["transcriptBytes"] for row in large["sessions"]] == [2_000]
    assert large["filteredOut"] == {"internal": 1, "active": 0, "largerThan": 2}
    assert "1 left out internal" in cli("sessions", "list", "--kind", "cron").err


@pytest.mark.parametrize(
    "wrong",
    [
        ("--limit", "0"),
        ("--limit", "-1"),
        ("--limit", "abc"),
        ("--active", "0"),
        ("--kind", "dm"),
        ("--larger-than", "big"),
        ("--older-than", "5"),
        ("--agent", ""),
        ("--all-agents", "--agent", "main"),
    ],
    ids=" ".join,
)
def test_a_value_without_meaning_is_refused(cli: Cli, wrong: tuple[str, ...]) -> None:
    assert cli.json("sessions", "list", *wrong, status=2)["ok"] is False


def test_versions_watchers_and_notices_come_from_the_log(state_dir: StateDir, store: AgentStore) -> None:
    cli = Cli(state_dir.path)
    store.add(PARENT)
    store.add(CHILD, spawnedBy=PARENT)
    with SignalLog(state_dir.path, change=True, clock=Clock()) as log:
        goal(log, watchers=[PARENT])
    rows = {row["key"]: row for row in cli.json("sessions", "list")["sessions"]}
    assert [rows[CHILD][name] for name in ("stateVersion", "watchers", "pending")] == [1, 1, 1]
    assert [rows[PARENT][name] for name in ("stateVersion", "watchers", "pending")] == [0, 0, 0]
    assert rows[CHILD]["kind"] == "spawn-child"


def test_without_a_state_database_versions_are_unknown_not_zero(cli: Cli, store: AgentStore) -> None:
    store.add(PARENT)
    cli.path.unlink()
    found = cli.json("sessions", "list")
    assert [found["sessions"][0][name] for name in ("stateVersion", "watchers", "pending")] == [None] * 3
    assert any("are unknown" in warning for warning in found["warnings"])


def test_freshness_follows_the_configuration_and_names_its_rules(
    cli: Cli, state_dir: StateDir, store: AgentStore
) -> None:
    key = store.add(PARENT, sessionStartedAt=T - 5 * HOUR, lastInteractionAt=T - 3 * HOUR)
    assert cli.json("sessions", "list")["sessions"][0]["freshness"]["verdict"] == "no reset"
    (state_dir.root / "openclaw.json").write_text("{session: {reset: {mode: 'idle', idleMinutes: 120}}}")
    (row,) = cli.json("sessions", "list")["sessions"]
    assert row["freshness"] == {
        "fresh": False,
        "verdict": "idle",
        "staleReason": "idle",
        "expiresAt": None,
        "rules": "2026.9",
    }
    assert "starts over (idle)" in cli("sessions", "show", key).out


def test_a_start_that_only_the_transcript_knows_counts(
    cli: Cli, state_dir: StateDir, store: AgentStore
) -> None:
    key = store.add(PARENT, lastInteractionAt=T)
    store.say(key, json.dumps({"type": "session", "id": f"id of {key}", "timestamp": T - 48 * HOUR}))
    (state_dir.root / "openclaw.json").write_text("{session: {reset: {mode: 'daily'}}}")
    (row,) = cli.json("sessions", "list")["sessions"]
    assert row["freshness"]["verdict"] == "daily"


def test_a_broken_configuration_is_an_error_with_its_place(
    cli: Cli, state_dir: StateDir, store: AgentStore
) -> None:
    (state_dir.root / "openclaw.json").write_text("{session: }")
    failed = cli("sessions", "list", "--json", status=78).error
    assert (failed["line"], failed["column"]) == (1, 11)


def test_a_configured_store_is_the_one_that_is_read(cli: Cli, state_dir: StateDir) -> None:
    elsewhere = AgentStore(state_dir.root / "else")
    elsewhere.add(PARENT)
    template = state_dir.root / "else" / "agents" / "{agentId}" / "sessions" / "sessions.json"
    (state_dir.root / "openclaw.json").write_text(json.dumps({"session": {"store": str(template)}}))
    found = cli.json("sessions", "list")
    assert (found["path"], keys_of(found)) == (str(elsewhere.path), [PARENT])


def test_the_other_agents_are_named(cli: Cli, state_dir: StateDir, store: AgentStore) -> None:
    store.add(PARENT)
    AgentStore(state_dir.root, "work").add("agent:work:main", updatedAt=T - 1)
    assert cli.json("sessions", "list")["otherAgents"] == ["work"]
    assert keys_of(cli.json("sessions", "list", "--agent", "work")) == ["agent:work:main"]
    both = cli.json("sessions", "list", "--all-agents")
    assert keys_of(both) == [PARENT, "agent:work:main"]
    assert (both["path"], both["allAgents"]) == (None, True)


def _locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096] + b"\0" * 4096)


def _from_the_future(path: Path) -> None:
    change(path, "DROP TABLE session_nodes", "PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("harm", "code"),
    [(_truncate, "bad_database"), (_from_the_future, "newer_schema"), (Path.unlink, "no_database")],
    ids=["corrupt", "from the future", "missing"],
)
def test_a_store_that_is_not_well_is_told_for_its_agent_alone(
    cli: Cli, state_dir: StateDir, store: AgentStore, harm: Any, code: str
) -> None:
    store.add(PARENT)
    other = AgentStore(state_dir.root, "work")
    other.add("agent:work:main")
    harm(other.path)
    found = cli.json("sessions", "list", "--all-agents", status=1)
    assert keys_of(found) == [PARENT]
    assert [(one["agentId"], one["code"]) for one in found["problems"]] == [("work", code)]
    assert cli("sessions", "list", "--agent", "work", "--json", status=66 if code == "no_database" else 65)


def test_a_locked_store_is_told_for_its_agent_alone(cli: Cli, state_dir: StateDir, store: AgentStore) -> None:
    store.add(PARENT)
    other = AgentStore(state_dir.root, "work")
    other.add("agent:work:main")
    for _ in _locked(other.path):
        found = cli.json("sessions", "list", "--all-agents", status=1)
    assert keys_of(found) == [PARENT]
    assert [(one["agentId"], one["code"]) for one in found["problems"]] == [("work", "busy")]


@pytest.mark.parametrize("text", ["{", "[]", '{"sessionId":"another"}'])
def test_an_invalid_row_is_told_and_the_others_are_shown(cli: Cli, store: AgentStore, text: str) -> None:
    store.add(PARENT)
    store.add_raw("agent:main:bad", "s1", text)
    store.add("agent:main:marked", valid=0)
    store.add_raw("agent:main:dead", "s2", "{}", valid=-1)
    found = cli.json("sessions", "list", status=1)
    assert keys_of(found) == [PARENT]
    told = {one["sessionKey"]: one["code"] for one in found["problems"]}
    assert told == {"agent:main:bad": "invalid_row", "agent:main:marked": "invalid_row"}
    assert "openclaw doctor --fix" in cli("sessions", "list", status=1).err


@pytest.mark.parametrize(
    ("schema", "app", "table"),
    [(16, "2026.7.2-beta.7", "session_nodes"), (9, "2026.7.2", "session_entries")],
)
def test_an_older_store_is_read_and_its_version_told(
    cli: Cli, state_dir: StateDir, schema: int, app: str, table: str
) -> None:
    store = AgentStore(state_dir.root, schema=schema, app=app, table=table)
    store.add(PARENT)
    store.add_raw("agent:main:dead", "s2", "{}")
    found = cli.json("sessions", "list")
    assert keys_of(found) == [PARENT]
    assert any(f"schema {schema} of OpenClaw {app} is older" in warning for warning in found["warnings"])


def test_a_store_without_a_session_table_is_never_zero_sessions(cli: Cli, state_dir: StateDir) -> None:
    AgentStore(state_dir.root, schema=1, app="2026.7.1", table="none")
    failed = cli("sessions", "list", "--json", status=65).error
    assert "schema 1 of OpenClaw 2026.7.1 has no session table" in failed["message"]


def test_a_newer_store_that_still_has_its_tables_is_read_with_care(cli: Cli, store: AgentStore) -> None:
    store.add(PARENT)
    change(store.path, "PRAGMA user_version = 24")
    found = cli.json("sessions", "list")
    assert keys_of(found) == [PARENT]
    assert any(
        "schema 24" in warning and "newer than the known 23" in warning for warning in found["warnings"]
    )


def test_a_sessions_json_is_recognised_with_the_command_that_imports_it(
    cli: Cli, state_dir: StateDir
) -> None:
    for agent in ("main", "work"):
        folder = state_dir.root / "agents" / agent / "sessions"
        folder.mkdir(parents=True)
        (folder / "sessions.json").write_text('{"main": {}}')
    failed = cli("sessions", "list", "--json", status=66).error
    assert failed["message"].startswith("agent main: its sessions stand in ")
    assert "openclaw doctor --fix" in failed["hint"]
    both = cli("sessions", "list", "--all-agents", "--json", status=66).error["message"]
    assert both.count("is not imported") == 2
    AgentStore(state_dir.root, "third").add("agent:third:main")
    found = cli.json("sessions", "list", "--all-agents", status=1)
    assert [(one["agentId"], one["code"]) for one in found["problems"]] == [
        ("main", "legacy_store"),
        ("work", "legacy_store"),
    ]


def test_show_tells_route_levels_context_and_files_but_no_words(
    cli: Cli, state_dir: StateDir, store: AgentStore
) -> None:
    key = store.add(
        "agent:main:telegram:direct:7",
        sessionId="0ff0",
        chatType="direct",
        thinkingLevel="high",
        totalTokens=12,
        delivery={
            "kind": "external",
            "route": {"channel": "telegram", "accountId": "a", "target": {"to": "7"}},
        },
    )
    store.change("INSERT INTO transcript_events VALUES ('0ff0', 0, '\"secret words\"', ?)", T)
    archive = state_dir.root / "agents" / "main" / "sessions" / "0ff0.jsonl"
    archive.parent.mkdir()
    archive.write_text("secret words")
    row = cli.json("sessions", "show", key)["session"]
    assert row["replyRoute"] == {
        "kind": "external",
        "channel": "telegram",
        "accountId": "a",
        "to": "7",
        "threadId": None,
        "source": "delivery.route",
    }
    assert row["levels"] == {"thinking": "high"}
    assert (row["contextTokens"], row["contextTokensSource"]) == (200_000, "default")
    assert (row["transcript"]["rows"], row["transcript"]["bytes"]) == (1, 14)
    assert [(file["path"], file["size"]) for file in row["transcript"]["files"]] == [(str(archive), 12)]
    shown = cli("sessions", "show", key).out
    assert "telegram a 7 (external, by delivery.route)" in shown
    assert "secret" not in shown


def test_an_unknown_session_is_answered_with_close_keys(cli: Cli, store: AgentStore) -> None:
    store.add("agent:main:telegram:direct:7")
    failed = cli("sessions", "show", "agent:main:Telegram:direct:7", "--json", status=4).error
    assert failed["similar"] == ["agent:main:telegram:direct:7"]


def test_hostile_text_of_a_row_stays_harmless(cli: Cli, store: AgentStore) -> None:
    key = store.add("agent:main:x\x1b[2J", label="a\x1b]0;b\x07", model="m\u202e", status="running")
    for command in (("list",), ("show", key)):
        done = cli("sessions", *command)
        assert not any(mark in done.out for mark in ("\x1b", "\x07", "\u202e"))


def test_a_time_zone_that_the_system_lacks_leaves_freshness_unknown(cli: Cli, store: AgentStore) -> None:
    store.add(PARENT)
    found = cli.json("sessions", "list", env={"TZ": "Mars/Olympus"})
    assert found["sessions"][0]["freshness"] is None
    assert any("freshness is unknown" in warning for warning in found["warnings"])


def test_a_row_whose_times_are_no_numbers_is_listed_last(cli: Cli, store: AgentStore) -> None:
    store.add(PARENT)
    odd = store.add("agent:main:odd", updatedAt="soon", lastInteractionAt=[], totalTokens="many")
    rows = cli.json("sessions", "list")["sessions"]
    assert [row["key"] for row in rows] == [PARENT, odd]
    assert (rows[1]["updatedAt"], rows[1]["ageMs"], rows[1]["totalTokens"]) == ("soon", None, None)
    assert "agent:main:odd" in cli("sessions", "list").out
    assert "agent:main:odd" in cli("sessions", "show", odd).out


def test_a_directory_without_any_store_is_never_an_empty_list(cli: Cli, state_dir: StateDir) -> None:
    assert cli("sessions", "list", "--json", status=66).error["code"] == "no_database"
    assert cli("sessions", "list", "--all-agents", "--json", status=66).error["code"] == "no_database"


def test_a_log_on_its_own_has_no_sessions_to_list(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    SignalLog(path, change=True, create=True).close()
    for command in (("list",), ("show", PARENT), ("doctor",)):
        assert "no state directory around it" in Cli(path)("sessions", *command, status=78).err
