"""What the system tells about a process, made up and real."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from openclaw_state.host.processes import Processes, is_openclaw
from tests.unit.processes import PID, STARTED, Host, needs_proc


def test_a_process_is_read_from_what_the_kernel_shows(host: Host) -> None:
    host.start(PID, " C:\\Tools\\Node.EXE ", "", "Gateway ")
    assert host.processes.lives(PID)
    assert host.processes.start_time(PID) == STARTED
    assert host.processes.arguments(PID) == ["c:/tools/node.exe", "gateway"]


@pytest.mark.parametrize("name", ["node", "a b", "x) Z 1 (y", ")", "", "a\nb"])
def test_a_program_may_have_any_name(host: Host, name: str) -> None:
    host.start(name=name)
    assert host.processes.lives(PID)
    assert host.processes.start_time(PID) == STARTED


@pytest.mark.parametrize(
    ("state", "threads", "lives"),
    [("R", 1, True), ("S", 1, True), ("D", 1, True), ("T", 1, True), ("Z", 1, False), ("Z", 2, True)],
)
def test_only_a_zombie_without_further_threads_is_dead(
    host: Host, state: str, threads: int, lives: bool
) -> None:
    host.start(state=state, threads=threads)
    assert host.processes.lives(PID) is lives


@pytest.mark.parametrize("pid", [0, -1, -PID, 1, 2**31, 2**80])
def test_a_pid_that_nobody_has_is_gone(host: Host, pid: int) -> None:
    host.start()
    assert not host.processes.lives(pid)


def test_a_process_of_another_user_may_be_hidden_and_lives_all_the_same(host: Host) -> None:
    host.hidden.add(PID)
    assert host.processes.lives(PID)
    assert host.processes.start_time(PID) is None
    assert host.processes.arguments(PID) is None


@pytest.mark.parametrize("text", ["", "garbage", "1 (node) S 1 2 3", "1 (node) S " + "x " * 20])
def test_a_stat_file_that_makes_no_sense_tells_nothing(host: Host, text: str) -> None:
    host.start()
    (host.folder / str(PID) / "stat").write_text(text)
    assert host.processes.lives(PID)
    assert host.processes.start_time(PID) is None


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["openclaw"], True),
        (["/usr/local/bin/openclaw"], True),
        (["c:/bin/openclaw.cmd"], True),
        (["openclaw.exe"], True),
        (["openclaw.bat"], True),
        (["openclaw.sh"], False),
        (["/opt/openclaw/bin/other"], False),
        (["myopenclaw"], False),
        (["tail", "openclaw"], False),
        (["node", "/x/dist/index.js"], True),
        (["node", "/x/dist/entry.js"], True),
        (["node", "openclaw.mjs"], True),
        (["node", "scripts/run-node.mjs"], True),
        (["bun", "src/entry.ts"], True),
        (["bun", "src/index.ts"], True),
        (["node", "dist/index.jsx"], False),
        ([], False),
    ],
)
def test_openclaw_is_known_by_its_program_or_its_entry_point(argv: list[str], expected: bool) -> None:
    assert is_openclaw(argv) is expected


@needs_proc
def test_the_system_shows_this_process() -> None:
    processes = Processes()
    assert processes.lives(os.getpid())
    assert processes.start_time(os.getpid())
    arguments = processes.arguments(os.getpid())
    assert arguments is not None
    assert any("python" in word or "pytest" in word for word in arguments)


@needs_proc
def test_the_system_shows_a_zombie_until_it_is_collected() -> None:
    processes = Processes()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert processes.lives(child.pid)
    started = processes.start_time(child.pid)
    assert child.stdin is not None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert (processes.lives(child.pid), processes.start_time(child.pid)) == (False, started)
    child.wait()
    assert (processes.lives(child.pid), processes.start_time(child.pid)) == (False, None)
