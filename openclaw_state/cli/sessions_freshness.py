"""sessions freshness: does the next message start a session over, by which setting, and when."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ..core.keys import agent_of
from ..errors import UsageError
from ..host.location import Location
from ..report.escape import escape
from ..sessions.calendar import zone
from ..sessions.document import Document, member, section, text_of
from ..sessions.freshness import Freshness, SessionFreshness, session_freshness
from ..sessions.kinds import delivery_route
from ..sessions.naming import canonical_key
from ..sessions.rules import CURRENT, RuleSet, check_rules
from ..timespec import parse_point
from .options import Call, Result, command
from .sessions_place import agent_store, agents_of, configuration, place_of

FRESHNESS_FIELDS = (
    "sessionKey",
    "fresh",
    "verdict",
    "staleReason",
    "dailyResetAt",
    "idleExpiresAt",
    "expiresAt",
    "expiresBy",
)
ROLLOVER = "with the next message; nothing happens at the boundary itself"
_WITHOUT_ZONE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?", re.ASCII)
_VERDICTS = {
    "model locked": "the session is locked to its model, and is never reset by itself",
    "provider owned": "its provider's own command line keeps the session, and no reset is configured for it",
    "reset pending": "a reset is pending: updatedAt is the marker 0",
    "no reset": "no automatic reset is configured",
    "current": "neither end has come",
    "daily": "it started before the daily boundary",
    "idle": "it was idle for longer than allowed",
}


class Zone(NamedTuple):
    """The calendar of daily boundaries, and how it was chosen."""

    tz: tzinfo
    name: str
    via: str


class Judged(NamedTuple):
    """An answer with what it is about and what was read for it."""

    found: SessionFreshness
    key: str | None
    agent_id: str | None
    at: int
    zone: Zone
    rules_reason: str
    entry: Document
    configuration: Mapping[str, Any]
    place: Location | None = None
    warnings: tuple[str, ...] = ()


@command("agent", fields=FRESHNESS_FIELDS)
def freshness(
    call: Call,
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="The session; with --policy it may be left out.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="T", help="As if it were then, not now.")] = None,
    tz: Annotated[
        str | None,
        typer.Option("--tz", metavar="ZONE", help="The gateway's time zone; this system's by default."),
    ] = None,
    rules: Annotated[
        str,
        typer.Option("--rules", metavar="auto|2026.7|2026.9", help="By the rules of this release."),
    ] = "auto",
    channel: Annotated[
        str | None,
        typer.Option("--channel", metavar="NAME", help="The channel of the next message; by the key else."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option("--policy", metavar="JSON", help="Judge by this reset policy, without a database."),
    ] = None,
    started: Annotated[
        str | None, typer.Option("--started", metavar="T", help="With --policy: when the session started.")
    ] = None,
    last: Annotated[
        str | None, typer.Option("--last", metavar="T", help="With --policy: the last interaction.")
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="This openclaw.json instead of your own.")
    ] = None,
) -> Result:
    """Say whether the next message starts a session over, which setting decides, and when it would."""
    where = gateway_zone(call, tz)
    moment = call.now if at is None else _instant(call, at, where)
    if rules != "auto":
        check_rules(rules)
    if policy is not None:
        if config is not None or call.flag("agent"):
            raise UsageError("--policy needs no configuration and no agent")
        times = {"sessionStartedAt": started, "lastInteractionAt": last}
        entry = {name: _instant(call, text, where) for name, text in times.items() if text is not None}
        if not entry:
            raise UsageError("--policy needs --started or --last")
        judged = _by_policy(_policy(policy), key, entry, moment, where, rules, channel)
    else:
        if started is not None or last is not None:
            raise UsageError("--started and --last need --policy", hint="a stored session has its own times")
        if key is None:
            raise UsageError("say which session", hint="a key, or --policy JSON --started T --last T")
        judged = _stored(call, key, moment, where, rules, channel, config)
    body = _body(judged)
    return Result(
        "sessions freshness",
        body,
        text=_text(call, judged),
        rows=[{name: body[name] for name in FRESHNESS_FIELDS}],
        place=judged.place,
        warnings=judged.warnings,
    )


def _by_policy(
    session: Document,
    key: str | None,
    entry: Document,
    at: int,
    where: Zone,
    rules: str,
    channel: str | None,
) -> Judged:
    known: RuleSet = CURRENT if rules == "auto" else check_rules(rules)
    reason = "no database was read" if rules == "auto" else "as asked for"
    said = channel or (_channel(key, entry) if key else None)
    found = session_freshness(session, key or "", entry, at, where.tz, channel=said, rules=known)
    return Judged(found, key, None, at, where, reason, entry, {"path": None, "via": "--policy"})


def _stored(
    call: Call, key: str, at: int, where: Zone, rules: str, channel: str | None, config: str | None
) -> Judged:
    settings = configuration(call, config)
    named = None if call.flag("agent") else agent_of(key)
    agent = named or agents_of(call, settings)[0]
    store = agent_store(call, settings, agent, rules=rules, key=key)
    entry = store.row(key, spelling=canonical_key(key, settings.data, agent_id=agent)).entry
    found = session_freshness(
        section(settings.data, "session"),
        key,
        entry,
        at,
        where.tz,
        channel=channel or _channel(key, entry),
        is_group=text_of(entry.get("chatType")).lower() in ("group", "channel"),
        transcript_header=store.headers.get(key),
        rules=store.rules.reset,
    )
    return Judged(
        found,
        key,
        store.agent_id,
        at,
        where,
        store.rules.reason,
        entry,
        settings.view(),
        place_of(call, store),
        (*settings.warnings, *store.warnings),
    )


def _channel(key: str, entry: Document) -> str | None:
    """The channel of the session: by its key, else by where its replies go."""
    named = delivery_route(key)
    return named.channel if named else text_of(member(entry, "delivery", "route", "channel")) or None


def _policy(text: str) -> Document:
    """The `session` object that a policy stands for: a reset block, or a whole `session`."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--policy is no JSON: {error}", hint="for example '{\"atHour\": 4}'") from error
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UsageError("--policy is a JSON object, or null for none")
    if "session" in given:
        return section(given, "session")
    return given if {"reset", "resetByType", "resetByChannel"} & set(given) else {"reset": given}


