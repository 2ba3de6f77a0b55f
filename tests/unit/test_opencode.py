"""OpenCode's command line: what is run, what it may cost, and what its answers mean."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from openclaw_state.model import Link
from openclaw_state.results import Verdict
from openclaw_state.upstream import opencode
from openclaw_state.upstream.findings import QUIET, Activity, Missing, Probe, Silence
from openclaw_state.upstream.opencode import CommandError
from openclaw_state.upstream.opencode_cli import OpenCode, child_environment

Program = Callable[[str], str]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Make an executable of some Python code; its path."""

    def write(code: str) -> str:
        path = tmp_path / "opencode"
        path.write_text(f"#!{sys.executable}\n{code}\n")
        path.chmod(0o700)
        return str(path)

    return write


def probe(thread: str = "ses_a", seq: int = 1, last: str | None = None) -> Probe:
    marker = {"seq": seq, "lastHumanMessageId": last}
    ref = {"threadId": thread}
    key = f"agent:main:{thread}"
    return Probe(Link(key, "main", "opencode", "gateway", thread, "opencode-cli", ref, marker, 0, 0))


def message(name: str, text: str, created: int = 1, **part: Any) -> dict[str, Any]:
    info = {"id": name, "role": "user", "time": {"created": created}}
    return {"info": info, "parts": [{"type": "text", "text": text, **part}]}


