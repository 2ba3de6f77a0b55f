"""What scripts read: every document and row keeps to its schema, and nothing else is on stdout."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from openclaw_state import SignalLog
from openclaw_state.cli.app import COMMANDS, load
from openclaw_state.errors import StateError
from openclaw_state.report.linking import (
    LINK_ADD_FIELDS,
    LINK_CHANGE_FIELDS,
    LINK_DETAIL_FIELDS,
    LINK_FIELDS,
    OWN_TEXT_FIELDS,
    SKIP_FIELDS,
)
from openclaw_state.report.monitoring import LINK_FIELDS as MONITOR_FIELDS
from openclaw_state.report.views import (
    CHANGE_FIELDS,
    CURSOR_FIELDS,
    EVENT_FIELDS,
    NOTICE_FIELDS,
    SESSION_FIELDS,
)
from tests.adopted import adopt_blocked
from tests.cli.conftest import OTHER, StateDir
from tests.cli.harness import Cli, check_document, check_row, schemas
from tests.support import CHILD, DAY, PARENT, change, goal

# A board is no document; in a pipe, watch prints the lines of tail.
SESSIONS = {name for name in COMMANDS if name.startswith("sessions ")}  # tests/cli/test_sessions_json.py
NAMES = [name.replace(" ", "-") for name in COMMANDS if name != "watch"]

# Command -> its arguments on the story, and the fields of its rows.
ANSWERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "status": ((CHILD, "--since", "0"), CHANGE_FIELDS),
    "version": ((CHILD, PARENT), ("sessionKey", "agentId", "stateVersion")),
    "list": ((), SESSION_FIELDS),
    "tail": ((), EVENT_FIELDS),
    "cursors list": ((), CURSOR_FIELDS),
    "notices": ((), NOTICE_FIELDS),
    "record": ((CHILD, "--kind", "goal_changed"), EVENT_FIELDS),
    "run": (
        ("--parent", PARENT, "--child", CHILD, "--", "true"),
        ("parent", "child", "runId", "outcome", "exitStatus"),
    ),
    "cursors add": ((PARENT, OTHER), CURSOR_FIELDS),
    "cursors remove": ((PARENT, CHILD, "-y"), ("watcher", "target", "removed")),
    "cursors ack": ((PARENT,), NOTICE_FIELDS),
    "cursors reset": ((PARENT, "-y"), ("watcher", "removed")),
    "cursors prune": (("--older-than", "0", "--include-pending"), (*CURSOR_FIELDS, "why")),
    "notices sweep": ((), NOTICE_FIELDS),
    "prune": (
        ("--max-rows", "1", "-y"),
        (
            "dryRun",
            "cutoff",
            "maxRows",
            "eventsByAge",
            "eventsByRows",
            "sessions",
            "cursorsExpired",
            "cursorsPending",
            "headsKept",
        ),
    ),
    "forget": (
        (CHILD, "-y"),
        ("dryRun", "sessionKey", "agentId", "events", "heads", "links", "cursors"),
    ),
    "monitor": ((), MONITOR_FIELDS[:-1]),
    "links list": ((), LINK_FIELDS),
    "links show": ((PARENT,), LINK_DETAIL_FIELDS),
    "links add": (
        (CHILD, "--catalog", "claude", "--thread", "t", "--file", __file__),
        LINK_ADD_FIELDS,
    ),
    "links remove": ((PARENT, "-y"), LINK_CHANGE_FIELDS),
    "links skip": ((PARENT, "-y"), SKIP_FIELDS),
    "links own-text": ((PARENT, "--text", "done"), OWN_TEXT_FIELDS),
    "help": (("time",), ("topic", "text")),
}

every_answer = pytest.mark.parametrize("command", ANSWERS)


def arguments(command: str, *more: str) -> list[str]:
    """The command line of an answer, with more options before any program to run."""
    own = ANSWERS[command][0]
    place = own.index("--") if "--" in own else len(own)
    return [*command.split(), *own[:place], *more, *own[place:]]


@pytest.fixture
def aged(story: Cli, log: SignalLog, tmp_path: Path) -> Cli:
    """The story with a blocked link, a day later: every watch is older than no time at all."""
    adopt_blocked(log, tmp_path / "session.jsonl")
    story.now += DAY
    return story


def dump(path: Path) -> list[str]:
    """Everything that stands in a file, as SQL."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_the_schemas_are_schemas_and_name_themselves() -> None:
    for name, schema in schemas().items():
        Draft202012Validator.check_schema(schema)
        assert schema["$id"] == f"urn:openclaw-state:{name}:v1"


