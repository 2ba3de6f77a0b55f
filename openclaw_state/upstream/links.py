"""Rows of session_upstream_links (contract, signal-log section 15, upstream section 1)."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Any

from ..core.jsontext import json_or_none, json_text
from ..model import Link

# A marker that stays what it is.
KEEP: Any = object()

_COLUMNS = (
    "session_key, agent_id, catalog_id, host_id, thread_id, upstream_kind, upstream_ref_json,"
    " last_marker_json, created_at, updated_at, last_scanned_at"
)


_LISTING = (
    f"SELECT {_COLUMNS}, EXISTS (SELECT 1 FROM session_watch_cursors"
    " WHERE target_session_key = link.session_key) FROM session_upstream_links AS link"
    " ORDER BY catalog_id, session_key"
)


def upsert(
    connection: sqlite3.Connection,
    *,
    session_key: str,
    agent_id: str,
    catalog_id: str,
    host_id: str,
    thread_id: str,
    upstream_kind: str,
    upstream_ref: Any = None,
    marker: Any = None,
    if_absent: bool = False,
    now: int,
) -> bool:
    """Store a link; True when a row was written.

    An existing link keeps created_at, and keeps marker and last_scanned_at while it still
    names the same source (a reference that was absent may come); if_absent leaves it as it is.
    """
    same = (
        "thread_id = excluded.thread_id AND host_id = excluded.host_id"
        " AND upstream_kind = excluded.upstream_kind"
        " AND (upstream_ref_json IS NULL OR upstream_ref_json = excluded.upstream_ref_json)"
    )
    update = (
        "DO NOTHING"
        if if_absent
        else f"DO UPDATE SET last_marker_json = iif({same}, last_marker_json, excluded.last_marker_json),"
        f" last_scanned_at = iif({same}, last_scanned_at, NULL), catalog_id = excluded.catalog_id,"
        " host_id = excluded.host_id, thread_id = excluded.thread_id, upstream_kind = excluded.upstream_kind,"
        " upstream_ref_json = excluded.upstream_ref_json, updated_at = excluded.updated_at"
    )
    written = connection.execute(
        f"INSERT INTO session_upstream_links ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)"
        f" ON CONFLICT (session_key, agent_id) {update}",
        (
            session_key,
            agent_id,
            catalog_id,
            host_id,
            thread_id,
            upstream_kind,
            _stored(upstream_ref),
            _stored(marker),
            now,
            now,
        ),
    ).rowcount
    return bool(written)


def same_source(old: Link, new: Link) -> bool:
    """Does a new link keep the marker of the old one? The rule of `upsert`, for links that were read."""
    return (old.host_id, old.thread_id, old.upstream_kind) == (
        new.host_id,
        new.thread_id,
        new.upstream_kind,
    ) and old.upstream_ref in (None, new.upstream_ref)


def read(connection: sqlite3.Connection, session_key: str, agent_id: str) -> Link | None:
    """The link of one session under one agent."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM session_upstream_links WHERE session_key = ? AND agent_id = ?",
        (session_key, agent_id),
    ).fetchone()
    return _link(row) if row else None


def set_marker(
    connection: sqlite3.Connection,
    session_key: str,
    agent_id: str,
    marker: Any,
    *,
    expected_updated_at: int | None = None,
    now: int,
) -> bool:
    """Move the marker and the times of a link; False when it is gone or was changed meanwhile.

    The marker KEEP stays what it is while the times move; None is stored as the text `null`.
    """
    keeps = marker is KEEP
    return bool(
        connection.execute(
            "UPDATE session_upstream_links SET last_marker_json = iif(?, last_marker_json, ?),"
            " last_scanned_at = ?, updated_at = ?"
            " WHERE session_key = ? AND agent_id = ? AND updated_at = ifnull(?, updated_at)",
            (
                keeps,
                None if keeps else json_text(marker),
                now,
                now,
                session_key,
                agent_id,
                expected_updated_at,
            ),
        ).rowcount
    )


def delete(
    connection: sqlite3.Connection, session_key: str, agent_id: str, *, expected_updated_at: int | None = None
) -> str:
    """Remove a link: `deleted`, or in guarded form `absent` or `changed`."""
    removed = connection.execute(
        "DELETE FROM session_upstream_links"
        " WHERE session_key = ? AND agent_id = ? AND updated_at = ifnull(?, updated_at)",
        (session_key, agent_id, expected_updated_at),
    ).rowcount
    if removed or expected_updated_at is None:
        return "deleted"
    return "changed" if read(connection, session_key, agent_id) else "absent"


def source_key(link: Link) -> str:
    """The 16 hex digits that name a link's source in dedupe keys (contract, signal-log section 5)."""
    text = "\0".join((link.host_id, link.thread_id, json_text(link.upstream_ref)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def watched(connection: sqlite3.Connection) -> dict[str, list[Link]]:
    """Links that the monitor visits, by catalog: the session is watched and has one link only."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM session_upstream_links AS link"
        " WHERE EXISTS (SELECT 1 FROM session_watch_cursors WHERE target_session_key = link.session_key)"
        " AND (SELECT count(*) FROM session_upstream_links WHERE session_key = link.session_key) = 1"
        " ORDER BY catalog_id, session_key"
    )
    grouped: dict[str, list[Link]] = {}
    for row in rows:
        link = _link(row)
        grouped.setdefault(link.catalog_id, []).append(link)
    return grouped


def listing(connection: sqlite3.Connection) -> list[tuple[Link, bool]]:
    """Every link, by catalog and key, and whether anybody watches its session."""
    tolerant = connection.text_factory
    try:
        # Three times as fast, and nearly always enough.
        connection.text_factory = str
        rows = connection.execute(_LISTING).fetchall()
    except sqlite3.OperationalError:
        connection.text_factory = tolerant
        rows = connection.execute(_LISTING).fetchall()
    finally:
        connection.text_factory = tolerant
    return [(_link(row), bool(row[-1])) for row in rows]


def _link(row: tuple[Any, ...]) -> Link:
    key, agent, catalog, host, thread, kind, ref, marker, created_at, updated_at, scanned_at, *_ = row
    return Link(
        key,
        agent,
        catalog,
        host,
        thread,
        kind,
        json_or_none(ref),
        json_or_none(marker),
        created_at,
        updated_at,
        scanned_at,
    )


def _stored(value: Any) -> str | None:
    return None if value is None else json_text(value)
