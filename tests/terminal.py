"""A terminal for the live board: a real pseudo-terminal with the screen that its output makes."""

from __future__ import annotations

import os
import sys
import termios
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import pexpect
import pyte

from tests.support import ROOT

# Far beyond what anything here takes; only a test that fails waits for it.
PATIENCE_S = 30.0

UP, DOWN, ESCAPE, ENTER, BACKSPACE = "\x1b[A", "\x1b[B", "\x1b", "\r", "\x7f"
# What a program must have said last to give a terminal back.
GIVEN_BACK = "\x1b[?25h", "\x1b[?7h", "\x1b[?1049l"


class _Screen(pyte.Screen):
    """Draws characters one by one: pyte gives up a text at a mark without a combining class."""

    def draw(self, data: str) -> None:
        for character in data:
            super().draw(character)


class Board:
    """One program behind a terminal of its own."""

    def __init__(
        self,
        command: list[str],
        env: Mapping[str, str],
        *,
        columns: int = 100,
        rows: int = 30,
    ) -> None:
        self._screen = _Screen(columns, rows)
        self._stream = pyte.Stream(self._screen)
        self.raw = ""
        self.process = pexpect.spawn(
            command[0],
            command[1:],
            cwd=str(ROOT),
            env=dict(env),
            dimensions=(rows, columns),
            encoding="utf-8",
            codec_errors="replace",
            timeout=None,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.close(force=True)

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    @property
    def modes(self) -> list[Any]:
        """The modes of the terminal as they are now."""
        return termios.tcgetattr(self.process.child_fd)

    @property
    def lines(self) -> list[str]:
        """What the screen shows, without blanks at the ends."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def page(self) -> str:
        return "\n".join(self.lines)

    @property
    def cells(self) -> list[list[Any]]:
        """Every cell with its character and its colours."""
        buffer = self._screen.buffer
        return [
            [buffer[row][column] for column in range(self._screen.columns)] for row in range(len(self.lines))
        ]

    def send(self, *keys: str) -> None:
        for key in keys:
            self.process.send(key)

    def kill(self, number: int) -> None:
        os.kill(self.pid, number)

    def resize(self, columns: int, rows: int) -> None:
        """Another size, as a window that is pulled makes it: the old picture is gone."""
        self._screen.resize(rows, columns)
        self._screen.reset()
        self.process.setwinsize(rows, columns)

    def read(self) -> None:
        """Take in what the program has drawn since, waiting a moment for it."""
        try:
            drawn = self.process.read_nonblocking(65_536, 0.05)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return
        self.raw += drawn
        self._stream.feed(drawn)

    def until(self, seen: str | Callable[[], bool]) -> None:
        """Wait until the page holds some words, or something else is true."""
        there = seen if callable(seen) else lambda: seen in self.page
        end = time.monotonic() + PATIENCE_S
        while not there():
            assert time.monotonic() < end, f"never seen: {seen!r}\n{self.page}\n{self.raw[-2_000:]!r}"
            self.read()

    def until_settled(self) -> None:
        """Wait until nothing more is drawn for a while."""
        length = -1
        while length != len(self.raw):
            length = len(self.raw)
            for _ in range(8):
                self.read()

    def end(self) -> int:
        """Wait for the program's end; its exit status, or the signal it died of as a negative number."""
        self.until(lambda: not self.process.isalive())
        self.read()
        return self._status()

    def end_unread(self) -> int:
        """The same, without taking in what the program may still have to say."""
        end = time.monotonic() + PATIENCE_S
        while self.process.isalive():
            assert time.monotonic() < end, "the program goes on"
            time.sleep(0.02)
        return self._status()

    def _status(self) -> int:
        number = self.process.signalstatus
        return -number if number is not None else int(self.process.exitstatus)

    def hang_up(self) -> None:
        """Take the terminal away, as a window that is closed does."""
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, self.process.child_fd)
        os.close(nothing)

    def given_back(self) -> bool:
        """Was the terminal given back, after everything else that was drawn?"""
        last = self.raw.rindex("\x1b[?1049h") if "\x1b[?1049h" in self.raw else 0
        return all(sequence in self.raw[last:] for sequence in GIVEN_BACK)


def watch(env: Mapping[str, str], *argv: str, columns: int = 100, rows: int = 30) -> Board:
    """`openclaw-state watch` behind a terminal."""
    return Board([sys.executable, "-m", "openclaw_state", "watch", *argv], env, columns=columns, rows=rows)
