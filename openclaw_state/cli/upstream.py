"""What stands behind upstream links: sessions, catalogs and streaks, for a database and an environment."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ConfigurationError
from ..log.reading import Reading
from ..sidecar import Sidecar, Streaks
from ..upstream import gate
from ..upstream.catalogs import standard_catalogs
from ..upstream.embedded import EmbeddedSessions
from ..upstream.monitor import Catalog
from ..upstream.sessions import AgentSessions, Runner, Sessions
from .overview import gateway_of


def sessions_of(log: Reading, environ: Mapping[str, str], *, now: int, strict: bool = False) -> Sessions:
    """The sessions of a log: those of OpenClaw's agents, or of the tool's own file."""
    if log.embedded:
        return EmbeddedSessions(lambda key, agent: Sidecar().own_texts(log.path, key, agent))
    root = log.location.state_dir
    if root is None:
        return AgentSessions(_no_store, strict=strict)
    from ..host.liveness import living_since
    from ..host.surroundings import StateDirectory

    gateway = gateway_of(log, now)
    runner = Runner(living_since(root, gateway)) if gateway and gateway.maybe_alive else None
    return AgentSessions(StateDirectory(root, environ=environ).agent_store, strict=strict, runner=runner)


def _no_store(agent: str) -> str:
    raise ConfigurationError(f"no store of the agent {agent} beside this file")


def catalogs_of(log: Reading, environ: Mapping[str, str], *, strict: bool = False) -> dict[str, Catalog]:
    """The catalogs of a log. The tool's own file has no gate; OpenClaw's has its own."""
    root = log.location.state_dir
    allowed = log.embedded or (root is not None and gate.is_home_allowed(environ, gate.account_home(), root))
    return standard_catalogs(environ, home_allowed=allowed, strict=strict)


def streaks_of(log: Reading) -> Streaks:
    """The streaks of missing checks that the monitor keeps. Raises StorageError."""
    return Sidecar().streaks(log.path)
