"""The flags that mean the same everywhere, declared once, and the call they make up.

A command is a function of a Call and its own arguments; `command` adds the shared flags to
what Typer sees and hands them over inside the Call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from ..errors import ExitStatus, RefusedError, UsageError
from ..host.location import Location, locate
from ..report.jsonout import check_fields
from ..report.text import Palette
from ..timespec import now_ms, parse_duration
from .terminal import Terminal

if TYPE_CHECKING:
    from ..log.opened import Opened
    from ..log.reading import Reading
    from ..log.signal_log import SignalLog

FORMATS = ("text", "json", "jsonl", "tsv")
COLORS = ("auto", "always", "never")

_PLACE = {
    "db": (str | None, typer.Option("--db", metavar="PATH", help="Use this database file."), None),
    "state_dir": (
        str | None,
        typer.Option("--state-dir", metavar="DIR", help="Use the database of this OpenClaw state directory."),
        None,
    ),
    "profile": (
        str | None,
        typer.Option("--profile", metavar="NAME", help="Use this OpenClaw profile."),
        None,
    ),
}
_OUTPUT = {
    "format": (
        str,
        typer.Option("--format", metavar="|".join(FORMATS), help="How to print the result."),
        "text",
    ),
    "json": (bool, typer.Option("--json", help="Short for --format json."), False),
    "fields": (
        str | None,
        typer.Option("--fields", metavar="A,B", help="Only these fields of each row."),
        None,
    ),
    "quiet": (bool, typer.Option("-q", "--quiet", help="Print nothing on success."), False),
    "verbose": (
        bool,
        typer.Option("-v", "--verbose", help="Say more about how the answer was found."),
        False,
    ),
    "color": (str, typer.Option("--color", metavar="|".join(COLORS), help="When to use colours."), "auto"),
    "utc": (bool, typer.Option("--utc", help="Show and read times in UTC."), False),
}
_AGENT = {
    "agent": (
        str | None,
        typer.Option("--agent", metavar="ID", help="The agent that owns the session."),
        None,
    )
}
_WRITE = {
    "lock_wait": (
        str,
        typer.Option("--lock-wait", metavar="D", help="How long to wait for another writer (exit 75)."),
        "5s",
    )
}
_PLAN = {
    "dry_run": (bool, typer.Option("--dry-run", help="Show what would be done, and change nothing."), False)
}
_ASK = {"yes": (bool, typer.Option("-y", "--yes", help="Do it without asking."), False)}
_GROUPS: dict[str, dict[str, tuple[Any, Any, Any]]] = {
    "place": _PLACE,
    "output": _OUTPUT,
    "agent": _AGENT,
    "write": _WRITE,
    "plan": _PLAN,
    "ask": _ASK,
}
SHARED = {name: option for group in _GROUPS.values() for name, option in group.items()}


class Result(NamedTuple):
    """What a command answers; one place prints it.

    body holds the members of the JSON document, in order: a generator is streamed as a list, a
    callable is asked when it is reached. text and rows are the same answer for people and for
    row formats; only one of the three is consumed. fields name what a row has, where that
    depends on the arguments. notes go to stderr. log is the database that was read: the
    document names it and carries its warnings. after is done once the answer has been written.
    """

    command: str
    body: Mapping[str, Any]
    text: Iterable[str] = ()
    rows: Iterable[Mapping[str, Any]] = ()
    fields: Sequence[str] = ()
    notes: Callable[[], Iterable[str]] = tuple
    log: Opened | None = None
    warnings: Sequence[str] = ()
    status: ExitStatus | int = ExitStatus.OK
    after: Callable[[], None] = lambda: None


class Call(NamedTuple):
    """One run of one command: its shared flags, its terminal and its clock."""

    terminal: Terminal
    now: int
    flags: Mapping[str, Any]
    known_fields: Sequence[str] = ()

    def flag(self, name: str) -> Any:
        return self.flags.get(name, SHARED[name][2])

    @property
    def agent(self) -> str | None:
        agent: str | None = self.flag("agent")
        return agent

    @property
    def format(self) -> str:
        if self.flag("json"):
            return "json"
        chosen = str(self.flag("format"))
        return "tsv" if chosen == "text" and self.flag("fields") is not None else chosen

    @property
    def fields(self) -> list[str] | None:
        fields: str | None = self.flag("fields")
        return None if fields is None else [name.strip() for name in fields.split(",") if name.strip()]

    @property
    def utc(self) -> bool:
        return bool(self.flag("utc"))

    @property
    def width(self) -> int | None:
        return self.terminal.width

    @property
    def palette(self) -> Palette:
        return self.terminal.palette(self.terminal.stdout, self.flag("color"))

    def location(self) -> Location:
        return locate(
            db=self.flag("db"),
            state_dir=self.flag("state_dir"),
            profile=self.flag("profile"),
            environ=self.terminal.environ,
        )

    def read(self, *, lock_wait_ms: int | None = None) -> Reading:
        """Open the chosen database for reading; a wait for a lock has its usual length."""
        from ..core.opening import DEFAULT_LOCK_WAIT_MS
        from ..log.reading import Reading

        wait = DEFAULT_LOCK_WAIT_MS if lock_wait_ms is None else lock_wait_ms
        log = Reading(self.location(), lock_wait_ms=wait, clock=lambda: self.now)
        return self.terminal.opened.enter_context(log)

    def change(self, *, create: bool = False, best_effort: bool = False) -> SignalLog:
        """Open the chosen database for change; create also makes a missing file outside OpenClaw's
        directories."""
        from ..log.signal_log import SignalLog

        log = SignalLog(
            self.location(),
            change=True,
            create=create,
            best_effort=best_effort,
            lock_wait_ms=parse_duration(self.flag("lock_wait")),
            clock=lambda: self.now,
        )
        return self.terminal.opened.enter_context(log)

    def confirm(self, question: Callable[[], str]) -> None:
        """Ask before something that cannot be undone; RefusedError unless the answer is yes.

        The question is made up only where it is asked.
        """
        if self.flag("yes"):
            return
        answer = self.terminal.ask(question)
        if answer is None:
            raise RefusedError("this needs a yes, and there is no terminal to ask on", hint="add -y to do it")
        if not answer:
            raise RefusedError("not done: the answer was no")

    def check(self) -> None:
        """Raise UsageError for shared flags that cannot mean anything."""
        for name, known in (("format", FORMATS), ("color", COLORS)):
            if self.flag(name) not in known:
                raise UsageError(f"--{name} is one of {', '.join(known)}, not {self.flag(name)!r}")
        if self.flag("json") and self.flag("format") not in ("text", "json"):
            raise UsageError(f"--json contradicts --format {self.flag('format')}")
        if self.flag("fields") is not None and self.format == "json":
            raise UsageError("--fields chooses columns of rows", hint="use it with --format jsonl or tsv")
        if self.known_fields:
            check_fields(self.fields, self.known_fields)


def _refuse_blanks(context: typer.Context) -> None:
    """A blank value names nothing; only a program to run may have blank words."""
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        values = value if isinstance(value, list | tuple) else [value]
        if parameter.name != "program" and any(isinstance(one, str) and not one.strip() for one in values):
            what = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar
            raise UsageError(f"{what} is blank", hint="leave it out, or give it a value")


def command(
    *groups: str, fields: Sequence[str] = ()
) -> Callable[[Callable[..., Result]], Callable[..., Any]]:
    """Make a function of (call, own arguments) a command with these groups of shared flags.

    fields are those of its rows; a wrong choice among them is refused before anything is done.
    The callable returned takes the terminal from Typer's context and gives (Call, Result).
    """
    shared = {
        name: option for group in ("place", "output", *groups) for name, option in _GROUPS[group].items()
    }

    def decorate(function: Callable[..., Result]) -> Callable[..., Any]:
        own = list(inspect.signature(function).parameters.values())[1:]
        hints = get_type_hints(function, include_extras=True)

        def run(context: typer.Context, **values: Any) -> tuple[Call, Result]:
            terminal: Terminal = context.obj
            _refuse_blanks(context)
            flags = {name: values.pop(name) for name in shared}
            call = Call(terminal, now_ms(terminal.environ), flags, fields)
            call.check()
            return call, function(call, **values)

        parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
        parameters += [
            inspect.Parameter(
                parameter.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=parameter.default,
                annotation=hints[parameter.name],
            )
            for parameter in own
        ]
        parameters += [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
            )
            for name, (kind, option, default) in shared.items()
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__doc__ = function.__doc__
        run.__name__ = function.__name__
        return run

    return decorate
