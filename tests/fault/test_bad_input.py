"""Arguments that cannot mean anything: refused before a byte is changed or a file is made."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fault.commands import ALL, each
from tests.fault.console import assert_fails, invoke
from tests.support import CHILD, PARENT

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
        Refusal((name, "-n", text), "is a whole number from 1 on, or all")
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
    Refusal(("forget",), "say which sessions"),
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
