"""Listing stored sessions, beside reading and parsing the same rows and nothing else."""

from __future__ import annotations

import io
import json
import sqlite3
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from openclaw_state.cli.run import run
from openclaw_state.cli.terminal import Terminal
from tests.sessions import AgentStore

from .measures import PEAK, Row, folder, seconds

ROWS = 5_000
ENTRY_BYTES = 14_000


def fill(store: AgentStore) -> None:
    """Entries like those of a gateway: a few members, and a large snapshot beside them."""
    snapshot = {"prompt": "x\n" * (ENTRY_BYTES // 4), "skills": [{"name": f"skill-{n}"} for n in range(250)]}
    for number in range(ROWS):
        store.add(
            f"agent:main:s{number}",
            sessionStartedAt=number,
            lastInteractionAt=number,
            status="done",
            model="m1",
            modelProvider="mock",
            agentHarnessId="openclaw",
            delivery={"kind": "none"},
            skillsSnapshot=snapshot,
        )


def parse(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT entry_json FROM session_nodes WHERE entry_valid = 1")
        return sum(len(json.loads(text)) for (text,) in rows)


def sessions() -> Iterator[Row]:
    """`sessions list` of 5,000 rows of 14 kB: time, and the memory of the whole process."""
    with folder() as place:
        store = AgentStore(place)
        fill(store)
        words = ["sessions", "list", "--state-dir", str(place), "--json", "--limit", "all"]

        def listed() -> None:
            run(words, Terminal(sys.stdin, io.StringIO(), io.StringIO()))

        listed()
        ratio = statistics.median(seconds(listed) / seconds(lambda: parse(store.path)) for _ in range(7))
        yield Row(f"sessions list, {ROWS:,} rows / reading and parsing them", ratio, 2.5)
        command = [sys.executable, "-c", PEAK, sys.executable, "-m", "openclaw_state", *words]
        peak = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        yield Row(f"sessions list, {ROWS:,} rows: peak memory", peak / 1024, 80.0, "MB")
