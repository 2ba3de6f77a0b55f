"""Row by row, why a tick counted what it counted; read again from the bytes that it consumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..core.javascript import trim
from ..core.jsontext import json_value
from ..results import LinkReport, RowReport
from . import claude, pi, transcripts
from .findings import Silence


class _Reader(NamedTuple):
    """How one catalog names its transcript, judges a row, and finds the text to compare."""

    source: Callable[..., tuple[str, int] | Silence]
    explain: Callable[[Any], str]
    text: Callable[[Any], str]


_READERS = {
    claude.KIND: _Reader(claude.source, claude.explain_row, claude.compared_text),
    pi.KIND: _Reader(pi.source, pi.explain_row, pi.compared_text),
}


def explain(report: LinkReport) -> Iterator[RowReport]:
    """The rows that a link's marker passed in one tick; none for catalogs without transcript files."""
    reader = _READERS.get(report.link.upstream_kind)
    end = report.next_marker.get("offset") if isinstance(report.next_marker, dict) else None
    found = reader.source(report.link) if reader else None
    if reader is None or found is None or isinstance(found, Silence) or not isinstance(end, int):
        return
    path, offset = found
    window = transcripts.read_window(path, offset, size=max(0, end - offset))
    if not isinstance(window, transcripts.Window):
        return
    for raw in window.rows():
        text = raw.decode("utf-8", "replace")
        if trim(text):
            yield RowReport(offset, *_judged(text, reader, report.own_texts))
        offset += len(raw) + 1


def _judged(text: str, reader: _Reader, own_texts: tuple[str, ...]) -> tuple[bool, str]:
    try:
        row = json_value(trim(text) if reader.source is pi.source else text)
    except ValueError:
        return False, "not JSON"
    if why := reader.explain(row):
        return False, why
    words = reader.text(row)
    if words in own_texts:
        # Of equal texts the newest is meant, as where they are told apart.
        newest = len(own_texts) - own_texts[::-1].index(words)
        return False, f"own echo, message {newest} of {len(own_texts)}"
    return True, "human turn"
