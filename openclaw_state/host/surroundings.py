"""What an OpenClaw state directory answers to the core's questions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property

from ..core.javascript import trim
from ..core.keys import agent_of
from ..core.surroundings import STORE_UNKNOWN
from ..errors import ConfigurationError, StateError
from ..model import Cursor, Delivery
from .agentdb import configured_store, default_store, session_rows
from .config import load
from .location import absolute


class StateDirectory:
    """The per-agent stores of one state directory.

    store is a configured `session.store` template; without one openclaw.json is asked, and where
    that cannot be read, paths and delivery are unknown.
    """

    def __init__(
        self, root: str, *, store: str | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self.root = root
        self._given = store
        self._environ = os.environ if environ is None else environ

    @cached_property
    def _configured(self) -> tuple[str | None, str | None]:
        """The template in force, and why it cannot be known; read once, when it first matters."""
        if self._given is not None:
            return self._given, None
        try:
            return store_template(load(self.root, self._environ).data, self._environ), None
        except StateError as error:
            return None, error.message

    @property
    def _template(self) -> str | None:
        return self._configured[0]

    @property
    def _doubt(self) -> str | None:
        return self._configured[1]

    def store_path(self, watcher: str) -> str | None:
        agent = agent_of(watcher)
        return None if self._doubt or agent is None else self._store(agent)

    def delivery(self, cursor: Cursor) -> Delivery:
        if cursor.store_path is None:
            return STORE_UNKNOWN
        if self._doubt:
            return Delivery(None, "unknown", self._doubt)
        if cursor.store_path == self.store_path(cursor.watcher):
            return Delivery(True, "yes", "the watcher's store is the current one")
        return Delivery(False, "other store", f"the watch names {cursor.store_path}")

    def sessions_exist(self, keys: Iterable[str]) -> dict[str, bool | None]:
        answers: dict[str, bool | None] = {}
        by_agent: dict[str, list[str]] = {}
        for key in keys:
            agent = agent_of(key)
            if agent is None:
                answers[key] = None
            else:
                by_agent.setdefault(agent, []).append(key)
        for agent, own in by_agent.items():
            rows = session_rows(self._store(agent), own) if self._has_stores else None
            for key in own:
                known = rows is not None and (key in rows or not self._doubt)
                answers[key] = key in rows if known and rows is not None else None
        return answers

    @property
    def _has_stores(self) -> bool:
        """A directory without any agent store, such as a moved database, can answer nothing."""
        return self._template is not None or os.path.isdir(os.path.join(self.root, "agents"))

    def is_busy(self, key: str) -> bool | None:
        agent = agent_of(key)
        rows = session_rows(self._store(agent), [key]) if agent else None
        return None if rows is None else rows.get(key) == "running"

    def agent_store(self, agent: str) -> str:
        """The database of an agent. Raises ConfigurationError when another one may be configured."""
        if self._doubt:
            raise ConfigurationError(self._doubt, hint="OpenClaw's configuration decides where sessions are")
        return self._store(agent)

    def _store(self, agent: str) -> str:
        return configured_store(self._template, agent) if self._template else default_store(self.root, agent)


def store_template(config: Mapping[str, object], environ: Mapping[str, str]) -> str | None:
    """The absolute path that `session.store` configures, with its `{agentId}`; None for the default."""
    session = config.get("session")
    store = session.get("store") if isinstance(session, Mapping) else None
    named = trim(store) if isinstance(store, str) else ""
    return absolute(named, environ) if named else None
