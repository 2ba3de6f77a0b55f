"""How long a commit of one process takes to become a line of another, and what waiting costs."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.perf.measures import KEY, Row, create, folder, installed_script

# Commits at a pace and prints when each commit was through (ns).
WRITER = """
import random, sys, time
from openclaw_state import SignalLog
path, pace, count = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
chance = random.Random(7)
with SignalLog(path, change=True) as log:
    for _ in range(count):
        time.sleep(pace * (0.5 + chance.random()))
        log.record(sys.argv[4], "compacted", actor_type="system", summary="session compacted")
        print(time.monotonic_ns(), flush=True)
"""
# What this machine needs by itself: a file event wakes a process, which prints a line.
BARE = """
import os, select, sys
from openclaw_state.core.inotify import Inotify
events = Inotify(sys.argv[1])
os.write(1, b"ready\\n")
while select.select([events.descriptor], [], []):
    events.drain()
    os.write(1, b"woken\\n")
"""
POLLING = """
from openclaw_state.core import inotify
def refuse(directory):
    raise OSError("switched off")
inotify.Inotify = refuse
from openclaw_state.cli.run import main
main()
"""
IDLE_S = 10.0


@contextmanager
def running(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd="/", text=True, **output) as process:
        try:
            yield process
        finally:
            process.kill()


def latencies(path: Path, follower: subprocess.Popen[str], *, pace: float, count: int) -> list[float]:
    """Milliseconds from each commit to the line about it, sorted."""
    assert follower.stdout is not None
    words = [sys.executable, "-c", WRITER, str(path), str(pace), str(count), KEY]
    with running(words) as writer:
        came = []
        for _ in range(count):
            follower.stdout.readline()
            came.append(time.monotonic_ns())
        assert writer.stdout is not None
        committed = [int(writer.stdout.readline()) for _ in range(count)]
    return sorted((line - commit) / 1e6 for line, commit in zip(came, committed, strict=True))


def quantile(values: Sequence[float], part: float) -> float:
    return values[min(len(values) - 1, math.floor(part * len(values)))]


def cpu_seconds(pid: int) -> float:
    """Time on a processor that a process has used up so far (Linux's clock of another process)."""
    return time.clock_gettime((~pid << 3) | 2)


def follow() -> Iterator[Row]:
    """Commit to line between two processes, with file events and without; the cost of waiting."""
    script = installed_script()
    with folder() as place:
        floor = floor_latencies(place, count=300)
    with folder() as place:
        path = place / "log.sqlite"
        # Held open, as a gateway does: the log beside the file stays.
        with create(path) as log:
            log.record(KEY, "compacted", actor_type="system", summary="session compacted")
            words = ["tail", "-f", "-n", "1", "--db", str(path)]
            with running([script, *words]) as follower:
                ready(follower)
                paced = latencies(path, follower, pace=0.01, count=500)
                alone = latencies(path, follower, pace=0.2, count=40)
                time.sleep(2.0)
                before = cpu_seconds(follower.pid)
                time.sleep(IDLE_S)
                idle = (cpu_seconds(follower.pid) - before) / IDLE_S * 100
            with running([sys.executable, "-c", POLLING, *words]) as follower:
                ready(follower)
                polled = latencies(path, follower, pace=0.1, count=60)
    yield Row("file event to line, a bare inotify loop, p50", quantile(floor, 0.5), math.inf, "ms")
    yield Row("file event to line, a bare inotify loop, p99", quantile(floor, 0.99), math.inf, "ms")
    yield Row("commit to line of tail -f, p50", quantile(paced, 0.5), 1.0, "ms")
    yield Row("commit to line of tail -f, p99", quantile(paced, 0.99), 50.0, "ms")
    yield Row("commit to line of tail -f, after silence, p50", quantile(alone, 0.5), math.inf, "ms")
    yield Row("commit to line of tail -f without inotify, p50", quantile(polled, 0.5), 150.0, "ms")
    yield Row("processor time of a waiting tail -f", idle, 0.1, "%")


def ready(follower: subprocess.Popen[str]) -> None:
    """Its first line is there."""
    assert follower.stdout is not None
    follower.stdout.readline()


def floor_latencies(place: Path, *, count: int) -> list[float]:
    """Milliseconds from the write of a file to the line of a bare inotify loop, sorted."""
    file = place / "bare"
    with running([sys.executable, "-c", BARE, str(place)]) as bare, file.open("wb", buffering=0) as watched:
        ready(bare)
        assert bare.stdout is not None
        found = []
        for _ in range(count):
            time.sleep(0.01)
            written = time.monotonic_ns()
            watched.write(b"x")
            bare.stdout.readline()
            found.append((time.monotonic_ns() - written) / 1e6)
    return sorted(found)
