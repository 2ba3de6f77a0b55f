"""Text that another program stored never reaches a terminal raw, nor does it stop a command."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openclaw_state.cli.run import run
from openclaw_state.cli.terminal import Terminal
from tests.cli.harness import Outcome, Stream
from tests.fault.console import assert_fails, invoke
from tests.support import T, openclaw_file

# ESC, BEL, a C1 control, line ends, DEL, a line separator and marks that turn the direction of text.
BAD = "\x1b[2J\x07\x9b1m\r\n\t\x7f\u2028\u202e\u2066\u200f\u061c"
KEY, WATCHER = f"agent:main:{BAD}key", f"agent:main:{BAD}watcher"
AGENTS = (f"main{BAD}", f"work{BAD}")
STORE = f"/srv/{BAD}/openclaw-agent.sqlite"


def insert(connection: sqlite3.Connection, table: str, **values: Any) -> None:
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", (*values.values(),))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with hostile text in every column, of its path too."""
    folder = tmp_path_factory.mktemp("hostile") / f"dir{BAD}"
    (folder / "state").mkdir(parents=True)
    path = openclaw_file(folder / "state" / "openclaw.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE state_leases (scope TEXT, lease_key TEXT, owner TEXT, payload_json TEXT,"
            " heartbeat_at INTEGER, expires_at INTEGER)"
        )
        lease = json.dumps({"owner": {"host": BAD, "pid": 1}})
        connection.execute(
            "INSERT INTO state_leases VALUES ('gateway-owner', 'global', ?, ?, 1, 2)", (BAD, lease)
        )
        for number, (key, agent) in enumerate(((KEY, "main"), *((BAD, agent) for agent in AGENTS)), 1):
            insert(
                connection,
                "session_state_events",
                sequence=number,
                dedupe_key=f"{BAD}{number}",
                session_key=key,
                session_id=BAD,
                agent_id=agent,
                kind="goal_changed" if number == 1 else BAD,
                actor_type=BAD,
                actor_id=BAD,
                run_id=BAD,
                occurred_at=T - number,
                summary=BAD,
                payload_json=json.dumps({"channel": BAD, BAD: [BAD]}, ensure_ascii=False),
            )
            insert(
                connection,
                "session_state_heads",
                session_key=key,
                agent_id=agent,
                last_sequence=number,
                pruned_max_sequence=1 if key == KEY else 0,
                updated_at=T,
            )
        for target in (KEY, BAD):
            insert(
                connection,
                "session_watch_cursors",
                watcher_session_key=WATCHER,
                watcher_store_path=STORE,
                target_session_key=target,
                notified_sequence=1,
                material_sequence=1,
                updated_at=T,
            )
        link = dict.fromkeys(("catalog_id", "host_id", "thread_id", "upstream_kind"), BAD)
        insert(
            connection,
            "session_upstream_links",
            session_key=KEY,
            agent_id="main",
            **link,
            created_at=T,
            updated_at=T,
        )
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(original, tmp_path / original.name))


def assert_harmless(outcome: Outcome, form: str = "text") -> None:
    """Nothing raw: only line feeds, and tabs between the cells of TSV."""
    cells = "\n\t" if form == "tsv" else "\n"
    raw = {one for one in outcome.out + outcome.err if not one.isprintable()} - set(cells)
    assert not raw, (raw, outcome)
    assert "Traceback" not in outcome.err


GAP = ("status", KEY, "--since", "0")
READING: list[tuple[str, ...]] = [
    ("status",),
    ("status", KEY),
    ("status", KEY, "--children"),
    GAP,
    ("status", BAD, "--agent", AGENTS[0], "--since", "0"),
    ("version", KEY),
    ("list",),
    ("tail", "-n", "all"),
    ("cursors", "list", "-v"),
    ("notices", "-v"),
    ("forget", KEY, "--dry-run"),
    ("cursors", "prune", "--undeliverable", "--include-pending", "--dry-run"),
]


