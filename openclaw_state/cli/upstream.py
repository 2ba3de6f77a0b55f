"""What stands behind upstream links: sessions, catalogs and streaks, for a log and an environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from ..host.liveness import Gateway, living_since
from ..host.surroundings import StateDirectory
from ..log.reading import Reading
from ..upstream import gate
from ..upstream.catalogs import standard_catalogs
from ..upstream.embedded import EmbeddedSessions
from ..upstream.monitor import Catalog
from ..upstream.sessions import AgentSessions, Runner, Sessions

if TYPE_CHECKING:
    from ..sidecar import Streaks


def sessions_of(
    log: Reading, environ: Mapping[str, str], gateway: Gateway | None, *, strict: bool = False
) -> Sessions:
    """The sessions of a log: those of OpenClaw's agents, or of the tool's own file.

    Only a gateway that may be alive can have a run going.
    """
    if log.embedded:
        return EmbeddedSessions(lambda key, agent: _own_texts(log.path, key, agent))
    root = log.location.state_dir
    if root is None:
        return AgentSessions(_no_store, strict=strict)
    runner = None
    if gateway is not None and gateway.maybe_alive:
        runner = Runner(living_since(root, gateway) if gateway.state == "alive" else None)
    return AgentSessions(StateDirectory(root, environ=environ).agent_store, strict=strict, runner=runner)


def catalogs_of(
    log: Reading, environ: Mapping[str, str], *, ungated: bool = False, strict: bool = False
) -> dict[str, Catalog]:
    """The catalogs of a log. The tool's own file has no gate; OpenClaw's has, unless it is to be open."""
    root = log.location.state_dir
    allowed = ungated or log.embedded
    allowed = allowed or (root is not None and gate.is_home_allowed(environ, gate.account_home(), root))
    return standard_catalogs(environ, home_allowed=allowed, strict=strict)


def streaks_of(log: Reading) -> Streaks:
    """The streaks of missing checks that the monitor keeps. Raises StorageError."""
    from ..sidecar import Sidecar

    return Sidecar().streaks(log.path)


def _own_texts(path: str, session_key: str, agent_id: str) -> list[str]:
    from ..sidecar import Sidecar

    return Sidecar().own_texts(path, session_key, agent_id)


def _no_store(agent: str) -> str:
    raise ConfigurationError(f"no store of the agent {agent} beside this file")
