"""A history gap, explained: what is gone, who removed it, and what to do next."""

from __future__ import annotations

from typing import Any

from ..errors import StateError
from ..log.reading import Reading
from ..model import Changes
from ..report.text import plural
from ..timespec import format_duration, format_instant
from .options import Call


def explain(call: Call, log: Reading, key: str, since: int, found: Changes, head: int) -> dict[str, Any]:
    """The `gap` member of a status document: numbers, words, and the prune ledger's entries."""
    from ..sidecar import Sidecar

    try:
        prunes = Sidecar().prunes(log.path)
    except StateError:
        prunes = []
    because = [
        f"pruned {format_instant(entry.at, utc=call.utc)} by {entry.by}"
        f" ({entry.command}, {format_duration(entry.max_age_ms)}): {plural(entry.events, 'event')} of the log"
        for entry in prunes
    ]
    read_again = (
        "take a fresh snapshot of the session"
        if log.embedded
        else "read the session again (sessions_history)"
    )
    return {
        "requested": since,
        "earliestAvailableSequence": found.earliest_available,
        "head": head,
        "message": f"history before {found.earliest_available} is gone for {key}"
        f" (asked for changes since {since}, head is {head})",
        "because": because or ["no prune by this tool is known; a gateway applies retention by itself"],
        "advice": f"{read_again}, then go on with --since {head}",
        "prunes": [
            {
                "at": entry.at,
                "by": entry.by,
                "command": entry.command,
                "events": entry.events,
                "cursors": entry.cursors,
            }
            for entry in prunes
        ],
    }
