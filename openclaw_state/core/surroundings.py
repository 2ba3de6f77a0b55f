"""The questions that the core asks about its host, and the answers of the embedded file.

One set of rules serves OpenClaw's database and the embedded one; only these answers differ
(design section 4).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ..model import Cursor, Delivery
from .keys import is_agent_qualified
from .shape import Shape

LOCAL = Delivery(True, "local", "this tool's own file delivers to every watcher")


class Surroundings(Protocol):
    """What stands around a signal log. None always means "cannot be known here"."""

    def store_path(self, watcher: str) -> str | None:
        """The agent database that a new watch of this watcher must name."""

    def delivery(self, cursor: Cursor) -> Delivery:
        """Would a gateway deliver to this agent-qualified watcher?"""

    def sessions_exist(self, keys: Iterable[str]) -> dict[str, bool | None]:
        """Is there a session row under each key (in its canonical, folded spelling)?"""

    def is_busy(self, key: str) -> bool | None:
        """Is a run of this session active, as far as files show it?"""


class Embedded:
    """The tool's own file: every agent-qualified watcher exists and is deliverable."""

    def store_path(self, watcher: str) -> str | None:
        return None

    def delivery(self, cursor: Cursor) -> Delivery:
        return LOCAL

    def sessions_exist(self, keys: Iterable[str]) -> dict[str, bool | None]:
        return dict.fromkeys(keys, True)

    def is_busy(self, key: str) -> bool | None:
        return False


class Detached:
    """A copy of OpenClaw's file away from its state directory: nothing can be asked."""

    def __init__(self, reason: str = "no agent stores beside this file") -> None:
        self._unknown = Delivery(None, "unknown", reason)

    def store_path(self, watcher: str) -> str | None:
        return None

    def delivery(self, cursor: Cursor) -> Delivery:
        return STORE_UNKNOWN if cursor.store_path is None else self._unknown

    def sessions_exist(self, keys: Iterable[str]) -> dict[str, bool | None]:
        return dict.fromkeys(keys)

    def is_busy(self, key: str) -> bool | None:
        return None


STORE_UNKNOWN = Delivery(
    False, "store unknown", "no watcher_store_path: an older release wrote it; register the watch again"
)
_BARE = Delivery(False, "bare key", "a watcher needs an agent-qualified key")
_UNCHECKED = Delivery(True, "yes", "this release checks no store path")


def delivery(cursor: Cursor, shape: Shape, surroundings: Surroundings) -> Delivery:
    """Whether a notice on this cursor reaches its watcher, or why not (contract sections 8, 10, 17)."""
    if not is_agent_qualified(cursor.watcher):
        return _BARE
    if not shape.has_store_path:
        return _UNCHECKED
    return surroundings.delivery(cursor)
