"""What the commands about sessions read: the configuration, and each agent's session store."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from ..core.failures import translated
from ..core.keys import normalize_agent_id
from ..core.opening import connect
from ..errors import BadDatabaseError, NoDatabaseError, NotFoundError
from ..host.agentdb import configured_store, default_store
from ..host.config import config_path, load, load_file
from ..host.location import Location, openclaw_state_dir
from ..sessions.agents import owner, roster
from ..sessions.document import Document, member, text_of
from ..sessions.protection import StoredSession
from ..sessions.rules import ChosenRules, choose_rules
from .options import Call

# The newest schema of an agent database that this tool knows.
KNOWN_SCHEMA = 23
_ROLES = frozenset({"user", "assistant", "tool", "toolResult", "system"})


class Configuration(NamedTuple):
    """openclaw.json as it was read; path is None where there is none and the defaults hold."""

    data: Document
    path: str | None
    via: str
    warnings: tuple[str, ...] = ()

    def view(self) -> dict[str, Any]:
        return {"path": self.path, "via": self.via}

    def line(self) -> str:
        return f"{self.path} (via {self.via})" if self.path else f"via {self.via}"


class AgentStore(NamedTuple):
    """One agent's sessions: rows in the order of their keys, and which release wrote them.

    legacy tells that they stand in a sessions.json.
    """

    agent_id: str
    path: str
    rows: tuple[StoredSession, ...]
    rules: ChosenRules
    warnings: tuple[str, ...] = ()
    legacy: bool = False

    def row(self, key: str) -> StoredSession:
        """Raises NotFoundError when no session has exactly this key."""
        for row in self.rows:
            if row.key == key:
                return row
        raise NotFoundError(
            f"agent {self.agent_id} has no session {key!r}", hint=f"{self.path} was read; keys are exact"
        )


def configuration(call: Call, path: str | None = None) -> Configuration:
    """The configuration that holds: the file named, else OpenClaw's own, else its defaults.

    Raises ConfigurationError for a file that is not there though it was named, or that OpenClaw
    would refuse.
    """
    environ = call.terminal.environ
    if path is not None:
        found, via = load_file(path, environ), "--config"
    elif environ.get("OPENCLAW_CONFIG_PATH", "").strip():
        found, via = load_file(config_path("", environ), environ), "OPENCLAW_CONFIG_PATH"
    else:
        directory, via = state_dir(call)
        if directory is None or not os.path.lexists(config_path(directory, environ)):
            return Configuration({}, None, "defaults")
        found = load(directory, environ)
    return Configuration(found.data, found.path, via, found.warnings)


def state_dir(call: Call) -> tuple[str | None, str]:
    """OpenClaw's state directory and the rule that chose it; None for a file on its own."""
    place = call.location()
    if place.embedded:
        return openclaw_state_dir(call.terminal.environ)
    return place.state_dir, place.via


def agents_of(call: Call, config: Configuration, *, everyone: bool = False) -> list[str]:
    """The agents meant: --agent, all that have a directory, or the owner by the configuration."""
    if call.flag("agent"):
        return [normalize_agent_id(call.flag("agent"))]
    place = call.location()
    directory, _ = state_dir(call)
    if directory is None:
        return [text_of(_meta(place.path).get("agent_id")) or "main"]
    if not everyone:
        return [owner(config.data).agent_id]
    known = dict.fromkeys(roster(config.data) or ())
    folder = os.path.join(directory, "agents")
    if os.path.isdir(folder):
        known |= dict.fromkeys(
            name for name in sorted(os.listdir(folder)) if os.path.isdir(os.path.join(folder, name))
        )
    return list(known) or ["main"]


def agent_store(
    call: Call, config: Configuration, agent_id: str, *, rules: str = "auto", messages: bool = False
) -> AgentStore:
    """Read an agent's sessions; messages also looks whether each transcript has one.

    Raises NoDatabaseError where there are none, BadDatabaseError for tables that this tool does
    not know.
    """
    path, legacy = _paths(call, config, agent_id)
    if os.path.exists(path):
        meta = _meta(path)
        found = _database_rows(path, messages=messages)
        if found is not None:
            rows, invalid = found
            chosen = choose_rules(rules, app_version=meta.get("app_version"))
            said = _said(chosen, _schema_warning(meta), _invalid_warning(invalid))
            return AgentStore(agent_id, path, tuple(rows), chosen, said)
    if not legacy or not os.path.exists(legacy):
        if os.path.exists(path):
            raise _unknown_tables(agent_id, meta)
        raise NoDatabaseError(f"agent {agent_id} has no sessions: there is no {path}")
    chosen = choose_rules(rules, has_session_table=False, has_legacy_store=True)
    note = f"{legacy} is not imported; with the gateway stopped, `openclaw doctor --fix` does that"
    return AgentStore(agent_id, legacy, tuple(_legacy_rows(legacy)), chosen, _said(chosen, note), True)


def _paths(call: Call, config: Configuration, agent_id: str) -> tuple[str, str | None]:
    """The database of an agent, and the sessions.json of older releases."""
    directory, _ = state_dir(call)
    if directory is None:
        return call.location().path, None
    template = text_of(member(config.data, "session", "store"))
    path = (
        configured_store(os.path.expanduser(template), agent_id)
        if template
        else default_store(directory, agent_id)
    )
    return path, os.path.join(directory, "agents", agent_id, "sessions", "sessions.json")


def _said(chosen: ChosenRules, *more: str | None) -> tuple[str, ...]:
    return tuple(warning for warning in (chosen.warning, *more) if warning)


def _schema_warning(meta: Mapping[str, Any]) -> str | None:
    version = meta.get("schema_version")
    if version == KNOWN_SCHEMA:
        return None
    return f"the store has schema {version} of {meta.get('app_version')}; this tool knows {KNOWN_SCHEMA}"


