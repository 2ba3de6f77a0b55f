"""The README shows what really happens."""

from __future__ import annotations

import re
from pathlib import Path

from openclaw_state.cli.app import COMMANDS
from openclaw_state.cli.help import STATUSES
from tests.docs import walk
from tests.docs.examples import Shell, in_block

README = Path(__file__).resolve().parents[2] / "README.md"
TEXT = README.read_text("utf-8")

SET_UP = [
    "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/openclaw-state demo",
    "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/python -m pytest",
]


def blocks(language: str) -> list[str]:
    """The code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.M | re.S)


def test_two_commands_set_everything_up() -> None:
    assert [line for block in blocks("sh") for line in block.splitlines()] == SET_UP
    assert TEXT.count("pip install") == len(SET_UP)


def test_first_screen_shows_output_and_the_set_up() -> None:
    screen = "\n".join(TEXT.splitlines()[:40])
    assert "```console\n$ openclaw-state" in screen
    assert all(command in screen for command in SET_UP)


def test_examples_run_as_shown_and_python_sees_what_they_left(shell: Shell) -> None:
    shell.check(example for block in blocks("console") for example in in_block(block.splitlines()))
    (program,), (output,) = blocks("python"), blocks("text")
    (shell.home / "example.py").write_text(program)
    assert shell.run("python3 example.py") == (0, output)


def test_exit_statuses_are_those_of_the_program() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \|", TEXT, flags=re.M)
    assert [int(number) for row in rows for number in row.split(",")] == [int(status) for status in STATUSES]


def test_commands_and_options_in_the_text_exist() -> None:
    named = re.findall(r"`openclaw-state ([a-z]+(?: [a-z]+)?)", TEXT)
    assert {name for name in named if name not in COMMANDS and name.split()[0] not in COMMANDS} == set()
    options = set(
        re.findall(r"(?<![\w-])--[a-z][a-z-]+", re.sub(r"^```.*?^```$", "", TEXT, flags=re.M | re.S))
    )
    assert options <= walk.option_names()