class Answers:
    """A command line that answers from a table and remembers what it was asked."""

    def __init__(self, rows: Any, **exports: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.exports = exports
        self.asked: list[Sequence[str]] = []

    def __call__(self, arguments: Sequence[str]) -> str:
        self.asked.append(arguments)
        if arguments[1] == "db":
            return json.dumps(self.rows)
        return json.dumps({"messages": self.exports[arguments[2]]})


def test_one_question_covers_all_links_and_only_those_that_moved_are_exported() -> None:
    answers = Answers(
        [{"id": "ses_a", "seq": 2}, {"id": "ses_b", "seq": 1}, {"id": "ses_c", "seq": 0}],
        ses_a=[message("m1", "hi")],
    )
    found = opencode.check([probe("ses_a"), probe("ses_b"), probe("ses_c"), probe("ses_d")], answers)
    assert [arguments[1] for arguments in answers.asked] == ["db", "export"]
    moved, quiet, back, gone = [outcome.finding for outcome in found]
    assert moved == Activity(1, {"seq": 2, "lastHumanMessageId": "m1"}, 1, "m1")
    assert quiet == QUIET
    assert back == Activity(0, {"seq": 0, "lastHumanMessageId": None})
    assert isinstance(gone, Missing)


def test_nothing_is_asked_about_links_that_name_no_session() -> None:
    answers = Answers([])
    odd = ["", "-a", "a b", "a'b", "a\n", "x" * 257]
    found = opencode.check([probe(thread) for thread in odd], answers)
    assert answers.asked == []
    assert {outcome.finding for outcome in found} == {
        Silence(Verdict.UNUSABLE, "the link names no session of OpenCode")
    }


@pytest.mark.parametrize(
    "row",
    [None, 7, {}, {"id": "ses_b"}, {"id": "a b", "seq": 1}, {"id": "ses_b", "seq": 1.5}, {"seq": 1}],
)
def test_one_bad_row_spoils_the_whole_answer(row: Any) -> None:
    [outcome] = opencode.check([probe()], Answers([{"id": "ses_a", "seq": 2}, row]))
    assert outcome.finding == Silence(Verdict.UNREADABLE, "OpenCode's list of sessions holds a bad row")


def test_cuts_count_in_utf16_and_against_the_text_as_cut_so_far() -> None:
    def cut(*ranges: tuple[int, float, str]) -> str:
        parts = [{"type": "text", "text": "\U0001f600 @a.py see @b.py"}] + [
            {"type": "file", "source": {"text": {"start": start, "end": end, "value": value}}}
            for start, end, value in ranges
        ]
        return opencode.opencode_text.human_text(parts)

    assert cut((3, 8, "@a.py"), (13, 18, "@b.py")) == "\U0001f600 see"
    assert cut((3, 8, "@b.py")) == "\U0001f600 @a.py see @b.py"
    assert cut((3, 8.5, "@a.py"), (-1, 2, "x"), (0, 99, "x")) == "\U0001f600 @a.py see @b.py"
    assert cut((0, 3, "\U0001f600 ")) == "@a.py see @b.py"


def test_messages_are_in_the_order_of_time_then_of_a_dictionary() -> None:
    names = ["b", "A", "a", "1", "_", "-", ":", ".", "aB", "ab"]
    answers = Answers([{"id": "ses_a", "seq": 2}], ses_a=[message(n, f"text {n}") for n in names])
    [outcome] = opencode.check([probe()], answers)
    assert isinstance(outcome.finding, Activity)
    assert outcome.finding.dedupe_id == "b"
    sorted_names = sorted(names, key=lambda n: opencode._place(opencode.Message(n, "user", 1, ())))
    assert sorted_names == ["_", "-", ":", ".", "1", "a", "A", "ab", "aB", "b"]


def test_the_command_is_given_its_arguments_and_few_variables(program: Program) -> None:
    path = program("import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))")
    run = OpenCode(path, environ={"PATH": "/usr/bin", "XDG_DATA_HOME": "/d", "OPENCLAW_TOKEN": "secret"})
    arguments, environ = json.loads(run(["--pure", "export", "ses_a"]))
    assert arguments == ["--pure", "export", "ses_a"]
    assert environ.items() >= {"PATH": "/usr/bin", "XDG_DATA_HOME": "/d", "OPENCODE_PURE": "1"}.items()
    assert "OPENCLAW_TOKEN" not in environ


def test_what_is_passed_on_is_a_list_of_names() -> None:
    given = {"HOME": "/h", "LD_PRELOAD": "x", "OPENCODE_DB": "/o", "XDG_X": "1", "API_KEY": "k"}
    assert child_environment(given) == {
        "HOME": "/h",
        "OPENCODE_DB": "/o",
        "XDG_X": "1",
        "OPENCODE_PURE": "1",
        "NO_COLOR": "1",
    }


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit(3)", "failed with status 3"),
        ("print('x' * 5000)", "answered with more than 4096 bytes"),
        ("import time; time.sleep(60)", "did not answer within 0.5 s"),
        ("import os, time; os.close(1); time.sleep(60)", "did not answer within 0.5 s"),
        ("import subprocess; subprocess.Popen(['sleep', '5'])", "did not answer within 0.5 s"),
    ],
    ids=["fails", "too much", "hangs", "closes and hangs", "leaves a child"],
)
def test_a_command_that_misbehaves_is_ended_and_told(program: Program, code: str, reason: str) -> None:
    timeout_s = 0.5 if "within" in reason else 60
    run = OpenCode(program(code), environ={"PATH": "/usr/bin:/bin"}, timeout_s=timeout_s, most_bytes=4_096)
    with pytest.raises(CommandError, match=reason):
        run(["--pure"])


def test_a_command_that_is_not_there_is_told_for_every_link() -> None:
    run = OpenCode(environ={"PATH": "/nowhere"})
    found = opencode.check([probe("ses_a"), probe("ses_b")], run)
    assert [outcome.finding for outcome in found] == [
        Silence(Verdict.UNREADABLE, "the command opencode was not found")
    ] * 2


@pytest.mark.parametrize("answer", ["[", "{}", "\ufeff[]", " nonsense"])
def test_an_answer_that_is_no_list_is_no_missing_session(answer: str) -> None:
    [outcome] = opencode.check([probe()], lambda _: answer)
    assert outcome.finding == Silence(Verdict.UNREADABLE, "OpenCode's answer is no list of sessions")
