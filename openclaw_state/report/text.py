"""Building blocks of text output: colours, tables, counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .escape import escape, width

Cell = str | int | None
_ACTORS = {"human": "36", "agent": "35", "system": "2"}
GAP = "  "


class Palette(NamedTuple):
    """The few roles that have a colour; disabled, it returns text as it is."""

    enabled: bool

    def head(self, text: str) -> str:
        return self._paint("1", text)

    def dim(self, text: str) -> str:
        return self._paint("2", text)

    def warn(self, text: str) -> str:
        return self._paint("33", text)

    def actor(self, kind: str, text: str) -> str:
        return self._paint(_ACTORS.get(kind, "0"), text)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled else text


def use_color(mode: str, *, isatty: bool, environ: Mapping[str, str]) -> bool:
    """`always` and `never` decide; `auto` follows FORCE_COLOR, NO_COLOR, TERM and the stream."""
    if mode != "auto":
        return mode == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return isatty and environ.get("TERM") != "dumb"


class Column(NamedTuple):
    head: str
    right: bool = False


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, width: int | None, palette: Palette
) -> Iterator[str]:
    """Lines of a table without borders; `-` for None.

    width is the terminal's: where the table is wider, each row becomes a block. None never
    wraps and never cuts. All rows are held, because their widths decide the columns'.
    """
    cells = [["-" if cell is None else escape(str(cell)) for cell in row] for row in rows]
    heads = [column.head for column in columns]
    widths = [_widest(texts) for texts in zip(heads, *cells, strict=True)]
    if width is not None and sum(widths) + len(GAP) * (len(widths) - 1) > width:
        yield from _blocks(heads, cells, palette)
        return
    yield palette.head(_row(columns, heads, widths))
    for row in cells:
        yield _row(columns, row, widths)


def _widest(texts: Iterable[str]) -> int:
    return max(map(width, texts))


def _row(columns: Sequence[Column], texts: Sequence[str], widths: Sequence[int]) -> str:
    padded = []
    for column, text, wide in zip(columns, texts, widths, strict=True):
        space = " " * (wide - width(text))
        padded.append(space + text if column.right else text + space)
    return GAP.join(padded).rstrip()


def _blocks(heads: Sequence[str], cells: Iterable[Sequence[str]], palette: Palette) -> Iterator[str]:
    wide = _widest(heads)
    for number, row in enumerate(cells):
        if number:
            yield ""
        for head, text in zip(heads, row, strict=True):
            yield (palette.head(head.ljust(wide)) + GAP + text).rstrip()


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 watch`, `2 watches`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
