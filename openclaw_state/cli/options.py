"""The flags that mean the same everywhere, declared once, and the call they make up.

A command is a function of a Call and its own arguments; `command` adds the shared flags to
what Typer sees and hands them over inside the Call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from ..errors import ExitStatus, RefusedError, UsageError
from ..host.location import Location, locate
from ..report.jsonout import check_fields
from ..report.text import Palette
from ..timespec import now_ms, parse_duration
from .terminal import Terminal

if TYPE_CHECKING:
    from ..log.following import Following
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
_WAIT = {
    "timeout": (
        str | None,
        typer.Option("--timeout", metavar="D", help="Wait no longer than this (exit 124)."),
        None,
    )
}
_COUNT = {
    "count": (
        int | None,
        typer.Option("--count", metavar="N", min=1, help="End after this many."),
        None,
    )
}
_FOLLOW = {
    "follow": (bool, typer.Option("-f", "--follow", help="Go on with what comes."), False),
    **_COUNT,
    **_WAIT,
    "position": (
        str | None,
        typer.Option("--position", metavar="NAME", help="Go on where the reader of this name stopped."),
        None,
    ),
    "exec": (
        str | None,
        typer.Option("--exec", metavar="CMD", help="Run this for each one instead of printing it."),
        None,
    ),
    "exec_timeout": (
        str | None,
        typer.Option("--exec-timeout", metavar="D", help="End a command that takes longer."),
        None,
    ),
    "exec_retry": (
        int,
        typer.Option("--exec-retry", metavar="N", min=0, help="Run a failed command up to N times more."),
        0,
    ),
}
_GROUPS: dict[str, dict[str, tuple[Any, Any, Any]]] = {
    "place": _PLACE,
    "output": _OUTPUT,
    "agent": _AGENT,
    "write": _WRITE,
    "plan": _PLAN,
    "ask": _ASK,
    "wait": _WAIT,
    "ends": {**_COUNT, **_WAIT},
    "follow": _FOLLOW,
}
SHARED = {name: option for group in _GROUPS.values() for name, option in group.items()}


class Result(NamedTuple):
    """What a command answers; one place prints it.

    body holds the members of the JSON document, in order: a generator is streamed as a list, a
    callable is asked when it is reached. text and rows are the same answer for people and for
    row formats; only one of the three is consumed. fields name what a row has, where that
    depends on the arguments. notes go to stderr. log is the database that was read: the
    document names it and carries its warnings; place names one that is no signal log. after is
    done once the answer has been written.
    """

    command: str
    body: Mapping[str, Any]
    text: Iterable[str] = ()
    rows: Iterable[Mapping[str, Any]] = ()
    fields: Sequence[str] = ()
    notes: Callable[[], Iterable[str]] = tuple
    log: Opened | None = None
    place: Location | None = None
    warnings: Sequence[str] = ()
    status: ExitStatus | int = ExitStatus.OK
    after: Callable[[], None] = lambda: None


class Part(NamedTuple):
    """What is printed and flushed at once.

    text and rows say the same; records are JSON lines that are no rows, such as a heartbeat.
    notes go to stderr. after is done once all of it has been written.
    """

    text: Sequence[str] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    records: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()
    after: Callable[[], None] = lambda: None


class Stream(NamedTuple):
    """What a following command answers; one place prints it, part by part.

    format is for an answer that is not to have the one that was chosen.
    """

    command: str
    parts: Generator[Part, None, None]
    fields: Sequence[str]
    format: str | None = None


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

    def read(self) -> Reading:
        """Open the chosen database for reading."""
        from ..log.reading import Reading

        return self.terminal.opened.enter_context(Reading(self.location(), clock=lambda: self.now))

    def follow(self, location: Location, *, lock_wait_ms: int | None = None) -> Following:
        """Open a database for following it as it grows."""
        from ..core.opening import DEFAULT_LOCK_WAIT_MS
        from ..log.following import Following

        wait = DEFAULT_LOCK_WAIT_MS if lock_wait_ms is None else lock_wait_ms
        log = Following(location, lock_wait_ms=wait, clock=self.clock)
        return self.terminal.opened.enter_context(log)

    def clock(self) -> int:
        """The time as it goes on while the command runs (epoch ms)."""
        return now_ms(self.terminal.environ)

    def change(self, *, create: bool = False, best_effort: bool = False) -> SignalLog:
        """Open the chosen database for change; create also makes a missing file outside OpenClaw's
        directories."""
        return self.terminal.opened.enter_context(self.changing(create=create, best_effort=best_effort))

    def changing(
        self,
        *,
        create: bool = False,
        best_effort: bool = False,
        strict: bool = False,
        clock: Callable[[], int] | None = None,
    ) -> SignalLog:
        """The chosen database, opened for change; the caller closes it.

        clock is for what goes on for long: by default the time stands still.
        """
        from ..log.signal_log import SignalLog

        return SignalLog(
            self.location(),
            change=True,
            create=create,
            best_effort=best_effort,
            strict=strict,
            lock_wait_ms=parse_duration(self.flag("lock_wait")),
            clock=clock or (lambda: self.now),
        )

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

    def refuse_alone(self, *names: str, needs: str) -> None:
        """Raise UsageError for flags that mean something only with another."""
        for name in names:
            if self.flag(name) != SHARED[name][2]:
                raise UsageError(f"--{name.replace('_', '-')} needs {needs}")

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
) -> Callable[[Callable[..., Result | Stream]], Callable[..., Any]]:
    """Make a function of (call, own arguments) a command with these groups of shared flags.

    fields are those of its rows; a wrong choice among them is refused before anything is done.
    The callable returned takes the terminal from Typer's context and gives (Call, Result).
    """
    shared = {
        name: option for group in ("place", "output", *groups) for name, option in _GROUPS[group].items()
    }

    def decorate(function: Callable[..., Result | Stream]) -> Callable[..., Any]:
        own = list(inspect.signature(function).parameters.values())[1:]
        hints = get_type_hints(function, include_extras=True)

        def run(context: typer.Context, **values: Any) -> tuple[Call, Result | Stream]:
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
