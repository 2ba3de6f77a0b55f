"""Bad input: a status of its own, one clear sentence, no traceback, and not a byte changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from openclaw_state import SignalLog
from openclaw_state.cli.app import COMMANDS
from tests.fault.console import assert_fails, invoke
from tests.support import CHILD, PARENT, Script, change, goal, needs_permissions, note

# Every command that opens a database, in a form that the log below has an answer to.
READING: dict[str, tuple[str, ...]] = {
    "status": (CHILD, "--since", "1"),
    "version": (CHILD,),
    "list": (),
    "tail": (),
    "cursors list": (),
    "notices": (),
}
PLANNING: dict[str, tuple[str, ...]] = {
    "cursors prune": ("--expired", "--dry-run"),
    "prune": ("--dry-run",),
    "forget": (CHILD, "--dry-run"),
}
CREATING: dict[str, tuple[str, ...]] = {
    "record": (CHILD, "--kind", "goal_changed"),
    "run": ("--parent", PARENT, "--child", CHILD, "--", "false"),
    "cursors add": ("agent:work:main", CHILD),
}
CHANGING: dict[str, tuple[str, ...]] = CREATING | {
    "cursors remove": (PARENT, CHILD, "-y"),
    "cursors ack": (PARENT, CHILD),
    "cursors reset": (PARENT, "-y"),
    "cursors prune": ("--older-than", "0", "--include-pending"),
    "notices": (PARENT, "--ack"),
    "notices sweep": (),
    "prune": ("--max-rows", "1", "-y"),
    "forget": (CHILD, "-y"),
}
ALL = [*READING.items(), *PLANNING.items(), *CHANGING.items()]
KEPT = [item for item in ALL if item[0] not in CREATING]


def each(commands: list[tuple[str, tuple[str, ...]]]) -> pytest.MarkDecorator:
    lines = [(*name.split(), *words) for name, words in commands]
    return pytest.mark.parametrize("argv", lines, ids=[" ".join(line[:4]) for line in lines])


def assert_both_fail(argv: tuple[str, ...], path: Path, status: int, words: str, **options: object) -> None:
    """For people and for programs."""
    for form in ((), ("--json",)):
        assert_fails(invoke("--db", path, *form, *argv, **options), status, words)


def test_every_command_that_opens_a_database_is_tried() -> None:
    assert {name for name, _ in ALL} == set(COMMANDS) - {"demo", "help"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database is meant to be; nothing stands there yet."""
    return tmp_path / "openclaw.sqlite"


@pytest.fixture
def log(path: Path) -> Path:
    """A log of several pages, cleanly closed, with one pending watch."""
    with SignalLog(path, change=True, create=True) as log:
        log.watch(PARENT, CHILD)
        for _ in range(40):
            note(log, payload={"channel": "x" * 400})
        goal(log)
    return path


# Files


def a_directory(path: Path) -> None:
    path.mkdir()


def content(what: bytes) -> Callable[[Path], None]:
    return lambda path: void(path.write_bytes(what))


def void(_: object) -> None:
    """For functions that are called for what they do."""


def another_database(path: Path) -> None:
    change(path, "CREATE TABLE shopping (item TEXT)")


def cut(keep: Callable[[int], int]) -> Callable[[Path], None]:
    def cut_off(path: Path) -> None:
        with SignalLog(path, change=True, create=True) as log:
            for _ in range(40):
                note(log, payload={"channel": "x" * 400})
        os.truncate(path, keep(path.stat().st_size))

    return cut_off


class FileFault(NamedTuple):
    make: Callable[[Path], None]
    words: str


