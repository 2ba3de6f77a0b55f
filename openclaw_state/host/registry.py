"""What the shared database of a state directory says of agents: their stores, and ACP sessions."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple


class Registered(NamedTuple):
    """A row of `agent_databases`; path is relative to the state directory, or absolute."""

    agent_id: str
    path: str


def registered_stores(connection: sqlite3.Connection) -> list[Registered]:
    """The agent databases that a gateway has opened; none where an old release keeps no list."""
    if not _has(connection, "agent_databases", "agent_id", "path"):
        return []
    rows = connection.execute("SELECT agent_id, path FROM agent_databases ORDER BY agent_id, path")
    return [Registered(*row) for row in rows]


def acp_sessions(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """Session key -> (agent, backend) of the sessions that another agent program runs over ACP."""
    if not _has(connection, "acp_sessions", "session_key", "agent", "backend", "state"):
        return {}
    rows = connection.execute("SELECT session_key, agent, backend FROM acp_sessions WHERE state <> 'closed'")
    return {key: (agent, backend) for key, agent, backend in rows}


def _has(connection: sqlite3.Connection, table: str, *columns: str) -> bool:
    found = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    return found >= set(columns)
