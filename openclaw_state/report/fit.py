"""Text in exactly so many columns of a terminal, whatever it is made of."""

from __future__ import annotations

from collections.abc import Iterator

from .escape import escape, width

ELLIPSIS = "…"
# More marks on one character than any script needs would be drawn over the lines around it.
MOST_MARKS = 4
# A column shows no more of a text than this many characters for each of its cells.
_CHARACTERS_A_CELL = 2 * (1 + MOST_MARKS)


def safe(text: str, columns: int) -> str:
    """Text from a database as escape shows it; of a huge one only what this many columns can show."""
    enough = columns * _CHARACTERS_A_CELL + 1
    if len(text) > 2 * enough:
        text = text[:enough] + text[-enough:]
    return "".join(_glyphs(escape(text)))


def fit(text: str, columns: int, *, right: bool = False, middle: bool = False) -> str:
    """Safe text cut and padded to exactly these columns.

    What is cut shows an ellipsis: at the end, or in the middle where both ends tell something.
    """
    shown = cut(text, columns, middle=middle)
    space = " " * (columns - width(shown))
    return space + shown if right else shown + space


def cut(text: str, columns: int, *, middle: bool = False) -> str:
    """Safe text in at most these columns."""
    if width(text) <= columns:
        return text
    if columns <= 0:
        return ""
    tail = (columns - 1) // 2 if middle else 0
    return _both_ends(text, columns - 1 - tail, tail)


def ending(text: str, columns: int) -> str:
    """The end of safe text, where somebody types, in at most these columns."""
    return text if width(text) <= columns else _both_ends(text, 0, columns - 1)


def _both_ends(text: str, head: int, tail: int) -> str:
    glyphs = list(_glyphs(text))
    first, last = _taken(iter(glyphs), head), _taken(reversed(glyphs), tail)
    return "".join([*first, ELLIPSIS, *reversed(last)])


def _taken(glyphs: Iterator[str], columns: int) -> list[str]:
    """As many glyphs as fit into the columns."""
    taken: list[str] = []
    for glyph in glyphs:
        columns -= width(glyph)
        if columns < 0:
            break
        taken.append(glyph)
    return taken


def _glyphs(text: str) -> Iterator[str]:
    """Characters, each with the marks that combine with it, of which at most a few are kept."""
    if text.isascii():
        yield from text
        return
    glyph = ""
    for character in text:
        if not glyph or width(character):
            if glyph:
                yield glyph
            glyph = character
        elif len(glyph) <= MOST_MARKS:
            glyph += character
    if glyph:
        yield glyph
