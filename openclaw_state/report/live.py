"""Drawing the live board with Rich: lines with roles in, terminal sequences out."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from .board import Size
from .escape import width
from .panes import Line

STYLES = {
    "head": "bold",
    "dim": "dim",
    "selected": "reverse",
    "pending": "yellow",
    "alive": "green",
    "unknown": "yellow",
    "dead": "dim",
    "human": "cyan",
    "agent": "magenta",
    "system": "dim",
}
_PLAIN = str.maketrans("…─│·", "~-|,", "")


def text_of(line: Line) -> Text:
    """A line as Rich draws it."""
    text = Text(no_wrap=True, overflow="ignore", end="")
    for span in line:
        text.append(span.text, STYLES.get(span.role, ""))
    return text


class Painter:
    """Turns one screen after the other into what changes the terminal from the last to the next."""

    def __init__(self, *, color: bool, encoding: str) -> None:
        self._buffer = io.StringIO()
        self._console = Console(
            file=self._buffer,
            force_terminal=True,
            color_system="standard" if color else None,
            highlight=False,
            legacy_windows=False,
            _environ={},
        )
        self._encoding = encoding
        self._size: Size | None = None
        self._shown: list[Line] = []

    def forget(self) -> None:
        """The terminal shows something else now: the next frame is painted whole."""
        self._size = None

    def frame(self, lines: Iterable[Line], size: Size) -> str:
        """The sequences that make the terminal show these lines; empty when it does already.

        Every changed line is written from its first column, so that a terminal that measures a
        character differently spoils no other line.
        """
        fresh = list(lines)
        whole = size != self._size
        old = [] if whole else self._shown
        self._size, self._shown = size, fresh
        changed = [
            f"\x1b[{number};1H{self._rendered(line, size)}\x1b[K"
            for number, line in enumerate(fresh, 1)
            if number > len(old) or old[number - 1] != line
        ]
        return ("\x1b[H\x1b[2J" if whole else "") + "".join(changed)

    def _rendered(self, line: Line, size: Size) -> str:
        self._console.size = (size.columns, size.rows)
        self._console.print(text_of(line), end="", crop=False, soft_wrap=True)
        drawn = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return self._encodable(drawn)

    def _encodable(self, text: str) -> str:
        """Text in the terminal's encoding: what it lacks is replaced without moving anything."""
        try:
            text.encode(self._encoding)
        except (UnicodeEncodeError, LookupError):
            plain = text.translate(_PLAIN)
            return "".join(one if one.isascii() else "?" * width(one) for one in plain)
        return text
