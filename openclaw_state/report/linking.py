"""Upstream links and how they stand: JSON shapes, the table, and the words of one link."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..model import Link
from ..results import Health, LinkHealth
from ..timespec import format_instant
from .escape import escape
from .jsonout import dumps, stored
from .lines import Style
from .text import Cell, Column, plural, table

STREAK_LIMIT = 3
LINK_FIELDS = (
    "sessionKey",
    "agentId",
    "catalogId",
    "hostId",
    "threadId",
    "upstreamKind",
    "source",
    "marker",
    "offset",
    "size",
    "health",
    "healthy",
    "reason",
    "humanTurns",
    "misses",
    "lastScannedAt",
    "updatedAt",
)
LINK_DETAIL_FIELDS = (*LINK_FIELDS, "upstreamRef", "sourceKey", "createdAt", "watchers", "next")
LINK_CHANGE_FIELDS = (
    "dryRun",
    "sessionKey",
    "agentId",
    "catalogId",
    "hostId",
    "threadId",
    "upstreamKind",
    "upstreamRef",
    "marker",
)
LINK_ADD_FIELDS = (*LINK_CHANGE_FIELDS, "created", "rebased", "sequence")
SKIP_FIELDS = ("dryRun", "sessionKey", "agentId", "source", "offset", "length", "marker")
OWN_TEXT_FIELDS = ("sessionKey", "agentId", "kept", "most")

_NEXT = {
    Health.BEHIND: "the monitor's next tick reads what is new",
    Health.BLOCKED: "openclaw-state links skip {key} passes the row",
    Health.SHRUNK: "what was written below the marker is not seen; continue it anew from the catalog",
    Health.MISSING: "bring {source} back, or the monitor reports it after {limit} checks in a row",
    Health.UNUSABLE: "continue it once more from the catalog",
    Health.UNREADABLE: "make {source} readable; until then it is neither quiet nor missing",
    Health.ISOLATED: "OpenClaw itself does not look here from a state of its own (see CLAUDE_CONFIG_DIR)",
    Health.ELSEWHERE: "only the gateway has the connection to it",
    Health.FAILED: "see whether the catalog's program runs",
    Health.AMBIGUOUS: "openclaw-state links remove {key} --agent ID leaves one",
    Health.UNWATCHED: "openclaw-state cursors add WATCHER {key}",
    Health.UNLINKED: "continue it once from the catalog",
}


def link_view(health: LinkHealth) -> dict[str, Any]:
    """One link, or an adopted session without one."""
    link = health.link
    return {
        "sessionKey": health.session_key,
        "agentId": health.agent_id,
        "catalogId": health.catalog_id,
        "hostId": link.host_id if link else None,
        "threadId": link.thread_id if link else None,
        "upstreamKind": link.upstream_kind if link else None,
        "source": health.source,
        "marker": stored(link.marker) if link else None,
        "offset": health.offset,
        "size": health.size,
        "health": health.state.name.lower(),
        "healthy": health.state.good,
        "reason": health.reason,
        "humanTurns": health.turns,
        "misses": health.misses,
        "lastScannedAt": link.last_scanned_at if link else None,
        "updatedAt": link.updated_at if link else None,
    }


def link_detail_view(
    health: LinkHealth, *, source_key: str | None, watchers: Sequence[str]
) -> dict[str, Any]:
    """The same with everything that is stored, and what to do."""
    link = health.link
    return link_view(health) | {
        "upstreamRef": stored(link.upstream_ref) if link else None,
        "sourceKey": source_key,
        "createdAt": link.created_at if link else None,
        "watchers": list(watchers),
        "next": next_step(health),
    }


def link_change_view(link: Link, *, dry_run: bool) -> dict[str, Any]:
    """A link that was made or removed, or would be."""
    return {
        "dryRun": dry_run,
        "sessionKey": link.session_key,
        "agentId": link.agent_id,
        "catalogId": link.catalog_id,
        "hostId": link.host_id,
        "threadId": link.thread_id,
        "upstreamKind": link.upstream_kind,
        "upstreamRef": stored(link.upstream_ref),
        "marker": stored(link.marker),
    }


def next_step(health: LinkHealth) -> str | None:
    """What to do about a link; None where nothing is."""
    words = _NEXT.get(health.state)
    if words is None:
        return None
    return words.format(key=shlex.quote(health.session_key), source=health.source, limit=STREAK_LIMIT)


def link_table(found: Iterable[LinkHealth], style: Style) -> Iterator[str]:
    """The table of `links list`."""
    columns = [
        Column("SESSION"),
        Column("CATALOG"),
        Column("SOURCE"),
        Column("MARKER", right=True),
        Column("SIZE", right=True),
        Column("SCANNED"),
        Column("MISSES"),
        Column("HEALTH"),
    ]
    cells: Iterable[list[Cell]] = (
        [
            health.session_key,
            health.catalog_id,
            health.source,
            _marker(health),
            health.size,
            _scanned(health, style),
            _misses(health) if health.misses or health.state is Health.MISSING else None,
            health_words(health),
        ]
        for health in found
    )
    return table(columns, cells, width=style.width, palette=style.palette)


def health_words(health: LinkHealth) -> str:
    """The state with its reason."""
    parts = [plural(health.turns, "human turn")] if health.turns else []
    parts += [health.reason] if health.reason else []
    return f"{health.state}: {', '.join(parts)}" if parts else str(health.state)


def link_lines(view: dict[str, Any], health: LinkHealth, style: Style) -> Iterator[str]:
    """One link, whole."""
    words = escape(health_words(health))
    words = style.palette.warn(words) if health.state.good is False else words
    yield f"{escape(health.session_key)}   {words}"
    extent = "-" if health.offset is None else f"{health.offset} of {_or_dash(health.size)} bytes"
    rows = {
        "catalog": view["catalogId"],
        "host": view["hostId"],
        "thread": view["threadId"],
        "kind": view["upstreamKind"],
        "ref": view["upstreamRef"] if view["upstreamRef"] is None else dumps(view["upstreamRef"]),
        "marker": view["marker"] if view["marker"] is None else dumps(view["marker"]),
        "read": extent,
        "source key": view["sourceKey"],
        "agent": view["agentId"],
        "created": _instant(view["createdAt"], style),
        "updated": _instant(view["updatedAt"], style),
        "scanned": _instant(view["lastScannedAt"], style),
        "misses": _misses(health),
        "watchers": ", ".join(view["watchers"]) or None,
        "next": view["next"],
    }
    for name, value in rows.items():
        yield f"  {name:12}{escape(_or_dash(value))}"


def summary(found: Sequence[LinkHealth]) -> str:
    """How many there are, and how many of them need somebody."""
    linked = [health for health in found if health.link is not None]
    parts = [plural(len(linked), "link")]
    for state in Health:
        count = sum(health.state is state for health in found)
        if count and state not in (Health.QUIET, Health.UNLINKED):
            parts.append(f"{count} {state}")
    if len(found) > len(linked):
        parts.append(f"{plural(len(found) - len(linked), 'adopted session')} without one")
    return ", ".join(parts)


def _marker(health: LinkHealth) -> Cell:
    if health.offset is not None or health.link is None:
        return health.offset
    marker = stored(health.link.marker)
    return None if marker is None else dumps(marker)


def _misses(health: LinkHealth) -> str:
    return "unknown" if health.misses is None else f"{health.misses} of {STREAK_LIMIT}"


def _scanned(health: LinkHealth, style: Style) -> str | None:
    at = health.link.last_scanned_at if health.link else None
    return None if at is None else style.when(at)


def _instant(at: int | None, style: Style) -> str | None:
    return None if at is None else format_instant(at, utc=style.utc)


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)
