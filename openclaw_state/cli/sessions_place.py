"""What the commands about sessions read: the configuration, and each agent's session store."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

from ..core.failures import translated
from ..core.keys import normalize_agent_id
from ..core.opening import connect
from ..errors import BadDatabaseError, NotFoundError
from ..host.agentdb import Store, find_stores, store_of
from ..host.agentrows import InvalidRow, open_store, probe_store, read_store
from ..host.config import config_path, load, load_file
from ..host.location import Location, openclaw_state_dir
from ..host.messages import transcripts
from ..host.surroundings import store_template
from ..sessions.agents import MAIN, owner, roster
from ..sessions.document import Document, text_of
from ..sessions.protection import StoredSession
from ..sessions.rules import ChosenRules, choose_rules
from .options import Call

# What maintenance, its protections and its table look at in an entry; it may hold much more.
MAINTAINED = frozenset(
    {
        "archiveReason",
        "archivedAt",
        "chatType",
        "delivery",
        "endedAt",
        "initializationPending",
        "label",
        "lastActivityAt",
        "lastInteractionAt",
        "model",
        "modelSelectionLocked",
        "parentSessionKey",
        "pinnedAt",
        "sessionId",
        "sessionStartedAt",
        "spawnedBy",
        "startedAt",
        "status",
        "updatedAt",
    }
)


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

    headers are the first rows of transcripts by key, where an entry needs one.
    """

    agent_id: str
    path: str
    rows: tuple[StoredSession, ...]
    rules: ChosenRules
    warnings: tuple[str, ...] = ()
    headers: Mapping[str, Document] = {}

    def row(self, key: str, *, spelling: str) -> StoredSession:
        """The session of exactly this key.

        Raises NotFoundError, which names the spelling under which a store would keep it.
        """
        for row in self.rows:
            if row.key == key:
                return row
        hint = f"OpenClaw keeps it as {spelling}" if spelling != key else f"{self.path} was read"
        raise NotFoundError(f"agent {self.agent_id} has no session {key!r}", hint=hint)


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
    """The agents meant: --agent, all that have a store, or the owner by the configuration."""
    if call.flag("agent"):
        return [normalize_agent_id(call.flag("agent"))]
    directory, _ = state_dir(call)
    if directory is None:
        with closing(open_store(call.location().path)) as connection:
            return [probe_store(connection).agent_id or MAIN]
    if not everyone:
        return [owner(config.data).agent_id]
    stores = find_stores(
        directory,
        template=store_template(config.data, call.terminal.environ),
        configured=roster(config.data) or (),
    )
    return [store.agent_id for store in stores] or [MAIN]


def agent_store(
    call: Call,
    config: Configuration,
    agent_id: str,
    *,
    rules: str = "auto",
    key: str | None = None,
    messages: bool = False,
) -> AgentStore:
    """Read an agent's sessions, as far as maintenance looks at them; or one, by its key, whole.

    messages also looks whether each transcript has a message.

    Raises NoDatabaseError where there are none, BadDatabaseError for tables that this tool does
    not know.
    """
    directory, _ = state_dir(call)
    place = (
        Store(agent_id, call.location().path)
        if directory is None
        else store_of(directory, agent_id, store_template(config.data, call.terminal.environ))
    )
    if place.has_legacy and not _has_sessions(place.path):
        return _legacy_store(place, rules)
    contents = read_store(place.path, wanted=MAINTAINED if key is None else None, key=key)
    chosen = choose_rules(rules, app_version=contents.shape.app_version)
    known = transcripts(place.path, messages=messages) if key is None else None
    rows = [
        StoredSession(
            row.key,
            row.entry,
            None if known is None else row.session_id in known,
            None if known is None else known.get(row.session_id, False),
        )
        for row in sorted(contents.rows, key=lambda row: row.key.encode("utf-8", "surrogatepass"))
    ]
    headers = {row.key: row.header for row in contents.rows if row.header is not None}
    said = _said(chosen.warning, contents.shape.remark, _invalid_warning(contents.invalid))
    return AgentStore(agent_id, place.path, tuple(rows), chosen, said, headers)


def _has_sessions(path: str) -> bool:
    if not os.path.exists(path):
        return False
    with closing(open_store(path)) as connection:
        return probe_store(connection).has_sessions


def _said(*texts: str | None) -> tuple[str, ...]:
    return tuple(filter(None, texts))


def _invalid_warning(rows: list[InvalidRow]) -> str | None:
    if not rows:
        return None
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    return (
        f"OpenClaw refuses the store for an invalid row: {rows[0].key}, {rows[0].reason}{more};"
        " with the gateway stopped, `openclaw doctor --fix` repairs it"
    )


def _legacy_store(place: Store, rules: str) -> AgentStore:
    """The sessions of a sessions.json that was never imported."""
    path = str(place.legacy_path)
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except ValueError as error:
        raise BadDatabaseError(f"{path} is no JSON: {error}") from error
    rows, headers = [], {}
    for key, entry in (data if isinstance(data, Mapping) else {}).items():
        if not isinstance(entry, Mapping):
            continue
        first = _first_line(path, text_of(entry.get("sessionId")))
        rows.append(StoredSession(key, entry, first is not None))
        if first:
            headers[key] = first
    note = f"{path} is not imported; with the gateway stopped, `openclaw doctor --fix` does that"
    chosen = choose_rules(rules, has_session_table=False, has_legacy_store=True)
    return AgentStore(place.agent_id, path, tuple(rows), chosen, _said(chosen.warning, note), headers)


def _first_line(store: str, session_id: str) -> Document | None:
    """The first row of a transcript beside a sessions.json; None where there is no transcript."""
    try:
        with open(os.path.join(os.path.dirname(store), f"{session_id}.jsonl"), encoding="utf-8") as file:
            header = json.loads(file.readline() or "{}")
    except OSError:
        return None
    except ValueError:
        return {}
    return header if isinstance(header, Mapping) else {}


def place_of(call: Call, store: AgentStore) -> Location:
    """The store as a document names it, chosen by the rule that chose its state directory."""
    return call.location()._replace(path=store.path, via=state_dir(call)[1])


def live_jobs(call: Call) -> frozenset[str] | None:
    """The ids of the cron jobs in the state database; None where nobody can tell."""
    place = call.location()
    if place.state_dir is None or not os.path.exists(place.path):
        return None
    with closing(connect(place.path)[0]) as connection, translated(place.path):
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'cron_jobs'").fetchone():
            return None
        return frozenset(row[0] for row in connection.execute("SELECT job_id FROM cron_jobs"))
