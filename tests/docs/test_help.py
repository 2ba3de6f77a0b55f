"""Help and docstrings: nothing that a user can call goes unexplained."""

from __future__ import annotations

import ast
from inspect import isfunction
from pathlib import Path

import pytest

import openclaw_state
from openclaw_state import SignalLog, errors
from openclaw_state.cli.app import COMMANDS, load, overview
from openclaw_state.cli.help import STATUSES, exit_codes
from openclaw_state.errors import ExitStatus, StateError
from tests.docs import pages
from tests.docs.examples import ROOT, Shell

METHODS = [name for name in dir(SignalLog) if not name.startswith("_")]
FUNCTIONS = [name for name in openclaw_state.__all__ if isfunction(getattr(openclaw_state, name))]
CALLABLE = [name for name in METHODS if callable(getattr(SignalLog, name))]


def test_the_overview_names_every_command_once() -> None:
    lines = [line[2:].partition("  ")[0] for line in overview().splitlines() if line.startswith("  ")]
    assert lines == list(COMMANDS)


def test_exit_codes_topic_lists_each_status_once(shell: Shell) -> None:
    status, printed = shell.run("openclaw-state help exit-codes")
    assert (status, printed.splitlines()) == (0, exit_codes())
    assert [int(line.split()[0]) for line in exit_codes()] == sorted(STATUSES)


def test_statuses_that_are_listed_are_those_that_the_program_can_give() -> None:
    """Read from the source: statuses named outside errors.py, and those of the errors raised there."""
    kinds = {
        name: kind.status
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, StateError)
    }
    package = ROOT / "openclaw_state"
    given: set[ExitStatus] = set()
    for path in package.rglob("*.py"):
        if path not in (package / "errors.py", package / "cli" / "help.py"):
            names = _names(path)
            given |= {kinds[name] for name in names & kinds.keys()}
            given |= {status for status in ExitStatus if f"ExitStatus.{status.name}" in names}
    assert given == set(STATUSES)


def _names(path: Path) -> set[str]:
    """Names and dotted names that a module uses."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    dotted = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    return dotted | {node.id for node in nodes if isinstance(node, ast.Name)}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_a_help_text(name: str) -> None:
    command = load(name)
    assert command.help
    assert [parameter.name for parameter in command.params if not parameter.help] == []


@pytest.mark.parametrize("name", CALLABLE)
def test_every_public_method_has_a_docstring(name: str) -> None:
    assert getattr(SignalLog, name).__doc__


@pytest.mark.parametrize("name", [name for name in openclaw_state.__all__ if name != "__version__"])
def test_every_public_name_has_a_docstring_of_its_own(name: str) -> None:
    kind = getattr(openclaw_state, name)
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{name}(")


def test_the_python_page_lists_every_method_and_function_and_nothing_else() -> None:
    lists = pages.listed(pages.PYTHON, "DESCRIPTION", ".It Fn")
    assert sorted(line.split()[0] for line in lists) == sorted([*CALLABLE, *FUNCTIONS, "SignalLog"])


def test_the_python_page_lists_the_errors_that_can_be_raised() -> None:
    listed = set(pages.listed(pages.PYTHON, "ERRORS", ".It Sy"))
    known = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, StateError)
    }
    assert listed <= known
