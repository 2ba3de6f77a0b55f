"""What a tick of the upstream monitor would do to a log, worked out without writing to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from ..core.cursors import is_watched
from ..core.events import Draft, clamp, holder
from ..core.jsontext import json_text
from ..core.keys import owner
from ..model import Event, Link
from ..results import Recorded
from ..upstream.links import KEEP
from .reading import Reading
from .recording import check_draft


class Plan:
    """A log that remembers changes instead of making them; the next tick finds them made.

    It answers the monitor as SignalLog does. Planned events have sequence 0, and open no notices.
    """

    def __init__(self, log: Reading, *, strict: bool = False, clock: Callable[[], int]) -> None:
        self._log = log
        self._strict = strict
        self._clock = clock
        self._links: dict[tuple[str, str], Link | None] = {}
        self._events: dict[str | None, Event] = {}

    def links(self) -> list[tuple[Link, bool]]:
        planned = ((self._planned(link), watched) for link, watched in self._log.links())
        return [(link, watched) for link, watched in planned if link is not None]

    def link(self, session_key: str, *, agent_id: str | None = None) -> Link | None:
        found = self._log.link(session_key, agent_id=agent_id)
        return None if found is None else self._planned(found)

    def append(self, draft: Draft, *, only_if_watched: bool = False) -> Recorded:
        if not self._strict:
            check_draft(draft)

        def known(connection: sqlite3.Connection) -> tuple[bool, Event | None]:
            watched = bool(draft.watchers) or is_watched(connection, draft.session_key)
            return watched, holder(connection, draft.dedupe_key)

        watched, event = self._log.inspect(known)
        if only_if_watched and not watched:
            return Recorded(None, False, ())
        event = event or self._events.get(draft.dedupe_key)
        if event is not None:
            return Recorded(event, True, ())
        planned = self._events[draft.dedupe_key] = self._event(draft)
        return Recorded(planned, False, ())

    def set_link_marker(
        self,
        session_key: str,
        marker: Any,
        *,
        agent_id: str | None = None,
        expected_updated_at: int | None = None,
    ) -> bool:
        link = self._expected(session_key, agent_id, expected_updated_at)
        if link is None:
            return False
        now = self._clock()
        if marker is not KEEP:
            json_text(marker)
            link = link._replace(marker=marker)
        self._links[link[:2]] = link._replace(updated_at=now, last_scanned_at=now)
        return True

    def delete_link(
        self, session_key: str, *, agent_id: str | None = None, expected_updated_at: int | None = None
    ) -> str:
        link = self._expected(session_key, agent_id, expected_updated_at)
        if link is None:
            return "changed" if self.link(session_key, agent_id=agent_id) else "absent"
        self._links[link[:2]] = None
        return "deleted"

    def _planned(self, link: Link) -> Link | None:
        return self._links.get(link[:2], link)

    def _expected(self, session_key: str, agent_id: str | None, updated_at: int | None) -> Link | None:
        link = self.link(session_key, agent_id=agent_id or owner(session_key, None))
        return link if link and updated_at in (None, link.updated_at) else None

    def _event(self, draft: Draft) -> Event:
        occurred_at = clamp(draft.occurred_at, self._clock(), strict=self._strict)
        if isinstance(occurred_at, float):
            raise sqlite3.IntegrityError("cannot store REAL value in INTEGER column occurred_at")
        return Event(
            0,
            draft.session_key,
            draft.agent_id,
            draft.kind,
            draft.actor_type,
            occurred_at,
            draft.summary,
            dedupe_key=draft.dedupe_key,
            payload_json=json_text(draft.payload) if draft.payload else None,
        )
