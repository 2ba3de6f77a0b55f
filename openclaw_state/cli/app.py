"""Every command by name, loaded only when it is called: one start pays for one command."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import UsageError
from .options import SHARED

PROGRAM = "openclaw-state"


class Entry(NamedTuple):
    """Where a command lives (`module:function`) and how help lists it."""

    place: str
    group: str
    about: str
    interspersed: bool = True


COMMANDS: dict[str, Entry] = {
    "status": Entry("status:status", "Look", "what changed in a session, or an overview"),
    "version": Entry("look:version", "Look", "the state version alone, for scripts"),
    "list": Entry("look:list_sessions", "Look", "sessions with a version, the latest change first"),
    "tail": Entry("tail:tail", "Look", "events, the newest ten by default"),
    "watch": Entry("watch:watch", "Look", "a live board; in a pipe, the events as they come"),
    "cursors list": Entry("cursors:list_cursors", "Look", "who watches whom, and how far behind"),
    "notices": Entry("notices:notices", "Look", "pending notices, with the exact line"),
    "sessions list": Entry("sessions_list:list_stored", "Sessions", "stored sessions, the latest first"),
    "sessions show": Entry("sessions_show:show", "Sessions", "one stored session, with where its answers go"),
    "sessions route": Entry("sessions_route:route", "Sessions", "which session a message goes to, and why"),
    "sessions freshness": Entry(
        "sessions_freshness:freshness", "Sessions", "does the next message start a session over, and why"
    ),
    "sessions cleanup": Entry(
        "sessions_cleanup:cleanup", "Sessions", "what maintenance would do with every session"
    ),
    "sessions doctor": Entry(
        "sessions_doctor:doctor", "Sessions", "shared direct messages, duplicates, orphans, leftovers"
    ),
    "record": Entry("record:record", "Change", "append one event by the gateway's rules"),
    "run": Entry("record:run", "Change", "run a command as a recorded child run", interspersed=False),
    "cursors add": Entry("cursors:add", "Change", "watch a session from now on"),
    "cursors remove": Entry("cursors:remove", "Change", "stop watching a session"),
    "cursors ack": Entry("cursors:ack", "Change", "acknowledge notices"),
    "cursors reset": Entry("cursors:reset", "Change", "remove all watches of a watcher"),
    "cursors prune": Entry("cursors:prune", "Change", "remove expired, orphaned or undeliverable watches"),
    "notices sweep": Entry(
        "notices:sweep", "Change", "re-arm pending notices, as a gateway does at its start"
    ),
    "prune": Entry("prune:prune", "Change", "retention: old events, surplus events, expired watches"),
    "forget": Entry("prune:forget", "Change", "delete a session's log and every watch by or on it"),
    "monitor": Entry("monitor:monitor", "Upstream", "look for what people wrote in adopted sessions"),
    "links list": Entry("links:list_links", "Upstream", "what adopted sessions follow, and whether they can"),
    "links show": Entry("links:show", "Upstream", "everything about the link of one session"),
    "links add": Entry("linking:add", "Upstream", "follow a transcript or a thread from its end on"),
    "links remove": Entry("linking:remove", "Upstream", "stop following"),
    "links skip": Entry("linking:skip", "Upstream", "pass the row that blocks a link"),
    "links own-text": Entry(
        "linking:own_text", "Upstream", "say what a session sent, so that it is no person's"
    ),
    "demo": Entry("demo:demo", "Health", "a short story to try, in a database of its own"),
    "help": Entry("help:topic", "Health", "topics: exit-codes, environment, formats, time"),
}
GROUPS = ("Look", "Sessions", "Change", "Upstream", "Health")


def resolve(argv: Sequence[str]) -> tuple[str, list[str]]:
    """(command name, its arguments); shared flags before the name are moved behind it.

    Raises UsageError with a suggestion for a name that is no command.
    """
    leading, rest = _split_leading(argv)
    if not rest:
        raise UsageError("no command given", hint=f"{PROGRAM} --help lists them")
    for words in (2, 1):
        name = " ".join(rest[:words])
        if name in COMMANDS:
            return name, [*leading, *rest[words:]]
    family = [name for name in COMMANDS if name.startswith(rest[0] + " ")]
    if family:
        verbs = ", ".join(name.split()[1] for name in family)
        raise UsageError(f"{rest[0]} needs one of: {verbs}", hint=f"{PROGRAM} {family[0]} --help")
    raise UsageError(f"there is no command {rest[0]!r}", hint=_suggestion(rest[0]))


def load(name: str) -> Any:
    """The Typer command of a name."""
    import typer

    entry = COMMANDS[name]
    module, function = entry.place.split(":")
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(
        name,
        context_settings={
            "help_option_names": ["-h", "--help"],
            "allow_interspersed_args": entry.interspersed,
        },
    )(getattr(import_module(f".{module}", __package__), function))
    return typer.main.get_command(app)


def is_family(name: str) -> bool:
    """Does this word only begin the names of commands?"""
    return name not in COMMANDS and any(command.startswith(name + " ") for command in COMMANDS)


def family_overview(name: str) -> str:
    """The text of `openclaw-state FAMILY --help`."""
    members = {command: entry for command, entry in COMMANDS.items() if command.startswith(name + " ")}
    width = max(map(len, members))
    shown = [f"  {command:{width}}  {entry.about}" for command, entry in members.items()]
    return "\n".join([f"Usage: {PROGRAM} {name} VERB [ARGS]...", "", *shown]) + "\n"


def overview() -> str:
    """The text of `openclaw-state --help`."""
    shown = [
        f"Usage: {PROGRAM} COMMAND [ARGS]...",
        "",
        "Look into and keep the session-state log of OpenClaw.",
    ]
    width = max(map(len, COMMANDS))
    for group in GROUPS:
        shown += ["", f"{group}:"]
        shown += [
            f"  {name:{width}}  {entry.about}" for name, entry in COMMANDS.items() if entry.group == group
        ]
    shown += [
        "",
        f"{PROGRAM} COMMAND --help explains one; {PROGRAM} help TOPIC explains formats and statuses.",
    ]
    return "\n".join(shown) + "\n"


def _split_leading(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    takes_value = {
        flag
        for kind, option, _ in SHARED.values()
        if kind is not bool
        for flag in (option.default, *(option.param_decls or ()))
    }
    leading: list[str] = []
    rest = list(argv)
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        leading.append(flag)
        if flag in takes_value and rest:
            leading.append(rest.pop(0))
    return leading, rest


def _suggestion(word: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, [*COMMANDS, *{name.split()[0] for name in COMMANDS}], n=1)
    return f"did you mean {close[0]}?" if close else f"{PROGRAM} --help lists them"
