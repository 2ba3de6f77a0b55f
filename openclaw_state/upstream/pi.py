"""Pi: which rows of a session file a person wrote (contract, upstream section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.javascript import collapse, is_finite, safe_count, trim
from ..core.jsontext import json_value
from ..model import Link
from ..results import Verdict
from . import transcripts
from .findings import Activity, Finding, Missing, Probe, Silence, judged, latest, unusable
from .times import parse_time

KIND = "pi-cli"
HOST = "gateway"


def source(link: Link) -> tuple[str, int] | Silence:
    """The session file of a link and the offset to read from, or why it cannot be checked."""
    if link.upstream_kind != KIND or link.host_id != HOST:
        return unusable(f"the link is of kind {link.upstream_kind} on {link.host_id}, not {KIND} on {HOST}")
    path = link.upstream_ref.get("filePath") if isinstance(link.upstream_ref, dict) else None
    if not isinstance(path, str) or not path:
        return unusable("the link names no session file")
    offset = safe_count(link.marker.get("offset")) if isinstance(link.marker, dict) else None
    return unusable("the marker holds no offset") if offset is None else (path, offset)


def peek(link: Link) -> Silence | Missing | None:
    """The finding when one look at the file's size is enough; None when it must be read."""
    found = source(link)
    return found if isinstance(found, Silence) else transcripts.peek(*found)


def check(probe: Probe, *, strict: bool = False, window_size: int = transcripts.WINDOW) -> Finding:
    """Check a session file: one window of it, up to the first row that is no JSON object.

    strict keeps the fraction of a time.
    """
    found = source(probe.link)
    if isinstance(found, Silence):
        return found
    path, offset = found
    window = transcripts.read_window(path, offset, size=window_size)
    if not isinstance(window, transcripts.Window):
        return window
    human, consumed = _human_rows(window)
    end = offset + consumed
    if not consumed:
        return Silence(Verdict.BLOCKED, f"at offset {end}: the row there is no JSON object")
    times, echoes = judged(human, probe.own_texts)
    occurred_at = latest(times, strict=strict) if times else None
    return Activity(len(times), {"offset": end}, occurred_at, str(end) if times else None, echoes)


def _human_rows(window: transcripts.Window) -> tuple[list[tuple[str, float]], int]:
    """(normalised text, time) of every row that a person wrote, and the bytes consumed."""
    human, consumed = [], 0
    for raw in window.rows():
        if text := trim(raw.decode("utf-8", "replace")):
            try:
                row = json_value(text)
            except ValueError:
                break
            if not isinstance(row, dict):
                break
            message = row.get("message")
            if row.get("type") == "message" and isinstance(message, dict) and message.get("role") == "user":
                human.append((_text_of(message.get("content")), _time_of(row, message, window.mtime_ms)))
        consumed += len(raw) + 1
    return human, consumed


def _text_of(content: Any) -> str:
    """The normalised text of a message; empty, and so nobody's echo, where it has none."""
    if isinstance(content, list):
        texts = [
            part["text"]
            for part in content
            if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
        ]
        return collapse("\n".join(texts))
    return collapse(content) if isinstance(content, str) else ""


def _time_of(row: Mapping[str, Any], message: Mapping[str, Any], otherwise: float) -> float:
    for stamp in (message.get("timestamp"), row.get("timestamp")):
        if is_finite(stamp):
            return float(stamp)
        if isinstance(stamp, str) and (found := parse_time(stamp)) is not None:
            return found
    return otherwise


def explain_row(row: Any) -> str:
    """Why a row is not a person's; empty where it is. For people to read: `check` decides."""
    if not isinstance(row, dict):
        return "no object"
    if row.get("type") != "message":
        return f"type {row.get('type')}"
    message = row.get("message")
    return "" if isinstance(message, dict) and message.get("role") == "user" else "not in the role user"


def compared_text(row: Any) -> str:
    """What of a person's row is compared with own texts, normalised."""
    return _text_of(row["message"].get("content"))
