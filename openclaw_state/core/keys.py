"""Session keys, as far as the signal log looks into them (contract, sessions section 1.1).

Stored keys are opaque and case-sensitive; only watchers are parsed, and only the in-process
queue folds case.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..errors import UsageError
from .javascript import trim

MAX_AGENT_ID = 64
# The same few keys come again with every event.
_remembered = lru_cache(maxsize=4_096)
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
    parsed = parse(key)
    return (parsed[1] if parsed else fold(key)).startswith("subagent:")


def normalize_agent_id(text: str) -> str:
    """Trimmed, lower-cased, other characters to `-`, at most 64 characters, empty to `main`."""
    lowered = trim(text).lower()
    if len(lowered) <= MAX_AGENT_ID and lowered.isascii() and lowered.isalnum():
        return lowered
    return re.sub("[^a-z0-9_-]+", "-", lowered).strip("-")[:MAX_AGENT_ID] or "main"


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
