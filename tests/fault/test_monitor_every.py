"""monitor --every as a service: signals, closed outputs, files that go away, gateways that come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.cli.ticker import FIRST_S
from tests.adopted import AgentStore, Transcript, adopt, person
from tests.cli.conftest import StateDir
from tests.fault.followers import LIMIT_S, Running
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


def turns(running: Running, wanted: int) -> None:
    """Wait until so many human turns were told."""
    while wanted > 0:
        wanted -= running.row()["summary"]["humanTurns"]


def test_what_is_written_while_it_runs_is_recorded_once(path: Path, transcript: Transcript) -> None:
    with Running(*PACE, db=path) as running:
        for number in range(3):
            transcript.add(person(f"prompt {number}"))
            turns(running, 1)
    assert len(query(path, "SELECT 1 FROM session_state_events")) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_between_two_ticks(
    path: Path, transcript: Transcript, number: signal.Signals
) -> None:
    with Running("monitor", "--every", "100ms", db=path) as running:
        running.line()
        status, notes = running.end(number)
    assert status == -number
    assert "what was recorded stays" in notes


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
    environ = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    with Running("monitor", db=path, PATH=environ) as running:
        limit = time.monotonic() + LIMIT_S
        while not (tmp_path / "asked").exists() and time.monotonic() < limit:
            time.sleep(0.01)
        status, notes = running.end(signal.SIGTERM)
    assert status == -signal.SIGTERM
    assert "Traceback" not in notes


def test_between_two_ticks_it_holds_no_connection(path: Path, transcript: Transcript) -> None:
    with Running("monitor", "--every", "1s", db=path) as running:
        running.line()
        limit = time.monotonic() + LIMIT_S
        while time.monotonic() < limit:
            held = Path(f"/proc/{running.process.pid}/fd").iterdir()
            if not any(os.readlink(entry).startswith(str(path)) for entry in held):
                break
        else:
            pytest.fail("the database stays open")


def test_a_database_that_is_removed_ends_it(path: Path, transcript: Transcript) -> None:
    with Running(*PACE, db=path) as running:
        running.row()
        for file in path.parent.glob("log.sqlite*"):
            file.unlink()
        assert running.end()[0] == 66


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
    AgentStore(state.root)
    with (
        Running(*PACE, "--unless-gateway", db=state.path) as patient,
        Running(*PACE, db=state.path) as other,
    ):
        patient.row(), other.row()
        state.start_gateway()
        status, notes = other.end()
        assert (status, f"pid {os.getpid()}" in notes) == (9, True)
        (lock,) = state.root.glob("tmp/*/gateway.state.lock")
        time.sleep(0.5)
        while patient.seen():
            patient.line()
        time.sleep(0.5)
        assert patient.seen() == 0
        lock.unlink()
        assert json.loads(patient.line())["gateway"]["state"] == "dead"
