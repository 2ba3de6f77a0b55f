"""The streams and the environment of one run, passed in so that tests can replace them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TextIO

from ..report.text import Palette, use_color


class Terminal:
    """Where a run reads from and writes to; stdout and stderr are judged apart.

    opened closes what the run opened, when its answer has been printed; answered tells that it
    has been, whole.
    """

    def __init__(
        self,
        stdin: TextIO,
        stdout: TextIO,
        stderr: TextIO,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.environ = environ
        self.opened = ExitStack()
        self.answered = False

    @property
    def width(self) -> int | None:
        """Columns of the terminal behind stdout; None in a pipe, where nothing is ever cut."""
        if not self.stdout.isatty():
            return None
        try:
            return os.get_terminal_size(self.stdout.fileno()).columns or None
        except (OSError, ValueError):
            return int(self.environ.get("COLUMNS", "80"))

    def palette(self, stream: TextIO, mode: str) -> Palette:
        return Palette(use_color(mode, isatty=stream.isatty(), environ=self.environ))

    def ask(self, question: Callable[[], str]) -> bool | None:
        """A yes or no from the person at the terminal; None where there is nobody to ask."""
        if not (self.stdin.isatty() and self.stderr.isatty()):
            return None
        self.stderr.write(f"{question()} [y/N] ")
        self.stderr.flush()
        return self.stdin.readline().strip().lower() in ("y", "yes")
