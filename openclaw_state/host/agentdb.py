"""The per-agent session stores that OpenClaw keeps beside its state database."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable

from ..core.keys import fold
from ..core.opening import connect
from ..errors import NoDatabaseError, StateError

AGENT_FILE = "openclaw-agent.sqlite"


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
