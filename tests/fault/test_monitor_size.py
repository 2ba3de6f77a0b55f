"""Transcripts of any size are read in little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from tests.adopted import Transcript, adopt, line, person
from tests.support import ROOT

MB = 1_048_576
MOST_GROWTH_MB = 32

# One tick to load everything, then what was asked for; prints how far the peak rose between (kB).
MEASURED = """
import resource, sys
from openclaw_state.cli.run import run
from openclaw_state.cli.terminal import Terminal
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
terminal = lambda: Terminal(sys.stdin, sys.stdout, sys.stderr)
run(["monitor", "--dry-run", "-q"], terminal())
before = peak()
status = run(["monitor", "--json", *sys.argv[1:]], terminal())
print(peak() - before, file=sys.stderr)
sys.exit(status)
"""


@pytest.fixture
def transcript(tmp_path: Path) -> Transcript:
    found = Transcript(tmp_path / "thread.jsonl")
    with SignalLog(tmp_path / "log.sqlite", change=True, create=True) as log:
        adopt(log, found.path)
    return found


def measured(folder: Path, *argv: str) -> tuple[Any, float]:
    """(the document, growth of memory in MB) of one run."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *argv],
        cwd=ROOT,
        env={**os.environ, "OPENCLAW_STATE_DB": str(folder / "log.sqlite")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout), int(done.stderr.splitlines()[-1]) / 1024


def test_a_row_of_150_mb_blocks_its_link_and_costs_no_memory(tmp_path: Path, transcript: Transcript) -> None:
    at = transcript.size
    with transcript.path.open("ab") as file:
        file.write(b'{"type":"user","message":{"role":"user","content":"')
        for _ in range(150):
            file.write(b"x" * MB)
        file.write(b'"}}\n' + line(person("behind it")))
    document, growth = measured(tmp_path, "--catch-up")
    (link,) = document["links"]
    assert (link["verdict"], link["marker"], link["nextMarker"]) == ("blocked", {"offset": at}, None)
    assert f"at offset {at}" in link["reason"]
    assert growth < MOST_GROWTH_MB


def test_200_mb_are_read_window_by_window(tmp_path: Path, transcript: Transcript) -> None:
    filler = b"".join(line({"type": "assistant", "text": "x" * 4_000}) for _ in range(2_000))
    blocks = 200 * MB // len(filler)
    with transcript.path.open("ab") as file:
        for number in range(blocks):
            file.write(filler + line(person(f"prompt {number}")))
    document, growth = measured(tmp_path, "--catch-up")
    assert document["summary"]["humanTurns"] == blocks
    assert document["links"][-1]["nextMarker"] == {"offset": transcript.size}
    assert growth < MOST_GROWTH_MB
