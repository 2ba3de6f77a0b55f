"""The upstream monitor beside bare loops over the same files and rows."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openclaw_state import SignalLog
from openclaw_state.model import Link
from openclaw_state.upstream import claude
from openclaw_state.upstream.catalogs import standard_catalogs
from openclaw_state.upstream.findings import Activity, Probe
from openclaw_state.upstream.monitor import Monitor
from openclaw_state.upstream.sessions import EmbeddedSessions
from tests.perf.measures import Row, create, folder, paired

OWN = tuple(f"what the session sent itself, number {number}" for number in range(10))
WINDOW = 1_048_576


def user(number: int) -> dict[str, Any]:
    return {
        "parentUuid": f"4f1f3e2a-5f1e-4a0e-9d4c-{number:012d}",
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/ann/project",
        "sessionId": "0b7e6c3a-1111-2222-3333-444455556666",
        "version": "2.1.266",
        "type": "user",
        "message": {"role": "user", "content": f"please look at test {number} and say why it fails here"},
        "uuid": f"4f1f3e2a-5f1e-4a0e-9d4c-{number:012d}",
        "timestamp": f"2026-07-13T10:{number // 60 % 60:02d}:{number % 60:02d}.{number % 1000:03d}Z",
    }


def assistant(number: int) -> dict[str, Any]:
    text = "Lorem ipsum dolor sit amet, consectetur adipiscing elit.\n" * 20
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "uuid": str(number), "message": {"role": "assistant", "content": content}}


def write(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def checked(path: Path) -> int:
    """The human turns of a whole transcript, window by window."""
    offset, turns = 0, 0
    while True:
        link = Link(
            "k", "main", "claude", "gateway:local", "t", claude.KIND, {"filePath": str(path)}, {}, 0, 0
        )
        found = claude.check(Probe(link._replace(marker={"offset": offset}), OWN))
        if not isinstance(found, Activity):
            return turns
        turns += found.turns
        offset = found.next_marker["offset"]


def every_row(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for raw in file if json.loads(raw))


def filtered(path: Path) -> int:
    """Blocks of a window, of which only rows with the word are parsed."""
    count, rest = 0, b""
    with path.open("rb") as file:
        while block := file.read(WINDOW):
            block = rest + block
            end = block.rfind(b"\n") + 1
            rest = block[end:]
            at = block.find(b'"user"', 0, end)
            while at >= 0:
                start, stop = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at)
                json.loads(block[start:stop])
                count += 1
                at = block.find(b'"user"', stop, end)
    return count


def rows() -> Iterator[Row]:
    """Transcripts full of people's rows, and with hardly any."""
    with folder() as place:
        dense, few = place / "dense.jsonl", place / "few.jsonl"
        write(dense, map(user, range(40_000)))
        write(few, (user(n) if n % 500 == 0 else assistant(n) for n in range(20_000)))
        assert checked(dense) == every_row(dense)
        assert checked(few) == filtered(few)
        yield Row(
            "dense user rows: time / json.loads of each row",
            paired(lambda: checked(dense), lambda: every_row(dense), runs=9),
            1 / 0.6,
        )
        yield Row(
            "few user rows: time / a block filter",
            paired(lambda: checked(few), lambda: filtered(few), runs=15),
            1 / 0.5,
        )


def quiet() -> Iterator[Row]:
    """A tick over links where nothing moved."""
    count = 1_000
    with folder() as place:
        path = place / "log.sqlite"
        with create(path) as log:
            for number in range(count):
                file = place / f"{number}.jsonl"
                file.write_bytes(b"{}\n")
                key = f"agent:main:s{number}"
                log.watch("agent:main:main", key)
                log.upsert_link(
                    key,
                    catalog_id="claude",
                    host_id="gateway:local",
                    thread_id=f"t{number}",
                    upstream_kind=claude.KIND,
                    upstream_ref={"filePath": str(file)},
                    marker={"offset": 3},
                )
        with SignalLog(path, change=True) as log, sqlite3.connect(path) as bare:
            monitor = Monitor(log, EmbeddedSessions(), standard_catalogs(os.environ), clock=lambda: 0)
            files = [str(place / f"{number}.jsonl") for number in range(count)]

            def tick() -> None:
                assert len(monitor.tick().links) == count

            def loop() -> None:
                listed = bare.execute("SELECT * FROM session_upstream_links ORDER BY catalog_id, session_key")
                assert len(listed.fetchall()) == count
                for file in files:
                    os.stat(file)

            tick(), loop()
            yield Row("a tick over 1,000 quiet links / stat and list", paired(tick, loop, runs=41), 3.0)
        bare.close()


MEASURES = (rows, quiet)