def forms(argv: tuple[str, ...]) -> list[str]:
    """An overview has no rows, so only two forms."""
    overview = argv[0] == "status" and "--since" not in argv
    return ["text", "json"] if overview else ["text", "json", "jsonl", "tsv"]


CASES = [(form, argv) for argv in READING for form in forms(argv)]


@pytest.mark.parametrize(("form", "argv"), CASES, ids=[f"{form} {argv!a}" for form, argv in CASES])
def test_reading_shows_escapes(original: Path, form: str, argv: tuple[str, ...]) -> None:
    outcome = invoke("--state-dir", original, "--format", form, *argv)
    assert outcome.status == (3 if argv == GAP else 0), outcome
    assert_harmless(outcome, form)


def test_json_reads_back_exactly_what_is_stored(original: Path) -> None:
    events = invoke("--state-dir", original, "tail", "--json").document["events"]
    assert events[1]["summary"] == events[1]["kind"] == events[1]["sessionKey"] == BAD
    assert events[1]["payload"] == {"channel": BAD, BAD: [BAD]}
    watches = invoke("--state-dir", original, "cursors", "list", "--json").document["cursors"]
    assert [watch["watcherStorePath"] for watch in watches] == [STORE, STORE]


@pytest.mark.parametrize("argv", [("list",), ("cursors", "list"), ("tail",), ("status", KEY)], ids=ascii)
def test_a_narrow_terminal_gets_escapes_as_well(original: Path, argv: tuple[str, ...]) -> None:
    words = ["--state-dir", str(original), "--color", "never", *argv]
    out, err = Stream(terminal=True), Stream(terminal=True)
    environ = {**os.environ, "OPENCLAW_STATE_NOW": str(T), "COLUMNS": "20"}
    status = run(words, Terminal(Stream(), out, err, environ))
    assert_harmless(Outcome(status, out.getvalue(), err.getvalue()))
    assert "\\x1b[2J" in out.getvalue()


CHANGING: list[tuple[str, ...]] = [
    (
        "record",
        "agent:main:new",
        "--kind",
        BAD,
        "--allow-unknown",
        "--actor",
        f"{BAD}:{BAD}",
        "--summary",
        BAD,
        "--allow-multiline",
        "--run",
        BAD,
        "--payload",
        json.dumps({BAD: BAD}),
        "--dedupe-key",
        BAD,
        "-v",
    ),
    ("cursors", "add", "agent:main:main", "agent:main:new", "--store", STORE),
    ("cursors", "ack", WATCHER),
    ("cursors", "remove", WATCHER, KEY, "-y"),
    ("cursors", "reset", WATCHER, "-y"),
    ("cursors", "prune", "--older-than", "0", "--undeliverable", "--include-pending"),
    ("notices", WATCHER, "--ack"),
    ("prune", "--max-rows", "1", "-y"),
    ("forget", KEY, "-y"),
]


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "tsv"])
@pytest.mark.parametrize("argv", CHANGING, ids=[ascii(" ".join(argv[:2])) for argv in CHANGING])
def test_changing_shows_escapes(folder: Path, argv: tuple[str, ...], form: str) -> None:
    outcome = invoke("--state-dir", folder, "--format", form, *argv)
    assert outcome.status == 0, outcome
    assert_harmless(outcome, form)


FAILING: list[tuple[tuple[str, ...], int, str]] = [
    (("status", f"{KEY}s"), 4, "did you mean agent:main:.*key"),
    (("version", BAD), 2, "several agents have the key"),
    (("status", KEY, "--since", "99"), 5, "lies ahead of it"),
    (("cursors", "remove", WATCHER, WATCHER, "-y"), 4, "does not watch"),
    (("cursors", "ack", WATCHER, f"{KEY}s"), 4, "does not watch"),
    (("cursors", "reset", BAD, "-y"), 4, "watches nothing"),
    (("forget", KEY), 9, "no terminal to ask on"),
    (("notices", "sweep"), 9, "a gateway may be running"),
    (("record", KEY, "--kind", "goal_changed"), 2, "contains control characters"),
    (("record", "agent:main:x", "--kind", BAD), 2, "is no kind of event"),
    (("record", "agent:main:x", "--kind", "goal_changed", "--actor", BAD), 2, "is no actor"),
    (("run", "--parent", WATCHER, "--child", KEY, "--", BAD), 2, "contains control characters"),
    (("tail", "--since", f"1{BAD}"), 2, "is not a point in the log"),
    (("list", f"--{BAD}"), 2, "no such option"),
    (("list", BAD), 2, "unexpected extra argument"),
    (("list", "--profile", BAD), 2, "is not a profile name"),
    (("list", "--db", f"/nowhere/{BAD}"), 66, "there is no database at"),
    ((f"list{BAD}",), 2, "there is no command"),
]