def test_there_is_a_schema_for_every_command_and_for_failures() -> None:
    assert set(schemas()) == {*NAMES, "error", "common"}


def test_the_schema_of_failures_knows_every_code() -> None:
    codes = schemas()["error"]["properties"]["error"]["properties"]["code"]["enum"]
    assert set(codes) == {StateError.code} | {kind.code for kind in _subclasses(StateError)}


def _subclasses(kind: type[StateError]) -> list[type[StateError]]:
    return [found for sub in kind.__subclasses__() for found in (sub, *_subclasses(sub))]


def test_every_command_but_the_demo_is_in_the_table() -> None:
    assert set(ANSWERS) == set(COMMANDS) - {"demo", "watch"} - SESSIONS


def test_a_schema_refuses_members_that_it_does_not_name() -> None:
    document = {"schema": "openclaw-state/help/v1", "ok": True, "database": None, "warnings": []}
    check_document({**document, "topic": None, "text": ""})
    with pytest.raises(Exception, match="extra"):
        check_document({**document, "topic": None, "text": "", "extra": 1})


@every_answer
def test_a_document_names_its_command_and_its_database(aged: Cli, command: str) -> None:
    document = aged(*arguments(command, "--json")).document
    assert (document["ok"], document["warnings"]) == (True, [])
    assert document["schema"] == f"openclaw-state/{command.replace(' ', '-')}/v1"
    database = {"path": str(aged.path), "via": "OPENCLAW_STATE_DB"}
    assert document["database"] == (None if command == "help" else database)


@every_answer
def test_json_lines_are_rows_of_the_schema(aged: Cli, command: str) -> None:
    rows = aged(*arguments(command, "--format", "jsonl")).rows
    assert rows
    for row in rows:
        check_row(command, row)
        assert set(row) <= set(ANSWERS[command][1])


@every_answer
def test_tab_separated_lines_begin_with_the_documented_fields(aged: Cli, command: str) -> None:
    heads, *rows = aged(*arguments(command, "--format", "tsv")).cells
    assert tuple(heads) == ANSWERS[command][1]
    assert rows
    assert {len(row) for row in rows} == {len(heads)}


@every_answer
def test_fields_choose_and_order_the_columns(aged: Cli, command: str) -> None:
    chosen = [ANSWERS[command][1][1], ANSWERS[command][1][0]]
    done = aged(*arguments(command, "--fields", ",".join(chosen)))
    assert done.cells[0] == chosen


@every_answer
def test_an_unknown_field_is_usage_and_names_those_there_are(aged: Cli, command: str) -> None:
    before = dump(aged.path)
    done = aged(*arguments(command, "--fields", "sequnce"), status=2)
    assert done.out == ""
    assert f"fields: {', '.join(ANSWERS[command][1])}" in done.err
    assert dump(aged.path) == before


def test_fields_of_json_lines_leave_the_others_out(story: Cli) -> None:
    rows = story("tail", "--format", "jsonl", "--fields", "summary,sequence", "-n", 1).rows
    assert rows == [{"summary": "session compacted", "sequence": 4}]
    assert list(rows[0]) == ["summary", "sequence"]


def test_the_words_of_fields_survive_in_tab_separated_lines(cli: Cli, log: SignalLog) -> None:
    log.record(CHILD, "goal_changed", actor_type="human", summary="a\tb\nc\\d", payload={"turns": 2})
    assert cli("tail", "--fields", "summary,payload,actorId").cells[1] == [r"a\tb\nc\\d", '{"turns":2}', ""]


@pytest.mark.parametrize(
    "argv",
    [
        ("status",),
        ("version",),
        ("list",),
        ("tail",),
        ("cursors", "list"),
        ("notices",),
        ("notices", "sweep"),
        ("prune",),
        ("prune", "--dry-run"),
        ("cursors", "prune", "--expired"),
        ("cursors", "prune", "--orphaned", "--dry-run"),
    ],
    ids=" ".join,
)
def test_an_empty_log_has_documents_too(cli: Cli, log: SignalLog, argv: tuple[str, ...]) -> None:
    assert cli.json(*argv)["ok"] is True


