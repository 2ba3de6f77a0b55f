"""What changing commands answer: frozen values like those of `model`, which readers need not load."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from .errors import StateError
from .model import Cursor, Delivery, Event, Link, Notice


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


class Verdict(StrEnum):
    """What one tick of the upstream monitor found at a link, or why it did not look."""

    RECORDED = "recorded"
    KNOWN = "already recorded"
    ADVANCED = "advanced"
    QUIET = "quiet"
    WAITING = "row being written"
    BLOCKED = "blocked"
    MISSING = "missing"
    REMOVED = "removed"
    UNUSABLE = "unusable"
    UNREADABLE = "unreadable"
    ISOLATED = "not checked"
    ELSEWHERE = "not checkable here"
    SKIPPED = "skipped"
    IGNORED = "ignored"
    FAILED = "failed"
    AMBIGUOUS = "ambiguous"
    UNWATCHED = "no watcher"


class Echo(NamedTuple):
    """A message that the session itself sent: which of its newest texts, counted from the oldest."""

    position: int
    of: int


class LinkReport(NamedTuple):
    """One link in one tick.

    turns counts the human messages found, also where they were not recorded; misses is the
    streak of missing checks; reason is empty where the verdict says all; next_marker is where
    the link's marker moved; pruned is the retention that its event brought about; own_texts is
    what the messages were compared with; failure is what kept an event from being recorded.
    """

    link: Link
    verdict: Verdict
    reason: str = ""
    turns: int = 0
    echoes: tuple[Echo, ...] = ()
    misses: int = 0
    event: Event | None = None
    notices: tuple[Notice, ...] = ()
    next_marker: Any = None
    pruned: Pruned | None = None
    own_texts: tuple[str, ...] = ()
    failure: StateError | None = None


class RowReport(NamedTuple):
    """One row of a transcript: the byte that it begins at, whether it counted, and why or why not."""

    offset: int
    human: bool
    reason: str


class StreakKey(NamedTuple):
    """What a streak of missing checks belongs to: a link and its source."""

    session_key: str
    agent_id: str
    source_key: str


class Streak(NamedTuple):
    """How many checks in a row missed, the updated_at of the link that they looked at, and when
    the last of them counted (both epoch ms)."""

    misses: int
    link_updated_at: int
    counted_at: int = 0


class Adopted(NamedTuple):
    """What an adoption stored: the link as it stands now, the one that stood there, and the event.

    rebased tells that the link begins at the given marker; a link that followed the same source
    already goes on from its own. duplicate: the log held the adoption already.
    """

    link: Link
    before: Link | None
    rebased: bool
    event: Event | None
    duplicate: bool


class Health(StrEnum):
    """How an upstream link stands: what the next tick would find, and what a tick cannot tell."""

    QUIET = "quiet"
    BEHIND = "behind"
    WAITING = "row being written"
    BLOCKED = "blocked"
    SHRUNK = "shrunk"
    MISSING = "missing"
    UNUSABLE = "unusable"
    UNREADABLE = "unreadable"
    ISOLATED = "not checked"
    ELSEWHERE = "not checkable here"
    SKIPPED = "skipped"
    FAILED = "failed"
    AMBIGUOUS = "ambiguous"
    UNWATCHED = "no watcher"
    UNLINKED = "no link"

    @property
    def good(self) -> bool | None:
        """Does the link do its work? None: that cannot be known from here."""
        if self in (Health.QUIET, Health.BEHIND, Health.WAITING):
            return True
        return False if self in _FAULTY else None


_FAULTY = {
    Health.BLOCKED,
    Health.SHRUNK,
    Health.MISSING,
    Health.UNUSABLE,
    Health.AMBIGUOUS,
    Health.UNLINKED,
}


class LinkHealth(NamedTuple):
    """How the link of one session stands, found without writing anything.

    link is None for an adopted session without one. misses is the streak kept so far, None where
    it cannot be read; turns are the human messages that the next tick would find. offset and
    size are bytes of the transcript, where there is one that may be looked at.
    """

    session_key: str
    agent_id: str
    catalog_id: str | None
    state: Health
    reason: str = ""
    link: Link | None = None
    misses: int | None = 0
    turns: int = 0
    offset: int | None = None
    size: int | None = None

    @property
    def source(self) -> str | None:
        """What is followed: a file, else the thread."""
        return None if self.link is None else self.link.source


class CatalogFailure(NamedTuple):
    """A catalog that could not be checked in this tick; its streaks stay as they are."""

    catalog_id: str
    message: str


class Tick(NamedTuple):
    """One tick of the upstream monitor: every link in the order of the listing, and what failed.

    at is epoch ms; listing_failure is why the links could not be listed, so that nothing was
    checked; stopped tells that the tick was ended early.
    """

    at: int
    links: tuple[LinkReport, ...]
    failures: tuple[CatalogFailure, ...] = ()
    listing_failure: Exception | None = None
    stopped: bool = False

    @property
    def notices(self) -> tuple[Notice, ...]:
        """The notices that this tick opened."""
        return tuple(notice for report in self.links for notice in report.notices)