def gateway_zone(call: Call, named: str | None) -> Zone:
    """The zone of daily boundaries: the one named, else this system's."""
    if named is not None:
        return Zone(zone(named), named, "--tz")
    own = call.terminal.environ.get("TZ", "").removeprefix(":").strip()
    if own:
        return Zone(zone(own), own, "TZ")
    parts = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    name = parts[2] or _timezone_file()
    return Zone(zone(name), name, "this system") if name else Zone(UTC, "UTC", "this system names none")


def _timezone_file() -> str:
    try:
        return Path("/etc/timezone").read_text("utf-8").strip()
    except (OSError, ValueError):
        return ""


def _instant(call: Call, text: str, where: Zone) -> int:
    """A time; without a zone of its own it is read in the gateway's."""
    if _WITHOUT_ZONE.fullmatch(text.strip()):
        try:
            there = datetime.fromisoformat(text.strip().upper()).replace(tzinfo=where.tz)
            return max(0, round(there.timestamp() * 1000))
        except (ValueError, OverflowError) as error:
            raise UsageError(f"{text!r} is no date that exists") from error
    found = parse_point(text, now=call.now, utc=call.utc, versions=False).instant
    return found or 0


def _body(judged: Judged) -> dict[str, Any]:
    answer = judged.found.freshness
    policy = answer.policy
    return {
        "sessionKey": judged.key,
        "agentId": judged.agent_id,
        "configuration": dict(judged.configuration),
        "at": judged.at,
        "timeZone": {"name": judged.zone.name, "via": judged.zone.via},
        "rules": {"set": answer.rules, "reason": judged.rules_reason},
        "fresh": answer.fresh,
        "verdict": answer.verdict,
        "staleReason": answer.reason,
        "because": _VERDICTS[answer.verdict],
        "resetType": policy.reset_type,
        "policy": {
            "mode": policy.mode,
            "atHour": policy.at_hour,
            "idleMinutes": policy.idle_minutes,
            "configured": policy.configured,
            "blocks": list(policy.blocks),
            "modeSource": policy.mode_source,
            "atHourSource": policy.at_hour_source,
            "idleSource": policy.idle_source,
            "ignored": [one._asdict() for one in policy.ignored],
        },
        "sessionStartedAt": judged.found.started._asdict(),
        "lastInteractionAt": judged.found.interacted._asdict(),
        "compared": {"start": answer.start._asdict(), "last": answer.last._asdict()},
        "dailyResetAt": answer.daily_reset_at,
        "idleExpiresAt": answer.idle_expires_at,
        "expiresAt": answer.expires_at,
        "expiresBy": answer.expires_by,
        "rollover": ROLLOVER,
        "providerOwned": judged.found.provider_owned,
        "modelLocked": judged.entry.get("modelSelectionLocked") is True,
        "resetPending": answer.verdict == "reset pending",
    }


