"""A following command in a process of its own, and programs that write what it follows."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

from tests.support import ROOT

LIMIT_S = 30


class Running:
    """A command that goes on until it ends or is stopped; every wait has a limit."""

    def __init__(self, *argv: object, db: Path, before: tuple[str, ...] = (), **env: str) -> None:
        self.process = subprocess.Popen(
            [*before, sys.executable, "-m", "openclaw_state", *map(str, argv)],
            cwd=ROOT,
            env={**os.environ, "OPENCLAW_STATE_DB": str(db), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._notes: list[str] = []
        self._readers = [
            threading.Thread(target=self._read_lines, daemon=True),
            threading.Thread(target=self._read_notes, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join(LIMIT_S)
            assert not reader.is_alive(), "something still holds its output"
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def line(self) -> str:
        """The next whole line; fails when none comes."""
        line = self._lines.get(timeout=LIMIT_S)
        assert line is not None, (self.process.wait(), self.notes())
        return line

    def row(self) -> Any:
        return json.loads(self.line())

    def rest(self) -> list[str]:
        """The whole lines up to its end."""
        lines = []
        while (line := self._lines.get(timeout=LIMIT_S)) is not None:
            lines.append(line)
        return lines

    def seen(self) -> int:
        """How many lines wait to be read here."""
        return self._lines.qsize()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, number: signal.Signals | None = None) -> tuple[int, str]:
        """(status, stderr) once it has ended, after a signal where one is given."""
        if number is not None:
            self.send(number)
        status = self.process.wait(LIMIT_S)
        self._readers[1].join(LIMIT_S)
        return status, self.notes()

    def notes(self) -> str:
        return "".join(self._notes)

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):
                self._lines.put(line[:-1])
        self._lines.put(None)

    def _read_notes(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._notes.append(line)


# Commits so many events in bursts and prints the sequence of each; every so often it empties the
# write-ahead log, as a gateway does.
BURSTS = """
import random, sqlite3, sys, time
from openclaw_state import SignalLog
path, key, count, every, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
chance = random.Random(seed)
emptier = sqlite3.connect(path, timeout=5)
with SignalLog(path, change=True) as log:
    for number in range(1, count + 1):
        done = log.record(key, "goal_changed", actor_type="human", summary=f"{key} {number}")
        print(done.event.sequence, flush=True)
        if every and number % every == 0:
            emptier.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if chance.random() < 0.05:
            time.sleep(chance.random() * 0.02)
    emptier.close()
"""
