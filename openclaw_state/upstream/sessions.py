"""The sessions behind upstream links: their current ids, and the texts that they sent themselves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

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

# The column says it; only where it is NULL, the entry itself does (contract, agent-loop section 2.4).
_RUNNING = (
    "SELECT current_session_id, json_extract(entry_json, '$.lifecycleRunId'),"
    " json_extract(entry_json, '$.startedAt') FROM session_nodes"
    " WHERE entry_valid <> -1 AND coalesce(status, json_extract(entry_json, '$.status')) = 'running'"
    " AND session_key IN (SELECT value FROM json_each(?))"
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
        """The session's newest own texts, normalised, oldest first. Raises what keeps it from knowing.

        Where only hashes of them are kept, they are `HashedTexts`, which are asked in the same way.
        """

    def run_active(self, session_id: str) -> bool:
        """Is a run of this session known to be active?"""

    def close(self) -> None:
        """End of a tick: what was opened for it is closed."""


class Runner(NamedTuple):
    """A gateway that may be alive: only with one can a run be active.

    since is when its life began (epoch ms), None where that is unknown; a run that started
    before belongs to an earlier life and has ended.
    """

    since: int | None = None


class AgentSessions:
    """Sessions in the agents' own databases, opened read-only, each once a tick.

    store_of gives the path of an agent's database, or raises. What a gateway keeps in memory
    cannot be seen; a run counts as active where the session's row says that one is running and
    there is a runner.
    """

    def __init__(
        self, store_of: Callable[[str], str], *, strict: bool = False, runner: Runner | None = None
    ) -> None:
        self._store_of = store_of
        self._strict = strict
        self._runner = runner
        self._active: set[str] = set()
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
        """As the rows were when the session's entry was last read."""
        return session_id in self._active

    def close(self) -> None:
        self._active.clear()
        while self._open:
            self._open.popitem()[1].close()

    def _session_ids(self, agent: str, keys: list[str]) -> dict[str, str]:
        path = self._store_of(agent)
        try:
            connection = self._connection(path)
        except NoDatabaseError:
            return {}
        named = (json.dumps(keys),)
        with translated(path):
            found = {key: sid for key, sid in connection.execute(_ENTRIES, named) if sid}
            if self._runner:
                running = connection.execute(_RUNNING, named).fetchall()
                self._active -= set(found.values())
                self._active |= {sid for sid, run, began in running if run and self._runs(began)}
        return found

    def _runs(self, began: object) -> bool:
        since = self._runner.since if self._runner else None
        return since is None or not isinstance(began, int | float) or began >= since

    def _connection(self, path: str) -> sqlite3.Connection:
        if path not in self._open:
            self._open[path], _ = connect(path)
        return self._open[path]