def _text(call: Call, judged: Judged) -> Iterator[str]:
    answer, policy = judged.found.freshness, judged.found.freshness.policy
    tz = UTC if call.utc else judged.zone.tz
    state = "fresh" if answer.fresh else "stale"
    yield (
        call.palette.head(escape(judged.key or "the policy given"))
        + f"   {state}: {_VERDICTS[answer.verdict]}"
    )
    yield f"at          {_when(judged.at, tz)} ({escape(judged.zone.name)}, via {judged.zone.via})"
    yield f"rules       {answer.rules} ({escape(judged.rules_reason)})"
    yield f"policy      {_policy_words(answer)}"
    yield f"decided by  {', '.join(map(escape, policy.blocks)) or 'no block of the configuration'}"
    for one in policy.ignored:
        yield f"ignored     {escape(one.path)}: {escape(one.reason)}"
    if answer.daily_reset_at is not None:
        yield f"boundary    {_when(answer.daily_reset_at, tz)}"
        yield f"compared    start {_compared(answer.start.at, answer.start.source, tz)}"
    if answer.idle_expires_at is not None:
        yield f"idle until  {_when(answer.idle_expires_at, tz)}"
        yield f"compared    last interaction {_compared(answer.last.at, answer.last.source, tz)}"
    if not answer.fresh:
        yield "next        the next message starts it over; nothing happens before that message"
    elif answer.expires_at is not None:
        yield f"expires     {_when(answer.expires_at, tz)} ({answer.expires_by}), if nothing happens"
        yield "next        the first message after that starts it over; nothing happens at that time itself"
    else:
        yield "expires     never by itself"


def _policy_words(answer: Freshness) -> str:
    policy = answer.policy
    words = {
        "none": "no automatic reset",
        "daily": f"daily at {policy.at_hour:02d}:00 ({policy.at_hour_source})",
        "idle": "idle",
    }[policy.mode]
    if policy.mode != "none" and policy.idle_minutes:
        words += f", after {policy.idle_minutes} idle minutes ({policy.idle_source})"
    return escape(f"{words}; type {policy.reset_type}; mode by {policy.mode_source}")


def _compared(at: int, source: str, tz: tzinfo) -> str:
    return "unknown, so it counts as the oldest" if source == "none" else f"{_when(at, tz)} (from {source})"


def _when(at: int, tz: tzinfo) -> str:
    """Date, time and zone, to the millisecond where there are any."""
    try:
        there = datetime.fromtimestamp(at // 1000, tz)
    except (ValueError, OverflowError, OSError):
        return f"{at} ms"
    return (
        there.strftime("%Y-%m-%d %H:%M:%S")
        + (f".{at % 1000:03d}" if at % 1000 else "")
        + there.strftime(" %Z")
    )
