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
