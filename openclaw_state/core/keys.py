"""Session keys, as far as the signal log looks into them (contract, sessions section 1.1).

Stored keys are opaque and case-sensitive; only watchers are parsed, and only the in-process
queue folds case.
"""

from __future__ import annotations

import re

from ..errors import UsageError
from .javascript import trim

MAX_AGENT_ID = 64
_QUALIFIED = re.compile(r"agent:([^:]+):(?!:)(.+)", re.S | re.I)
_KEPT_SIGNAL = re.compile(r"(?:^|(?<=:))(signal:group:)([^:]*)", re.I)
_KEPT_MATRIX = re.compile(r"((?:agent:[^:]*:+)*matrix:(?:channel|group):)(.+)", re.S | re.I)
_THREAD = re.compile(r":thread:", re.I)
_NOT_AGENT = re.compile(r"[^a-z0-9_-]+")


def parse(key: str) -> tuple[str, str] | None:
    """(agent id, rest) of `agent:<id>:<rest>`, folded; None for bare and malformed keys."""
    match = _QUALIFIED.fullmatch(fold(key))
    if match is None or not trim(match[1]):
        return None
    return trim(match[1]), match[2]


def is_agent_qualified(key: str) -> bool:
    """Can this key be a watcher? (contract, signal-log section 6, step 5)"""
    match = _QUALIFIED.fullmatch(trim(key).lower())
    return match is not None and bool(trim(match[1]))


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


def is_subagent(key: str) -> bool:
    """Sub-agent watchers are queued, never woken (contract, signal-log section 8)."""
    parsed = parse(key)
    return (parsed[1] if parsed else fold(key)).startswith("subagent:")


def normalize_agent_id(text: str) -> str:
    """Trimmed, lower-cased, other characters to `-`, at most 64 characters, empty to `main`."""
    return _NOT_AGENT.sub("-", trim(text).lower()).strip("-")[:MAX_AGENT_ID] or "main"


def normalize_main_key(text: str | None) -> str:
    """Trimmed and lower-cased, empty to `main`."""
    return trim(text or "").lower() or "main"


def fold(key: str) -> str:
    """Trim and lower-case, except the case-sensitive ids of Signal groups and Matrix rooms."""
    trimmed = trim(key)
    if match := _KEPT_MATRIX.fullmatch(trimmed):
        return match[1].lower() + _fold_last_thread(match[2])
    folded, kept = [], 0
    for match in _KEPT_SIGNAL.finditer(trimmed):
        folded += [trimmed[kept : match.start()].lower(), match[1].lower(), trim(match[2])]
        kept = match.end()
    return "".join(folded) + trimmed[kept:].lower()


def _fold_last_thread(tail: str) -> str:
    markers = list(_THREAD.finditer(tail))
    if not markers:
        return tail
    last = markers[-1]
    return tail[: last.start()] + ":thread:" + tail[last.end() :]
