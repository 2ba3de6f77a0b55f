"""What changing commands answer: frozen values like those of `model`, which readers need not load."""

from __future__ import annotations

from typing import NamedTuple

from .model import Cursor, Delivery, Event, Notice


class Wake(NamedTuple):
    """A request to run the watcher's session (contract section 8); current False is stillborn."""

    session_key: str
    reason: str
    intent: str
    coalesce_ms: int
    current: bool


class QueuedLine(NamedTuple):
    """A line in the in-process queue of one watcher."""

    text: str
    context_key: str
    store_path: str | None
    watcher: str


class Recorded(NamedTuple):
    """What recording did: the stored event (the first one, when the dedupe key was known),
    whether it was a duplicate, and the notices that opened."""

    event: Event | None
    duplicate: bool
    opened: tuple[Notice, ...]
    pruned: Pruned | None = None


class Watched(NamedTuple):
    """The answer of a watch registration; refusal names the rule when `watched` is False.

    replaced is the watch that stood there for another store: its pending state is gone.
    """

    watched: bool
    created: bool
    cursor: Cursor | None
    refusal: str | None = None
    replaced: Cursor | None = None


class Acknowledged(NamedTuple):
    """What an acknowledge moved: the cursors before it, and the notices it reopened."""

    cursors: tuple[Cursor, ...]
    reopened: tuple[Notice, ...]
    skipped: tuple[tuple[Cursor, Delivery], ...]


class Swept(NamedTuple):
    """What a sweep re-armed, and the watchers it left alone with the reason."""

    notices: tuple[Notice, ...]
    skipped: tuple[tuple[Cursor, str], ...]
    pruned: Pruned | None = None


class Forgotten(NamedTuple):
    """What `forget` removes, planned or done (contract section 14)."""

    session_key: str
    agent_id: str
    events: int
    heads: int
    links: int
    cursors: int
    applied: bool


class Pruned(NamedTuple):
    """Retention, planned or done: the same shape for both."""

    cutoff: int
    max_rows: int
    events_by_age: int
    events_by_rows: int
    sessions: int
    cursors_expired: int
    cursors_pending: int
    heads_kept: int
    applied: bool

    @property
    def events(self) -> int:
        return self.events_by_age + self.events_by_rows

    @property
    def nothing(self) -> bool:
        return not self.events and not self.cursors_expired
