"""What a saved position outweighs, and how a wait ends by signal."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from tests.cli.harness import Cli

KEY = "agent:main:work"


def test_a_saved_position_outweighs_a_time(cli: Cli) -> None:
    cli("record", KEY, "--kind", "goal_changed", "-q")
    cli("tail", "--position", "here")
    cli("record", KEY, "--kind", "goal_changed", "-q")
    cli.now += 60_000
    rows = cli("tail", "--position", "here", "--since", "1s", "--format", "jsonl").rows
    assert [row["sequence"] for row in rows] == [2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_waiting_for_a_change_ends_by_signal_with_one_line(cli: Cli, number: signal.Signals) -> None:
    cli("record", KEY, "--kind", "goal_changed", "-q")
    with cli.start("status", KEY, "--since", 1, "--wait") as process:
        _until_it_waits(process)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (-number, "", "stopped: nothing had changed\n")


def test_a_timeout_without_a_wait_means_nothing(cli: Cli) -> None:
    assert "--timeout needs --wait" in cli("status", "--timeout", "1s", status=2).err


def _until_it_waits(process: subprocess.Popen[str]) -> None:
    """Until the process catches SIGHUP, as only a follower does."""
    bit = 1 << (signal.SIGHUP - 1)
    while True:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
            caught = next(line for line in file if line.startswith("SigCgt:"))
        if int(caught.split()[1], 16) & bit:
            return
        assert process.poll() is None
        time.sleep(0.01)