@pytest.mark.parametrize(
    "argv",
    [
        ("status", CHILD),
        ("status", PARENT, "--children", "--since", "0"),
        ("status", CHILD, "--since", "4h"),
        ("version",),
        ("record", CHILD, "--kind", "child_spawned", "--actor", f"agent:{PARENT}", "--run", "run-1"),
        ("record", OTHER, "--kind", "goal_changed", "--only-if-watched"),
        ("notices", PARENT, "--ack"),
        ("cursors", "ack", OTHER, CHILD),
        ("cursors", "add", OTHER, CHILD),
        ("prune", "--max-rows", "0", "--dry-run"),
        ("forget", CHILD, "--dry-run"),
        ("help",),
    ],
    ids=" ".join,
)
def test_other_answers_keep_to_the_schema_of_their_command(story: Cli, argv: tuple[str, ...]) -> None:
    document = story.json(*argv)
    assert document["schema"].split("/")[1].startswith(argv[0])


@pytest.mark.parametrize("release", ["2026.7.2-beta.7", "2026.8.2", "2026.9.6", "2026.9.6-pending"])
def test_databases_of_openclaw_have_valid_documents(
    cli: Cli, peer: Path, tmp_path: Path, release: str
) -> None:
    path = tmp_path / "peer.sqlite"
    path.write_bytes((peer / f"peer-state-{release}.sqlite").read_bytes())
    for argv in (["status"], ["list"], ["tail", "-n", "all"], ["cursors", "list"], ["notices"]):
        cli.json(*argv, path=path)
    for row in cli.json("list", path=path)["sessions"]:
        where = (row["sessionKey"], "--agent", row["agentId"])
        assert cli.json("status", *where, path=path)["stateVersion"] == row["stateVersion"]
        found = cli("status", *where, "--since", row["prunedMaxSequence"], "--json", path=path).document
        assert found["historyGap"] is False


def test_a_state_directory_has_a_gateway_in_its_overview(cli: Cli, state_dir: StateDir) -> None:
    state_dir.start_gateway()
    document = cli.json("status", path=state_dir.path)
    assert document["gateway"]["state"] == "alive"
    assert document["embedded"] is False


INVALID = [
    ("status", CHILD, "--since", "-1"),
    ("status", CHILD, "--since", "1.5"),
    ("status", CHILD, "--since", "abc"),
    ("status", CHILD, "--since", ""),
    ("status", CHILD, "--since", str(2**53)),
    ("status", "--since", "1"),
    ("status", CHILD, "--all"),
    ("status", CHILD, "--agent", " "),
    ("tail", "-n", "0"),
    ("tail", "-n", "-1"),
    ("tail", "-n", "abc"),
    ("tail", "--kind", ""),
    ("tail", "--until", "2026-02-30"),
    ("tail", "--agent", ""),
    ("list", "-n", "1.5"),
    ("list", "--agent", ""),
    ("version", "--db", ""),
    ("version", "--color", "mauve"),
    ("version", "--utc=1"),
    ("record", CHILD),
    ("record", CHILD, "--kind", "gaol_changed"),
    ("record", CHILD, "--kind", "goal_changed", "--actor", "robot"),
    ("record", CHILD, "--kind", "goal_changed", "--payload", "{"),
    ("record", CHILD, "--kind", "goal_changed", "--payload", "[]"),
    ("record", CHILD, "--kind", "goal_changed", "--at", "12"),
    ("record", CHILD, "--kind", "goal_changed", "--lock-wait", "5"),
    ("record", "bare", "--kind", "goal_changed"),
    ("record", "", "--kind", "goal_changed", "--agent", "main"),
    ("run", "--parent", PARENT, "--child", CHILD, "--timeout", "soon", "--", "true"),
    ("run", "--parent", PARENT, "--child", CHILD),
    ("cursors", "prune"),
    ("cursors", "prune", "--older-than", "old"),
    ("cursors", "list", "--watcher", ""),
    ("notices", "--ack"),
    ("prune", "--max-age", "-1d"),
    ("prune", "--max-rows", "few"),
    ("forget",),
    ("cursors",),
    ("prnue",),
]


