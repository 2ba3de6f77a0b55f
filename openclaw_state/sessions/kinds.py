"""What a session key says by itself (contract, sessions sections 1.6 and 1.7)."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..core import keys
from ..core.javascript import trim
from .document import Document

CHAT_KINDS = {"direct": "direct", "dm": "direct", "group": "group", "channel": "channel"}
_LEGACY_KINDS = (
    ("group", r"group:[^:]+(?::.*)?"),
    ("channel", r"channel:[^:]+(?::.*)?"),
    ("group", r"(?:whatsapp:)?[^:]+@g\.us"),
    ("channel", r"discord:(?:[^:]+:)?guild-[^:]+:channel-[^:]+"),
)
_CRON_RUN = r"cron:[^:]+:run:[^:]+"
_INCOGNITO = r"agent:[^:]+:(?:dashboard|subagent|internal-session-effects):incognito-[^:]+"


class Thread(NamedTuple):
    """A key split at its last `:thread:`, in the case given; thread_id None without an id."""

    base_key: str
    thread_id: str | None


class DeliveryRoute(NamedTuple):
    """The conversation outside that a key names."""

    channel: str
    account_id: str | None
    peer_kind: str
    peer_id: str
    thread_id: str | None


class CronScope(NamedTuple):
    """A key without its cron run; run_id None when it names no run."""

    base_key: str
    run_id: str | None


class ParsedKey(NamedTuple):
    """What a session key says by itself (contract, sessions section 1.7).

    agent_id and rest are those of `agent:<id>:<rest>`, folded, and None where the key has no
    such form. shape is `missing`, `agent`, `malformed_agent` or `legacy_or_alias`; kind is that
    of a listing; chat_type is `direct`, `group`, `channel` or `unknown`.
    """

    key: str
    agent_id: str | None
    rest: str | None
    shape: str
    kind: str
    chat_type: str
    is_cron: bool
    is_cron_run: bool
    is_subagent: bool
    is_acp: bool
    subagent_depth: int
    incognito: bool
    thread: Thread
    delivery_route: DeliveryRoute | None
    cron_scope: CronScope


def parse_key(key: str, entry: Document | None = None) -> ParsedKey:
    """What a session key says by itself; entry, the session's row, adds to its kind."""
    agent, rest = keys.parse(key) or (None, None)
    body = keys.body(key)
    return ParsedKey(
        key=key,
        agent_id=agent,
        rest=rest,
        shape=_shape(key),
        kind=keys.list_kind(key, entry or {}),
        chat_type=chat_type(key),
        is_cron=bool(rest and rest.startswith("cron:")),
        is_cron_run=is_cron_run(rest or ""),
        is_subagent=keys.is_subagent(key),
        is_acp=body.startswith("acp:"),
        subagent_depth=len(re.findall("(?:^|(?<=:))subagent:", body)),
        incognito=bool(re.fullmatch(_INCOGNITO, trim(key).lower())),
        thread=split_thread(key),
        delivery_route=delivery_route(key),
        cron_scope=_cron_scope(key, rest),
    )


def is_cron_run(rest: str) -> bool:
    """Does the rest of a key name one run of a cron job?"""
    return bool(re.match(rf"{_CRON_RUN}(?::|\Z)", rest))


def _shape(key: str) -> str:
    if not trim(key):
        return "missing"
    if keys.parse(key):
        return "agent"
    return "malformed_agent" if keys.is_malformed(key) else "legacy_or_alias"


def chat_type(key: str) -> str:
    """The chat type that a key alone tells: of several shapes at once, the legacy one."""
    rest = keys.body(key).lower()
    legacy = next((kind for kind, form in _LEGACY_KINDS if re.fullmatch(form, rest, re.DOTALL)), None)
    shapes = _modern_kinds(rest.split(":"))
    if legacy:
        return legacy
    return shapes[0] if len(shapes) == 1 else "unknown"


def _modern_kinds(parts: list[str]) -> list[str]:
    """The kind by each of the shapes A, B and C that holds."""
    if parts[0] == "agent":
        return []
    padded = [*parts, "", "", ""]
    found = []
    if parts[0] in ("direct", "dm") and padded[1]:
        found.append("direct")
    if parts[0] and padded[1] in CHAT_KINDS and padded[2]:
        found.append(CHAT_KINDS[padded[1]])
    if parts[0] and padded[1] and padded[2] in CHAT_KINDS and padded[3]:
        found.append(CHAT_KINDS[padded[2]])
    return found


def split_thread(key: str) -> Thread:
    """Split at the last `:thread:`, in any case."""
    trimmed = trim(key)
    base, marker, thread_id = _split_last(trimmed, ":thread:")
    return Thread(base, trim(thread_id) or None) if marker else Thread(trimmed, None)


def delivery_route(key: str) -> DeliveryRoute | None:
    """The conversation outside that a key names; None when its form names none."""
    base, thread_id = split_thread(key)
    parsed = keys.parse(base)
    if parsed is None or parsed[1].startswith("agent:"):
        return None
    parts = parsed[1].split(":")
    account: str | None
    if len(parts) >= 4 and parts[2] in ("direct", "dm"):
        channel, account, kind, peer = parts[0], trim(parts[1]), parts[2], parts[3:]
    elif len(parts) >= 3 and parts[1] in CHAT_KINDS:
        channel, account, kind, peer = parts[0], None, parts[1], parts[2:]
    else:
        return None
    if not trim(channel) or account == "" or not trim(peer[0]):
        return None
    return DeliveryRoute(trim(channel), account, kind, trim(":".join(peer)), thread_id)


def _cron_scope(key: str, rest: str | None) -> CronScope:
    trimmed = trim(key)
    if rest is None or not re.fullmatch(_CRON_RUN, rest):
        return CronScope(trimmed, None)
    base, _, run_id = _split_last(trimmed, ":run:")
    return CronScope(base, run_id)


def _split_last(text: str, marker: str) -> tuple[str, str, str]:
    """As str.rpartition, with the marker in any case."""
    found = list(re.finditer(re.escape(marker), text, re.IGNORECASE | re.ASCII))
    if not found:
        return text, "", ""
    return text[: found[-1].start()], found[-1][0], text[found[-1].end() :]


def reset_type(
    key: str,
    *,
    is_group: bool = False,
    message_thread_id: Any = None,
    parent_session_key: str | None = None,
) -> str:
    """`thread`, `group` or `direct`: which `resetByType` block counts (contract, sessions 1.6).

    A cold caller cannot ask a channel's plugin, so a Telegram topic is a group here.
    """
    if message_thread_id is not None or trim(parent_session_key or "") or split_thread(key).thread_id:
        return "thread"
    return "group" if is_group or keys.names_group(key.lower()) else "direct"
