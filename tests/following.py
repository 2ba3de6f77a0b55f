"""A command that goes on: started, read line by line with a limit on every wait, and ended."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

from tests.cli.harness import Cli, Outcome, check_document, check_record

LIMIT_S = 20
# Silence after which a follower says that it waits; see `Following.settle`.
HEARTBEAT = ("--heartbeat", "30ms")


class Following:
    """A following command in a process of its own; leaving the block ends it."""

    def __init__(
        self, cli: Cli, *argv: object, env: dict[str, str] | None = None, before: tuple[str, ...] = ()
    ) -> None:
        self._command = next(str(word) for word in argv)
        self._process = cli.start(*argv, env=env, before=before)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._streams = {self._process.stdout.fileno(): "out", self._process.stderr.fileno(): "err"}
        self._text = {"out": b"", "err": b""}
        self._read = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        with self._process:
            pass

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    def line(self) -> str:
        """The next whole line on stdout."""
        self._until(lambda: b"\n" in self._text["out"][self._read :], "another line")
        line, _, _ = self._text["out"][self._read :].partition(b"\n")
        self._read += len(line) + 1
        return line.decode()

    def record(self) -> Any:
        """The next JSON line, held to the schema of the command."""
        record = json.loads(self.line())
        check_record(self._command, record)
        return record

    def row(self) -> Any:
        """The next JSON line that is no heartbeat."""
        while (record := self.record()).get("type") == "heartbeat":
            pass
        return record

    def settle(self) -> None:
        """Wait for a heartbeat that is still to come: all before it was read, and it waits."""
        self.pump(0)
        while (text := self._text["out"][self._read :]).count(b"\n"):
            self._read += text.rindex(b"\n") + 1
        while self.record().get("type") != "heartbeat":
            pass

    def until_it_waits(self) -> None:
        """Wait until it asked the system for file events, or has ended."""
        folder = Path(f"/proc/{self._process.pid}/fd")
        if not folder.is_dir():
            pytest.skip("only Linux shows what another process has open")

        def watches() -> bool:
            with suppress(OSError):
                return any("inotify" in os.readlink(file) for file in folder.iterdir())
            return not self.is_running()

        eventually(watches, "it waits for changes")

    def rest(self) -> list[str]:
        """The whole lines up to its end."""
        self._until(lambda: not self._streams, "its end")
        lines = self._text["out"][self._read :].decode().split("\n")[:-1]
        self._read = len(self._text["out"])
        return lines

    def note(self, word: str) -> str:
        """What stderr holds, once this word stands in it."""
        self._until(lambda: word.encode() in self._text["err"], f"{word!r} on stderr")
        return self._text["err"].decode()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self, number: signal.Signals | None = None, *, status: int | None = None) -> Outcome:
        """All that it left once it has ended, after a signal where one is given."""
        if number is not None:
            self.send(number)
            status = -number
        self._until(lambda: not self._streams, "its end")
        found = self._process.wait(LIMIT_S)
        outcome = Outcome(found, self._text["out"].decode(), self._text["err"].decode())
        assert status is None or found == status, outcome
        assert "Traceback" not in outcome.err
        return outcome

    def _until(self, arrived: Any, what: str) -> None:
        end = time.monotonic() + LIMIT_S
        while not arrived():
            left = end - time.monotonic()
            if left <= 0 or not self._streams:
                raise AssertionError(f"no sign of {what}: {self._process.poll()}, {self._text}")
            self.pump(left)

    def pump(self, seconds: float = 0) -> None:
        """Take what it has written, waiting so long for something."""
        for descriptor in select.select(list(self._streams), [], [], seconds)[0]:
            if chunk := os.read(descriptor, 65536):
                self._text[self._streams[descriptor]] += chunk
            else:
                del self._streams[descriptor]


def follow(cli: Cli, *argv: object, status: int = 0, **options: Any) -> Outcome:
    """Run a following command here that ends by itself, or fails to in good time."""
    limit = () if "--timeout" in argv else ("--timeout", f"{LIMIT_S}s")
    return cli(*argv, *limit, status=status, **options)


def sequences(rows: list[Any]) -> list[int]:
    return [row["sequence"] for row in rows]


def last_error(outcome: Outcome) -> Any:
    """The error member of the document that ends a failed run in JSON mode."""
    document = outcome.rows[-1]
    check_document(document)
    assert document["ok"] is False
    return document["error"]


def eventually(question: Any, what: str) -> Any:
    """The first answer that is true."""
    end = time.monotonic() + LIMIT_S
    while not (answer := question()):
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.01)
    return answer
