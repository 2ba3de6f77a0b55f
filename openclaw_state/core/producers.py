"""The typed events: what each producer of OpenClaw fills in (contract, signal-log section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from ..model import Link
from .events import Draft
from .javascript import trim


def classify_actor(
    *,
    input_provenance: Mapping[str, Any] | None = None,
    internal_events: Any = None,
    session_effects: str | None = None,
    human_actor_id: str | None = None,
) -> tuple[str, str | None]:
    """(actor type, actor id) of a turn (contract section 5)."""
    provenance = input_provenance or {}
    if provenance.get("kind") == "inter_session":
        return "agent", provenance.get("sourceSessionKey") or None
    if provenance.get("kind") == "internal_system" or internal_events or session_effects == "internal":
        return "system", None
    return "human", human_actor_id or None


def lineage_watcher(spawned_by: str | None, parent: str | None) -> tuple[str, ...]:
    """The session that spawned this one, else its parent, named as a watcher."""
    lineage = spawned_by or parent
    return (lineage,) if lineage else ()


def channel_name(channel: str | None) -> str:
    """The channel as summaries name it: trimmed, `unknown` when blank."""
    return trim(channel or "") or "unknown"


def human_message(
    session_key: str, agent_id: str, *, channel: str | None, watchers: tuple[str, ...], **more: Any
) -> Draft:
    """A person wrote to the session directly."""
    summary = f"human message via {channel_name(channel)}"
    return Draft(session_key, agent_id, "human_direct_message", "human", summary, watchers=watchers, **more)


def goal_changed(
    session_key: str,
    agent_id: str,
    *,
    summary: str,
    watchers: tuple[str, ...],
    actor_type: str = "system",
    **more: Any,
) -> Draft:
    """The session's goal changed; the summary comes from the goal's own code."""
    return Draft(session_key, agent_id, "goal_changed", actor_type, summary, watchers=watchers, **more)


def session_created(
    session_key: str, agent_id: str, *, session_id: str, actor_type: str, actor_id: str | None
) -> Draft:
    """A session began, by a known creator."""
    return Draft(
        session_key,
        agent_id,
        "created",
        actor_type,
        "session created",
        session_id=session_id,
        actor_id=actor_id,
        dedupe_key=f"created:{agent_id}:{session_key}:{session_id}",
    )


def child_spawned(child: str, agent_id: str, *, requester: str, run_id: str) -> Draft:
    """A session started a child; the requester watches it from here on."""
    return Draft(
        child,
        agent_id,
        "child_spawned",
        "agent",
        "child session spawned",
        actor_id=requester,
        run_id=run_id,
        dedupe_key=f"child-spawned:{run_id}",
        watchers=(requester,),
    )


_RUN_SUMMARIES = {
    "error": "child run failed",
    "timeout": "child run timed out",
    "cancelled": "child run cancelled",
}


def run_ended(
    child: str, agent_id: str, *, run_id: str, outcome: str | None, requester: str | None = None
) -> Draft:
    """A child run ended: outcome None is success, else error, timeout or cancelled.

    Raises UsageError for another outcome.
    """
    if outcome is not None and outcome not in _RUN_SUMMARIES:
        raise UsageError(f"an outcome is one of {', '.join(_RUN_SUMMARIES)}, not {outcome!r}")
    return Draft(
        child,
        agent_id,
        "run_failed" if outcome else "run_completed",
        "system",
        _RUN_SUMMARIES[outcome] if outcome else "child run completed",
        run_id=run_id,
        dedupe_key=f"run-terminal:{run_id}",
        payload={"outcome": outcome} if outcome else None,
        watchers=(requester,) if requester else (),
    )


def compacted(
    session_key: str, agent_id: str, *, operation_id: str, session_id: str | None, run_id: str | None
) -> Draft:
    """The session's context was compacted."""
    return Draft(
        session_key,
        agent_id,
        "compacted",
        "system",
        "session compacted",
        session_id=session_id,
        run_id=run_id,
        dedupe_key=f"compacted:{operation_id}",
    )


def adopted(session_key: str, agent_id: str, *, catalog_id: str, host_id: str) -> Draft:
    """A person took over a session from another program's catalog."""
    return Draft(
        session_key,
        agent_id,
        "adopted",
        "human",
        f"adopted from {catalog_id}",
        dedupe_key=f"adopted:{session_key}",
        payload={"catalogId": catalog_id, "hostId": host_id},
    )


def upstream_missing(link: Link, source_key: str) -> Draft:
    """The source of an adopted session disappeared."""
    return Draft(
        link.session_key,
        link.agent_id,
        "upstream_missing",
        "system",
        f"upstream missing via {link.catalog_id}",
        dedupe_key=f"upstream-missing:{link.session_key}:{source_key}:{link.updated_at}",
        payload={"channel": link.catalog_id},
    )


def outcome_of(error: BaseException) -> str | None:
    """How a run ended that raised this: None, `error`, `timeout` or `cancelled`."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, SystemExit):
        return "error" if error.code else None
    if isinstance(error, TimeoutError) or "TimeoutExpired" in names:
        return "timeout"
    if isinstance(error, KeyboardInterrupt) or "CancelledError" in names:
        return "cancelled"
    return "error"
