"""monitor on OpenClaw's own state: own echoes, active runs, the gate, and a gateway beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.upstream import gate
from tests.adopted import ADOPTED, AgentStore, Transcript, adopt, person
from tests.cli.conftest import StateDir
from tests.cli.harness import Cli
from tests.support import PARENT, T, change, query

EVENTS = "SELECT kind FROM session_state_events"
OPEN = {"CLAUDE_CONFIG_DIR": "/home/ann/.claude"}


class World:
    """A state directory with one adopted session and its transcript."""

    def __init__(self, state_dir: StateDir, cli: Cli, log: SignalLog, folder: Path) -> None:
        self.state_dir = state_dir
        self.log = log
        self.store = AgentStore(state_dir.root)
        self.store.add_session(ADOPTED)
        self.transcript = Transcript(folder / "claude" / "thread-1.jsonl")
        self.cli = cli
        adopt(log, self.transcript.path)

    def __call__(self, *argv: object, env: dict[str, str] = OPEN, **options: Any) -> Any:
        return self.cli("monitor", *argv, env=env, **options)

    def link(self, *argv: object, **options: Any) -> Any:
        (link,) = self(*argv, "--json", **options).document["links"]
        return link


@pytest.fixture
def world(state_dir: StateDir, tmp_path: Path) -> Iterator[World]:
    cli = Cli(state_dir.path)
    with SignalLog(state_dir.path, change=True, clock=lambda: cli.now) as log:
        yield World(state_dir, cli, log, tmp_path)


def test_what_the_session_sent_itself_is_no_news(world: World) -> None:
    for number in range(1, 13):
        world.store.send(f"own {number}")
    world.transcript.add(person("own  5\n"), person("from a person"), person("own 1"))
    link = world.link("--explain")
    assert (link["humanTurns"], link["ownEchoes"]) == (2, [{"position": 3, "of": 10}])
    assert [row["reason"] for row in link["rows"]] == [
        "own echo, message 3 of 10",
        "human turn",
        "human turn",
    ]


def test_own_echoes_alone_move_the_marker_and_record_nothing(world: World) -> None:
    world.store.send("own")
    world.transcript.add(person("own"))
    assert world.link()["verdict"] == "advanced"
    assert query(world.cli.path, EVENTS) == []


def test_own_texts_that_cannot_be_had_skip_the_link_with_the_reason(world: World) -> None:
    world.store.send("own")
    world.transcript.add(person("own"))
    change(world.store.path, "UPDATE session_transcript_index_state SET needs_rebuild = 1")
    link = world.link()
    assert (link["verdict"], link["reason"]) == (
        "skipped",
        "own texts unreadable: transcript index being rebuilt",
    )
    assert world.link("--strict")["verdict"] == "recorded"


def test_a_link_without_a_session_entry_is_skipped(world: World) -> None:
    change(world.store.path, "DELETE FROM session_nodes")
    world.transcript.add(person("hello"))
    assert world.link()["reason"] == "no session entry"


def test_a_copy_without_agent_stores_cannot_be_monitored(world: World, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(world.cli.path.read_bytes())
    assert "agent stores" in world(path=copy, status=78).err


def test_an_isolated_state_does_not_look_at_the_accounts_own_files(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.transcript.add(person("hello"))
    link = world.link(env={})
    assert (link["verdict"], link["reason"], link["nextMarker"]) == ("isolated", "isolated state", None)
    assert world(env={}).out.startswith("not checked         ")
    world("--anyway", "--dry-run", env={}, status=0)
    assert world.link("--dry-run", "--anyway", env={})["verdict"] == "recorded"
    home = world.state_dir.root.parent
    (home / ".openclaw").symlink_to(world.state_dir.root)
    monkeypatch.setattr(gate, "account_home", lambda: str(home))
    assert world.link(env={"HOME": str(home)})["verdict"] == "recorded"


def test_beside_a_live_gateway_it_refuses_because_the_push_would_be_lost(world: World) -> None:
    world.state_dir.start_gateway()
    world.transcript.add(person("hello"))
    found = world(status=9)
    assert f"the gateway at pid {os.getpid()} runs its own monitor" in found.err
    assert "would cost its watchers the push" in found.err
    assert world("--json", status=9).error["gateway"] == {"state": "alive", "pid": os.getpid()}
    world("--every", "1s", status=9)
    assert query(world.cli.path, EVENTS) == []


def test_from_cron_it_leaves_the_work_to_a_gateway_in_silence(world: World) -> None:
    world.transcript.add(person("hello"))
    world.state_dir.start_gateway()
    found = world("--unless-gateway")
    assert (found.out, found.err) == ("", "")
    document = world("--unless-gateway", "--json").document
    assert (document["gateway"]["state"], document["links"]) == ("alive", [])
    assert query(world.cli.path, EVENTS) == []
    for lock in world.state_dir.root.glob("tmp/*/gateway.state.lock"):
        lock.unlink()
    assert world.link("--unless-gateway")["verdict"] == "recorded"


def test_a_plan_is_shown_beside_a_gateway(world: World) -> None:
    world.state_dir.start_gateway()
    world.transcript.add(person("hello"))
    assert world.link("--dry-run")["verdict"] == "recorded"


@pytest.mark.parametrize("doubt", ["host", "heartbeat"])
def test_a_gateway_that_may_be_alive_counts_as_live(world: World, doubt: str) -> None:
    host = "elsewhere.example" if doubt == "host" else os.uname().nodename
    beat = T - 3_600_000 if doubt == "host" else T - 1_000
    payload = {"owner": {"pid": 2**22 + 5, "host": host, "startedAt": 1}, "port": 18789}
    change(
        world.cli.path,
        "CREATE TABLE state_leases (scope TEXT, lease_key TEXT, owner TEXT, payload_json TEXT,"
        " heartbeat_at INTEGER, expires_at INTEGER) STRICT",
        f"INSERT INTO state_leases VALUES ('gateway-owner', 'global', 'o', '{json.dumps(payload)}',"
        f" {beat}, {beat + 300_000})",
    )
    assert "may be alive" in world(status=9).err
    assert world("--unless-gateway").out == ""


def test_with_anyway_it_records_beside_a_gateway_and_hands_the_notice_over(
    world: World, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    told = tmp_path / "told"
    script = programs / "openclaw"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$OPENCLAW_STATE_DIR" "$@" >> {told}\n')
    script.chmod(0o755)
    world.state_dir.start_gateway()
    world.transcript.add(person("hello"))
    path = os.pathsep.join((str(programs), os.environ["PATH"]))
    found = world("--anyway", "--deliver", "openclaw", env={**OPEN, "PATH": path})
    assert "recorded" in found.out
    words = told.read_text().splitlines()
    assert words[:5] == [str(world.state_dir.root), "system", "event", "--session-key", PARENT]
    assert words[6].startswith(f'Session "{ADOPTED}" changed')
    assert f"delivered to {PARENT}" in found.err


def test_a_delivery_that_fails_leaves_the_notice_pending(world: World, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    script = programs / "openclaw"
    script.write_text("#!/bin/sh\nexit 7\n")
    script.chmod(0o755)
    world.transcript.add(person("hello"))
    path = os.pathsep.join((str(programs), os.environ["PATH"]))
    found = world("--deliver", "openclaw", env={**OPEN, "PATH": path}, status=69)
    assert "failed with exit status 7" in found.err
    assert "recorded" in found.out
    assert len(world.log.notices()) == 1


def test_without_a_program_to_deliver_with_it_does_not_begin(world: World, tmp_path: Path) -> None:
    world.transcript.add(person("hello"))
    world("--deliver", "openclaw", env={**OPEN, "PATH": str(tmp_path)}, status=78)
    assert query(world.cli.path, EVENTS) == []


def test_under_a_supervisor_it_is_refused(world: World) -> None:
    world.state_dir.supervise()
    assert "supervisor" in world(status=9).err


@pytest.mark.parametrize(
    ("entry", "verdict"),
    [
        ({"status": "running", "lifecycleRunId": "run-1", "startedAt": T}, "skipped"),
        ({"status": "running", "lifecycleRunId": "run-1"}, "skipped"),
        ({"status": "running", "lifecycleRunId": "run-1", "startedAt": T - 60_000}, "recorded"),
        ({"status": "running"}, "recorded"),
        ({"status": "done", "lifecycleRunId": "run-1", "startedAt": T}, "recorded"),
    ],
    ids=["running", "start unknown", "of an earlier life", "without a run", "ended"],
)
def test_a_run_that_is_active_defers_the_link(world: World, entry: dict[str, Any], verdict: str) -> None:
    world.state_dir.start_gateway()
    (lock,) = world.state_dir.root.glob("tmp/*/gateway.state.lock")
    born = {**json.loads(lock.read_text()), "createdAt": "2027-01-15T07:59:30.000Z"}
    lock.write_text(json.dumps(born))
    world.store.add_session(ADOPTED, **entry)
    world.transcript.add(person("hello"))
    link = world.link("--anyway")
    assert link["verdict"] == verdict
    if verdict == "skipped":
        assert link["reason"] == "a run of the session is active"


def test_without_a_gateway_no_run_is_active(world: World) -> None:
    world.store.add_session(ADOPTED, status="running", lifecycleRunId="run-1", startedAt=T)
    world.transcript.add(person("hello"))
    assert world.link()["verdict"] == "recorded"
