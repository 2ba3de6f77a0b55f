"""The terminal as a full screen with single keys, given back as it was on every way out.

A signal that ends the program raises Stopped wherever the program is; one that stops or
continues it, or a new size, is only noted, and acted upon between two frames.
"""

from __future__ import annotations

import codecs
import os
import select
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from ..report.board import Size
from .keys import finished, parse
from .terminal import Terminal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_NOTED = (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)

# The other screen, no cursor, and no wrapping: a line that a terminal draws wider than it was
# measured is cut there.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
# The same where we may never have left: the place of the cursor before us stays remembered.
_AGAIN = "\x1b[?1047h\x1b[?25l\x1b[?7l"
_LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"

# How long the rest of a key's sequence may take, and a terminal that takes nothing may hold us.
_KEY_S = 0.05
_STUCK_S = 0.5


class Stopped(BaseException):
    """A signal has ended the program; the terminal is as it was before."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Screen:
    """The screen while it is ours; descriptors say when there is something to see to."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._out = terminal.stdout.fileno()
        self._keys = terminal.stdin.fileno() if terminal.stdin.isatty() else None
        self._encoding = terminal.stdout.encoding or "ascii"
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._noted: set[int] = set()
        self._ending = False
        self._entered = False
        self._modes: list[Any] = []
        self._woken, self._waker = os.pipe()
        for descriptor in (self._woken, self._waker):
            os.set_blocking(descriptor, False)

    @property
    def has_keys(self) -> bool:
        return self._keys is not None

    @property
    def descriptors(self) -> list[int]:
        """Readable when a key was pressed or a signal came."""
        return [self._woken] + ([] if self._keys is None else [self._keys])

    def size(self) -> Size:
        """Columns and rows of the terminal; what the environment says where it does not know."""
        with suppress(OSError):
            found = os.get_terminal_size(self._out)
            if found.columns and found.lines:
                return Size(found.columns, found.lines)
        return Size(self._said("COLUMNS", 80), self._said("LINES", 24))

    def _said(self, name: str, otherwise: int) -> int:
        text = self._terminal.environ.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and int(text[:5]) > 0 else otherwise

    def write(self, text: str) -> None:
        data = memoryview(text.encode(self._encoding, "backslashreplace"))
        while data:
            try:
                data = data[os.write(self._out, data) :]
            except BlockingIOError:
                select.select((), (self._out,), ())

    def read_keys(self) -> list[str] | None:
        """The keys pressed since the last call; None when the terminal has gone."""
        if self._keys is None or not _readable(self._keys, 0):
            return []
        keys: list[str] = []
        while True:
            try:
                chunk = os.read(self._keys, 4096)
            except OSError:  # the other end of a terminal that was hung up
                return None
            if not chunk:
                return None
            found, self._rest = parse(self._rest + self._decoder.decode(chunk))
            keys += found
            if self._rest and _readable(self._keys, _KEY_S):
                continue
            rest, self._rest = self._rest, ""
            return keys + finished(rest)

    def attend(self) -> bool:
        """Act upon the signals noted; True when the screen has to be painted anew."""
        with suppress(BlockingIOError):
            while os.read(self._woken, 4096):
                pass
        noted, self._noted = self._noted, set()
        # A terminal that was hung up also continues its programs; the next key says that it is gone.
        with suppress(termios.error, OSError):
            if signal.SIGTSTP in noted:
                self._suspend()
            elif signal.SIGCONT in noted:
                self._enter(_AGAIN)
        return bool(noted)

    def _suspend(self) -> None:
        """Stop as the shell expects it, with its terminal given back; go on when it says so."""
        self.leave()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._note)
        self._modes = []
        self._enter()
        self._noted.discard(signal.SIGCONT)

    def _enter(self, sequence: str = _ENTER) -> None:
        self._entered = True
        if self._keys is not None:
            self._modes = self._modes or termios.tcgetattr(self._keys)
            modes = termios.tcgetattr(self._keys)
            # Keys at once and unseen; Ctrl-C and Ctrl-Z stay signals, Ctrl-S stops no output.
            modes[0] &= ~(termios.IXON | termios.ICRNL)
            modes[3] &= ~(termios.ECHO | termios.ICANON)
            modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
            termios.tcsetattr(self._keys, termios.TCSANOW, modes)
        self.write(sequence)

    def leave(self) -> None:
        """Give the terminal back; whatever of it is gone is left alone."""
        if not self._entered:
            return
        self._entered = False
        if self._keys is not None and self._modes:
            with suppress(termios.error):
                termios.tcsetattr(self._keys, termios.TCSANOW, self._modes)
        with suppress(OSError):
            if select.select((), (self._out,), (), _STUCK_S)[1]:
                self.write(_LEAVE)

    def _end(self, number: int, _: FrameType | None) -> None:
        if not self._ending:
            self._ending = True
            raise Stopped(number)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._noted.add(number)

    @contextmanager
    def ours(self) -> Iterator[None]:
        """The full screen within the block; handlers and modes are put back after it."""
        before: dict[signal.Signals, Any] = {}
        try:
            self._terminal.stdout.flush()
            signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
            for numbers, handler in ((ENDING, self._end), (_NOTED, self._note)):
                for number in numbers:
                    if signal.getsignal(number) is not signal.SIG_IGN:
                        before[number] = signal.signal(number, handler)
            self._enter()
            yield
        finally:
            try:
                self._ending = True
            finally:
                self.leave()
                signal.set_wakeup_fd(-1)
                for number, handed in before.items():
                    signal.signal(number, handed)
                os.close(self._woken)
                os.close(self._waker)


def _readable(descriptor: int, timeout_s: float) -> bool:
    return bool(select.select((descriptor,), (), (), timeout_s)[0])
