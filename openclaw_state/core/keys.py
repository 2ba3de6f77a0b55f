"""The grammar of session keys (contract, sessions section 1.1).

The signal log takes stored keys as opaque and case-sensitive; only watchers are parsed there,
and only the in-process queue folds case. Session stores fold every key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..errors import UsageError
from .javascript import is_falsy, trim

MAX_AGENT_ID = 64
# The same few keys come again with every event.
_remembered = lru_cache(maxsize=4_096)
_AGENT_ID = r"[a-z0-9][a-z0-9_-]{0,63}"
# OpenClaw keeps accounts in a plain object, where these names are taken.
_NOT_ACCOUNTS = ("", "__proto__", "constructor", "prototype")
_KEPT_SIGNAL = r"(?i)(?:^|(?<=:))(signal:group:)([^:]*)"
_KEPT_MATRIX = r"(?is)((?:agent:[^:]*:+)*matrix:(?:channel|group):)(.+)"


@_remembered
def parse(key: str) -> tuple[str, str] | None:
    """(agent id, rest) of `agent:<id>:<rest>`, folded; None for bare and malformed keys."""
    return _split(fold(key))


@_remembered
def is_agent_qualified(key: str) -> bool:
    """Can this key be a watcher? (contract, signal-log section 6, step 5)"""
    return _split(trim(key).lower()) is not None


def _split(folded: str) -> tuple[str, str] | None:
    prefix, _, rest = folded.partition(":")
    agent, _, rest = rest.partition(":")
    agent = trim(agent)
    return (agent, rest) if prefix == "agent" and agent and rest and rest[0] != ":" else None


def qualify(agent: str, rest: str) -> str:
    """The key that parses to this agent and rest."""
    return f"agent:{agent}:{rest}"


def is_malformed(key: str) -> bool:
    """Does it begin as an agent's key, without being one?"""
    return parse(key) is None and trim(key)[:6].lower() == "agent:"


def body(key: str) -> str:
    """The rest of a key that parses, else the whole key; folded."""
    parsed = parse(key)
    return parsed[1] if parsed else fold(key)


@_remembered
def agent_of(key: str) -> str | None:
    """The agent that an agent-qualified key names, normalised; None for a bare key."""
    parsed = parse(key)
    return normalize_agent_id(parsed[0]) if parsed else None


def owner(key: str, agent_id: str | None) -> str:
    """The agent that records under a key: its own, or for a bare key the given one.

    Raises UsageError when none is known, or when the given one contradicts the key.
    """
    own = agent_of(key)
    if own is None and not agent_id:
        raise UsageError(f"the key {key!r} names no agent", hint="say whose it is with --agent or agent_id")
    if own is not None and agent_id is not None and agent_id != own:
        raise UsageError(f"agent {agent_id!r} contradicts the key {key!r}")
    return agent_id or own or ""


@_remembered
def is_subagent(key: str) -> bool:
    """Sub-agent watchers are queued, never woken (contract, signal-log section 8)."""
    return body(key).startswith("subagent:")


def list_kind(key: str, entry: Mapping[str, Any]) -> str:
    """The kind that OpenClaw lists a session under: `global`, `unknown`, `cron`, `spawn-child`,
    `group` or `direct` (contract, sessions section 1.6)."""
    parsed = parse(key)
    if key in ("global", "unknown"):
        return key
    if parsed and parsed[1].startswith("cron:"):
        return "cron"
    if not is_falsy(entry.get("spawnedBy")):
        return "spawn-child"
    return "group" if entry.get("chatType") in ("group", "channel") or names_group(key) else "direct"


def names_group(key: str) -> bool:
    return ":group:" in key or ":channel:" in key


def normalize_agent_id(text: str) -> str:
    """Trimmed and lower-cased; what is no id then gets `-` for other characters; empty to `main`."""
    return _identifier(text) or "main"


def normalize_account_id(text: str) -> str:
    """As an agent's id, but what cannot be one is `default`."""
    account = _identifier(text)
    return "default" if account in _NOT_ACCOUNTS else account


def _identifier(text: str) -> str:
    lowered = trim(text).lower()
    if re.fullmatch(_AGENT_ID, lowered):
        return lowered
    return re.sub("[^a-z0-9_-]+", "-", lowered).strip("-")[:MAX_AGENT_ID]


def normalize_main_key(text: str | None) -> str:
    """Trimmed and lower-cased, empty to `main`."""
    return trim(text or "").lower() or "main"


@_remembered
def fold(key: str) -> str:
    """Trim and lower-case, except the case-sensitive ids of Signal groups and Matrix rooms."""
    trimmed = trim(key)
    lowered = trimmed.lower()
    if "matrix:" in lowered and (match := re.fullmatch(_KEPT_MATRIX, trimmed)):
        return match[1].lower() + _fold_last_thread(match[2])
    if "signal:group:" not in lowered:
        return lowered
    folded, kept = [], 0
    for match in re.finditer(_KEPT_SIGNAL, trimmed):
        folded += [trimmed[kept : match.start()].lower(), match[1].lower(), trim(match[2])]
        kept = match.end()
    return "".join(folded) + trimmed[kept:].lower()


def _fold_last_thread(tail: str) -> str:
    markers = list(re.finditer("(?i):thread:", tail))
    if not markers:
        return tail
    last = markers[-1]
    return tail[: last.start()] + ":thread:" + tail[last.end() :]
