"""The conformance runner: measured cases of OpenClaw, driven through the public API.

A file's `suite` chooses the driver; a driver maps words to calls and implements no rule.
Lists named `informative` are not cases.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import signal_log

DRIVERS: dict[str, Callable[[dict[str, Any]], Iterator[tuple[str, str | None]]]] = {
    "signal-log": signal_log.run,
}


def run_file(path: str | Path) -> Iterator[tuple[str, str | None]]:
    """(case name, what differed or None) for every case of a file."""
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    driver = DRIVERS.get(document["suite"])
    if driver is None:
        raise SystemExit(f"{path}: no driver for the suite {document['suite']!r}")
    yield from driver(document)


def difference(expected: Any, actual: Any, where: str = "") -> str | None:
    """The first place where two JSON values differ, or None."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected.keys() | actual.keys():
            if key not in actual:
                return f"{where}.{key} is missing, expected {expected[key]!r}"
            if key not in expected:
                return f"{where}.{key} is {actual[key]!r}, expected to be absent"
            if found := difference(expected[key], actual[key], f"{where}.{key}"):
                return found
        return None
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return next(filter(None, (difference(e, a, f"{where}[{i}]") for i, (e, a) in pairs)), None)
    same = type(expected) is type(actual) or not (isinstance(expected, bool) or isinstance(actual, bool))
    return None if same and expected == actual else f"{where} is {actual!r}, expected {expected!r}"
