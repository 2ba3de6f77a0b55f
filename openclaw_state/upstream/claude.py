"""Claude Code: which rows of a transcript a person wrote (contract, upstream sections 6 and 7)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.javascript import collapse, safe_count
from ..core.jsontext import json_value
from ..model import Link
from ..results import Verdict
from . import transcripts
from .findings import QUIET, Activity, Finding, Missing, Probe, Silence, judged, latest, unusable
from .times import parse_time

KIND = "claude-cli"
HOST = "gateway:local"

# Written by OpenClaw: a message of another session, and the header of a reseeded one.
_FOREIGN = (
    "[Inter-session message]",
    "Continue this conversation using the OpenClaw transcript below as prior session history.\n"
    "Treat it as authoritative context for this fresh CLI session.\n\n<conversation_history>",
)
_FLAGS = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")
_NULL_ROW = re.compile(rb"^[ \t\r]*null[ \t\r]*$", re.MULTILINE)
# A row of type "user" shows the word, unless a letter of it is an escape: then the row has one of these.
_USER = b'"user"'
_ESCAPED = (b"\\u007", b"\\u0065")
_ANY_ESCAPE = b"\\u00"


def source(link: Link) -> tuple[str, int] | Silence:
    """The transcript of a local link and the offset to read from, or why it cannot be checked."""
    path = link.upstream_ref.get("filePath") if isinstance(link.upstream_ref, dict) else None
    if not isinstance(path, str) or not path:
        return unusable("the link names no transcript file")
    if link.upstream_kind != KIND:
        return unusable(f"the link is of kind {link.upstream_kind}, not {KIND}")
    marker = link.marker if isinstance(link.marker, dict) else {}
    offset = marker.get("offset")
    offset = safe_count(marker.get("size") if offset is None else offset)
    return unusable("the marker holds no offset") if offset is None else (path, offset)


def peek(link: Link) -> Silence | Missing | None:
    """The finding when one look at the file's size is enough; None when it must be read."""
    found = source(link)
    return found if isinstance(found, Silence) else transcripts.peek(*found)


def check(probe: Probe, *, strict: bool = False, window_size: int = transcripts.WINDOW) -> Finding:
    """Check a local transcript: one window of it.

    strict keeps the fraction of a time, and lets a row that is exactly `null` block the link.
    """
    found = source(probe.link)
    if isinstance(found, Silence):
        return found
    path, offset = found
    window = transcripts.read_window(path, offset, size=window_size)
    if not isinstance(window, transcripts.Window):
        return window
    if strict and _NULL_ROW.search(window.data, 0, window.end):
        return Silence(Verdict.BLOCKED, f"at offset {offset}: a row there is null")
    times, echoes = judged(_human_rows(window), probe.own_texts)
    end = offset + window.end
    occurred_at = latest(times, strict=strict) if times else None
    return Activity(len(times), {"offset": end}, occurred_at, str(end) if times else None, echoes)


def check_items(
    probe: Probe, items: Sequence[Mapping[str, Any]] | None, *, clock: float, strict: bool = False
) -> Finding:
    """Classify the newest items that a node read, newest first; None is a failed read.

    No command of ours can read a node: the gateway alone has its connection (section 7).
    """
    link = probe.link
    node = link.upstream_ref.get("nodeId") if isinstance(link.upstream_ref, dict) else None
    if not isinstance(node, str) or link.host_id != f"node:{node}":
        return unusable("the link names no node of this host")
    marker = link.marker.get("uuid", 0) if isinstance(link.marker, dict) else 0
    if marker is not None and not isinstance(marker, str):
        return unusable("the marker holds no uuid")
    if items is None:
        return Silence(Verdict.UNREADABLE, "the node could not be read")
    new = list(_before(items, marker))
    newest = new[0].get("uuid") if new else None
    if not newest:
        return QUIET
    human = (
        (collapse(text), _time_of(item, clock))
        for item in new
        if item.get("type") == "userMessage" and (text := _human_text(_content_of(item))) is not None
    )
    times, echoes = judged(human, probe.own_texts)
    occurred_at = latest(times, strict=strict) if times else None
    return Activity(len(times), {"uuid": newest}, occurred_at, newest if times else None, echoes)


def _human_rows(window: transcripts.Window) -> Iterator[tuple[str, float]]:
    """(normalised text, time) of every row that a person wrote."""
    needles = [_USER]
    if window.data.find(_ANY_ESCAPE, 0, window.end) >= 0:
        needles += [needle for needle in _ESCAPED if window.data.find(needle, 0, window.end) >= 0]
    for raw in window.rows_with(*needles):
        try:
            row = json_value(raw.decode("utf-8", "replace"))
        except ValueError:
            continue
        if (text := _human_row_text(row)) is not None:
            yield collapse(text), _time_of(row, window.mtime_ms)


def _human_row_text(row: Any) -> str | None:
    """The text to compare of a row that a person wrote; None for any other row (section 6.1)."""
    if not isinstance(row, dict) or row.get("type") != "user":
        return None
    message = row.get("message")
    if not isinstance(message, dict) or message.get("role") != "user":
        return None
    for flag in _FLAGS:
        if row.get(flag) is True:
            return None
    return _human_text(message.get("content"))


def _human_text(content: Any) -> str | None:
    """The first text of human content; None when it has none, or OpenClaw or a tool wrote it."""
    if isinstance(content, str):
        return None if content.startswith(_FOREIGN) else content
    if not isinstance(content, list):
        return None
    blocks = [block for block in content if isinstance(block, dict)]
    if any(block.get("type") == "tool_result" for block in blocks):
        return None
    texts = [
        block["text"]
        for block in blocks
        if block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    foreign = any(text.startswith(_FOREIGN) for text in texts)
    return texts[0] if texts and not foreign else None


def _time_of(row: Mapping[str, Any], otherwise: float) -> float:
    stamp = row.get("timestamp")
    found = parse_time(stamp) if isinstance(stamp, str) else None
    return otherwise if found is None else found


def _content_of(item: Mapping[str, Any]) -> Any:
    content = item.get("content")
    return item.get("text") if content is None else content


def _before(items: Sequence[Mapping[str, Any]], uuid: str | None) -> Iterator[Mapping[str, Any]]:
    for item in items:
        if uuid is not None and item.get("uuid") == uuid:
            return
        yield item


def explain_row(row: Any) -> str:
    """Why a row is not a person's; empty where it is. For people to read: `check` decides."""
    if not isinstance(row, dict):
        return "no object"
    if row.get("type") != "user":
        return f"type {row.get('type')}"
    message = row.get("message")
    if not isinstance(message, dict) or message.get("role") != "user":
        return "not in the role user"
    if flags := [flag for flag in _FLAGS if row.get(flag) is True]:
        return ", ".join(flags)
    if _human_text(message.get("content")) is not None:
        return ""
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    if any(block.get("type") == "tool_result" for block in blocks):
        return "tool result"
    has_text = isinstance(content, str) or any(isinstance(block.get("text"), str) for block in blocks)
    return "written by OpenClaw" if has_text else "no text"


def compared_text(row: Any) -> str:
    """What of a person's row is compared with own texts: its first text, normalised."""
    return collapse(_human_row_text(row) or "")
