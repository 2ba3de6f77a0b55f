"""Driver for the suites `reset` and `reset-2026.7` (contract, sessions section 10.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from openclaw_state import session_freshness

from .compare import difference


def cases(document: dict[str, Any]) -> Iterator[tuple[str, Callable[[], str | None]]]:
    for case in document["cases"]:
        given = document["defaults"] | case
        yield case["id"], partial(_check, given, document.get("rules", "2026.9"))


def _check(case: dict[str, Any], rules: str) -> str | None:
    found = session_freshness(
        case["session"],
        case["sessionKey"],
        case["entry"],
        case["now"],
        case["tz"],
        channel=case.get("channel"),
        is_group=case.get("isGroup", False),
        message_thread_id=case.get("messageThreadId"),
        parent_session_key=case.get("parentSessionKey"),
        transcript_header=case.get("transcriptHeader"),
        rules=rules,
    )
    judged = found.freshness
    policy = judged.policy
    answer = {
        "resetType": policy.reset_type,
        "policy": {
            "mode": policy.mode,
            "atHour": policy.at_hour,
            "idleMinutes": policy.idle_minutes,
            "configured": policy.configured,
        },
        "providerOwned": found.provider_owned,
        "resolvedSessionStartedAt": found.started.at,
        "resolvedLastInteractionAt": found.interacted.at,
        "fresh": judged.fresh,
        "staleReason": judged.reason,
        "dailyResetAt": judged.daily_reset_at,
        "idleExpiresAt": judged.idle_expires_at,
    }
    expected = case["expect"]
    return difference(expected, {name: answer[name] for name in expected}, "answer")
