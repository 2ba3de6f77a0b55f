"""What several tests need: a clock that stands still, files as OpenClaw leaves them, their rows."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from openclaw_state import Recorded, SignalLog
from openclaw_state.core.opening import create_embedded

ROOT = Path(__file__).resolve().parent.parent
T = 1_800_000_000_000
DAY = 86_400_000

PARENT = "agent:main:main"
CHILD = "agent:main:subagent:child"

needs_permissions = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="root may read and write everything"
)


class Clock:
    """A clock that stands still until a test moves it; epoch ms."""

    def __init__(self, now: int = T) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def goal(log: SignalLog, key: str = CHILD, **more: Any) -> Recorded:
    """Record one event that notifies."""
    return log.record(key, "goal_changed", actor_type="human", summary="goal updated", **more)


def note(log: SignalLog, key: str = CHILD, **more: Any) -> Recorded:
    """Record one event that only the log shows."""
    return log.record(key, "compacted", actor_type="system", summary="session compacted", **more)


def query(path: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Rows of a file, read on a connection of its own."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql, values).fetchall()


def change(path: Path, *statements: str) -> None:
    """Change a file as another program would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def triples(path: Path) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(watcher, target) -> seen, notified, material of every cursor."""
    rows = query(
        path,
        "SELECT watcher_session_key, target_session_key, last_seen_sequence, notified_sequence,"
        " material_sequence FROM session_watch_cursors",
    )
    return {row[:2]: row[2:] for row in rows}


def openclaw_file(path: Path, *, version: int = 18, store_column: bool = True) -> Path:
    """A file with what OpenClaw keeps beside the four tables, as far as this tool looks at it."""
    create_embedded(str(path))
    change(
        path,
        "CREATE TABLE schema_meta (meta_key TEXT PRIMARY KEY, role TEXT, schema_version INTEGER) STRICT",
        f"INSERT INTO schema_meta VALUES ('primary', 'global', {version})",
        "CREATE TABLE config_machine_state (state_key TEXT PRIMARY KEY, value_json TEXT,"
        " updated_at_ms INTEGER) STRICT",
        f"PRAGMA user_version = {version}",
    )
    if not store_column:
        change(path, "ALTER TABLE session_watch_cursors DROP COLUMN watcher_store_path")
    return path


@contextmanager
def statements() -> Iterator[list[str]]:
    """The SQL text, with its values, of every connection opened inside the block.

    What SQLite itself runs inside a statement is not listed; it marks that as a comment.
    """
    seen: list[str] = []
    connect = sqlite3.connect

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(lambda text: None if text.startswith("--") else seen.append(text))
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", traced)
        yield seen


class Script:
    """Python code in a process of its own, which says when it is ready and ends with the block."""

    def __init__(self, code: str, *arguments: object, before: tuple[str, ...] = ()) -> None:
        command = [*before, sys.executable, "-c", code, *map(str, arguments)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        with self.process:
            pass

    def line(self) -> str:
        """The next line that it prints, waiting for it."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def rest(self) -> list[str]:
        """What it prints from here to its end."""
        assert self.process.stdout is not None
        return self.process.stdout.read().splitlines()

    def release(self) -> None:
        """Close its input: it waits no longer."""
        assert self.process.stdin is not None
        self.process.stdin.close()


run_python = partial(subprocess.run, cwd=ROOT, capture_output=True, text=True, check=True)


def unpack_state_directory(archive: Path, folder: Path) -> Path:
    """The state directory in an archive of one, laid out in a folder with ordinary modes."""
    with tarfile.open(archive) as packed:
        for member in packed:
            _, _, name = member.name.partition("/")
            content = packed.extractfile(member)
            if content is not None:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content.read())
    return folder


def copy_tree(source: Path, target: Path) -> Path:
    """A copy of a folder with ordinary modes: what is shared may be read-only, its copy must not be."""
    for folder, _, names in os.walk(source):
        to = target / Path(folder).relative_to(source)
        to.mkdir(parents=True, exist_ok=True)
        for name in names:
            shutil.copyfile(Path(folder) / name, to / name)
    return target
