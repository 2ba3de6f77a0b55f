"""Adopted sessions that nothing follows: without a link, or no longer with one (contract, upstream 1.1)."""

from __future__ import annotations

import re
import sqlite3
from typing import NamedTuple

from ..core.jsontext import json_or_none
from ..core.keys import agent_of

_OF_HEAD = "session_key = head.session_key AND agent_id = head.agent_id"
_NAMED = "LIKE '%:catalog-adopt:%'", "LIKE '%:codex:supervision:%'"
# A session that is only watched has no head; its key may still tell that it was adopted.
_UNLINKED = f"""
    SELECT head.session_key, head.agent_id, told.kind, told.payload_json
    FROM session_state_heads AS head LEFT JOIN session_state_events AS told
      ON told.sequence = (SELECT max(sequence) FROM session_state_events
        WHERE {_OF_HEAD} AND kind IN ('adopted', 'upstream_missing'))
    WHERE NOT EXISTS (SELECT 1 FROM session_upstream_links WHERE {_OF_HEAD})
      AND (told.sequence IS NOT NULL OR head.session_key {_NAMED[0]} OR head.session_key {_NAMED[1]})
    UNION
    SELECT target_session_key, NULL, NULL, NULL FROM session_watch_cursors
    WHERE (target_session_key {_NAMED[0]} OR target_session_key {_NAMED[1]})
      AND NOT EXISTS (SELECT 1 FROM session_state_heads WHERE session_key = target_session_key)
      AND NOT EXISTS (SELECT 1 FROM session_upstream_links WHERE session_key = target_session_key)
    ORDER BY 1, 2"""
_ADOPTED_KEY = re.compile(
    r"agent:[^:]+:(?:plugin:anthropic:catalog-adopt:(claude):|plugin:acpx:catalog-adopt:(pi):"
    r"|plugin:(opencode):catalog-adopt:|harness:(codex):supervision:)[0-9a-f]{64}"
)


class Unlinked(NamedTuple):
    """An adopted session without a link, by the newest event about that; lost: its source was gone."""

    session_key: str
    agent_id: str
    catalog_id: str | None
    host_id: str | None
    lost: bool


def unlinked(connection: sqlite3.Connection) -> list[Unlinked]:
    """Sessions that were adopted, by an event or by the form of their key, and have no link."""
    found = []
    for key, agent, kind, payload in connection.execute(_UNLINKED):
        words = json_or_none(payload)
        words = words if isinstance(words, dict) else {}
        catalog = _text(words.get("catalogId")) or _text(words.get("channel")) or adopted_from(key)
        if kind is not None or catalog is not None:
            owner, lost = agent or agent_of(key) or "", kind == "upstream_missing"
            found.append(Unlinked(key, owner, catalog, _text(words.get("hostId")), lost))
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def adopted_from(session_key: str) -> str | None:
    """The catalog that the key of an adopted session names (contract, upstream section 1.1)."""
    match = _ADOPTED_KEY.fullmatch(session_key)
    return next(filter(None, match.groups()), None) if match else None