FILE_FAULTS = {
    "directory": FileFault(a_directory, "is a directory, not a database"),
    "text file": FileFault(
        content(b"[settings]\nvalue = true\n"), "is not an SQLite database, or was cut off"
    ),
    "long text file": FileFault(content(b"four letters and" * 512), "is not an SQLite database"),
    "foreign database": FileFault(another_database, "holds no signal log: table session_state_events"),
    "cut inside the header": FileFault(cut(lambda _: 50), "was cut off at 50 bytes"),
    "cut inside a page": FileFault(cut(lambda size: size - 100), "was cut off at"),
    "cut after one page": FileFault(cut(lambda _: 4096), "damaged or truncated"),
    "cut in half": FileFault(cut(lambda size: size // 8192 * 4096), "damaged or truncated"),
    "cut of its last page": FileFault(cut(lambda size: size - 4096), "damaged or truncated"),
}


@pytest.mark.parametrize("fault", FILE_FAULTS.values(), ids=FILE_FAULTS)
@each(ALL)
def test_what_is_no_signal_log(path: Path, fault: FileFault, argv: tuple[str, ...]) -> None:
    fault.make(path)
    before = path.is_file() and path.read_bytes()
    assert_both_fail(argv, path, 65, fault.words)
    assert (path.is_file() and path.read_bytes()) == before


@each(KEPT)
def test_a_missing_file(path: Path, argv: tuple[str, ...]) -> None:
    assert_both_fail(argv, path, 66, r"there is no database at .*openclaw.sqlite \(chosen by --db\)")
    assert list(path.parent.iterdir()) == []


@each(ALL)
def test_a_missing_file_of_openclaw(tmp_path: Path, argv: tuple[str, ...]) -> None:
    """In a state directory nothing is ever created."""
    path = tmp_path / "state" / "openclaw.sqlite"
    path.parent.mkdir()
    assert_both_fail(argv, path, 66, "there is no database at")
    assert list(path.parent.iterdir()) == []


@each(KEPT)
def test_an_empty_file(path: Path, argv: tuple[str, ...]) -> None:
    path.touch()
    assert_both_fail(argv, path, 65, "is an empty file, not a database")
    assert path.read_bytes() == b""


@each(ALL)
def test_an_sqlite_that_is_too_old(log: Path, argv: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    before = log.read_bytes()
    assert_both_fail(argv, log, 78, r"SQLite 3\.36\.0 cannot read OpenClaw's STRICT tables")
    assert log.read_bytes() == before


@each(list(CREATING.items()))
def test_an_sqlite_that_is_too_old_creates_nothing(
    path: Path, argv: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    assert_both_fail(argv, path, 78, r"SQLite 3\.36\.0 cannot read OpenClaw's STRICT tables")
    assert list(path.parent.iterdir()) == []


@needs_permissions
@each(ALL)
def test_an_unreadable_file(log: Path, argv: tuple[str, ...]) -> None:
    log.chmod(0)
    assert_both_fail(argv, log, 77, "cannot be opened: permission denied")


@needs_permissions
@each(ALL)
def test_an_unreadable_write_ahead_log(log: Path, argv: tuple[str, ...]) -> None:
    with SignalLog(log, change=True) as writer:
        note(writer)
        wal = log.with_name(log.name + "-wal")
        wal.chmod(0)
        before = log.read_bytes()
        assert_both_fail(argv, log, 77, "cannot be (read|opened)")
        assert log.read_bytes() == before
        wal.chmod(0o600)


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[None]:
    """The folder takes no new files until the test is over."""
    tmp_path.chmod(0o500)
    yield
    tmp_path.chmod(0o700)


@needs_permissions
@each(list(CHANGING.items()))
def test_changing_in_a_folder_that_may_only_be_read(log: Path, closed: None, argv: tuple[str, ...]) -> None:
    before = log.read_bytes()
    assert_both_fail(argv, log, 77, "is not writable")
    assert log.read_bytes() == before


@needs_permissions
@each(list(CREATING.items()))
def test_creating_in_a_folder_that_may_only_be_read(path: Path, closed: None, argv: tuple[str, ...]) -> None:
    assert_both_fail(argv, path, 77, "permission denied")


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A log whose write lock another process holds."""
    path = tmp_path_factory.mktemp("locked") / "openclaw.sqlite"
    with SignalLog(path, change=True, create=True) as log:
        log.watch(PARENT, CHILD)
        goal(log)
    with Script(HOLD, path) as holder:
        assert holder.line() == "held"
        yield path


@each(list(CHANGING.items()))
def test_a_lock_held_past_the_wait(locked: Path, argv: tuple[str, ...]) -> None:
    wal = locked.with_name(locked.name + "-wal")
    before = locked.read_bytes(), wal.read_bytes()
    assert_both_fail(("--lock-wait", "1ms", *argv), locked, 75, "is locked by another process")
    assert (locked.read_bytes(), wal.read_bytes()) == before


@each([*READING.items(), *PLANNING.items()])
def test_a_held_lock_disturbs_no_reader(locked: Path, argv: tuple[str, ...]) -> None:
    assert invoke("--db", locked, *argv).status == 0


# Arguments

HUGE = "9" * 5000
SINCE = {
    "-1": "is not a version",
    "1.5": "is not a version",
    "+3": "is not a version",
    "9007199254740992": "is not a version",
    HUGE: "is not a version",
    "\u0663": "is not a version",
    "": "--(since|until) is blank",
    " ": "--(since|until) is blank",
    "abc": "is not a point in the log",
    "0x10": "is not a point in the log",
    "1e3": "is not a point in the log",
    "-24h": "is not a point in the log",
    "24 parsecs": "is not a point in the log",
    "2026-02-30": "is no date that exists",
    "2026-13-01T00:00Z": "is no date that exists",
    "99999999999w": "is too long",
    "12\x1b[2J": "is not a point in the log",
    "12\x00": "is not a point in the log",
}
LINES = ("0", "-1", "abc", "1.5", "9007199254740992", HUGE, "\u0663", "1\n")
DURATIONS = ("5", "-5s", "1e3s", "5 parsecs", "h", "1h 30m", "99999999999w", "\u0665s", "s5\x1b")


class Refusal(NamedTuple):
    argv: tuple[str, ...]
    words: str
    status: int = 2


RECORD = ("record", CHILD, "--kind", "goal_changed")
RUN = ("run", "--parent", PARENT, "--child", CHILD)
REFUSALS = [
    *(Refusal(("status", CHILD, "--since", text), words) for text, words in SINCE.items()),
    *(
        Refusal(("tail", option, text), words)
        for option in ("--since", "--until")
        for text, words in SINCE.items()
    ),
    *(
        Refusal((name, "-n", text), "is a whole number above 0 or all")
        for name in ("tail", "list")
        for text in LINES
    ),
    *(
        Refusal((*argv, text), "is not a duration|is too long")
        for text in DURATIONS
        for argv in (
            (*RECORD, "--lock-wait"),
            ("prune", "-y", "--max-age"),
            ("cursors", "prune", "--older-than"),
        )
    ),
    *(
        Refusal((*RUN, "--timeout", text, "--", "false"), "is not a duration|is too long")
        for text in DURATIONS
    ),
    *(Refusal(("prune", "-y", "--max-rows", text), "is a whole number") for text in ("-1", "1.5", "x", HUGE)),
    # blank
    *(
        Refusal((*argv, blank), "is blank")
        for blank in ("", " ", "\t", "\u3000")
        for argv in (
            ("status",),
            ("version",),
            ("tail",),
            ("notices",),
            ("forget", "-y"),
            ("list", "--agent"),
            ("cursors", "ack", PARENT),
            ("cursors", "reset", "-y"),
            ("cursors", "add", PARENT),
            ("cursors", "remove", "-y", PARENT),
            ("cursors", "list", "--watcher"),
            ("cursors", "list", "--target"),
            (*RECORD, "--actor"),
            (*RECORD, "--run"),
            (*RECORD, "--watcher"),
            (*RECORD, "--payload"),
            (*RECORD, "--at"),
            (*RECORD, "--dedupe-key"),
            ("record", "--kind", "goal_changed"),
            ("record", CHILD, "--kind"),
            ("list", "--db"),
            ("list", "--state-dir"),
            ("list", "--profile"),
            ("list", "--fields"),
        )
    ),
    Refusal(("run", "--parent", " ", "--child", CHILD, "--", "false"), "--parent is blank"),
    Refusal(("run", "--parent", PARENT, "--child", "", "--", "false"), "--child is blank"),
    # keys
    *(
        Refusal(argv, "contains control characters")
        for key in ("agent:main:\x00", "agent:main:\x1b[2J", "agent:main:\x9b1m")
        for argv in (
            ("record", key, "--kind", "goal_changed"),
            (*RECORD, "--watcher", key),
            ("run", "--parent", key, "--child", CHILD, "--", "false"),
            ("run", "--parent", PARENT, "--child", key, "--", "false"),
            ("cursors", "add", key, CHILD),
            ("cursors", "add", PARENT, key),
        )
    ),
    *(
        Refusal(argv, r"\\x00", 4)
        for argv in (
            ("status", "agent:\x00"),
            ("version", "agent:\x00"),
            ("tail", "agent:\x00"),
            ("notices", "agent:\x00"),
            ("forget", "agent:\x00", "-y"),
            ("cursors", "ack", "agent:\x00"),
            ("cursors", "reset", "agent:\x00", "-y"),
            ("cursors", "remove", PARENT, "agent:\x00", "-y"),
            ("cursors", "list", "--target", "agent:\x00"),
        )
    ),
    Refusal(("cursors", "add", CHILD, CHILD), "a session cannot watch itself", 9),
    Refusal(("cursors", "add", "main", CHILD), "a watcher needs an agent-qualified key", 9),
    Refusal(("cursors", "add", "agent:main:", CHILD), "a watcher needs an agent-qualified key", 9),
    Refusal(("cursors", "add", PARENT, "global"), "a bare target key needs its agent named", 9),
    Refusal((*RECORD, "--watcher", "main"), "'main' cannot be a watcher"),
    Refusal(("record", "global", "--kind", "goal_changed"), "names no agent"),
    Refusal((*RECORD, "--agent", "work"), "contradicts the key"),
    # record
    Refusal(("record", CHILD, "--kind", "goal_chnaged"), "is no kind of event"),
    Refusal((*RECORD, "--actor", "robot:1"), "'robot' is no actor"),
    *(
        Refusal((*RECORD, "--payload", text), "--payload is not JSON")
        for text in ("{", "{'a': 1}", "[" * 100_000, '{"turns":NaN}')
    ),
    *(
        Refusal((*RECORD, "--payload", text), "--payload is a JSON object")
        for text in ("[]", "1", "null", '"text"')
    ),
    Refusal((*RECORD, "--summary", "two\nlines"), "a summary is one line"),
    Refusal((*RECORD, "--summary", "x" * 201), "a summary is one line of at most 200 characters"),
    *(Refusal((*RECORD, "--at", text), "is a version, and a time is meant") for text in ("12", "-1", "1.5")),
    *(
        Refusal((*RECORD, "--at", text), "is not a point in the log|is no date")
        for text in ("noon", "2026-02-30")
    ),
    Refusal((*RECORD, "--run", "\ud800"), "the database does not accept this value"),
    # the command line itself
    Refusal(("nonsense",), "there is no command 'nonsense'"),
    Refusal(("statsu",), "did you mean status"),
    Refusal(("\x1b[2J",), r"there is no command '\\x1b\[2J'"),
    Refusal((), "no command given"),
    Refusal(("cursors",), "cursors needs one of: list, add"),
    Refusal(("list", "--nonsense"), "no such option: --nonsense"),
    Refusal(("list", "--\x1b[2J"), r"no such option: --\\x1b\[2J"),
    Refusal(("record", CHILD), "missing option '--kind'"),
    Refusal(("forget",), "missing argument"),
    Refusal(("list", CHILD), "unexpected extra argument"),
    Refusal(("list", "-n"), "requires an argument"),
    Refusal(("list", "--format", "yaml"), "--format is one of text, json, jsonl, tsv"),
    Refusal(("list", "--color", "mauve"), "--color is one of auto, always, never"),
    Refusal(("list", "--profile", "../x"), "is not a profile name"),
    Refusal(("list", "--format", "tsv", "--fields", "sessionKey,nonsense"), "there is no field 'nonsense'"),
    Refusal(("tail", "--format", "tsv", "--fields", "\x1b"), r"there is no field '\\x1b'"),
    Refusal(("status", "--since", "3"), "need a session key"),
    Refusal(("status", CHILD, "--all"), "this needs --since"),
    Refusal(("notices", "--ack"), "--ack needs a watcher"),
    Refusal(("cursors", "prune"), "say which watches"),
]


def ids(refusals: list[Refusal]) -> list[str]:
    return [f"{number} {ascii(' '.join(refusal.argv))[1:50]}" for number, refusal in enumerate(refusals)]


@pytest.mark.parametrize("refusal", REFUSALS, ids=ids(REFUSALS))
def test_arguments_that_cannot_mean_anything(log: Path, refusal: Refusal) -> None:
    before = log.read_bytes()
    env = {"OPENCLAW_STATE_DB": str(log)}
    assert_fails(invoke(*refusal.argv, env=env), refusal.status, refusal.words)
    if "--format" not in refusal.argv and "--fields" not in refusal.argv:
        assert_fails(invoke("--json", *refusal.argv, env=env), refusal.status, refusal.words)
    assert log.read_bytes() == before


CREATIONS = [
    refusal for refusal in REFUSALS if refusal.argv[:1] in (("record",), ("run",)) or "add" in refusal.argv
]


@pytest.mark.parametrize("refusal", CREATIONS, ids=ids(CREATIONS))
def test_what_is_refused_creates_no_file(path: Path, refusal: Refusal) -> None:
    assert_fails(invoke(*refusal.argv, env={"OPENCLAW_STATE_DB": str(path)}), refusal.status, refusal.words)
    assert list(path.parent.iterdir()) == []


@each(ALL)
def test_a_clock_that_is_no_number(path: Path, argv: tuple[str, ...]) -> None:
    for value in ("now", "-1", "1.5", "9007199254740992", HUGE, "\u0663", "1_000"):
        outcome = invoke("--db", path, *argv, env={"OPENCLAW_STATE_NOW": value})
        assert_fails(outcome, 2, "OPENCLAW_STATE_NOW is epoch milliseconds")
    assert list(path.parent.iterdir()) == []


def test_a_clock_past_every_calendar(log: Path) -> None:
    far = 2**53 - 1
    for word in ("today", "yesterday"):
        assert_fails(invoke("--db", log, "tail", "--since", word, now=far), 2, "is no date that exists")
    assert invoke("--db", log, "tail", "--since", "24h", now=far).status == 0


def test_a_path_with_a_nul(tmp_path: Path) -> None:
    assert_fails(invoke("list", "--db", f"{tmp_path}/\x00"), 2, "cannot contain a NUL character")
    assert_fails(invoke("list", "--state-dir", f"{tmp_path}/\x00"), 2, "cannot contain a NUL character")
    assert_fails(invoke(*RECORD, "--db", f"{tmp_path}/\x00"), 2, "cannot contain a NUL character")
