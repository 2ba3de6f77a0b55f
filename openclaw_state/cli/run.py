"""The only place that prints and exits: one run of the program, from arguments to status."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn, TextIO

from .. import __version__
from ..errors import ExitStatus, StateError, StopError, UsageError
from ..host.location import Location
from ..report import jsonout
from ..report.escape import escape
from .app import PROGRAM, family_overview, is_family, load, overview, resolve
from .options import Call, Part, Result, Stream
from .terminal import Terminal

CONTROL_TEXT = ("-h", "--help")
# A document is held back until it is whole, or too long to hold: what fails on the way then
# leaves the error document alone on stdout.
HELD_PIECES = 5_000


_SIGNALLED: dict[int, signal.Signals] = {
    ExitStatus.HUNG_UP: signal.SIGHUP,
    ExitStatus.INTERRUPTED: signal.SIGINT,
    ExitStatus.TERMINATED: signal.SIGTERM,
}


def main() -> NoReturn:
    """Run the command line of this process and leave with its status."""
    terminal = Terminal(_usable(sys.stdin), _usable(sys.stdout), _usable(sys.stderr))
    status = run(sys.argv[1:], terminal)
    if status < 0:
        _die_of(signal.Signals(-status))
    if status in _SIGNALLED:
        _die_of(_SIGNALLED[status])
    for stream in (terminal.stdout, terminal.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def _usable(stream: TextIO | None) -> TextIO:
    """A standard stream that takes any text; the null device where the caller had closed it."""
    if stream is None:
        return open(os.devnull, "r+", encoding="utf-8")
    stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]
    return stream


def run(argv: Sequence[str], terminal: Terminal) -> int:
    """Run one command line; the exit status, or the number of a signal to die of below 0."""
    name = "openclaw-state"
    try:
        if argv and argv[0] in CONTROL_TEXT:
            return _print([overview()], terminal)
        if len(argv) > 1 and argv[1] in CONTROL_TEXT and is_family(argv[0]):
            return _print([family_overview(argv[0])], terminal)
        if argv and argv[0] == "--version":
            return _print([f"{PROGRAM} {__version__}\n"], terminal)
        name, arguments = resolve(argv)
        return _call(name, arguments, terminal)
    except StateError as error:
        return _fail(name, error, argv, terminal)
    except StopError as stopped:
        return _stopped(stopped, terminal)
    except (BrokenPipeError, SystemExit):  # the latter from Typer, when nobody reads its help
        return ExitStatus.OK
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except OSError as error:
        return _fail(name, _from_os(error), argv, terminal)
    except Exception as error:
        return _bug(name, error, argv, terminal)
    finally:
        terminal.opened.close()


def _call(name: str, arguments: list[str], terminal: Terminal) -> int:
    from typer.exceptions import TyperException

    try:
        answer = load(name).main(
            args=arguments, prog_name=f"{PROGRAM} {name}", standalone_mode=False, obj=terminal
        )
    except TyperException as error:
        raise UsageError(_sentence(error), hint=f"{PROGRAM} {name} --help") from error
    if isinstance(answer, tuple):
        call, result = answer
        if not isinstance(result, Result):
            return _show_stream(call, result)
        _show(call, result)
        terminal.stdout.flush()
        return int(result.status)
    return int(answer or ExitStatus.OK)


def _show(call: Call, result: Result) -> None:
    out, err = call.terminal.stdout, call.terminal.stderr
    warnings = [*(result.log.warnings if result.log else ()), *result.warnings]
    quiet = call.flag("quiet")
    if not quiet:
        place = _place(result)
        if call.flag("verbose") and place is not None:
            err.write(f"database: {escape(place.path)} (chosen by {place.via})\n")
        _write(out, _printed(call, result, warnings))
        out.flush()
        call.terminal.answered = True
    result.after()
    gap = int(result.status) == ExitStatus.HISTORY_GAP
    if gap or (call.format == "text" and not quiet):
        _write(err, (note + "\n" for note in result.notes()))
    if not quiet:
        _write(err, (f"warning: {escape(warning)}\n" for warning in warnings))


def _show_stream(call: Call, stream: Stream) -> int:
    """Print a stream part by part, each flushed before what comes after it."""
    gc.enable()  # off at the start of every command, because most end soon
    out, err = call.terminal.stdout, call.terminal.stderr
    fields = call.fields or stream.fields
    quiet = call.flag("quiet")
    form = stream.format or call.format
    heads = jsonout.tsv((), fields) if form == "tsv" else iter(())
    try:
        for part in stream.parts:
            if not quiet:
                _write(out, itertools.chain(heads, _printed_part(call, form, part, fields)))
                out.flush()
                _write(err, (note + "\n" for note in part.notes))
                err.flush()
            part.after()
    except StopError as stopped:
        if not stopped.note:  # it came between two parts, where the stream did not hear of it
            with contextlib.suppress(StopError):
                stream.parts.throw(stopped)
        stopped.note = "" if quiet else stopped.note
        raise
    return ExitStatus.OK


def _stopped(stopped: StopError, terminal: Terminal) -> int:
    """Say where a signal ended it."""
    if not stopped.stuck:
        terminal.stdout.flush()
    _write(terminal.stderr, [f"{stopped.note}\n"] if stopped.note else [])
    return -stopped.number


def _printed_part(call: Call, form: str, part: Part, fields: Sequence[str]) -> Iterator[str]:
    match form:
        case "text":
            return (line + "\n" for line in part.text)
        case "tsv":
            return itertools.islice(jsonout.tsv(part.rows, fields), 1, None)
        case _:
            rows = jsonout.select_fields(part.rows, call.fields)
            return itertools.chain(jsonout.jsonl(rows), jsonout.jsonl(part.records))


def _printed(call: Call, result: Result, warnings: list[str]) -> Iterator[str]:
    """The answer in the chosen format, in pieces."""
    match call.format:
        case "json":
            pieces = jsonout.document(_envelope(result, warnings))
            return itertools.chain(["".join(itertools.islice(pieces, HELD_PIECES))], pieces)
        case "jsonl":
            return jsonout.jsonl(_selected(call, result))
        case "tsv":
            fields = call.fields or result.fields or call.known_fields
            return jsonout.tsv(_selected(call, result), fields)
        case _:
            return (line + "\n" for line in result.text)


def _envelope(result: Result, warnings: list[str]) -> dict[str, object]:
    place = _place(result)
    database = {"path": place.path, "via": place.via} if place else None
    return jsonout.envelope(result.command, database=database, body=result.body, warnings=warnings)


def _place(result: Result) -> Location | None:
    return result.place if result.log is None else result.log.location


def _selected(call: Call, result: Result) -> Iterable[dict[str, object]]:
    jsonout.check_fields(call.fields, result.fields or call.known_fields)
    return jsonout.select_fields(result.rows, call.fields)


def _fail(name: str, error: StateError, argv: Sequence[str], terminal: Terminal) -> int:
    """Words on stderr; in JSON mode also one error document on stdout, unless the answer is there."""
    words = [f"error: {escape(error.message)}\n"]
    words += [f"  next: {escape(error.hint)}\n"] if error.hint else []
    document = []
    if wants_json(argv) and not terminal.answered:
        document = [jsonout.dumps(jsonout.error_document(name, error)) + "\n"]
    for stream, chunks in ((terminal.stdout, document), (terminal.stderr, words)):
        with contextlib.suppress(OSError):  # one full or closed stream does not silence the other
            _write(stream, chunks)
            stream.flush()
    return int(error.status)


def _bug(name: str, error: Exception, argv: Sequence[str], terminal: Terminal) -> int:
    import traceback

    terminal.stderr.write(escape_lines("".join(traceback.format_exception(error))))
    hint = "please report it with the lines above"
    return _fail(name, StateError(f"this is a bug in {PROGRAM}: {error}", hint=hint), argv, terminal)


def escape_lines(text: str) -> str:
    """Text of several lines, each made safe for a terminal."""
    return "\n".join(map(escape, text.split("\n")))


def wants_json(argv: Sequence[str]) -> bool:
    """Would this command line print JSON, whatever else is wrong with it?"""
    own = list(argv[: argv.index("--")] if "--" in argv else argv)
    formats = [after for flag, after in itertools.pairwise(own) if flag == "--format"]
    formats += [word.partition("=")[2] for word in own if word.startswith("--format=")]
    return "--json" in own or bool({"json", "jsonl"} & set(formats))


def _sentence(error: Exception) -> str:
    text = str(getattr(error, "format_message", error.__str__)())
    return text[:1].lower() + text[1:].rstrip(".")


def _print(texts: Iterable[str], terminal: Terminal) -> int:
    _write(terminal.stdout, texts)
    terminal.stdout.flush()
    return ExitStatus.OK


def _write(stream: TextIO, chunks: Iterable[str]) -> None:
    for chunk in chunks:
        stream.write(chunk)


def _from_os(error: OSError) -> StateError:
    from ..errors import AccessError, StorageError

    kind = AccessError if isinstance(error, PermissionError) else StorageError
    where = f"{error.filename}: " if error.filename else ""
    return kind(f"{where}{error.strerror or error}")


def _die_of(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
