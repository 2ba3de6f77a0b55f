"""The commands that documents show, and a shell of their own to run them in."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
NOON = 1_796_126_400_000  # 2026-12-01 12:00 UTC
SHOWN_HOME = "/home/ann"


class Example(NamedTuple):
    """A command as it is shown, and the output shown with it; None where none is."""

    command: str
    output: str | None


def in_block(lines: Iterable[str]) -> Iterator[Example]:
    """The commands of one block with their outputs; lines before the first `$ ` are no commands."""
    command: str | None = None
    output: list[str] = []
    for line in lines:
        if line.startswith("$ "):
            if command is not None:
                yield _example(command, output)
            command, output = line[2:], []
        elif command is not None and command.endswith("\\"):
            command += "\n" + line
        else:
            output.append(line)
    if command is not None:
        yield _example(command, output)


def _example(command: str, output: list[str]) -> Example:
    return Example(command, "".join(line + "\n" for line in output))


class Shell:
    """A shell at noon in an empty home, where `openclaw-state` is the package under test."""

    def __init__(self, home: Path, programs: Path) -> None:
        self.home = home
        self._script(programs / "openclaw-state", "-m", "openclaw_state")
        self._script(programs / "python3")
        self._environment = os.environ | {
            "PATH": os.pathsep.join((str(programs), os.environ.get("PATH", os.defpath))),
            "PYTHONPATH": str(ROOT),
            "OPENCLAW_STATE_NOW": str(NOON),
            "LOGNAME": "ann",
        }

    def _script(self, path: Path, *arguments: str) -> None:
        path.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *arguments])} "$@"\n')
        path.chmod(0o755)

    def run(self, command: str) -> tuple[int, str]:
        """(exit status, everything printed) of one command line."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        printed = done.stdout.replace(str(self.home), SHOWN_HOME)
        return done.returncode, printed.replace(f"ann@{socket.gethostname()}", "ann@gateway")

    def check(self, examples: Iterable[Example]) -> None:
        """Run commands one after the other and compare what they print."""
        for example in examples:
            status, output = self.run(example.command)
            assert status == 0, f"{example.command}: exit {status}\n{output}"
            if example.output is not None:
                assert output == example.output, example.command
