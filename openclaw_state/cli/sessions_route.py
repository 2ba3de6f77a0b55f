"""sessions route: which session a message goes to, and the rule behind each part of its key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import typer

from ..core.keys import normalize_agent_id
from ..errors import RefusedError, UsageError
from ..report.escape import escape
from ..report.text import Column, table
from ..sessions.agents import owner
from ..sessions.bindings import Origin
from ..sessions.document import Document, items, section
from ..sessions.naming import cron_key, hook_key, telegram_group_peer, thread_key
from ..sessions.peers import DM_SCOPES, GROUP_SCOPES, Peer
from ..sessions.routing import Decision, Route, session_key
from .options import Call, Result, command
from .sessions_place import Configuration, configuration

ROUTE_FIELDS = ("scope", "value", "sessionKey", "effective")
_TELEGRAM = "telegram"


class Asked(NamedTuple):
    """A key with its reasons, and the keys under each value of the scope that matters here."""

    session_key: str
    decisions: tuple[Decision, ...]
    route: Route | None = None
    scopes: tuple[dict[str, Any], ...] = ()


@command("agent", fields=ROUTE_FIELDS)
def route(
    call: Call,
    channel: Annotated[
        str | None, typer.Option("--channel", metavar="NAME", help="The channel, such as telegram.")
    ] = None,
    account: Annotated[
        str | None, typer.Option("--account", metavar="ID", help="The channel's account (default).")
    ] = None,
    dm: Annotated[
        str | None, typer.Option("--dm", metavar="PEER", help="A direct message of this sender.")
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="ID", help="A message in this group.")
    ] = None,
    room: Annotated[
        str | None, typer.Option("--room", metavar="ID", help="A message in this room or channel.")
    ] = None,
    cron: Annotated[str | None, typer.Option("--cron", metavar="JOB", help="A run of this cron job.")] = None,
    hook: Annotated[
        str | None, typer.Option("--hook", metavar="UUID", help="A webhook with this generated id.")
    ] = None,
    requested_key: Annotated[
        str | None,
        typer.Option("--hook-key", metavar="KEY", help="The session key that the hook's request names."),
    ] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="ID", help="In this thread or topic.")
    ] = None,
    guild: Annotated[
        str | None, typer.Option("--guild", metavar="ID", help="The guild, for bindings that name one.")
    ] = None,
    team: Annotated[
        str | None, typer.Option("--team", metavar="ID", help="The team, for bindings that name one.")
    ] = None,
    role: Annotated[
        list[str] | None, typer.Option("--role", metavar="ID", help="A role of the sender; repeatable.")
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="This openclaw.json instead of your own.")
    ] = None,
) -> Result:
    """Name the session key of a message, the rule behind each part, and the key under other scopes."""
    wanted = {"--dm": dm, "--group": group, "--room": room, "--cron": cron, "--hook": hook}
    chosen = [flag for flag, value in wanted.items() if value is not None]
    if len(chosen) != 1:
        raise UsageError(f"say one of {', '.join(wanted)}", hint="for example --channel telegram --dm 123")
    source = chosen[0]
    if requested_key is not None and source != "--hook":
        raise UsageError("--hook-key needs --hook")
    settings = configuration(call, config)
    if source in ("--cron", "--hook"):
        chat: dict[str, Any] = {
            "--channel": channel,
            "--account": account,
            "--thread": thread,
            "--guild": guild,
        }
        chat |= {"--team": team, "--role": role}
        if given := [flag for flag, value in chat.items() if value is not None]:
            raise UsageError(f"{given[0]} means nothing beside {source}")
        owned = _agent(settings.data, call.flag("agent"))
        asked = (
            _cron(settings.data, owned, cron) if cron else _hook(settings.data, owned, hook, requested_key)
        )
    else:
        if channel is None:
            raise UsageError(f"{source} needs --channel")
        if call.flag("agent"):
            raise UsageError("--agent is for --cron and --hook", hint="a chat's agent is what bindings say")
        kind = {"--dm": "direct", "--group": "group", "--room": "channel"}[source]
        peer, parent = _peers(channel, Peer(kind, str(wanted[source])), thread)
        origin = Origin(channel, account or "", peer, parent, guild or "", team or "", tuple(role or ()))
        asked = _chat(origin, settings.data, thread)
    return _result(call, settings, asked)


def _peers(channel: str, peer: Peer, thread: str | None) -> tuple[Peer, Peer | None]:
    """The peer and its parent: a Telegram topic is a peer of its own below its group."""
    if channel.strip().lower() == _TELEGRAM and peer.kind == "group" and thread:
        return Peer(peer.kind, telegram_group_peer(peer.id, thread)), peer
    return peer, None


def _chat(origin: Origin, config: Document, thread: str | None) -> Asked:
    found = session_key(origin, config)
    direct = origin.peer is not None and origin.peer.kind == "direct"
    name, scopes = ("dmScope", DM_SCOPES) if direct else ("groupScope", GROUP_SCOPES)
    effective = found.dm_scope if direct else found.group_scope
    key, suffix = _threaded(found.session_key, origin, thread)
    alternatives = tuple(
        {
            "scope": name,
            "value": value,
            "sessionKey": _threaded(
                session_key(origin, _with_scope(config, name, value)).session_key, origin, thread
            )[0],
            "effective": value == effective,
        }
        for value in scopes
    )
    return Asked(key, (*found.decisions, *suffix), found, alternatives)


def _with_scope(config: Document, name: str, value: str) -> Document:
    """The same configuration with one scope everywhere, in bindings too."""
    bindings = [
        {**binding, "session": {**section(binding, "session"), name: value}}
        if isinstance(binding, Mapping)
        else binding
        for binding in items(config, "bindings")
    ]
    return {**config, "session": {**section(config, "session"), name: value}, "bindings": bindings}


def _threaded(key: str, origin: Origin, thread: str | None) -> tuple[str, tuple[Decision, ...]]:
    if thread is None:
        return key, ()
    if origin.channel.strip().lower() == _TELEGRAM and origin.peer is not None:
        if origin.peer.kind == "group":
            return key, (Decision("thread", thread, "a Telegram topic is part of the group's id"),)
        chat = f"{origin.peer.id}:{thread}"
        return thread_key(key, chat), (Decision("thread", chat, "chat and topic, after the base key"),)
    return thread_key(key, thread), (Decision("thread", thread, "after the base key"),)


def _agent(config: Document, agent: str | None) -> Decision:
    if agent is not None:
        return Decision("agent", normalize_agent_id(agent), "--agent")
    return Decision("agent", *owner(config))


def _cron(config: Document, owned: Decision, job: str) -> Asked:
    rule = "an isolated job; each run adds :run:<session id>"
    return Asked(
        cron_key(f"cron:{job}", owned.value, config), (owned, Decision("job", job.strip().lower(), rule))
    )


def _hook(config: Document, owned: Decision, generated: str | None, requested: str | None) -> Asked:
    found = hook_key(config, source="request", generated_id=generated or "", session_key=requested)
    if found is None:
        raise RefusedError(
            "the hook is refused: its key is not allowed",
            hint="see hooks.allowRequestSessionKey and hooks.allowedSessionKeyPrefixes",
        )
    if requested is not None:
        rule = "the request's own (hooks.allowRequestSessionKey)"
    elif section(config, "hooks").get("defaultSessionKey"):
        rule = "hooks.defaultSessionKey"
    else:
        rule = "generated"
    return Asked(cron_key(found, owned.value, config), (owned, Decision("hook", found, rule)))


def _result(call: Call, settings: Configuration, asked: Asked) -> Result:
    found = asked.route
    body: dict[str, Any] = {
        "configuration": settings.view(),
        "sessionKey": asked.session_key,
        "decisions": [decision._asdict() for decision in asked.decisions],
        "scopes": list(asked.scopes),
    }
    if found is not None:
        body["route"] = {
            "agentId": found.agent_id,
            "channel": found.channel,
            "accountId": found.account_id,
            "dmScope": found.dm_scope,
            "groupScope": found.group_scope,
            "mainSessionKey": found.main_session_key,
            "lastRoutePolicy": found.last_route_policy,
            "matchedBy": found.matched_by,
            "storedKey": found.stored_key,
        }
    return Result(
        "sessions route",
        body,
        text=_text(call, settings, asked),
        rows=asked.scopes,
        warnings=settings.warnings,
    )


def _text(call: Call, settings: Configuration, asked: Asked) -> Iterator[str]:
    yield call.palette.head(escape(asked.session_key))
    yield f"configuration: {escape(settings.line())}"
    yield ""
    decided = [[one.part, one.value, one.rule] for one in asked.decisions]
    columns = [Column("PART"), Column("VALUE"), Column("DECIDED BY")]
    yield from table(columns, decided, width=call.width, palette=call.palette)
    if not asked.scopes:
        return
    yield ""
    heads = [Column("SCOPE"), Column("SESSION"), Column("")]
    cells = [
        [one["value"], one["sessionKey"], "in force" if one["effective"] else ""] for one in asked.scopes
    ]
    yield from table(heads, cells, width=call.width, palette=call.palette)
