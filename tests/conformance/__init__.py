"""The conformance runner: measured cases of OpenClaw, driven through the public API.

A file's `suite` chooses the driver; a driver maps words to calls and implements no rule.
Lists named `informative` are not cases.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import (
    maintenance,
    reset,
    session_keys,
    signal_log,
    upstream_checks,
    upstream_monitor,
    upstream_texts,
)

# Run a case, and say what differed, or None.
Check = Callable[[], str | None]

DRIVERS: dict[str, Callable[[dict[str, Any]], Iterator[tuple[str, Check]]]] = {
    "maintenance": maintenance.cases,
    "maintenance-2026.7": maintenance.cases,
    "reset": reset.cases,
    "reset-2026.7": reset.cases,
    "session-keys": session_keys.cases,
    "signal-log": signal_log.cases,
    "upstream-claude": upstream_checks.claude_suite,
    "upstream-claude-node": upstream_checks.node_suite,
    "upstream-codex": upstream_checks.codex_suite,
    "upstream-date-parse": upstream_texts.date_parse,
    "upstream-monitor": upstream_monitor.cases,
    "upstream-opencode": upstream_checks.opencode_suite,
    "upstream-own-texts": upstream_texts.own_texts,
    "upstream-pi": upstream_checks.pi_suite,
    "upstream-source-key": upstream_texts.source_keys,
}


def cases(path: str | Path) -> Iterator[tuple[str, Check]]:
    """Name and check of every case in a file; none is run yet."""
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    driver = DRIVERS.get(document["suite"])
    if driver is None:
        raise SystemExit(f"{path}: no driver for the suite {document['suite']!r}")
    yield from driver(document)
