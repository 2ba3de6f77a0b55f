"""Will the next message start a session over, why, and when if nothing happens?

Contract, sessions sections 3.3 and 3.4. Nothing happens at a boundary itself: a stale session
lies as it is until somebody writes to it.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Any, NamedTuple

from ..core.javascript import trim
from .calendar import last_boundary, next_boundary, zone
from .document import Document, first_given, member, section
from .kinds import reset_type
from .policy import ResetPolicy, reset_policy
from .rules import CURRENT, RuleSet
from .timestamps import (
    JudgedMoment,
    Moment,
    instant,
    is_reset_pending,
    judged,
    recorded_interaction,
    recorded_start,
)

MINUTE_MS = 60_000


class Freshness(NamedTuple):
    """Does a session go on, or does the next message start it over?

    verdict says why: `model locked`, `provider owned`, `reset pending`, `no reset`, `current`,
    `daily` or `idle`; reason is OpenClaw's staleReason, `daily`, `idle` or None. daily_reset_at
    and idle_expires_at are the instants compared, None where one does not apply; start and last
    are the timestamps compared with them. expires_at is the first instant at which the session
    is stale if nothing happens until then, by expires_by; None when that is now, or never. All
    times are epoch ms.
    """

    fresh: bool
    verdict: str
    reason: str | None
    rules: RuleSet
    policy: ResetPolicy
    start: JudgedMoment
    last: JudgedMoment
    daily_reset_at: int | None
    idle_expires_at: int | None
    expires_at: int | None
    expires_by: str | None


class SessionFreshness(NamedTuple):
    """The freshness of a stored session, with what is recorded about its times."""

    freshness: Freshness
    started: Moment
    interacted: Moment
    provider_owned: bool


def freshness(
    policy: ResetPolicy,
    started_at: int | Moment | None,
    last_interaction_at: int | Moment | None,
    now: int,
    tz: str | tzinfo,
    *,
    updated_at: Any = None,
    model_locked: bool = False,
    provider_owned: bool = False,
) -> Freshness:
    """Judge recorded times by a policy, at now (epoch ms), on the calendar of tz.

    updated_at is the row's own, a fallback and the marker of a pending reset; the flags are
    `modelSelectionLocked` and provider_owned() of the row. Raises UsageError for an unknown
    time zone.
    """
    where = zone(tz)
    started = _moment(started_at, "sessionStartedAt")
    interacted = _moment(last_interaction_at, "lastInteractionAt")
    start, last = judged(started, interacted, updated_at, now)
    answer = Freshness(True, "current", None, policy.rules, policy, start, last, None, None, None, None)
    if model_locked:
        return answer._replace(verdict="model locked")
    if provider_owned and not policy.configured:
        return answer._replace(verdict="provider owned")
    if is_reset_pending(updated_at):
        return answer._replace(fresh=False, verdict="reset pending")
    if policy.mode == "none":
        return answer._replace(verdict="no reset")
    return _compared(answer, now, where)


def _moment(given: int | Moment | None, source: str) -> Moment:
    if isinstance(given, Moment):
        return given
    at = instant(given)
    return Moment(at, "none" if at is None else source)


def _compared(answer: Freshness, now: int, tz: tzinfo) -> Freshness:
    """Both ends are compared; the earlier one is named, and of equal ones the daily."""
    policy = answer.policy
    boundary = last_boundary(policy.at_hour, now, tz) if policy.mode == "daily" else None
    deadline = answer.last.at + policy.idle_minutes * MINUTE_MS if policy.idle_minutes else None
    answer = answer._replace(daily_reset_at=boundary, idle_expires_at=deadline)
    ended: list[tuple[int, str]] = []
    if boundary is not None and answer.start.at < boundary:
        ended.append((boundary, "daily"))
    if deadline is not None and now > deadline:
        ended.append((deadline, "idle"))
    if ended:
        reason = min(ended)[1]
        return answer._replace(fresh=False, verdict=reason, reason=reason)
    ahead: list[tuple[int, str]] = []
    if policy.mode == "daily":
        ahead.append((next_boundary(policy.at_hour, now, tz), "daily"))
    if deadline is not None:
        ahead.append((deadline + 1, "idle"))
    if not ahead:
        return answer
    expires_at, expires_by = min(ahead)
    return answer._replace(expires_at=expires_at, expires_by=expires_by)


def session_freshness(
    session: Document,
    key: str,
    entry: Document,
    now: int,
    tz: str | tzinfo,
    *,
    channel: str | None = None,
    is_group: bool = False,
    message_thread_id: Any = None,
    parent_session_key: str | None = None,
    transcript_header: Document | None = None,
    rules: str = CURRENT,
) -> SessionFreshness:
    """Judge a stored session: the `session` object of openclaw.json, its key and its entry.

    channel and the three after it describe the message that would come; transcript_header is
    the first row of the session's transcript. Raises UsageError for an unknown time zone or
    rule set, ConfigurationError for an unknown mode.
    """
    where = zone(tz)
    kind = reset_type(
        key,
        is_group=is_group,
        message_thread_id=message_thread_id,
        parent_session_key=parent_session_key,
    )
    started = recorded_start(entry, transcript_header, tz=where)
    interacted = recorded_interaction(entry)
    owned = provider_owned(entry)
    answer = freshness(
        reset_policy(session, kind, channel=channel, rules=rules),
        started,
        interacted,
        now,
        where,
        updated_at=entry.get("updatedAt"),
        model_locked=entry.get("modelSelectionLocked") is True,
        provider_owned=owned,
    )
    return SessionFreshness(answer, started, interacted, owned)


def provider_owned(entry: Document) -> bool:
    """Has the row a session in its provider's own command line? (contract, sessions 3.3)"""
    named = first_given(entry.get("providerOverride"), entry.get("modelProvider"))
    provider = trim(named).lower() if isinstance(named, str) else ""
    if not provider:
        return False
    bound = member(section(entry, "cliSessionBindings"), provider, "sessionId")
    older = member(section(entry, "cliSessionIds"), provider)
    return any(isinstance(one, str) and trim(one) for one in (bound, older))
