"""Every measured case is a test; and the runner is tested by cases that are wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import Check, cases
from .__main__ import problem_of

HERE = Path(__file__).resolve().parent
FILES = sorted(HERE.glob("*.json"))
ROOT = HERE.parents[1]


@pytest.mark.parametrize(
    "check",
    [pytest.param(check, id=f"{file.stem}-{name}") for file in FILES for name, check in cases(file)],
)
def test_it_answers_as_openclaw_does(check: Check) -> None:
    assert check() is None


def run(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.conformance", *map(str, files)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def two_cases() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((HERE / "signal-log.json").read_text("utf-8"))
    document["scenarios"] = document["scenarios"][:2]
    return document


def written(folder: Path, document: dict[str, Any]) -> Path:
    file = folder / "vectors.json"
    file.write_text(json.dumps(document), "utf-8")
    return file


def test_cases_that_hold_are_counted(tmp_path: Path, two_cases: dict[str, Any]) -> None:
    done = run(written(tmp_path, two_cases))
    assert (done.returncode, done.stdout) == (0, "2 passed, 0 failed\n")


@pytest.mark.parametrize("part", ["result", "state"])
def test_a_wrong_expectation_is_named_and_fails_the_run(
    tmp_path: Path, two_cases: dict[str, Any], part: str
) -> None:
    scenario = two_cases["scenarios"][1]
    scenario["expect"][0][part] = {"something": "else"}
    done = run(written(tmp_path, two_cases))
    first, last = done.stdout.splitlines()
    assert first.startswith(f"FAIL {scenario['name']}: step 0 ({scenario['steps'][0]['op']}): answer.{part}")
    assert (done.returncode, last) == (1, "1 passed, 1 failed")


def test_expecting_an_error_that_does_not_come_fails(tmp_path: Path, two_cases: dict[str, Any]) -> None:
    expected = two_cases["scenarios"][0]["expect"][0]
    del expected["result"]
    expected["throws"] = True
    done = run(written(tmp_path, two_cases))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "1 passed, 1 failed")


def test_a_case_that_breaks_the_driver_fails_alone(tmp_path: Path, two_cases: dict[str, Any]) -> None:
    two_cases["scenarios"][0]["steps"][0]["op"] = "fly"
    done = run(written(tmp_path, two_cases))
    assert done.stdout.startswith(f"FAIL {two_cases['scenarios'][0]['name']}: AttributeError: ")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "1 passed, 1 failed")


def test_informative_lists_are_passed_over(tmp_path: Path, two_cases: dict[str, Any]) -> None:
    two_cases["informative"] = [{"name": "no case", "steps": [{"op": "no op"}], "expect": [{}]}]
    done = run(written(tmp_path, two_cases))
    assert (done.returncode, done.stdout) == (0, "2 passed, 0 failed\n")


def test_running_nothing_is_no_success(tmp_path: Path, two_cases: dict[str, Any]) -> None:
    assert run().returncode == 1
    assert run(written(tmp_path, two_cases | {"scenarios": []})).returncode == 1


def test_a_suite_without_a_driver_is_refused(tmp_path: Path, two_cases: dict[str, Any]) -> None:
    done = run(written(tmp_path, two_cases | {"suite": "weather"}))
    assert done.returncode == 1
    assert "no driver for the suite 'weather'" in done.stderr


@pytest.mark.parametrize(
    ("suite", "spoil"),
    [
        ("upstream-claude", lambda case: case["ticks"][0]["expect"].update(humanTurns=7)),
        ("upstream-opencode", lambda case: case["cli_calls"].pop()),
        ("upstream-codex", lambda case: case["rpc_calls"].pop()),
        ("upstream-own-texts", lambda case: case["own_recent_user_texts"].pop()),
        ("upstream-source-key", lambda case: case.update(source_key="0" * 16)),
        ("upstream-monitor", lambda case: case["steps"][0]["after"]["events"].clear()),
        ("upstream-monitor", lambda case: case["steps"][0]["provider_calls"].clear()),
        ("upstream-monitor", lambda case: case["steps"][0]["missing_counts"].append({})),
    ],
    ids=["claude", "opencode", "codex", "own texts", "source key", "rows", "probes", "counts"],
)
def test_a_wrong_expectation_of_an_upstream_suite_fails(
    tmp_path: Path, suite: str, spoil: Callable[[dict[str, Any]], object]
) -> None:
    document = json.loads((HERE / f"{suite}.json").read_text("utf-8"))
    part = "traces" if suite == "upstream-monitor" else "cases"
    document[part] = document[part][:1]
    checks = [check for _, check in cases(written(tmp_path, document))]
    assert [check() for check in checks] == [None] * len(checks)
    spoil(document[part][0])
    assert all(problem_of(check) for _, check in cases(written(tmp_path, document)))