@pytest.mark.parametrize(("argv", "status", "words"), FAILING, ids=[ascii(argv) for argv, *_ in FAILING])
def test_the_words_of_errors_are_escaped(
    original: Path, argv: tuple[str, ...], status: int, words: str
) -> None:
    for form in ((), ("--json",)):
        outcome = invoke("--state-dir", original, *form, *argv)
        assert_fails(outcome, status, words)
        assert_harmless(outcome)


def test_the_name_of_a_supervisor_is_escaped(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "state" / "openclaw.sqlite")) as connection, connection:
        claim = json.dumps({"managerId": BAD})
        connection.execute("INSERT INTO config_machine_state VALUES ('gateway.supervision', ?, 1)", (claim,))
    outcome = invoke("--state-dir", folder, "cursors", "reset", WATCHER, "-y", "--json")
    assert_fails(outcome, 9, "an external supervisor owns this database")
    assert_harmless(outcome)


# Values that are text to SQLite, and to nobody else what they should be.

ODD = "agent:main:odd"
NESTED = "[" * 100_000
PAYLOADS = ['{"turns":NaN}', '{"turns":1e999}', '{"turns":Infinity}', "{", "[1]", "9" * 5000, NESTED]
PAYLOADS += ['{"a":' + "[" * depth + "]" * depth + "}" for depth in range(700, 1100, 7)]


def test_no_payload_stops_a_reading(folder: Path) -> None:
    """Contract, signal-log 6: what is not a JSON object is not shown."""
    with closing(sqlite3.connect(folder / "state" / "openclaw.sqlite")) as connection, connection:
        for number, payload in enumerate(PAYLOADS, 10):
            connection.execute(
                "INSERT INTO session_state_events (sequence, session_key, agent_id, kind, actor_type,"
                " occurred_at, summary, payload_json) VALUES (?, ?, 'main', 'k', 'human', ?, '', ?)",
                (number, ODD, 2**62, payload),
            )
    for form in ("text", "json", "jsonl", "tsv"):
        assert invoke("--state-dir", folder, "tail", "-n", "all", "--format", form).status == 0
    rows = invoke("--state-dir", folder, "tail", ODD, "-n", "all", "--format", "jsonl").rows
    assert [row["sequence"] for row in rows] == list(range(10, 10 + len(PAYLOADS)))
    assert all("payload" not in row for row in (rows[0], *rows[2:7]))
    assert rows[1]["payload"] == {"turns": None}, "as JSON writes what is past every number"


@pytest.mark.parametrize("key", ["state.schema.contentVersion", "gateway.supervision"])
@pytest.mark.parametrize(
    "value", [None, "", "{", NESTED, "9" * 5000, "true", "[]", '"18"', "NaN"], ids=lambda v: str(v)[:9]
)
def test_no_setting_stops_a_command(folder: Path, key: str, value: str | None) -> None:
    """A supervision row that cannot be read is still one: writing is refused, reading goes on."""
    with closing(sqlite3.connect(folder / "state" / "openclaw.sqlite")) as connection, connection:
        connection.execute("INSERT INTO config_machine_state VALUES (?, ?, 1)", (key, value))
    assert invoke("--state-dir", folder, "list").status == 0
    written = invoke("--state-dir", folder, "cursors", "reset", WATCHER, "-y")
    if key == "gateway.supervision" and value is not None:
        assert_fails(written, 9, "an external supervisor owns this database")
    else:
        assert written.status == 0
