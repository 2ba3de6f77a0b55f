"""What is measured, and against what: ratios taken in one run, medians of paired runs."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from openclaw_state import Limits, SignalLog
from openclaw_state.core import opening
from openclaw_state.core.database import Database

KEY = "agent:main:subagent:child"
NOW = 1_800_000_000_000


class Row(NamedTuple):
    """One line of the table: the figure must not exceed the bound."""

    name: str
    figure: float
    bound: float
    unit: str = "x"


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="openclaw-state-perf-") as name:
        yield Path(name)


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def paired(ours: Callable[[], object], base: Callable[[], object], *, runs: int) -> float:
    """The median of ours / base, each pair measured one right after the other."""
    return statistics.median(seconds(ours) / seconds(base) for _ in range(runs))


def create(path: Path) -> SignalLog:
    return SignalLog(path, change=True, create=True, clock=lambda: NOW)


def fill(path: Path, rows: Iterator[tuple[str, int]]) -> None:
    """Events (session key, time) straight into the tables, with the heads that belong to them."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO session_state_events (session_key, agent_id, kind, actor_type, occurred_at, summary)"
            " VALUES (?, 'main', 'goal_changed', 'system', ?, 'goal updated')",
            rows,
        )
        connection.execute(
            "INSERT INTO session_state_heads (session_key, agent_id, last_sequence, updated_at)"
            " SELECT session_key, 'main', max(sequence), 0 FROM session_state_events GROUP BY session_key"
        )


def installed_script() -> str:
    """The command of a normal install; an editable one recompiles at every start."""
    where = subprocess.run(
        [sys.executable, "-c", "import openclaw_state; print(openclaw_state.__file__)"],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    script = Path(sys.executable).with_name("openclaw-state")
    if "site-packages" not in where or not script.exists():
        raise SystemExit("tests.perf needs a normal install beside this Python: pip install '.[test]'")
    return str(script)


def start() -> Iterator[Row]:
    """A whole start of the most frequent command, beside a bare interpreter."""
    script = installed_script()
    with folder() as place:
        path = place / "log.sqlite"
        with create(path) as log:
            for _ in range(20):
                log.record(KEY, "goal_changed", actor_type="system", summary="goal updated")
        status = [script, "status", KEY, "--since", "12", "--json", "--db", str(path)]
        bare = [sys.executable, "-c", "pass"]
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

        def run(command: list[str]) -> None:
            subprocess.run(command, cwd=place, env=environ, stdout=subprocess.DEVNULL, check=True)

        run(status)
        ratio = paired(lambda: run(status), lambda: run(bare), runs=41)
    yield Row("status KEY --since N --json / python3 -c pass", ratio, 7.0)


class Recorder(sqlite3.Connection):
    """Remembers the statements of one append, with their values."""

    seen: list[tuple[str, Any]] | None = None

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if Recorder.seen is not None:
            Recorder.seen.append((sql, parameters))
        return super().execute(sql, parameters)


def prepared(path: Path, watchers: int) -> SignalLog:
    """A log with one event and so many watchers of its session."""
    log = create(path)
    for number in range(watchers):
        log.watch(f"agent:main:w{number}", KEY)
    record(log)
    return log


def record(log: SignalLog) -> None:
    log.record(KEY, "goal_changed", actor_type="system", summary="goal updated")


def statements_of(path: Path, watchers: int, events: int) -> list[tuple[str, Any]]:
    """The SQL text of so many events, from BEGIN to COMMIT, with the values of each.

    Values of their own, because SQLite writes no page whose content stays the same.
    """
    connect = sqlite3.connect
    recording = mock.patch.object(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Recorder))
    with recording, prepared(path, watchers) as log:
        Recorder.seen = []
        for _ in range(events):
            record(log)
        seen, Recorder.seen = Recorder.seen, None
    return seen


def append() -> Iterator[Row]:
    """Recording beside the same SQL text on one open connection with the same durability."""
    events, runs = 300, 15
    for watchers, bound in ((0, 1 / 0.6), (1, math.inf)):
        with folder() as place:
            texts = iter(statements_of(place / "traced.sqlite", watchers, events * runs))
            prepared(place / "bare.sqlite", watchers).close()
            bare, _ = opening.connect(str(place / "bare.sqlite"), writable=True)
            with closing(bare), prepared(place / "ours.sqlite", watchers) as log:
                ratio = paired(
                    lambda log=log: [record(log) for _ in range(events)],  # type: ignore[misc]
                    lambda bare=bare, texts=texts: replay(bare, texts, events),  # type: ignore[misc]
                    runs=runs,
                )
        yield Row(f"append, {watchers} watching: time / the same SQL text", ratio, bound)
    with folder() as place:
        many = statements_of(place / "many.sqlite", watchers=1_000, events=1)
    around = ("BEGIN", "SELECT (SELECT schema_version", "COMMIT")
    counted = sum(not sql.startswith(around) for sql, _ in many)
    yield Row("an event with 1,000 watchers: statements", counted, 6.0, "")


