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
}

__all__ = [
    "Batch",
    "Changes",
    "Cursor",
    "CursorReport",
    "Event",
    "EventFilter",
    "Gap",
    "Head",
    "Limits",
    "Link",
    "Notice",
    "Pruned",
    "Recorded",
    "SignalLog",
    "StateError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
