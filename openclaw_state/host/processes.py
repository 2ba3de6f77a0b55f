"""What the system tells about a process: the ground of every verdict on a gateway or a lock.

Contract, agent-loop section 3.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..core.javascript import trim

_ENTRY_POINTS = (
    "dist/index.js",
    "dist/entry.js",
    "openclaw.mjs",
    "scripts/run-node.mjs",
    "src/entry.ts",
    "src/index.ts",
)


class _Stat(NamedTuple):
    state: str
    threads: int
    start_time: int


class Processes:
    """The processes of this host, or those that a test makes up.

    proc is the folder where the kernel shows them; kill(pid, 0) asks whether one is there.
    """

    def __init__(self, proc: str = "/proc", kill: Callable[[int, int], object] = os.kill) -> None:
        self._proc = proc
        self._kill = kill

    def lives(self, pid: int) -> bool:
        """Is the process there, and more than a zombie that nobody has collected?

        A zombie with further threads lives: only its first thread has ended.
        """
        if pid <= 0 or not self._is_there(pid):
            return False
        stat = self._stat(pid)
        return stat is None or stat.state != "Z" or stat.threads > 1

    def start_time(self, pid: int) -> int | None:
        """When it started, in clock ticks since the boot; None where that cannot be read."""
        stat = self._stat(pid)
        return stat.start_time if stat else None

    def arguments(self, pid: int) -> list[str] | None:
        """Its command line as the rules compare it (lower case, slashes); None where unreadable."""
        text = self._read(pid, "cmdline")
        if text is None:
            return None
        return [trim(part).lower().replace("\\", "/") for part in text.split("\0") if trim(part)]

    def _is_there(self, pid: int) -> bool:
        # Elsewhere signal 0 is no question: on Windows it interrupts.
        if os.name != "posix":
            return True
        try:
            self._kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except OSError:
            return True
        return True

    def _stat(self, pid: int) -> _Stat | None:
        # The second field is the program's name, which may hold spaces and parentheses.
        fields = (self._read(pid, "stat") or "").rpartition(")")[2].split()
        try:
            return _Stat(fields[0], int(fields[17]), int(fields[19]))
        except (IndexError, ValueError):
            return None

    def _read(self, pid: int, name: str) -> str | None:
        try:
            with open(os.path.join(self._proc, str(pid), name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return None


SYSTEM = Processes()


def is_openclaw(arguments: Sequence[str]) -> bool:
    """Does this command line, as Processes.arguments returns it, run OpenClaw?"""
    return is_program(arguments, "openclaw") or any(word.endswith(_ENTRY_POINTS) for word in arguments)


def is_program(arguments: Sequence[str], name: str) -> bool:
    """Is the first word that program, wherever it stands and with whatever ending of Windows?"""
    first = arguments[0] if arguments else ""
    stem, ending = os.path.splitext(first)
    path = stem if ending in (".exe", ".cmd", ".bat") else first
    return path == name or path.endswith(f"/{name}")
