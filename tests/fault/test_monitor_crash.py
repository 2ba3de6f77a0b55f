"""A monitor that is killed, at any point of a tick, neither repeats an event nor passes over a turn."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.cli.app import load
from openclaw_state.cli.run import run
from openclaw_state.cli.terminal import Terminal
from openclaw_state.sidecar import sidecar_path
from tests.adopted import ADOPTED, Transcript, adopt, person
from tests.cli.harness import Stream
from tests.support import PARENT, T, query, triples


def monitor(path: Path, *, kill_at: int = 0, now: int = T) -> int:
    """One tick in a process of its own, which kills itself before its n-th statement; its exit code."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    left = kill_at
    connect = sqlite3.connect

    def count(text: str) -> None:
        nonlocal left
        left -= not text.startswith("--")
        if left == 0 and kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(count)
        return connection

    status = 70
    try:
        sqlite3.connect = counted  # type: ignore[assignment]
        environ = {**os.environ, "OPENCLAW_STATE_DB": str(path), "OPENCLAW_STATE_NOW": str(now)}
        status = run(["monitor", "-q"], Terminal(Stream(), Stream(), Stream(), environ))
    finally:
        os._exit(status)


@pytest.fixture(autouse=True)
def loaded() -> None:
    """What a tick imports, before the first fork: no child pays for it."""
    load("monitor")
    for module in ("sidecar", "cli.monitor", "cli.ticker", "upstream.catalogs", "log.signal_log"):
        import_module(f"openclaw_state.{module}")


def prepared(folder: Path) -> tuple[Path, Transcript]:
    path = folder / "log.sqlite"
    transcript = Transcript(folder / "thread.jsonl")
    with SignalLog(path, change=True, create=True, clock=lambda: T - 1) as log:
        adopt(log, transcript.path)
    return path, transcript


def marker(path: Path) -> list[tuple[str]]:
    return query(path, "SELECT last_marker_json FROM session_upstream_links")


def assert_sound(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_killed_before_any_statement_the_next_tick_completes_it(tmp_path: Path) -> None:
    killed, status = 0, -signal.SIGKILL
    while status == -signal.SIGKILL:
        killed += 1
        path, transcript = prepared(tmp_path / f"run{killed}")
        before = marker(path)
        transcript.add(person("one"), person("two"))
        after = [(f'{{"offset":{transcript.size}}}',)]
        status = monitor(path, kill_at=killed)
        events = query(path, "SELECT payload_json FROM session_state_events")
        assert len(events) <= 1
        assert marker(path) == before or (marker(path) == after and events)
        assert monitor(path) == 0
        assert query(path, "SELECT payload_json FROM session_state_events") == [('{"turns":2}',)]
        assert marker(path) == after
        (cursor,) = triples(path).items()
        sequence = cursor[1][2]
        assert cursor == ((PARENT, ADOPTED), (0, sequence, sequence))
        assert_sound(path)
    assert status == 0
    assert killed > 10


def test_killed_at_the_third_miss_the_link_goes_with_one_event(tmp_path: Path) -> None:
    path, transcript = prepared(tmp_path)
    transcript.path.unlink()
    for minute in range(2):
        assert monitor(path, now=T + minute * 60_000) == 0
    kept = {file: file.read_bytes() for file in (path, Path(sidecar_path()))}
    killed, status = 0, -signal.SIGKILL
    while status == -signal.SIGKILL:
        killed += 1
        for side in (*tmp_path.glob("*-wal"), *tmp_path.glob("*-shm"), *tmp_path.glob("*-journal")):
            side.unlink()
        for file, data in kept.items():
            file.write_bytes(data)
        status = monitor(path, kill_at=killed, now=T + 120_000)
        assert len(query(path, "SELECT kind FROM session_state_events")) <= 1
        assert monitor(path, now=T + 180_000) == 0
        assert query(path, "SELECT kind FROM session_state_events") == [("upstream_missing",)]
        assert marker(path) == []
        assert_sound(path)
    assert status == 0
    assert killed > 10
