"""Reading a signal log: versions, changes, events, sessions, cursors, notices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core import changes, listing, notices, watches
from ..core.surroundings import Detached
from ..model import Changes, CursorReport, Event, Head, Link, Notice, SessionRow
from ..upstream import links
from .opened import Opened


class Reading(Opened):
    """The methods that only read; they work on a log opened either way."""

    def version(self, session_key: str, *, agent_id: str | None = None) -> int:
        """The state version: the greatest sequence ever given to the session, 0 without a head."""
        with self._database.reading() as connection:
            return changes.version(connection, session_key, self._agent(session_key, agent_id))

    def versions(self, session_keys: Iterable[str]) -> dict[str, dict[str, int]]:
        """agent -> session -> version for every head under the listed keys."""
        with self._database.reading() as connection:
            return changes.versions(connection, session_keys)

    def newest_sequence(self) -> int:
        """The newest sequence of the whole log."""
        with self._database.reading() as connection:
            return changes.newest_sequence(connection)

    def heads(self, session_key: str) -> list[Head]:
        """The heads of a key, one per agent that owns it."""
        with self._database.reading() as connection:
            return changes.read_heads(connection, session_key)

    def head(self, session_key: str, *, agent_id: str | None = None) -> Head | None:
        """The head of one session."""
        with self._database.reading() as connection:
            return changes.read_head(connection, session_key, self._agent(session_key, agent_id))

    def oldest_sequence(self, session_key: str, *, agent_id: str | None = None) -> int | None:
        """The oldest retained sequence of a session, None when nothing is retained."""
        with self._database.reading() as connection:
            return changes.oldest_sequence(connection, session_key, self._agent(session_key, agent_id))

    def changes_since(
        self,
        session_key: str,
        since: float,
        *,
        agent_id: str | None = None,
        limit: float = changes.MAX_CHANGES,
    ) -> Changes:
        """The exact delta after a version, at most 200 events (contract, signal-log section 13)."""
        with self._database.reading() as connection:
            agent = self._agent(session_key, agent_id)
            return changes.read_changes(connection, session_key, agent, since, limit)

    def version_at(self, session_key: str, instant: int, *, agent_id: str | None = None) -> int:
        """The version that a session had before an instant (epoch ms), as far as events are retained."""
        with self._database.reading() as connection:
            return changes.version_at(connection, session_key, self._agent(session_key, agent_id), instant)

    def events(
        self, chosen: listing.EventFilter | None = None, *, newest: int | None = None
    ) -> Iterator[Event]:
        """Events in order, lazily, in batches of 500; no transaction is held between batches."""
        return listing.events(self._database.reading, chosen or listing.EventFilter(), newest=newest)

    def sessions(self, *, agent_id: str | None = None, most: int | None = None) -> Iterator[SessionRow]:
        """Sessions with a head, the latest change first."""
        return listing.sessions(self._database.reading, agent_id=agent_id, most=most)

    def session_known(self, session_key: str) -> bool | None:
        """Has the session a head, an event, a cursor, a link or a session row? None: cannot be known."""
        with self._database.reading() as connection:
            if watches.select(connection, self._database.shape, watcher=session_key):
                return True
            if watches.is_watched(connection, session_key) or links.has_link(connection, session_key):
                return True
            surroundings = Detached() if self.embedded else self._surroundings
            known = watches.known_sessions(connection, surroundings, [session_key])[session_key]
            return False if known is None and self.embedded else known

    def cursors(self, *, watcher: str | None = None, target: str | None = None) -> list[CursorReport]:
        """Watches with lag, state, delivery and expiry, by watcher and target."""
        with self._database.reading() as connection:
            found = watches.select(connection, self._database.shape, watcher=watcher, target=target)
            return list(
                watches.report(
                    connection,
                    self._database.shape,
                    self._surroundings,
                    found,
                    max_age_ms=self._limits.max_age_ms,
                )
            )

    def notices(self, watcher: str | None = None) -> list[Notice]:
        """The pending notices of one watcher, or of all."""
        with self._database.reading() as connection:
            found = watches.select(connection, self._database.shape, watcher=watcher)
            return list(notices.describe(connection, self._raised(found)))

    def link(self, session_key: str, *, agent_id: str | None = None) -> Link | None:
        """The upstream link of a session."""
        with self._database.reading() as connection:
            return links.read(connection, session_key, self._agent(session_key, agent_id))

    def watched_links(self) -> dict[str, list[Link]]:
        """The links that the upstream monitor visits, by catalog."""
        with self._database.reading() as connection:
            return links.watched(connection)
