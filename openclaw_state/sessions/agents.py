"""Who the agents of a configuration are, and what stands for their main sessions.

Contract, sessions sections 1.4 (roster and owner) and 1.5 (aliases).
"""

from __future__ import annotations

from typing import NamedTuple

from ..core import keys
from ..core.javascript import trim
from ..errors import AgentSelectionError
from .document import Document, items, member, section, text_of

MAIN = "main"
SENTINELS = ("global", "unknown")


class Owner(NamedTuple):
    """The agent to whom a bare key or an unbound message belongs, and by what."""

    agent_id: str
    rule: str


def roster(config: Document) -> list[str] | None:
    """The ids of the configured agents, in the order of the file; None when none are listed."""
    marks = _marks(config)
    return None if marks is None else list(marks)


def _marks(config: Document) -> dict[str, bool] | None:
    """Agent id -> is it marked as the default; None without a roster."""
    agents = section(config, "agents")
    if agents.get("entries") is not None:
        listed = [(name, entry) for name, entry in section(agents, "entries").items()]
    elif agents.get("list") is not None:
        listed = [(text_of(member(entry, "id")), entry) for entry in items(agents, "list")]
    else:
        return None
    marks: dict[str, bool] = {}
    for name, entry in listed:
        agent = keys.normalize_agent_id(name)
        marks[agent] = marks.get(agent, False) or member(entry, "default") is True
    return marks


def owner(config: Document) -> Owner:
    """Raises AgentSelectionError when several agents are equally entitled."""
    marks = _marks(config)
    found = _appointed(config, marks)
    if found is None and marks is None:
        found = Owner(MAIN, "no agents are configured")
    if found is None and marks is not None and len(marks) == 1:
        found = Owner(next(iter(marks)), "the only agent")
    if found is None:
        raise AgentSelectionError(
            "the configuration does not say which agent is meant",
            hint="name the agent, or mark one as the default in openclaw.json",
        )
    return found


def _appointed(config: Document, marks: dict[str, bool] | None) -> Owner | None:
    known = [MAIN] if marks is None else list(marks)
    if member(config, "agents", "ownership") == "explicit":
        named = text_of(member(config, "agents", "defaults", "systemAgent", "agentId"))
        agent = keys.normalize_agent_id(named)
        return Owner(agent, "agents.defaults.systemAgent.agentId") if named and agent in known else None
    marked = [agent for agent, is_default in (marks or {}).items() if is_default]
    return Owner(marked[0], "marked as the default") if len(marked) == 1 else None


def main_key(config: Document) -> str:
    return keys.normalize_main_key(text_of(member(config, "session", "mainKey")))


def is_global(config: Document) -> bool:
    """Do all main sessions share the row `global`?"""
    return bool(member(config, "session", "scope") == "global")


def main_session(agent_id: str, config: Document) -> str:
    return keys.qualify(agent_id, main_key(config))


def is_main_alias(key: str, agent_id: str, config: Document) -> bool:
    """Does this text, compared exactly, stand for the main session of an agent?"""
    agents, names = (keys.normalize_agent_id(agent_id), MAIN), (MAIN, main_key(config))
    return key in names or key in {keys.qualify(agent, name) for agent in agents for name in names}


def main_alias(key: str, agent_id: str, config: Document) -> str:
    """The main session where the key is an alias of it, else the key, trimmed."""
    trimmed = trim(key)
    if not is_main_alias(trimmed, agent_id, config):
        return trimmed
    return "global" if is_global(config) else main_session(keys.normalize_agent_id(agent_id), config)
