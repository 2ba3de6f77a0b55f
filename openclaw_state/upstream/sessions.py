"""The sessions behind upstream links: their current ids, and the texts that they sent themselves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from ..core.failures import translated
from ..core.keys import agent_of, normalize_agent_id
from ..core.opening import connect
from ..errors import NoDatabaseError
from ..model import Link
from . import own_texts

_ENTRIES = (
    "SELECT session_key, current_session_id FROM session_nodes"
    " WHERE entry_valid <> -1 AND session_key IN (SELECT value FROM json_each(?))"
)

# Session key and agent: what names a link.
LinkKey = tuple[str, str]


def link_key(link: Link) -> LinkKey:
    return link.session_key, link.agent_id


class Sessions(Protocol):
    """What the monitor asks about sessions; the answers may change between two questions."""

    def entries(self, links: Iterable[Link]) -> Mapping[LinkKey, str | Exception]:
        """The current session id of each link, or why it cannot be read; absent without an entry."""

    def own_texts(self, link: Link, session_id: str) -> tuple[str, ...]:
        """The session's newest own texts, normalised, oldest first. Raises what keeps it from knowing."""

    def run_active(self, session_id: str) -> bool:
        """Is a run of this session known to be active?"""

    def close(self) -> None:
        """End of a tick: what was opened for it is closed."""


class AgentSessions:
    """Sessions in the agents' own databases, opened read-only, each once a tick.

    store_of gives the path of an agent's database, or raises. Active runs are the memory of a
    gateway's process: without one there are none, so run_active is given from outside.
    """

    def __init__(
        self,
        store_of: Callable[[str], str],
        *,
        strict: bool = False,
        run_active: Callable[[str], bool] | None = None,
    ) -> None:
        self._store_of = store_of
        self._strict = strict
        self._run_active = run_active
        self._open: dict[str, sqlite3.Connection] = {}

    def entries(self, links: Iterable[Link]) -> dict[LinkKey, str | Exception]:
        by_agent: dict[str, list[Link]] = {}
        for link in links:
            by_agent.setdefault(normalize_agent_id(link.agent_id), []).append(link)
        found: dict[LinkKey, str | Exception] = {}
        for agent, own in by_agent.items():
            try:
                ids = self._session_ids(agent, [link.session_key for link in own])
            except Exception as error:
                found |= {link_key(link): error for link in own}
                continue
            found |= {link_key(link): ids[link.session_key] for link in own if link.session_key in ids}
        return found

    def own_texts(self, link: Link, session_id: str) -> tuple[str, ...]:
        agent = normalize_agent_id(link.agent_id)
        named = agent_of(link.session_key)
        if named is not None and named != agent:
            raise own_texts.OwnTextsError(f"the key names the agent {named}, the link {link.agent_id}")
        path = self._store_of(agent)
        connection = self._connection(path)
        with translated(path):
            connection.execute("BEGIN")
            try:
                return own_texts.read(connection, session_id, strict=self._strict)
            finally:
                connection.rollback()

    def run_active(self, session_id: str) -> bool:
        return self._run_active is not None and self._run_active(session_id)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _session_ids(self, agent: str, keys: list[str]) -> dict[str, str]:
        path = self._store_of(agent)
        try:
            connection = self._connection(path)
        except NoDatabaseError:
            return {}
        with translated(path):
            return {key: sid for key, sid in connection.execute(_ENTRIES, (json.dumps(keys),)) if sid}

    def _connection(self, path: str) -> sqlite3.Connection:
        if path not in self._open:
            self._open[path], _ = connect(path)
        return self._open[path]


class EmbeddedSessions:
    """The tool's own file: every session is its key, and nobody keeps what it sent."""

    def entries(self, links: Iterable[Link]) -> dict[LinkKey, str | Exception]:
        return {link_key(link): link.session_key for link in links}

    def own_texts(self, link: Link, session_id: str) -> tuple[str, ...]:
        return ()

    def run_active(self, session_id: str) -> bool:
        return False

    def close(self) -> None:
        return None
