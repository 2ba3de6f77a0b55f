"""The texts that a session sent itself, from its agent's database (contract, upstream section 4).

Only the active path of the current session id counts; what cannot be read for certain is
never taken for an empty list.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ..core.javascript import collapse, is_falsy, trim
from ..core.jsontext import json_value

MOST = 10

_BOUNDARY_BY_IDENTITY = """
    SELECT a.active_position, a.event_seq, e.event_json, e.navigation_json
    FROM session_transcript_active_events a
    JOIN transcript_event_identities i ON i.session_id = a.session_id AND i.seq = a.event_seq
    JOIN transcript_events e ON e.session_id = a.session_id AND e.seq = a.event_seq
    WHERE a.session_id = ? AND i.event_type = 'reset' ORDER BY a.event_seq DESC LIMIT 1"""
# Transcripts taken over from old files hold rows without an identity.
_BOUNDARY_BY_TYPE = """
    SELECT a.active_position, a.event_seq, e.event_json, e.navigation_json
    FROM session_transcript_active_events a
    JOIN transcript_events e ON e.session_id = a.session_id AND e.seq = a.event_seq
    WHERE a.session_id = ? AND NOT EXISTS (
        SELECT 1 FROM transcript_event_identities i WHERE i.session_id = a.session_id AND i.seq = a.event_seq)
    AND coalesce(json_extract(e.event_json, '$.type'),
                 json_extract(e.navigation_json, '$.reset.type')) = 'reset'
    ORDER BY a.event_seq DESC LIMIT 1"""
_KEPT_FROM = """
    SELECT a.active_position FROM transcript_event_identities i
    JOIN session_transcript_active_events a ON a.session_id = i.session_id AND a.event_seq = i.seq
    WHERE i.session_id = ? AND i.event_id = ? AND a.active_position < ?"""
_MESSAGES = """
    SELECT e.event_json, e.event_zstd, e.event_utf8_bytes, e.navigation_json
    FROM session_transcript_active_events a
    JOIN transcript_events e ON e.session_id = a.session_id AND e.seq = a.event_seq
    WHERE a.session_id = ? AND a.message_position IS NOT NULL AND a.active_position >= ?
    ORDER BY a.message_position DESC"""
_PENDING = "SELECT 1 FROM session_transcript_active_events WHERE session_id = ? AND context_eligible IS NULL"


class OwnTextsError(Exception):
    """Own texts that cannot be had for certain: the link is not checked, for this reason."""


def read(connection: sqlite3.Connection, session_id: str, *, strict: bool = False) -> tuple[str, ...]:
    """The newest own texts of a session, normalised, oldest first; run it in one read transaction.

    strict answers with none while the transcript is being indexed again, as OpenClaw does.
    Raises OwnTextsError, ValueError for a damaged row, and sqlite3.Error.
    """
    if _found(connection, "SELECT 1 FROM session_transcript_cold_archives WHERE session_id = ?", session_id):
        raise OwnTextsError("transcript archived")
    newest = connection.execute(
        "SELECT max(seq) FROM transcript_events WHERE session_id = ?", (session_id,)
    ).fetchone()[0]
    if newest is None:
        return ()
    index = connection.execute(
        "SELECT indexed_seq, needs_rebuild FROM session_transcript_index_state WHERE session_id = ?",
        (session_id,),
    ).fetchone()
    if index != (newest, 0) or _found(connection, _PENDING, session_id):
        if strict:
            return ()
        raise OwnTextsError("transcript index being rebuilt")
    start = _first_visible(connection, session_id)
    texts: list[str] = []
    for text in _texts(connection, session_id, start):
        texts.append(text)
        if len(texts) == MOST:
            break
    return tuple(reversed(texts))


def _found(connection: sqlite3.Connection, sql: str, *values: Any) -> bool:
    return connection.execute(f"{sql} LIMIT 1", values).fetchone() is not None


def _first_visible(connection: sqlite3.Connection, session_id: str) -> int:
    """The active position from which on rows count: after the last reset, or from what it kept."""
    resets = [
        row
        for sql in (_BOUNDARY_BY_IDENTITY, _BOUNDARY_BY_TYPE)
        if (row := connection.execute(sql, (session_id,)).fetchone())
    ]
    if not resets:
        return 0
    boundary, _, event_json, navigation_json = max(resets, key=lambda row: row[1])
    kept = _member(event_json, "firstKeptEntryId")
    if kept is None:
        kept = _member(navigation_json, "reset", "firstKeptEntryId")
    if isinstance(kept, str):
        row = connection.execute(_KEPT_FROM, (session_id, kept, boundary)).fetchone()
        if row:
            return int(row[0])
    return int(boundary) + 1


def _texts(connection: sqlite3.Connection, session_id: str, start: int) -> Iterator[str]:
    """The texts of user messages that have one, newest first."""
    for event_json, frame, size, navigation_json in connection.execute(_MESSAGES, (session_id, start)):
        text = event_json
        if text is None:
            if _member(navigation_json, "navigation", "message", "role") != "user":
                continue
            text = _decompressed(frame, size)
        # Only a user's message holds the word, or hides it behind escapes; most rows need no parsing.
        elif '"user"' not in text and "\\u00" not in text:
            continue
        if own := _text_of(json_value(text)):
            yield own


def _text_of(event: Any) -> str:
    """The normalised text of one transcript event; empty where it has none to compare."""
    message = event.get("message") if isinstance(event, dict) else None
    if not isinstance(message, dict) or message.get("role") != "user":
        return ""
    extra = message.get("__openclaw")
    extra = extra if isinstance(extra, dict) else {}
    content = message.get("content")
    if isinstance(extra.get("upstreamUserText"), str):
        content = extra["upstreamUserText"]
    elif not is_falsy(extra.get("mirrorOrigin")):
        return ""
    elif isinstance(content, list):
        content = content[0].get("text") if content and isinstance(content[0], dict) else None
    return collapse(trim(content)) if isinstance(content, str) else ""


def _decompressed(frame: bytes, size: int) -> str:
    """The JSON of a compressed row; it is never longer than it says."""
    decompressor = _decompressor()
    if decompressor is None:
        raise OwnTextsError("compressed transcript row")
    try:
        data = decompressor.decompress(frame, size + 1)
    except Exception as error:
        raise OwnTextsError(f"damaged compressed row: {error}") from error
    if len(data) != size or not decompressor.eof:
        raise OwnTextsError("damaged compressed row: it has another length than it says")
    return str(data, "utf-8", "replace")


def _decompressor() -> Any:
    """A zstd decompressor of the standard library or of its backport; None when there is neither."""
    for module in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(module).ZstdDecompressor()
        except ImportError:
            continue
    return None


def _member(text: str | None, *path: str) -> Any:
    """A member of a JSON object, by its path; None when it is not there."""
    value = None if text is None else json_value(text)
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
