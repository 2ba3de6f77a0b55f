"""Running the command line: inside this process where that is enough, as a process where it is not."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

import openclaw_state
from openclaw_state.cli.app import COMMANDS, resolve
from openclaw_state.cli.run import run, wants_json
from openclaw_state.cli.terminal import Terminal
from openclaw_state.errors import StateError
from tests.support import ROOT, T

SCHEMAS = Path(openclaw_state.__file__).parent / "report" / "schemas"
CHANGING = {name for name, entry in COMMANDS.items() if entry.group in ("Change", "Upstream")} | {"notices"}
# The table of `cursors list`.
CURSOR_COLUMNS = [
    "WATCHER",
    "TARGET",
    "SEEN",
    "NOTIFIED",
    "MATERIAL",
    "HEAD",
    "LAG",
    "STATE",
    "PROVENANCE",
    "DELIVERY",
    "EXPIRES",
]


@cache
def schemas() -> dict[str, Any]:
    """The shipped schemas by name."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(SCHEMAS.glob("*.json"))}


@cache
def _registry() -> Registry[Any]:
    return Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in schemas().values()
    )


def check(value: Any, schema: Any) -> None:
    """Hold a value to a schema, which may refer to the shipped ones."""
    Draft202012Validator(schema, registry=_registry()).validate(value)


def check_document(document: Mapping[str, Any]) -> None:
    """Hold a document to the schema of the command that it names, or to that of failures."""
    name = document["schema"].split("/")[1] if document["ok"] else "error"
    check(document, schemas()[name])


def check_row(command: str, row: Mapping[str, Any], *, kind: str = "row") -> None:
    """Hold one JSON line to what the command's schema says about rows, or records of a follower."""
    reference = f"{schemas()[command.replace(' ', '-')]['$id']}#/$defs/{kind}"
    check(row, {"$ref": reference, "unevaluatedProperties": False})


def check_record(command: str, record: Mapping[str, Any]) -> None:
    """Hold one JSON line of a following command to its schema: a row, a heartbeat or a gap."""
    check_row(command, record, kind=record.get("type", "row"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left: its status and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error member of the document of a failure."""
        assert self.document["ok"] is False
        return self.document["error"]

    @property
    def rows(self) -> list[Any]:
        """The JSON lines on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def cells(self) -> list[list[str]]:
        """The tab-separated lines on stdout, the heads first."""
        return [line.split("\t") for line in self.out.split("\n")[:-1]]


class Stream(io.StringIO):
    """A stream that may pass for a terminal."""

    def __init__(self, text: str = "", *, terminal: bool = False) -> None:
        super().__init__(text)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class Cli:
    """The command line on one database, under a clock that stands still until a test moves it.

    Whatever a run prints in JSON mode is held to its schema, and whatever a changing command
    leaves must be a sound file with the schema that it had.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = T
        self._shapes: dict[Path, Any] = {}

    def __call__(
        self,
        *argv: object,
        status: int = 0,
        answer: str | None = None,
        terminal: bool = False,
        env: Mapping[str, str] | None = None,
        path: Path | None = None,
    ) -> Outcome:
        """Run one command line here; answer is typed by a person at a terminal."""
        words = [str(word) for word in argv]
        path = path or self.path
        self._note_shape(path)
        environment = {**self.environ(path), **(env or {})}
        if _command(words) == "run":  # its program writes to real streams
            outcome = self.process(*words, env=environment)
        else:
            typed = Stream(answer or "", terminal=answer is not None)
            out, err = Stream(terminal=terminal), Stream(terminal=terminal or answer is not None)
            found = run(words, Terminal(typed, out, err, environment))
            outcome = Outcome(int(found), out.getvalue(), err.getvalue())
        assert outcome.status == status, outcome
        assert "Traceback" not in outcome.err
        if wants_json(words) and "jsonl" not in words:
            check_document(outcome.document)
        if _command(words) in CHANGING:
            self._check_file(path)
        return outcome

    def json(self, *argv: object, **options: Any) -> Any:
        """The document of a run in JSON mode."""
        return self(*argv, "--json", **options).document

    def environ(self, path: Path | None = None) -> dict[str, str]:
        """The environment of a run."""
        own = {"OPENCLAW_STATE_DB": str(path or self.path), "OPENCLAW_STATE_NOW": str(self.now)}
        return {**os.environ, **own}

    def process(self, *argv: object, **options: Any) -> Outcome:
        """Run one command line in a process of its own, to its end."""
        with self.start(*argv, **options) as process:
            out, err = process.communicate(timeout=60)
        return Outcome(process.returncode, out, err)

    def start(
        self,
        *argv: object,
        env: Mapping[str, str] | None = None,
        before: tuple[str, ...] = (),
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start one command line as a process of its own."""
        return subprocess.Popen(
            [*before, sys.executable, "-m", "openclaw_state", *map(str, argv)],
            **{
                "cwd": ROOT,
                "env": {**self.environ(), **(env or {})},
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                **options,
            },
        )

    def _note_shape(self, path: Path) -> None:
        if path not in self._shapes and path.is_file() and os.access(path, os.R_OK):
            self._shapes[path] = _shape(path)

    def _check_file(self, path: Path) -> None:
        if path not in self._shapes:
            self._note_shape(path)
        elif self._shapes[path] is not None:
            assert _shape(path) == self._shapes[path]
            with closing(sqlite3.connect(path)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def _shape(path: Path) -> Any:
    """sqlite_schema and user_version of a file, None for what is no database."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
            return rows, connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError:
        return None


def _command(words: list[str]) -> str | None:
    try:
        return resolve(words)[0]
    except StateError:
        return None
