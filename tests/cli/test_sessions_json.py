"""Rows and documents of the commands about sessions keep to their schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_state.cli.sessions_freshness import FRESHNESS_FIELDS
from openclaw_state.cli.sessions_plan import ACTION_FIELDS
from openclaw_state.cli.sessions_route import ROUTE_FIELDS
from tests.cli.agents import Agents
from tests.cli.harness import Cli, check_row
from tests.support import DAY, PARENT, T

ANSWERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sessions route": (("--channel", "telegram", "--dm", "1"), ROUTE_FIELDS),
    "sessions freshness": ((PARENT,), FRESHNESS_FIELDS),
    "sessions cleanup": ((), ACTION_FIELDS),
}

every_answer = pytest.mark.parametrize("command", ANSWERS)


@pytest.fixture
def agents(cli: Cli, tmp_path: Path) -> Agents:
    found = Agents(cli, tmp_path / "openclaw")
    found.add({PARENT: {}, "agent:main:hook:1": {"updatedAt": T - 40 * DAY}})
    return found


@every_answer
def test_a_document_names_its_command(agents: Agents, command: str) -> None:
    document = agents.json(*command.split(), *ANSWERS[command][0])
    assert document["schema"] == f"openclaw-state/{command.replace(' ', '-')}/v1"
    assert document["warnings"] == []


@every_answer
def test_lines_are_rows_of_the_schema_and_columns_are_their_fields(agents: Agents, command: str) -> None:
    argv, fields = ANSWERS[command]
    rows = agents(*command.split(), *argv, "--format", "jsonl").rows
    assert rows
    for row in rows:
        check_row(command, row)
        assert tuple(row) == fields
    assert tuple(agents(*command.split(), *argv, "--format", "tsv").cells[0]) == fields


def test_several_stores_and_an_applied_cleanup_have_documents_of_their_own(agents: Agents) -> None:
    agents.install({"agent:main:hook:1": None})
    done = agents.json("sessions", "cleanup", "--all-agents", "--apply", "-y")
    assert (done["allAgents"], done["applied"], done["differences"]) == (True, True, [])


@pytest.mark.parametrize("command", ["sessions freshness", "sessions cleanup"])
def test_looking_leaves_the_store_as_it_is(agents: Agents, command: str) -> None:
    before = agents.store().read_bytes()
    agents(*command.split(), *ANSWERS[command][0])
    assert agents.store().read_bytes() == before
