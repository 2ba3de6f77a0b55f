"""What kind of session a row is for maintenance, and what keeps it.

Contract, sessions sections 6.2 and 6.3, and row 6 of section 11.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..core import keys
from ..core.javascript import is_falsy, is_finite
from .agents import MAIN
from .document import Document, member, text_of
from .kinds import delivery_route, is_cron_run, split_thread
from .limits import MaintenancePolicy
from .rules import JULY, RuleSet

_SYNTHETIC = ("subagent:", "acp:", "cron:", "acp-bridge:", "hook:", "node:")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PROBE = re.compile(rf"agent:[^:\s]+:explicit:model-run-{_UUID}", re.IGNORECASE | re.ASCII)
_ROOM = re.compile(r"[^:]+:(?:group|channel):.+", re.DOTALL)
_DIRECT = re.compile(r"(?:[^:]+:){0,2}direct:[^:]+")
_ACTIVITY = ("lastInteractionAt", "lastActivityAt", "sessionStartedAt", "updatedAt")


class StoredSession(NamedTuple):
    """One row of a session store, its entry as parsed JSON.

    has_transcript and has_message (a real message in it) are None where nobody has looked.
    """

    key: str
    entry: Document
    has_transcript: bool | None = None
    has_message: bool | None = None


def session_class(key: str) -> str:
    """`probe`, `dashboard`, `cron run`, `cron`, `synthetic` or `ordinary`."""
    rest = _rest(key)
    if is_probe(key):
        return "probe"
    if is_dashboard(key):
        return "dashboard"
    if rest.startswith("cron:"):
        return "cron run" if is_cron_run(rest) else "cron"
    return "synthetic" if is_synthetic(key) else "ordinary"


def is_synthetic(key: str) -> bool:
    """Did no person open this session, so that it may be deleted?"""
    rest = _rest(key)
    heartbeat = rest == "heartbeat" or rest.endswith(":heartbeat") or ":heartbeat:" in rest
    return rest.startswith(_SYNTHETIC) or heartbeat or is_probe(key)


def is_probe(key: str) -> bool:
    """Is it the one run of a model that OpenClaw makes to see whether it answers?"""
    return bool(_PROBE.fullmatch(key))


def is_dashboard(key: str) -> bool:
    return _rest(key).startswith("dashboard:")


def is_direct_chat(key: str, agent_id: str) -> bool:
    """Is it an agent's own row for a direct chat, as any dmScope but `main` makes it?"""
    parsed = keys.parse(key)
    same = parsed is not None and keys.normalize_agent_id(parsed[0]) == agent_id
    return same and bool(_DIRECT.fullmatch(_rest(key)))


def activity(entry: Document) -> int | float:
    """The latest sign of life (epoch ms), 0 without any."""
    return max([0, *(at for at in map(entry.get, _ACTIVITY) if is_finite(at))])


def is_running(entry: Document) -> bool:
    """A run that has an end is over, whatever its status says.

    OpenClaw goes by the status alone, and so keeps such rows for ever.
    """
    return entry.get("status") == "running" and contradiction(entry) is None


def contradiction(entry: Document) -> str | None:
    """Why a row that says it runs does not; None when nothing speaks against it."""
    ended, started = entry.get("endedAt"), entry.get("startedAt")
    if entry.get("status") != "running" or not is_finite(ended):
        return None
    if is_finite(started) and started > ended:
        return None
    return f"the status is running, but the run ended at {ended}"


def protection(
    row: StoredSession, policy: MaintenancePolicy, now: int, active: Mapping[str, str]
) -> str | None:
    """Why all passes leave a row alone; None when they may take it.

    active gives the reason for keys in use, folded.
    """
    entry = row.entry
    if entry.get("archivedAt") is not None:
        return "archived already"
    if entry.get("pinnedAt") is not None and _is_root(row):
        return "pinned"
    if entry.get("modelSelectionLocked") is True:
        return "model locked"
    if is_running(entry):
        return "running"
    if reason := active.get(keys.fold(row.key)):
        return reason
    if is_synthetic(row.key):
        return None
    if _is_recent(entry, policy, now):
        return "recent"
    if row.key == "global" or _rest(row.key) == MAIN:
        return "main session"
    return _conversation(row, policy.rules)


def _is_root(row: StoredSession) -> bool:
    """A pin holds for a session that is nobody's child, or a child of its agent's main one."""
    parent = text_of(member(row.entry, "parentSessionKey"))
    agent = keys.agent_of(row.key)
    of_main = agent is not None and row.entry.get("parentSessionKey") == keys.qualify(agent, MAIN)
    is_child = keys.is_subagent(row.key) or text_of(member(row.entry, "spawnedBy"))
    return not is_child and (not parent or of_main)


def _is_recent(entry: Document, policy: MaintenancePolicy, now: int) -> bool:
    last = activity(entry)
    return policy.preserve_recent_ms is not None and last > 0 and now - last <= policy.preserve_recent_ms


def _conversation(row: StoredSession, rules: RuleSet) -> str | None:
    """Somebody outside may come back to it."""
    rest = _rest(row.key)
    if split_thread(row.key).thread_id:
        return "thread"
    if rules != JULY and member(row.entry, "delivery", "kind") == "external":
        return "external delivery"
    if _ROOM.fullmatch(rest):
        return "group or channel"
    direct = rest.startswith("direct:") and rest != "direct:"
    if rules != JULY and (direct or delivery_route(row.key)):
        return "outside conversation"
    chat = text_of(row.entry.get("chatType")).lower()
    return f"{chat} chat" if chat in ("group", "channel", "thread") else None


def active_keys(rows: Iterable[StoredSession], active_key: str, *, ancestors: bool) -> dict[str, str]:
    """Folded key -> reason, for the key in use and, if asked for, every session above it."""
    known = {keys.fold(row.key): row.entry for row in rows}
    found = {keys.fold(active_key): "active"}
    key = keys.fold(active_key)
    while ancestors and key in known:
        key = keys.fold(_parent(known[key]))
        if not key or key in found:
            break
        found[key] = "ancestor of the active session"
    return found


def _parent(entry: Document) -> str:
    return text_of(entry.get("parentSessionKey")) or text_of(entry.get("spawnedBy"))


def missing_transcript(row: StoredSession) -> bool | None:
    """May `--fix-missing` take this row? None when nobody has looked at its transcript.

    Contract, sessions section 7.4; rows that are archived are not asked for.
    """
    entry = row.entry
    named = text_of(entry.get("sessionId"))
    spared = (
        entry.get("modelSelectionLocked") is True
        or not is_falsy(entry.get("initializationPending"))
        or (keys.parse(row.key) is not None and not named)
        or named == row.key
    )
    if spared:
        return False
    return None if row.has_message is None else not row.has_message


def _rest(key: str) -> str:
    return keys.body(key).lower()
