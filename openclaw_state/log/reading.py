"""Reading a signal log: versions, changes, events, sessions, cursors, notices."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ..core import changes, cursors, keys, listing, notices
from ..errors import UsageError
from ..model import Behind, Changes, CursorReport, Event, Glance, Head, Limits, Link, Notice, SessionRow
from .opened import Opened

if TYPE_CHECKING:
    from ..results import Forgotten, Pruned
    from ..upstream.adopted import Unlinked

T = TypeVar("T")


class Reading(Opened):
    """The methods that only read; they work on a log opened either way."""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read within the block comes from one moment; keep it short."""
        with self._database.reading():
            yield

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

    def all_changes(self, session_key: str, since: int, *, agent_id: str | None = None) -> Iterator[Event]:
        """Every change after a version, page by page, to the head."""
        agent, page = self._agent(session_key, agent_id), None
        while page is None or page.truncated:
            page = self.changes_since(session_key, since, agent_id=agent)
            yield from page.events
            since = page.events[-1].sequence if page.events else since

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
        return listing.sessions(self._database.reading, listing.SessionFilter(agent_id), most=most)

    def count_sessions(self, *, agent_id: str | None = None) -> int:
        """How many sessions have a head."""
        with self._database.reading() as connection:
            return listing.count_sessions(connection, listing.SessionFilter(agent_id))

    def glance(
        self,
        sessions: listing.SessionFilter,
        events: listing.EventFilter,
        *,
        most_sessions: int,
        most_behind: int,
        most_events: int,
    ) -> Glance:
        """The latest sessions, the longest pending notices and the newest events, from one moment."""
        with self._database.reading() as connection:
            rows = tuple(listing.sessions(self._database.reading, sessions, most=most_sessions))
            pending = cursors.select_pending(connection, self._database.shape, sessions, most=most_behind)
            described = notices.describe(connection, self._raised(pending.cursors))
            return Glance(
                sessions=rows,
                total_sessions=listing.count_sessions(connection, sessions),
                lags={
                    row.session_key: cursors.greatest_lag(connection, row.session_key)
                    for row in rows
                    if row.pending
                },
                behind=tuple(
                    Behind(notice, cursors.lag(connection, notice.target, notice.since))
                    for notice in described
                ),
                total_pending=pending.total,
                events=tuple(listing.events(self._database.reading, events, newest=most_events)),
                newest=changes.newest_sequence(connection),
            )

    def resolve_agent(self, session_key: str, agent_id: str | None = None) -> str | None:
        """The agent meant for a key: the given one, the key's own, or the only one that has it.

        None for a bare key without a head. Raises UsageError, listing them, when several
        agents have the key.
        """
        if agent_id is not None:
            return agent_id
        agents = [head.agent_id for head in self.heads(session_key)]
        owner = keys.agent_of(session_key)
        if owner is not None and (owner in agents or not agents):
            return owner
        if len(agents) > 1:
            raise UsageError(
                f"several agents have the key {session_key}: {', '.join(agents)}",
                hint=f"choose one with --agent {agents[0]}",
                agents=agents,
            )
        return agents[0] if agents else None

    def similar_keys(self, session_key: str) -> list[str]:
        """Known keys that look like this one, the closest first; spellings that differ in case lead."""
        import difflib

        with self._database.reading() as connection:
            known = listing.known_keys(connection)
        same = [key for key in known if key.casefold() == session_key.casefold()]
        close = difflib.get_close_matches(session_key, known, n=3)
        return list(dict.fromkeys([*same, *close]))[:3]

    def ended_children(self, watcher: str) -> Iterator[Event]:
        """Ends of child runs newer than what a watcher has seen of them; they open no notice."""
        for report in self.cursors(watcher=watcher):
            yield from self.events(
                listing.EventFilter(
                    session_keys=(report.cursor.target,),
                    kinds=("run_completed", "run_failed"),
                    after=report.cursor.seen,
                )
            )

    def inspect(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Ask something of another table of the same file, in a read transaction."""
        with self._database.reading() as connection:
            return question(connection)

    def session_known(self, session_key: str) -> bool | None:
        """Has the session a head, an event, a cursor, a link or a session row? None: cannot be known."""
        with self._database.reading() as connection:
            if listing.is_named(connection, session_key):
                return True
        return False if self.embedded else self._surroundings.sessions_exist([session_key])[session_key]

    def cursors(self, *, watcher: str | None = None, target: str | None = None) -> list[CursorReport]:
        """Watches with lag, state, delivery and expiry, by watcher and target."""
        with self._database.reading() as connection:
            found = cursors.select(connection, self._database.shape, watcher=watcher, target=target)
            return list(
                cursors.report(
                    connection,
                    self._database.shape,
                    self._surroundings,
                    found,
                    max_age_ms=self._limits.max_age_ms,
                )
            )

    def notices(self, watcher: str | None = None, *, target: str | None = None) -> list[Notice]:
        """The pending notices of one watcher, about one target, or all."""
        with self._database.reading() as connection:
            found = cursors.select(connection, self._database.shape, watcher=watcher, target=target)
            return list(notices.describe(connection, self._raised(found)))

    def plan_prune(self, limits: Limits | None = None) -> Pruned:
        """What `prune` would remove now."""
        from ..core import retention

        with self._database.reading() as connection:
            return retention.plan(connection, limits or self._limits, now=self._clock())

    def plan_forget(self, session_key: str, *, agent_id: str | None = None) -> Forgotten:
        """What `forget` would remove."""
        from ..core import lifecycle

        with self._database.reading() as connection:
            return lifecycle.plan_forget(connection, session_key, self._agent(session_key, agent_id))

    def link(self, session_key: str, *, agent_id: str | None = None) -> Link | None:
        """The upstream link of a session."""
        from ..upstream import links

        with self._database.reading() as connection:
            return links.read(connection, session_key, self._agent(session_key, agent_id))

    def links(self) -> list[tuple[Link, bool]]:
        """Every upstream link, by catalog and key, and whether its session is watched."""
        from ..upstream import links

        with self._database.reading() as connection:
            return links.listing(connection)

    def unlinked(self) -> list[Unlinked]:
        """Adopted sessions that have no upstream link, by key."""
        from ..upstream import adopted

        with self._database.reading() as connection:
            return adopted.unlinked(connection)

    def watched_links(self) -> dict[str, list[Link]]:
        """The links that the upstream monitor visits, by catalog."""
        from ..upstream import links

        with self._database.reading() as connection:
            return links.watched(connection)
