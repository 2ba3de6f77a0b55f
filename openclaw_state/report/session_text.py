"""Stored sessions for people: the table of `sessions list`, the lines of `sessions show`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..timespec import format_duration
from .escape import escape
from .lines import Style
from .text import Cell, Column, table

Row = Mapping[str, Any]


def listed_table(rows: Iterable[Row], style: Style, *, agents: bool) -> Iterator[str]:
    """The table of `sessions list`; agents adds whose each session is."""
    columns = [
        Column("SESSION"),
        *([Column("AGENT")] if agents else []),
        Column("KIND"),
        Column("STATUS"),
        Column("UPDATED"),
        Column("VERSION", right=True),
        Column("BEHIND"),
        Column("MODEL"),
        Column("NEXT"),
        Column("FLAGS"),
    ]
    cells = [_cells(row, style, agents=agents) for row in rows]
    return table(columns, cells, width=style.width, palette=style.palette)


def _cells(row: Row, style: Style, *, agents: bool) -> list[Cell]:
    updated = row["updatedAt"]
    watchers = row["watchers"]
    return [
        row["key"],
        *([row["agentId"]] if agents else []),
        row["kind"],
        "inconsistent" if "inconsistent" in row else row.get("status"),
        f"{style.ago(updated)} ago" if isinstance(updated, int) and updated else None,
        row["stateVersion"],
        f"{row['pending']}/{watchers}" if watchers else None,
        f"{row['modelProvider']}/{row['model']}",
        next_message(row["freshness"], style.now),
        flags(row),
    ]


def next_message(freshness: Row | None, now: int) -> str | None:
    """What the next message does to a session."""
    if freshness is None:
        return None
    if not freshness["fresh"]:
        return f"starts over ({freshness['verdict']})"
    at = freshness["expiresAt"]
    return "goes on" if at is None else f"goes on for {format_duration(max(0, at - now))}"


def flags(row: Row) -> str | None:
    """What sets a session apart, in words."""
    found = [
        word
        for word, holds in (
            ("archived", "archivedAt" in row),
            ("aborted", row.get("abortedLastRun") is True),
            ("acp", row.get("acpRuntime") is True),
        )
        if holds
    ]
    return ",".join(found) or None


def shown_lines(row: Row, style: Style) -> Iterator[str]:
    """The lines of `sessions show`: a name and its value each."""
    yield style.palette.head(escape(row["key"]))
    for name, value in _facts(row, style):
        if value is not None:
            yield f"{name:<13} {escape(str(value))}"
    for file in row["transcript"]["files"]:
        yield f"{'file':<13} {escape(file['path'])}, {file['size']} bytes, {style.when(file['modifiedAt'])}"


def _facts(row: Row, style: Style) -> Iterator[tuple[str, Any]]:
    yield "agent", row["agentId"]
    yield "kind", f"{row['kind']}, {row['chatType']}" if row["chatType"] else row["kind"]
    yield "session id", row.get("sessionId")
    yield "status", row.get("inconsistent") or row.get("status")
    yield "label", row.get("label")
    for name, member in (
        ("updated", "updatedAt"),
        ("started", "sessionStartedAt"),
        ("interacted", "lastInteractionAt"),
        ("archived", "archivedAt"),
    ):
        at = row.get(member)
        yield name, style.when(at) if isinstance(at, int) and at else None
    yield "version", row["stateVersion"]
    if row["watchers"]:
        yield "watched by", f"{row['watchers']}, {row['pending']} pending"
    yield "next message", next_message(row["freshness"], style.now)
    runtime = row["agentRuntime"]
    yield "model", f"{row['modelProvider']}/{row['model']}, run by {runtime['id']} ({runtime['source']})"
    total = row["totalTokens"]
    used = f"{'unknown' if total is None else total} of {row['contextTokens']} ({row['contextTokensSource']})"
    yield "context", used
    yield "levels", ", ".join(f"{name} {value}" for name, value in row["levels"].items()) or None
    yield "replies to", _route(row["replyRoute"])
    transcript = row["transcript"]
    if transcript["rows"] is not None:
        yield "transcript", f"{transcript['rows']} rows, {transcript['bytes']} bytes in the database"


def _route(route: Row) -> str:
    parts = [route[name] for name in ("channel", "accountId", "to") if route[name]]
    if route["threadId"]:
        parts.append(f"thread {route['threadId']}")
    where = " ".join(parts) or "nobody outside"
    return f"{where} ({route['kind']}, by {route['source']})"
