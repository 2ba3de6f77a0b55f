"""Databases for the command line: the tool's own, and OpenClaw's in a state directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.upstream import gate
from tests.adopted import Transcript, adopt
from tests.cli.harness import Cli
from tests.support import CHILD, PARENT, Clock, T, change, openclaw_file

OTHER = "agent:work:main"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line on a file of the tool's own, which is not there yet."""
    return Cli(tmp_path / "own" / "openclaw.sqlite")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(cli: Cli, clock: Clock) -> Iterator[SignalLog]:
    """The log behind `cli`, created."""
    with SignalLog(cli.path, change=True, create=True, clock=clock) as log:
        yield log


@pytest.fixture
def story(cli: Cli, log: SignalLog) -> Cli:
    """Two watches on the child: the parent's reopens at 3, the other session's is quiet.

    1 spawned · 2 human message · 3 goal changed · 4 the parent's own compaction
    """
    log.child_spawned(CHILD, requester=PARENT, run_id="run-1")
    log.human_message(CHILD, channel="telegram", actor_id="telegram:42", spawned_by=PARENT)
    log.goal_changed(CHILD, "goal updated", actor_type="human", spawned_by=PARENT)
    log.compacted(PARENT, operation_id="op-1")
    log.watch(OTHER, CHILD)
    return cli


class StateDir:
    """An OpenClaw state directory with one agent's session store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / "state" / "openclaw.sqlite"
        self.path.parent.mkdir(parents=True)
        openclaw_file(self.path)

    def add_sessions(self, agent: str, *keys: str) -> None:
        """Let sessions exist in an agent's store."""
        folder = self.root / "agents" / agent / "agent"
        folder.mkdir(parents=True, exist_ok=True)
        change(
            folder / "openclaw-agent.sqlite",
            "CREATE TABLE IF NOT EXISTS session_nodes (session_key TEXT PRIMARY KEY, status TEXT) STRICT",
            *(f"INSERT INTO session_nodes VALUES ('{key}', 'idle')" for key in keys),
        )

    def supervise(self) -> None:
        """Give the file to an external supervisor."""
        claim = {"version": 1, "mode": "external", "managerId": "fleet-7", "claimedAt": T}
        change(
            self.path,
            f"INSERT INTO config_machine_state VALUES ('gateway.supervision', '{json.dumps(claim)}', {T})",
        )

    def start_gateway(self) -> None:
        """Leave the lock of a live gateway: this very process, by number and start time."""
        folder = self.root / "tmp" / f"openclaw-{os.getuid()}"
        folder.mkdir(parents=True)
        stat = Path("/proc/self/stat").read_text("utf-8").rpartition(")")[2].split()
        lock = {"pid": os.getpid(), "createdAt": "now", "configPath": "-", "startTime": int(stat[19])}
        (folder / "gateway.state.lock").write_text(json.dumps(lock), "utf-8")


@pytest.fixture
def state_dir(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "openclaw")


@pytest.fixture
def transcript(tmp_path: Path, log: SignalLog) -> Transcript:
    """The transcript of a watched session, adopted as it stands."""
    found = Transcript(tmp_path / "claude" / "thread-1.jsonl")
    adopt(log, found.path)
    return found


@pytest.fixture
def gateway(state_dir: StateDir, home: Path, monkeypatch: pytest.MonkeyPatch) -> StateDir:
    """A state directory whose gate is open."""
    monkeypatch.setattr(gate, "account_home", lambda: str(home))
    (home / ".openclaw").symlink_to(state_dir.root)
    return state_dir