@pytest.mark.parametrize("argv", INVALID, ids=" ".join)
def test_invalid_values_are_one_error_document_and_open_nothing(
    cli: Cli, tmp_path: Path, argv: tuple[str, ...]
) -> None:
    """A3: nothing on stdout but the document, and no database was looked for."""
    place = argv.index("--") if "--" in argv else len(argv)
    done = cli(*argv[:place], "--json", *argv[place:], status=2)
    assert done.error["code"] == "usage"
    assert done.err.startswith(f"error: {done.error['message']}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_with_json_lines_is_an_error_document_too(cli: Cli) -> None:
    done = cli("list", "--format", "jsonl", status=66)
    check_document(done.document)
    assert done.error["database"] == {"path": str(cli.path), "via": "OPENCLAW_STATE_DB"}


def test_damage_found_on_the_way_leaves_the_error_document_alone(cli: Cli) -> None:
    with SignalLog(cli.path, change=True, create=True) as log:
        for _ in range(40):
            goal(log, payload={"channel": "x" * 900})
    content = bytearray(cli.path.read_bytes())
    content[-4096:] = b"\xff" * 4096
    cli.path.write_bytes(content)
    done = cli("tail", "-n", "all", "--json", status=65)
    assert done.error["code"] == "bad_database"


def test_warnings_stand_in_the_document_and_on_stderr(home: Path, cli: Cli, state_dir: StateDir) -> None:
    """A4: a second state directory and a newer schema, and stdout is still one document."""
    second = home / ".openclaw" / "state"
    second.mkdir(parents=True)
    (second / "openclaw.sqlite").write_bytes(state_dir.path.read_bytes())
    change(state_dir.path, "PRAGMA user_version = 99")
    env = {"OPENCLAW_STATE_DB": "", "OPENCLAW_STATE_DIR": str(state_dir.root)}
    done = cli.process("list", "--json", env=env)
    check_document(done.document)
    assert (done.status, len(done.document["warnings"])) == (0, 2)
    assert done.document["database"]["via"] == "OPENCLAW_STATE_DIR"
    for warning, word in zip(done.document["warnings"], ("second state directory", "newer"), strict=True):
        assert word in warning
        assert f"warning: {warning}\n" in done.err


HOSTILE = "a\x1b[31mb\x07c\x9bd\re\nf\x7f\u2028g\u202eh"


def test_control_characters_never_reach_a_terminal_raw(cli: Cli, log: SignalLog) -> None:
    """A30: escapes in text, in tab-separated lines and in the words of errors."""
    log.record(CHILD, "goal_changed", actor_type="human", summary=HOSTILE, watchers=[PARENT])
    change(cli.path, "UPDATE session_watch_cursors SET target_session_key = 'agent:main:\x1b[2J'")
    for argv in (
        ["tail"],
        ["status"],
        ["status", CHILD, "--since", "0"],
        ["list"],
        ["cursors", "list", "-v"],
        ["notices"],
        ["tail", "--format", "tsv"],
    ):
        done = cli(*argv)
        assert (done.out + done.err).replace("\n", "").replace("\t", "").isprintable()
    assert r"a\x1b[31mb\x07c\x9bd\re\nf\x7f\u2028g\u202eh" in cli("tail").out
    assert cli("version", "agent:main:\x1bnothing", status=4).err.replace("\n", "").isprintable()


def test_json_carries_hostile_text_exactly_and_without_raw_controls(cli: Cli, log: SignalLog) -> None:
    log.record(CHILD, "goal_changed", actor_type="human", summary=HOSTILE)
    for form in ("json", "jsonl"):
        done = cli("tail", "--format", form)
        assert not set(done.out) & {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} - {"\n"}
    assert json.loads(done.out)["summary"] == HOSTILE


def test_every_command_takes_the_shared_options() -> None:
    for name in COMMANDS:
        known = {option for parameter in load(name).params for option in parameter.opts}
        assert {"--db", "--state-dir", "--profile", "--format", "--json", "--fields", "--utc"} <= known
