"""Where the per-agent session stores stand that OpenClaw keeps beside its state database."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..core.failures import from_os
from ..core.keys import fold, normalize_agent_id
from ..core.opening import connect
from ..errors import NoDatabaseError, StateError

AGENT_FILE = "openclaw-agent.sqlite"


class Store(NamedTuple):
    """The session store of one agent: its database, and where the sessions.json of 2026.7.1 would be.

    known_by tells where the agent was found: `directory`, `registry` or `configuration`.
    """

    agent_id: str
    path: str
    legacy_path: str | None = None
    known_by: tuple[str, ...] = ()

    @property
    def has_legacy(self) -> bool:
        return self.legacy_path is not None and os.path.isfile(self.legacy_path)


def store_of(state_dir: str, agent_id: str, template: str | None = None) -> Store:
    """The store of an agent; template is a configured `session.store`."""
    legacy = os.path.join(state_dir, "agents", agent_id, "sessions", "sessions.json")
    if template is None:
        return Store(agent_id, default_store(state_dir, agent_id), legacy)
    named = template.replace("{agentId}", agent_id)
    return Store(
        agent_id,
        configured_store(template, agent_id),
        named if os.path.basename(named) == "sessions.json" else legacy,
    )


def find_stores(
    state_dir: str,
    *,
    template: str | None = None,
    registered: Iterable[str] = (),
    configured: Iterable[str] = (),
) -> list[Store]:
    """The store of every agent, by id: of directories, of `agent_databases`, of the configuration.

    An agent that is only configured, and has no store yet, is left out: it has nothing to read.
    Raises AccessError or StorageError when the directories cannot be listed.
    """
    found: dict[str, list[str]] = {}
    for source, agents in (
        ("directory", _directories(state_dir)),
        ("registry", registered),
        ("configuration", configured),
    ):
        for agent in agents:
            found.setdefault(agent, []).append(source)
    stores = [
        store_of(state_dir, agent, template)._replace(known_by=tuple(sources))
        for agent, sources in sorted(found.items())
    ]
    return [
        store
        for store in stores
        if store.known_by != ("configuration",) or store.has_legacy or os.path.exists(store.path)
    ]


def _directories(state_dir: str) -> Iterator[str]:
    folder = os.path.join(state_dir, "agents")
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise from_os(error, folder) from error
    yield from (name for name in names if normalize_agent_id(name) == name)


def default_store(state_dir: str, agent_id: str) -> str:
    """The physical path of an agent's session database."""
    return os.path.realpath(os.path.join(state_dir, "agents", agent_id, "agent", AGENT_FILE))


def configured_store(template: str, agent_id: str) -> str:
    """The database that a configured `session.store` means (contract, signal-log section 10)."""
    path = template.replace("{agentId}", agent_id)
    folder, name = os.path.split(path)
    if name == "sessions.json":
        parent, last = os.path.split(folder)
        own = os.path.basename(os.path.dirname(parent)) == "agents" and last == "sessions"
        path = os.path.join(parent, "agent", AGENT_FILE) if own else os.path.join(folder, AGENT_FILE)
    else:
        path = os.path.join(folder, os.path.splitext(name)[0] + ".sqlite")
    return os.path.realpath(path)


def session_rows(path: str, keys: Iterable[str]) -> dict[str, str | None] | None:
    """key -> status of the session rows that exist under these keys; None when the store is unreadable.

    A store that is not there holds no session. Keys are compared in their folded spelling.
    """
    spelled = {key: fold(key) for key in keys}
    try:
        connection, _ = connect(path)
    except NoDatabaseError:
        return {}
    except StateError:
        return None
    try:
        found = dict(
            connection.execute(
                "SELECT session_key, status FROM session_nodes"
                " WHERE session_key IN (SELECT value FROM json_each(?))",
                (json.dumps(sorted(set(spelled.values()))),),
            ).fetchall()
        )
    except sqlite3.Error:
        return None
    finally:
        connection.close()
    return {key: found[canonical] for key, canonical in spelled.items() if canonical in found}
