"""Every command that opens a database, in a form that the fixture `log` has an answer to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fault.console import assert_fails, invoke
from tests.support import CHILD, PARENT

READING: dict[str, tuple[str, ...]] = {
    "status": (CHILD, "--since", "1"),
    "version": (CHILD,),
    "list": (),
    "tail": (),
    "cursors list": (),
    "notices": (),
    "links list": (),
    "links show": (PARENT,),
    "links own-text": (PARENT, "--text", "done"),
}
PLANNING: dict[str, tuple[str, ...]] = {
    "cursors prune": ("--expired", "--dry-run"),
    "prune": ("--dry-run",),
    "forget": (CHILD, "--dry-run"),
    "links remove": (PARENT, "--dry-run"),
    "links skip": (PARENT, "--dry-run"),
}
CREATING: dict[str, tuple[str, ...]] = {
    "record": (CHILD, "--kind", "goal_changed"),
    "run": ("--parent", PARENT, "--child", CHILD, "--", "false"),
    "cursors add": ("agent:work:main", CHILD),
    "links add": ("agent:main:new", "--catalog", "claude", "--thread", "t", "--file", __file__),
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
    "monitor": (),
    "links remove": (PARENT, "-y"),
    "links skip": (PARENT, "-y"),
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