def replay(connection: sqlite3.Connection, texts: Iterator[tuple[str, Any]], events: int) -> None:
    while events:
        sql, values = next(texts)
        connection.execute(sql, values).fetchall()
        events -= sql == "COMMIT"


def changes() -> Iterator[Row]:
    """changesSince among few and among very many rows of other sessions."""
    with folder() as place:
        logs = []
        for name, others in (("few", 1_000), ("many", 1_000_000)):
            path = place / f"{name}.sqlite"
            create(path).close()
            every = others // 100
            fill(path, ((KEY if n % every == 0 else f"agent:main:o{n % 997}", NOW) for n in range(others)))
            logs.append(SignalLog(path))
        few, many = logs

        def ask(log: SignalLog) -> Callable[[], object]:
            return lambda: [log.changes_since(KEY, 0) for _ in range(50)]

        ask(few)(), ask(many)()
        ratio = paired(ask(many), ask(few), runs=15)
        few.close(), many.close()
    yield Row("changes_since: 1,000,000 rows of others / 1,000", ratio, 2.0)


def retention() -> Iterator[Row]:
    """Retention from 200,000 rows to 50,000, beside one transaction that does the same."""
    held: list[float] = []
    longest: list[float] = []
    ratios: list[float] = []
    writing = Database.writing

    @contextmanager
    def timed(self: Database) -> Iterator[sqlite3.Connection]:
        with writing(self) as connection:
            begun = time.perf_counter()
            yield connection
        held.append(time.perf_counter() - begun)

    with folder() as place:
        full = place / "full.sqlite"
        create(full).close()
        fill(full, ((f"agent:main:s{n % 500}", NOW) for n in range(200_000)))
        for number in range(5):
            one, two = place / f"one{number}.sqlite", place / f"two{number}.sqlite"
            shutil.copy(full, one)
            shutil.copy(full, two)
            with create(one) as log, mock.patch.object(Database, "writing", timed):
                ours = seconds(lambda: log.prune(Limits(max_rows=50_000)))
            bare, _ = opening.connect(str(two), writable=True)
            with closing(bare):
                theirs = seconds(partial(bare_retention, bare))
            ratios.append(ours / theirs)
            longest.append(max(held) * 1000)
            held.clear()
            one.unlink()
            two.unlink()
    yield Row("retention 200,000 to 50,000: longest lock", statistics.median(longest), 100.0, "ms")
    yield Row("retention 200,000 to 50,000: time / one transaction", statistics.median(ratios), 2.5)


def bare_retention(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    (bound,) = connection.execute(
        "SELECT sequence FROM session_state_events ORDER BY sequence DESC LIMIT 1 OFFSET 50000"
    ).fetchone()
    connection.execute(
        "UPDATE session_state_heads SET pruned_max_sequence = doomed.greatest FROM"
        " (SELECT session_key, agent_id, max(sequence) AS greatest FROM session_state_events"
        "  WHERE sequence <= ? GROUP BY session_key, agent_id) AS doomed"
        " WHERE session_state_heads.session_key = doomed.session_key"
        " AND session_state_heads.agent_id = doomed.agent_id",
        (bound,),
    )
    connection.execute("DELETE FROM session_state_events WHERE sequence <= ?", (bound,))
    connection.execute("COMMIT")


# A process begins with the peak of the one that started it, so a small one has to start it.
PEAK = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def memory() -> Iterator[Row]:
    """`tail -n all` over 50,000 events: the most memory the process ever had."""
    script = installed_script()
    with folder() as place:
        path = place / "log.sqlite"
        create(path).close()
        fill(path, ((f"agent:main:s{n % 100}", NOW) for n in range(50_000)))
        for form in ("text", "json"):
            command = [script, "tail", "-n", "all", "--format", form, "--db", str(path)]
            done = subprocess.run(
                [sys.executable, "-c", PEAK, *command], cwd=place, capture_output=True, text=True, check=True
            )
            yield Row(f"tail -n all over 50,000 events, {form}: memory", int(done.stdout) / 1024, 60.0, "MB")


MEASURES: tuple[Callable[[], Iterator[Row]], ...] = (start, append, changes, retention, memory)
