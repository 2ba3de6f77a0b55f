"""Panes of the live board: rows in columns that give way, by priority, where room is short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .escape import width
from .fit import fit

GAP = 2
GUTTER = 2
# Columns that stretch do so in such steps, so that one longer key does not move the whole pane.
_STEP = 4
# A column that may be cut claims no more than this, however long its longest text.
_WIDEST = 64


class Span(NamedTuple):
    """Text with the role that it plays; live.py gives roles their colours."""

    text: str
    role: str = ""


Line = tuple[Span, ...]


class Column(NamedTuple):
    """One column: among several, the one with the greatest rank goes first where room is short.

    least is the width below which a column that may be cut is better left out; None means that
    it is never cut. An extra column is shown only where it leaves the others uncut.
    """

    head: str
    rank: int
    least: int | None = None
    right: bool = False
    middle: bool = False
    extra: bool = False


class Cell(NamedTuple):
    text: str
    role: str = ""


class Pane(NamedTuple):
    """A head and its rows; selected is the row that the person is on."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    selected: int | None = None


def draw_pane(pane: Pane, columns: int, rows: int) -> list[Line]:
    """The head and the first rows of a pane, no wider and no longer than there is room."""
    if rows <= 0:
        return []
    shown = pane.rows[: rows - 1]
    widths = _widths(pane.columns, shown, columns - GUTTER)
    lines = [_line(pane.columns, [Cell(column.head, "head") for column in pane.columns], widths)]
    for number, cells in enumerate(shown):
        line = _line(pane.columns, cells, widths, selected=number == pane.selected)
        if number == pane.selected:
            used = sum(width(span.text) for span in line)
            line = (*line, Span(" " * max(0, columns - used), "selected"))
        lines.append(line)
    return lines


def _line(
    columns: Sequence[Column], cells: Sequence[Cell], widths: dict[int, int], *, selected: bool = False
) -> Line:
    spans = [Span("> " if selected else " " * GUTTER, "selected" if selected else "")]
    for index, wide in widths.items():
        if len(spans) > 1:
            spans.append(Span(" " * GAP, "selected" if selected else ""))
        column, cell = columns[index], cells[index]
        text = fit(cell.text, wide, right=column.right, middle=column.middle)
        spans.append(Span(text, "selected" if selected else cell.role))
    return tuple(spans)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], room: int) -> dict[int, int]:
    """Column number -> width, of the columns that are shown."""
    natural = [
        max([width(column.head), *(width(row[index].text) for row in rows)])
        for index, column in enumerate(columns)
    ]
    wanted = [
        wide if column.least is None else min(_stretched(wide), _WIDEST)
        for column, wide in zip(columns, natural, strict=True)
    ]
    least = [
        wide if column.least is None else min(wide, column.least)
        for column, wide in zip(columns, natural, strict=True)
    ]
    extra = [index for index, column in enumerate(columns) if column.extra]
    kept = _within(wanted, list(range(len(columns))), extra, columns, room)
    kept = _within(least, kept, kept, columns, room)
    chosen = {index: min(least[index], max(room, 0)) for index in kept}
    spare = room - sum(chosen.values()) - GAP * (len(kept) - 1)
    while spare > 0 and any(chosen[index] < wanted[index] for index in kept):
        for index in kept:
            if spare > 0 and chosen[index] < wanted[index]:
                chosen[index] += 1
                spare -= 1
    return chosen


def _within(
    widths: Sequence[int], kept: list[int], may_go: list[int], columns: Sequence[Column], room: int
) -> list[int]:
    """The columns left when those of the greatest ranks have gone until the rest fits."""
    kept, may_go = list(kept), sorted(may_go, key=lambda index: columns[index].rank)
    while may_go and len(kept) > 1 and sum(widths[index] for index in kept) + GAP * (len(kept) - 1) > room:
        kept.remove(may_go.pop())
    return kept


def _stretched(natural: int) -> int:
    return -(-natural // _STEP) * _STEP