def _invalid_warning(keys: list[str]) -> str | None:
    if not keys:
        return None
    named = ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
    return (
        f"OpenClaw refuses the store for its invalid rows ({named});"
        " with the gateway stopped, `openclaw doctor --fix` repairs them"
    )


def _unknown_tables(agent_id: str, meta: Mapping[str, Any]) -> BadDatabaseError:
    return BadDatabaseError(
        f"agent {agent_id}: schema {meta.get('schema_version')} of app {meta.get('app_version')}"
        " has no session table this tool knows"
    )


def _connected(path: str) -> sqlite3.Connection:
    connection, _ = connect(path)
    connection.create_function("octet_length", 1, _octet_length, deterministic=True)
    return connection


def _octet_length(value: Any) -> int | None:
    if value is None:
        return None
    return len(value) if isinstance(value, bytes) else len(str(value).encode())


def _meta(path: str) -> dict[str, Any]:
    with closing(_connected(path)) as connection, translated(path):
        if not _columns(connection, "schema_meta"):
            return {}
        row = connection.execute(
            "SELECT schema_version, agent_id, app_version FROM schema_meta WHERE meta_key = 'primary'"
        ).fetchone()
    return dict(zip(("schema_version", "agent_id", "app_version"), row or (None,) * 3, strict=True))


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def _database_rows(path: str, *, messages: bool) -> tuple[list[StoredSession], list[str]] | None:
    """The rows, and the keys of invalid ones; None where the database has no session table."""
    with closing(_connected(path)) as connection, translated(path):
        nodes = _columns(connection, "session_nodes")
        if not nodes and not _columns(connection, "session_entries"):
            return None
        table, session = (
            ("session_nodes", "current_session_id") if nodes else ("session_entries", "session_id")
        )
        # A dead row keeps the old windows of a key; an older schema marks it by its empty entry.
        valid = "entry_valid" if "entry_valid" in nodes else "CASE entry_json WHEN '{}' THEN -1 ELSE 1 END"
        has = (
            f"EXISTS (SELECT 1 FROM transcript_events WHERE transcript_events.session_id = {table}.{session})"
            if _columns(connection, "transcript_events")
            else "NULL"
        )
        rows, invalid = [], []
        for key, text, session_id, is_valid, has_rows in connection.execute(
            f"SELECT session_key, entry_json, {session}, {valid}, {has} FROM {table}"
            f" WHERE {valid} <> -1 ORDER BY session_key COLLATE BINARY"
        ).fetchall():
            entry = _object(text)
            if entry is None or not is_valid:
                invalid.append(key)
                continue
            has_transcript = None if has_rows is None else bool(has_rows)
            spoken = _has_message(connection, session_id) if messages and has_transcript else has_transcript
            rows.append(StoredSession(key, entry, has_transcript, spoken))
        return rows, invalid


def _object(text: str) -> Document | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, Mapping) else None


def _has_message(connection: sqlite3.Connection, session_id: str) -> bool | None:
    """Contract, sessions section 7.4; None where only compressed rows are left to look at."""
    answer: bool | None = False
    for (text,) in connection.execute(
        "SELECT event_json FROM transcript_events WHERE session_id = ? ORDER BY seq", (session_id,)
    ):
        if text is None:
            answer = None
        elif _is_message(text):
            return True
    return answer


def _is_message(text: str) -> bool:
    try:
        event = json.loads(text)
    except ValueError:
        return False
    if member(event, "type") is not None:
        return bool(member(event, "type") == "message")
    return bool({text_of(member(event, *path)) for path in (("role",), ("message", "role"))} & _ROLES)


def _legacy_rows(path: str) -> Iterator[StoredSession]:
    with open(path, encoding="utf-8") as file:
        try:
            data = json.load(file)
        except ValueError as error:
            raise BadDatabaseError(f"{path} is no JSON: {error}") from error
    for key, entry in (data if isinstance(data, Mapping) else {}).items():
        if isinstance(entry, Mapping):
            transcript = os.path.join(os.path.dirname(path), f"{text_of(entry.get('sessionId'))}.jsonl")
            yield StoredSession(key, entry, os.path.exists(transcript))


def transcript_header(store: AgentStore, entry: Document) -> Document | None:
    """The first row of a session's transcript; None where there is none that can be read."""
    session_id = text_of(entry.get("sessionId"))
    text = _first_line(store.path, session_id) if store.legacy else _first_event(store.path, session_id)
    return _object(text or "")


def _first_event(path: str, session_id: str) -> str | None:
    with closing(_connected(path)) as connection, translated(path):
        if not _columns(connection, "transcript_events"):
            return None
        row = connection.execute(
            "SELECT event_json FROM transcript_events WHERE session_id = ? ORDER BY seq LIMIT 1",
            (session_id,),
        ).fetchone()
    return row[0] if row else None


def _first_line(store: str, session_id: str) -> str | None:
    try:
        with open(os.path.join(os.path.dirname(store), f"{session_id}.jsonl"), encoding="utf-8") as file:
            return file.readline()
    except (OSError, ValueError):
        return None


def place_of(call: Call, store: AgentStore) -> Location:
    """The store as a document names it, chosen by the rule that chose its state directory."""
    return call.location()._replace(path=store.path, via=state_dir(call)[1])


def live_jobs(call: Call) -> frozenset[str] | None:
    """The ids of the cron jobs in the state database; None where nobody can tell."""
    place = call.location()
    if place.state_dir is None or not os.path.exists(place.path):
        return None
    with closing(_connected(place.path)) as connection, translated(place.path):
        if not _columns(connection, "cron_jobs"):
            return None
        return frozenset(row[0] for row in connection.execute("SELECT job_id FROM cron_jobs"))
