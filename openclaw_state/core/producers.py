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


def upstream_message(link: Link, source_key: str, *, turns: int, occurred_at: float, dedupe_id: str) -> Draft:
    """People wrote to an adopted session in the program that it came from."""
    return Draft(
        link.session_key,
        link.agent_id,
        "human_direct_message",
        "human",
        f"human message via {link.catalog_id}",
        dedupe_key=f"upstream:{link.session_key}:{source_key}:{dedupe_id}",
        payload={"turns": turns} if turns > 1 else None,
        occurred_at=occurred_at,
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


def typed(
    kind: str,
    session_key: str,
    agent_id: str,
    *,
    actor: tuple[str, str | None] | None = None,
    summary: str | None = None,
    dedupe_key: str | None = None,
    payload: dict[str, Any] | None = None,
    outcome: str | None = None,
    run_id: str | None = None,
    session_id: str | None = None,
    watchers: tuple[str, ...] = (),
) -> Draft:
    """An event of one kind, with what its producer would fill in where nothing was given.

    Raises UsageError for what the kind needs and cannot invent, and for an outcome where none
    belongs.
    """
    if outcome is not None and kind != "run_failed":
        raise UsageError("only run_failed has an outcome")
    filled = _filled(
        kind, session_key, agent_id, actor, payload or {}, outcome or "error", run_id, session_id
    )
    given: dict[str, Any] = {
        "summary": summary,
        "dedupe_key": dedupe_key,
        "payload": {**(filled.payload or {}), **payload} if payload is not None else None,
        "run_id": run_id,
        "session_id": session_id,
        "watchers": tuple(dict.fromkeys((*watchers, *filled.watchers))),
    }
    if actor is not None:
        given |= {"actor_type": actor[0], "actor_id": actor[1]}
    return filled._replace(**{name: value for name, value in given.items() if value is not None})


def _filled(
    kind: str,
    session_key: str,
    agent_id: str,
    actor: tuple[str, str | None] | None,
    payload: Mapping[str, Any],
    outcome: str,
    run_id: str | None,
    session_id: str | None,
) -> Draft:
    who, identity = actor or (None, None)
    channel = payload.get("channel") if isinstance(payload.get("channel"), str) else None
    match kind:
        case "human_direct_message":
            return human_message(session_key, agent_id, channel=channel, watchers=())
        case "goal_changed":
            return goal_changed(session_key, agent_id, summary="goal updated", watchers=())
        case "created":
            return session_created(
                session_key,
                agent_id,
                session_id=_need(session_id, kind, "a session id"),
                actor_type=_need(who, kind, "its creator as actor"),
                actor_id=identity,
            )
        case "child_spawned":
            return child_spawned(
                session_key,
                agent_id,
                requester=_need(identity, kind, "its requester as actor (agent:KEY)"),
                run_id=_need(run_id, kind, "a run id"),
            )
        case "run_completed" | "run_failed":
            failed = outcome if kind == "run_failed" else None
            return run_ended(session_key, agent_id, run_id=_need(run_id, kind, "a run id"), outcome=failed)
        case "adopted":
            catalog = _need(payload.get("catalogId"), kind, "catalogId in its payload")
            return adopted(session_key, agent_id, catalog_id=catalog, host_id=payload.get("hostId", "local"))
        case "upstream_missing":
            return Draft(
                session_key, agent_id, kind, "system", f"upstream missing via {channel_name(channel)}"
            )
        case "compacted":
            return Draft(session_key, agent_id, kind, "system", "session compacted")
        case _:
            return Draft(session_key, agent_id, kind, _need(who, kind, "an actor"), kind)


def _need(value: Any, kind: str, what: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise UsageError(f"{kind} needs {what}")
