"""sessions doctor: every finding with its code, and nothing said of what is well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from tests.cli.conftest import StateDir
from tests.cli.harness import Cli
from tests.sessions import AgentStore
from tests.support import CHILD, PARENT, Clock, T, change, goal


@pytest.fixture
def store(state_dir: StateDir) -> AgentStore:
    """The store of agent main."""
    return AgentStore(state_dir.root)


@pytest.fixture
def cli(state_dir: StateDir) -> Cli:
    return Cli(state_dir.path)


def configure(state_dir: StateDir, **session: Any) -> None:
    (state_dir.root / "openclaw.json").write_text(json.dumps({"session": session}))


def found(cli: Cli) -> list[tuple[str, str, list[str]]]:
    """(code, severity, session keys) of each finding."""
    document = cli.json("sessions", "doctor", status=1)
    return [(one["code"], one["severity"], one["sessionKeys"]) for one in document["findings"]]


def test_a_store_that_is_well_has_no_findings(cli: Cli, store: AgentStore) -> None:
    store.add(PARENT)
    store.converse(PARENT, ("telegram", "1"))
    document = cli.json("sessions", "doctor")
    assert (document["findings"], document["counts"]) == ([], {"error": 0, "warning": 0, "info": 0})
    assert cli("sessions", "doctor").out == ""


def test_several_people_in_the_main_session_are_told_with_the_setting(cli: Cli, store: AgentStore) -> None:
    store.add(PARENT)
    store.converse(PARENT, ("telegram", "1"), ("whatsapp", "+34"))
    assert found(cli) == [("dm_scope_main", "warning", [PARENT])]
    done = cli("sessions", "doctor", status=1)
    assert "2 people share one context, because session.dmScope is main" in done.out
    assert "fix: set session.dmScope to per-channel-peer" in done.out


def test_several_people_in_one_session_are_an_error_in_any_other_scope(
    cli: Cli, state_dir: StateDir, store: AgentStore
) -> None:
    configure(state_dir, dmScope="per-peer")
    key = store.add("agent:main:direct:1")
    store.converse(key, ("telegram", "1"), ("telegram", "2"))
    assert found(cli) == [("dm_shared_session", "error", [key])]


def test_identity_links_make_one_person_of_two_senders(
    cli: Cli, state_dir: StateDir, store: AgentStore
) -> None:
    configure(state_dir, identityLinks={"ann": ["telegram:1", "whatsapp:+34"]})
    store.add(PARENT)
    store.converse(PARENT, ("telegram", "1"), ("whatsapp", "+34"))
    assert cli.json("sessions", "doctor")["findings"] == []


def test_links_that_merge_people_are_told(cli: Cli, state_dir: StateDir, store: AgentStore) -> None:
    configure(state_dir, identityLinks={"ann": ["telegram:1", "telegram:2"], "bob": ["telegram:2"]})
    store.add(PARENT)
    assert [code for code, _, _ in found(cli)] == ["identity_link_merges", "identity_link_ambiguous"]


def test_senders_that_differ_only_in_case_are_a_collision(cli: Cli, store: AgentStore) -> None:
    store.add(PARENT)
    store.converse(PARENT, ("matrix", "@Ann:x"), ("matrix", "@ann:x"))
    assert found(cli) == [("dm_case_collision", "error", [PARENT])]


def test_keys_that_differ_only_in_case_are_told_and_not_merged(cli: Cli, store: AgentStore) -> None:
    one, other = store.add("agent:main:Work"), store.add("agent:main:work")
    room, twin = store.add("agent:main:matrix:channel:!A:x"), store.add("agent:main:matrix:channel:!a:x")
    assert found(cli) == [
        ("case_duplicate", "error", [one, other]),
        ("case_duplicate", "warning", [room, twin]),
    ]


def test_rows_of_an_older_scope_are_leftovers(cli: Cli, state_dir: StateDir, store: AgentStore) -> None:
    keys = [store.add(f"agent:main:{rest}direct:1") for rest in ("", "telegram:", "telegram:work:")]
    assert found(cli) == [("dm_scope_leftover", "info", sorted(keys))]
    configure(state_dir, dmScope="per-channel-peer")
    assert found(cli) == [("dm_scope_leftover", "info", [keys[0], keys[2]])]


def test_a_row_that_runs_though_it_ended_is_told(cli: Cli, store: AgentStore) -> None:
    key = store.add("agent:main:odd", status="running", startedAt=T - 5, endedAt=T - 1)
    assert found(cli) == [("running_with_end", "warning", [key])]


def test_orphans_across_the_tables_are_told(cli: Cli, state_dir: StateDir, store: AgentStore) -> None:
    store.add(PARENT)
    with SignalLog(state_dir.path, change=True, clock=Clock()) as log:
        log.watch(PARENT, "agent:main:gone")
        goal(log, CHILD)
    change(
        state_dir.path,
        "CREATE TABLE IF NOT EXISTS agent_databases (agent_id TEXT NOT NULL, path TEXT NOT NULL,"
        " schema_version INTEGER NOT NULL, last_seen_at INTEGER NOT NULL, size_bytes INTEGER) STRICT",
        "INSERT INTO agent_databases (agent_id, path, schema_version, last_seen_at)"
        " VALUES ('phantom', 'agents/phantom/agent/openclaw-agent.sqlite', 23, 0)",
    )
    told = found(cli)
    assert ("cursor_without_session", "warning", [PARENT, "agent:main:gone"]) in told
    assert ("head_without_session", "info", [CHILD]) in told
    assert ("registry_without_directory", "warning", []) in told


def test_a_store_that_cannot_be_read_is_a_finding_and_no_orphan(
    cli: Cli, state_dir: StateDir, store: AgentStore
) -> None:
    store.add_raw("agent:main:bad", "s1", "{")
    with SignalLog(state_dir.path, change=True, clock=Clock()) as log:
        goal(log, CHILD)
    assert found(cli) == [("invalid_row", "error", ["agent:main:bad"])]


@pytest.mark.parametrize(("rows", "severity"), [(0, "error"), (1, "warning")])
def test_a_sessions_json_that_was_left_is_told(
    cli: Cli, state_dir: StateDir, store: AgentStore, rows: int, severity: str
) -> None:
    for _ in range(rows):
        store.add(PARENT)
    legacy: Path = state_dir.root / "agents" / "main" / "sessions" / "sessions.json"
    legacy.parent.mkdir()
    legacy.write_text("{}")
    assert found(cli) == [("legacy_store", severity, [])]


def test_one_agent_can_be_looked_at_alone(cli: Cli, state_dir: StateDir, store: AgentStore) -> None:
    store.add("agent:main:odd", status="running", startedAt=T - 5, endedAt=T - 1)
    AgentStore(state_dir.root, "work").add("agent:work:main")
    assert cli.json("sessions", "doctor", "--agent", "work")["agents"] == ["work"]
    assert cli.json("sessions", "doctor", status=1)["agents"] == ["main", "work"]
