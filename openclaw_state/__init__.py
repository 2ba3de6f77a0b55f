"""openclaw-state: the operator's view of OpenClaw's session-state signal log.

The public names are resolved when they are first used, so that importing stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .core.follow import Batch, Gap
    from .core.listing import EventFilter
    from .errors import StateError
    from .log.signal_log import SignalLog
    from .model import Changes, Cursor, CursorReport, Event, Head, Limits, Link, Notice
    from .results import Pruned, Recorded
    from .sessions.bindings import Origin
    from .sessions.freshness import Freshness, SessionFreshness, freshness, session_freshness
    from .sessions.kinds import ParsedKey, parse_key
    from .sessions.limits import MaintenancePolicy, maintenance_policy
    from .sessions.maintenance import MaintenancePlan, PlannedRow, plan_maintenance
    from .sessions.naming import canonical_key
    from .sessions.peers import Peer
    from .sessions.policy import ResetPolicy, reset_policy
    from .sessions.protection import StoredSession
    from .sessions.routing import Route, session_key
    from .sessions.rules import ChosenRules, choose_rules

__version__ = "0.1.0"

_HOMES = {
    "SignalLog": "log.signal_log",
    "StateError": "errors",
    "EventFilter": "core.listing",
    "Batch": "core.follow",
    "Gap": "core.follow",
    **dict.fromkeys(
        (
            "Changes",
            "Cursor",
            "CursorReport",
            "Event",
            "Head",
            "Limits",
            "Link",
            "Notice",
        ),
        "model",
    ),
    "Pruned": "results",
    "Recorded": "results",
    **dict.fromkeys(("ChosenRules", "choose_rules"), "sessions.rules"),
    **dict.fromkeys(
        ("Freshness", "SessionFreshness", "freshness", "session_freshness"), "sessions.freshness"
    ),
    **dict.fromkeys(("MaintenancePolicy", "maintenance_policy"), "sessions.limits"),
    **dict.fromkeys(("MaintenancePlan", "PlannedRow", "plan_maintenance"), "sessions.maintenance"),
    "Origin": "sessions.bindings",
    **dict.fromkeys(("ParsedKey", "parse_key"), "sessions.kinds"),
    "Peer": "sessions.peers",
    **dict.fromkeys(("ResetPolicy", "reset_policy"), "sessions.policy"),
    "StoredSession": "sessions.protection",
    **dict.fromkeys(("Route", "session_key"), "sessions.routing"),
    "canonical_key": "sessions.naming",
}

__all__ = [
    "Batch",
    "Changes",
    "ChosenRules",
    "Cursor",
    "CursorReport",
    "Event",
    "EventFilter",
    "Freshness",
    "Gap",
    "Head",
    "Limits",
    "Link",
    "MaintenancePlan",
    "MaintenancePolicy",
    "Notice",
    "Origin",
    "ParsedKey",
    "Peer",
    "PlannedRow",
    "Pruned",
    "Recorded",
    "ResetPolicy",
    "Route",
    "SessionFreshness",
    "SignalLog",
    "StateError",
    "StoredSession",
    "__version__",
    "canonical_key",
    "choose_rules",
    "freshness",
    "maintenance_policy",
    "parse_key",
    "plan_maintenance",
    "reset_policy",
    "session_freshness",
    "session_key",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
