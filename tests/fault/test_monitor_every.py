"""monitor --every as a service: signals, closed outputs, files that go away, gateways that come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.cli.ticker import FIRST_S
from tests.adopted import ADOPTED, AgentStore, Transcript, adopt, person
from tests.cli.conftest import StateDir
from tests.cli.harness import Cli, check_row
from tests.following import LIMIT_S, Following, eventually
from tests.support import ROOT, query

PACE = ("monitor", "--every", "200ms", "--json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
def transcript(tmp_path: Path, path: Path) -> Transcript:
    found = Transcript(tmp_path / "thread.jsonl")
    with SignalLog(path, change=True, create=True) as log:
        adopt(log, found.path)
    return found


def tick(running: Following) -> Any:
    """The next tick."""
    found = json.loads(running.line())
    check_row("monitor", found, kind="tick")
    return found


def turns(running: Following, wanted: int) -> None:
    """Wait until so many human turns were told."""
    while wanted > 0:
        wanted -= tick(running)["summary"]["humanTurns"]


def test_what_is_written_while_it_runs_is_recorded_once(path: Path, transcript: Transcript) -> None:
    with Following(Cli(path), *PACE) as running:
        for number in range(3):
            transcript.add(person(f"prompt {number}"))
            turns(running, 1)
    assert len(query(path, "SELECT 1 FROM session_state_events")) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_between_two_ticks(
    path: Path, transcript: Transcript, number: signal.Signals
) -> None:
    with Following(Cli(path), "monitor", "--every", "100ms") as running:
        running.line()
        assert "what was recorded stays" in running.end(number).err


def test_a_signal_ends_a_tick_whose_provider_does_not_answer(path: Path, tmp_path: Path) -> None:
    script = tmp_path / "opencode"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nexec sleep 60\n")
    script.chmod(0o755)
    with SignalLog(path, change=True, create=True) as log:
        adopt(
            log,
            tmp_path,
            catalog_id="opencode",
            host_id="gateway",
            thread_id="ses_a",
            upstream_kind="opencode-cli",
            upstream_ref={"threadId": "ses_a"},
            marker={"seq": 1, "lastHumanMessageId": None},
        )
    path_of_programs = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    with Following(Cli(path), "monitor", env={"PATH": path_of_programs}) as running:
        eventually((tmp_path / "asked").exists, "OpenCode is asked")
        running.end(signal.SIGTERM)


def test_between_two_ticks_it_holds_no_connection(path: Path, transcript: Transcript) -> None:
    with Following(Cli(path), "monitor", "--every", "1s") as running:
        running.line()
        folder = Path(f"/proc/{running.pid}/fd")

        def is_closed() -> bool:
            with suppress(FileNotFoundError):
                return not any(os.readlink(entry).startswith(str(path)) for entry in folder.iterdir())
            return False

        eventually(is_closed, "the database is closed")
        assert running.is_running()


def test_a_database_that_is_removed_ends_it(path: Path, transcript: Transcript) -> None:
    with Following(Cli(path), *PACE) as running:
        tick(running)
        for file in path.parent.glob("log.sqlite*"):
            file.unlink()
        running.end(status=66)


def test_when_nobody_reads_any_more_it_ends_quietly_long_before_its_next_tick(
    path: Path, transcript: Transcript
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "openclaw_state", "monitor", "--every", "1h"],
        cwd=ROOT,
        env={**os.environ, "OPENCLAW_STATE_DB": str(path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        begun = time.monotonic()
        assert process.wait(LIMIT_S) == 0
        assert process.stderr.read() == b""
    assert time.monotonic() - begun < FIRST_S


def test_a_gateway_that_starts_meanwhile_ends_it_or_silences_it(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "openclaw")
    AgentStore(state.root).add_session(ADOPTED)
    transcript = Transcript(tmp_path / "thread.jsonl")
    with SignalLog(state.path, change=True) as log:
        adopt(log, transcript.path)
    cli, env = Cli(state.path), {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    with (
        Following(cli, *PACE, "--unless-gateway", env=env) as patient,
        Following(cli, *PACE, env=env) as other,
    ):
        tick(patient)
        tick(other)
        state.start_gateway()
        assert f"pid {os.getpid()}" in other.end(status=9).err
        time.sleep(0.5)  # a tick that had begun before is over
        transcript.add(person("for the gateway"))
        time.sleep(1.0)
        assert query(state.path, "SELECT 1 FROM session_state_events") == []
        (lock,) = state.root.glob("tmp/*/gateway.state.lock")
        lock.unlink()
        turns(patient, 1)
