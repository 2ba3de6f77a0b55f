"""Which session stores a command reads, what came of each, and the log beside them."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import closing
from typing import Any, NamedTuple

from ..core.failures import translated
from ..core.keys import agent_of, normalize_agent_id
from ..core.listing import Standing, standing
from ..errors import AgentSelectionError, ConfigurationError, NoDatabaseError, StateError
from ..host.agentdb import Store, find_stores, store_of
from ..host.agentrows import StoreContents, StoreRow, open_store, probe_store, read_store
from ..host.location import Location
from ..host.registry import Registered, acp_sessions, registered_stores
from ..host.surroundings import store_template
from ..log.reading import Reading
from ..sessions.agents import MAIN, owner, roster
from ..sessions.listing import Defaults, Listed
from ..sessions.models import AcpRow
from .options import Call
from .sessions_place import Configuration, configuration, state_dir

IMPORT = "stop the gateway, then: openclaw doctor --fix (openclaw doctor --session-sqlite dry-run shows it)"
REPAIR = "stop the gateway, then: openclaw doctor --fix"


class Problem(NamedTuple):
    """What is wrong with one agent's store, or with one row of it; the other agents go on."""

    agent_id: str
    path: str
    code: str
    message: str
    hint: str | None = None
    session_key: str | None = None

    def view(self) -> dict[str, Any]:
        return {
            "agentId": self.agent_id,
            "path": self.path,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "sessionKey": self.session_key,
        }


class Surroundings(NamedTuple):
    """What a command about sessions stands on.

    stores are those that are meant, others the agents besides; log None where no state database
    can be read.
    """

    place: Location
    config: Configuration
    stores: list[Store]
    others: list[str]
    log: Reading | None
    standing: Standing | None
    acp: dict[str, tuple[str, str]]
    registered: list[Registered]
    warnings: tuple[str, ...]

    def listed(self, row: StoreRow, agent_id: str) -> Listed:
        known = self.acp.get(row.key)
        acp = AcpRow(*known) if known else None
        owner_id = agent_of(row.key) or agent_id
        return Listed(row.key, row.entry, owner_id, row.owner, row.participants, acp)

    def defaults(self) -> Defaults:
        return Defaults(self.config.data)


class ReadStores(NamedTuple):
    """The stores that could be read, and what is wrong; failures are the errors of the others."""

    contents: list[tuple[Store, StoreContents]]
    problems: list[Problem]
    failures: list[StateError]
    remarks: list[str]

    def require_one(self) -> None:
        """Raise what kept every store from being read: nothing was seen, so nothing can be said."""
        if self.contents or not self.failures:
            return
        first = self.failures[0]
        message = "; ".join(problem.message for problem in self.problems)
        raise type(first)(message, hint=first.hint, **first.details)


def surroundings(call: Call, *, every: bool = False, key: str | None = None) -> Surroundings:
    """The configuration, the state database if there is one, and the stores that are meant.

    Raises ConfigurationError, and NoDatabaseError where no agent has a store.
    """
    config = configuration(call)
    directory, via = state_dir(call)
    if directory is None:
        place = call.location()
        store = _lone_store(place.path)
        return Surroundings(place, config, [store], [], None, None, {}, [], config.warnings)
    log, place, warnings = _log(call, directory, via)
    marks = log.inspect(standing) if log else None
    registered = log.inspect(registered_stores) if log else []
    acp = log.inspect(acp_sessions) if log else {}
    template = store_template(config.data, call.terminal.environ)
    found = find_stores(
        directory,
        template=template,
        registered=(one.agent_id for one in registered),
        configured=roster(config.data) or (),
    )
    stores = _meant(call, config, directory, template, found, every=every, key=key)
    meant = {store.agent_id for store in stores}
    others = [store.agent_id for store in found if store.agent_id not in meant]
    return Surroundings(
        place, config, stores, others, log, marks, acp, registered, (*config.warnings, *warnings)
    )


def _lone_store(path: str) -> Store:
    """An agent database away from its state directory, which names its agent."""
    with translated(path), closing(open_store(path)) as connection:
        shape = probe_store(connection)
    if shape.agent_id is None and not shape.has_sessions:
        raise ConfigurationError(
            f"{path} is no agent's database, and has no state directory around it",
            hint="name that with --state-dir, or an openclaw-agent.sqlite with --db",
        )
    return Store(shape.agent_id or MAIN, path)


def _log(call: Call, directory: str, via: str) -> tuple[Reading | None, Location, list[str]]:
    """The state database; without it the sessions can be listed, though not their versions."""
    place = call.location()
    if place.state_dir is None:
        place = Location(os.path.join(directory, "state", "openclaw.sqlite"), via, state_dir=directory)
    try:
        log = Reading(place, clock=lambda: call.now)
    except StateError as error:
        return None, place, [f"{error.message}; state versions and watchers are unknown"]
    return call.terminal.opened.enter_context(log), place, log.warnings


def _meant(
    call: Call,
    config: Configuration,
    directory: str,
    template: str | None,
    found: list[Store],
    *,
    every: bool,
    key: str | None,
) -> list[Store]:
    """The stores of --agent, of all agents, of a key's agent, or as OpenClaw the default agent's."""
    agent = normalize_agent_id(call.agent) if call.agent else agent_of(key) if key else None
    if agent is None and not every:
        try:
            agent = owner(config.data).agent_id
        except AgentSelectionError:
            every = True
    if agent is not None and not every:
        return [next((one for one in found if one.agent_id == agent), store_of(directory, agent, template))]
    if not found:
        raise NoDatabaseError(f"no agent of {directory} has a session store", hint="check the path")
    return found


def read_stores(
    around: Surroundings,
    *,
    wanted: Collection[str] | None = None,
    key: str | None = None,
    sizes: bool = False,
) -> ReadStores:
    """Read each store; what fails there is a problem of that agent alone."""
    done = ReadStores([], [], [], [])
    for store in around.stores:
        who = f"agent {store.agent_id}"
        try:
            contents = read_store(store.path, wanted=wanted, key=key, sizes=sizes)
        except StateError as error:
            failure = _legacy(store) if store.has_legacy and isinstance(error, NoDatabaseError) else error
            code = "legacy_store" if failure is not error else error.code
            done.failures.append(failure)
            done.problems.append(
                Problem(store.agent_id, store.path, code, f"{who}: {failure.message}", failure.hint)
            )
            continue
        done.contents.append((store, contents))
        if contents.shape.remark:
            done.remarks.append(f"{who}: {contents.shape.remark}")
        if store.has_legacy:
            done.remarks.append(f"{who}: {store.legacy_path} is left from before the import")
        done.problems.extend(
            Problem(
                store.agent_id,
                store.path,
                "invalid_row",
                f"{who}: OpenClaw refuses the whole store because of {bad.key}: {bad.reason}",
                REPAIR,
                bad.key,
            )
            for bad in contents.invalid
        )
    return done


def _legacy(store: Store) -> NoDatabaseError:
    return NoDatabaseError(
        f"its sessions stand in {store.legacy_path}, which is not imported: there is no {store.path}",
        hint=IMPORT,
    )
