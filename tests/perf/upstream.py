"""What the upstream monitor costs, against the barest code that looks at the same files."""

from __future__ import annotations

import json
import os
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from openclaw_state.model import Link
from openclaw_state.upstream import claude
from openclaw_state.upstream.catalogs import standard_catalogs
from openclaw_state.upstream.embedded import EmbeddedSessions
from openclaw_state.upstream.findings import Activity, Probe
from openclaw_state.upstream.monitor import Monitor

from .measures import NOW, Row, create, folder, paired

MIB = 1_048_576
LINKS = 1_000
OWN = tuple(f"own text number {number} of this session" for number in range(10))
_LISTING = (
    "SELECT * FROM session_upstream_links AS link WHERE EXISTS (SELECT 1 FROM session_watch_cursors"
    " WHERE target_session_key = link.session_key) ORDER BY catalog_id, session_key"
)


def link_to(path: Path | str, offset: int) -> Link:
    ref, marker = {"filePath": str(path)}, {"offset": offset}
    return Link("agent:main:s", "main", "claude", "gateway:local", "t", "claude-cli", ref, marker, 0, 0)


def row(kind: str, number: int, words: str) -> str:
    return json.dumps(
        {
            "parentUuid": f"4f1f3e2a-5f1e-4a0e-9d4c-{number:012}",
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/someone/project",
            "sessionId": "0b7e6c3a-1111-2222-3333-444455556666",
            "version": "2.1.266",
            "type": kind,
            "message": {"role": kind, "content": words},
            "uuid": f"4f1f3e2a-5f1e-4a0e-9d4c-{number + 1:012}",
            "timestamp": f"2026-07-13T10:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03}Z",
        },
        separators=(",", ":"),
    )


def write(path: Path, rows: int, *, users_every: int) -> None:
    ask = "please look at the failing test and tell me why it fails on this machine only"
    reply = "Lorem ipsum dolor sit amet, consectetur adipiscing elit.\n" * 20
    with open(path, "w", encoding="utf-8") as file:
        for number in range(rows):
            is_user = number % users_every == 0
            file.write(row(*("user", number, ask) if is_user else ("assistant", number, reply)) + "\n")


def checked(path: Path) -> int:
    """Every window of a transcript, as many ticks would see it; the human turns."""
    turns = offset = 0
    while isinstance(finding := claude.check(Probe(link_to(path, offset), OWN)), Activity):
        turns += finding.turns
        offset = finding.next_marker["offset"]
    return turns


def parsed(path: Path) -> int:
    with open(path, "rb") as file:
        return sum(json.loads(line)["type"] == "user" for line in file)


def filtered(path: Path) -> int:
    """Blocks of 1 MiB, where a byte string only rejects and JSON decides."""
    found, rest = 0, b""
    with open(path, "rb") as file:
        while block := file.read(MIB):
            block = rest + block
            end = block.rfind(b"\n") + 1
            rest = block[end:]
            at = block.find(b'"user"', 0, end)
            while at >= 0:
                stop = block.index(b"\n", at)
                found += json.loads(block[block.rfind(b"\n", 0, at) + 1 : stop])["type"] == "user"
                at = block.find(b'"user"', stop, end)
    return found


def rows() -> Iterator[Row]:
    """At least 0.6 of the speed of parsing every row, and 0.5 of that of a filter."""
    with folder() as place:
        dense, few = place / "dense.jsonl", place / "few.jsonl"
        write(dense, 40_000, users_every=1)
        write(few, 30_000, users_every=500)
        for path, base in ((dense, parsed), (few, filtered)):
            assert checked(path) == base(path)
        figure = paired(lambda: checked(dense), lambda: parsed(dense), runs=9)
        yield Row("transcript of users' rows: time / json.loads on every row", figure, 1 / 0.6)
        figure = paired(lambda: checked(few), lambda: filtered(few), runs=15)
        yield Row("transcript with few users' rows: time / block filter", figure, 1 / 0.5)


def quiet_tick() -> Iterator[Row]:
    """One tick over links that have not moved."""
    with folder() as place:
        database = place / "log.sqlite"
        create(database).close()
        paths = [str(place / f"{number:04}.jsonl") for number in range(LINKS)]
        with closing(sqlite3.connect(database)) as connection, connection:
            for number, path in enumerate(paths):
                Path(path).touch()
                key = f"agent:main:plugin:anthropic:catalog-adopt:claude:{number:064x}"
                connection.execute(
                    "INSERT INTO session_upstream_links VALUES"
                    " (?, 'main', 'claude', 'gateway:local', ?, 'claude-cli', ?, ?, NULL, 1, 1)",
                    (key, f"thread-{number}", json.dumps({"filePath": path}), '{"offset":0}'),
                )
                connection.execute(
                    "INSERT INTO session_watch_cursors (watcher_session_key, target_session_key, updated_at)"
                    " VALUES ('agent:main:main', ?, 1)",
                    (key,),
                )
        with create(database) as log, closing(sqlite3.connect(database)) as connection:
            monitor = Monitor(log, EmbeddedSessions(), standard_catalogs({}), clock=lambda: NOW)

            def bare() -> None:
                connection.execute(_LISTING).fetchall()
                for path in paths:
                    os.stat(path)

            assert len(monitor.tick().links) == LINKS
            figure = paired(monitor.tick, bare, runs=41)
            yield Row(f"tick over {LINKS:,} quiet links: time / stat and listing", figure, 3.0)


def huge_row() -> Iterator[Row]:
    """The most memory that a check needs for a row of 150 MB."""
    with folder() as place:
        path = place / "huge.jsonl"
        with open(path, "wb") as file:
            for _ in range(150):
                file.write(b"x" * 1_000_000)
            file.write(b"\n")
        tracemalloc.start()
        claude.check(Probe(link_to(path, 0), OWN))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        yield Row("check of a row of 150 MB: memory", peak / MIB, 32.0, "MB")


MEASURES: tuple[Callable[[], Iterator[Row]], ...] = (rows, quiet_tick, huge_row)
