"""The manual names every command, option and exit status, and nothing else; its examples run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from openclaw_state.cli.app import COMMANDS
from openclaw_state.cli.help import ENVIRONMENT, STATUSES
from openclaw_state.model import KINDS
from tests.docs import pages, walk
from tests.docs.examples import ROOT, Shell
from tests.docs.pages import FAMILIES, FORMATS, MAIN, PAGES, PYTHON, Option

SCHEMAS = ROOT / "openclaw_state" / "report" / "schemas"

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
by_family = pytest.mark.parametrize("page", FAMILIES, ids=lambda page: page.name)

# Options of several commands, which the main page explains once more.
SHARED = {
    "--agent",
    "--lock-wait",
    "--follow",
    "--count",
    "--timeout",
    "--position",
    "--exec",
    "--exec-timeout",
    "--exec-retry",
    "--dry-run",
    "--yes",
}

HOMES = {name: page for page in (*FAMILIES, MAIN) for name in pages.usages(page)}


def test_every_command_has_one_synopsis() -> None:
    found = [name for page in (*FAMILIES, MAIN) for name in pages.usages(page)]
    assert sorted(found) == sorted(COMMANDS)


def test_the_main_page_lists_every_command() -> None:
    assert pages.listed(MAIN, "DESCRIPTION", ".It Cm") == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_synopsis_has_the_options_and_arguments_of_its_command(name: str) -> None:
    usage = pages.usages(HOMES[name])[name]
    assert usage.options == walk.options(name)
    assert usage.arguments == walk.arguments(name)


@by_family
def test_a_family_explains_its_commands_and_their_options(page: Path) -> None:
    names = list(pages.usages(page))
    assert pages.listed(page, "DESCRIPTION", ".Ss") == names
    wanted = {(option.names, option.value) for name in names for option in walk.options(name)}
    explained = [(option.names, option.value) for option in pages.listed_options(page)]
    assert len(explained) == len(set(explained))
    assert set(explained) == wanted


def test_the_main_page_explains_the_shared_options() -> None:
    everywhere = walk.common_options()
    often = {option for name in COMMANDS for option in walk.options(name) if option.names & SHARED}
    assert set(pages.listed_options(MAIN)) == everywhere | often | {Option(frozenset({"--keep"}), "PATH")}


@by_page
def test_no_page_names_an_option_that_does_not_exist(page: Path) -> None:
    assert pages.mentioned_flags(page) <= walk.option_names() | {"--version"}


def test_the_main_page_lists_the_exit_statuses_of_the_program() -> None:
    assert pages.statuses(MAIN) == [int(status) for status in STATUSES]


@by_family
def test_a_family_lists_only_exit_statuses_of_the_program(page: Path) -> None:
    listed = pages.statuses(page)
    assert listed
    assert listed == [int(status) for status in STATUSES if status in listed]


def test_the_environment_is_the_same_in_help_and_manual() -> None:
    listed = [
        name.strip(" ,") for line in pages.listed(MAIN, "ENVIRONMENT", ".It Ev") for name in line.split(" , ")
    ]
    assert listed == [name for names in ENVIRONMENT for name in names.split(", ")]


def test_every_kind_of_event_is_explained() -> None:
    rows = pages.listed(ROOT / "man" / "openclaw-state.7", "DESCRIPTION", ".It")
    assert {row.split(" Ta ")[0] for row in rows} - {"Sy kind"} == set(KINDS)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "watch"])
def test_the_members_of_a_document_are_those_of_its_schema(name: str) -> None:
    schema = json.loads((SCHEMAS / f"{name.replace(' ', '-')}.json").read_text("utf-8"))
    assert pages.members(FORMATS, "DOCUMENTS")[name] == _members(schema, schema) - {"schema"}


@pytest.mark.parametrize("name", ["event", "change", "session", "cursor", "notice"])
def test_the_members_of_a_shared_object_are_those_of_its_schema(name: str) -> None:
    common = json.loads((SCHEMAS / "common.json").read_text("utf-8"))
    assert pages.members(FORMATS, "DOCUMENTS")[name.title()] == _members(common["$defs"][name], common)


def test_the_members_of_a_failure_are_those_of_its_schema() -> None:
    schema = json.loads((SCHEMAS / "error.json").read_text("utf-8"))
    listed = pages.members(FORMATS, "DESCRIPTION")["A failure"]
    assert listed == set(schema["properties"]["error"]["properties"])


@pytest.mark.parametrize("record", ["heartbeat", "gap"])
def test_the_members_of_a_record_are_those_of_its_schema(record: str) -> None:
    schema = json.loads((SCHEMAS / "tail.json").read_text("utf-8"))
    listed = pages.members(FORMATS, "FOLLOWING")[record.title()]
    assert listed == set(schema["$defs"][record]["properties"])


def _members(schema: dict[str, Any], root: dict[str, Any]) -> set[str]:
    """The names of the members of an object, alternatives and references in the same file included."""
    found = set(schema.get("properties", ()))
    for part in (*schema.get("oneOf", ()), *schema.get("anyOf", ()), *schema.get("allOf", ())):
        found |= _members(part, root)
    reference = schema.get("$ref", "")
    if reference.startswith("#/$defs/"):
        found |= _members(root["$defs"][reference.rpartition("/")[2]], root)
    return found


@by_page
def test_the_shell_examples_of_a_page_run_as_shown(page: Path, shell: Shell) -> None:
    found = list(pages.examples(page))
    assert found or page == PYTHON
    shell.check(found)


def test_the_python_examples_print_what_the_page_says(shell: Shell) -> None:
    blocks = pages.literal_blocks(PYTHON)
    for program, output in zip(blocks[::2], blocks[1::2], strict=True):
        (shell.home / "example.py").write_text(program)
        assert shell.run("python3 example.py") == (0, output)


@by_page
def test_every_page_has_the_sections_that_a_reader_expects(page: Path) -> None:
    headings = re.findall(r"^\.Sh (.+)$", page.read_text("utf-8"), flags=re.M)
    wanted = {"NAME", "DESCRIPTION", "EXAMPLES", "SEE ALSO"}
    if page.suffix == ".1":
        wanted |= {"SYNOPSIS", "OPTIONS", "EXIT STATUS"}
    assert wanted <= set(headings)


@by_page
def test_references_between_pages_lead_somewhere(page: Path) -> None:
    named = re.findall(r"^\.Xr (openclaw-state\S*) (\d)", page.read_text("utf-8"), flags=re.M)
    assert {f"{name}.{number}" for name, number in named} <= {other.name for other in PAGES}


@by_page
def test_mandoc_finds_no_fault(page: Path) -> None:
    mandoc = shutil.which("mandoc")
    if mandoc is None:
        pytest.skip("mandoc is not installed")
    done = subprocess.run(
        [mandoc, "-T", "lint", "-W", "warning", page], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
