"""The picture of the live board in the README: `python -m tests.docs.picture` draws it anew.

A story is played in an empty home, the real program shows it on a pseudo-terminal, and Rich turns
what it wrote there into SVG.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.text import Text

from openclaw_state import SignalLog
from tests.docs.examples import NOON, ROOT
from tests.support import Clock
from tests.terminal import DOWN, Board, watch

PICTURE = ROOT / "docs" / "board.svg"
TITLE = "openclaw-state watch"
COLUMNS, ROWS = 100, 24
BOSS, ME = "agent:main:main", "telegram:42"
REPORT, NIGHTLY, SEARCH = (f"agent:main:subagent:{name}" for name in ("report", "nightly", "search"))

# Fonts that a picture would load from elsewhere are not shown where it is looked at, and not wanted.
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.S)


def play(path: Path) -> None:
    """An hour until noon: four children, two people who interfere, three notices."""
    clock = Clock()
    with SignalLog(path, change=True, create=True, clock=clock) as log:

        def at(minutes: int, seconds: int = 0) -> SignalLog:
            clock.now = NOON - (minutes * 60 + seconds) * 1_000
            return log

        at(58).child_spawned(NIGHTLY, requester=BOSS, run_id="run-1")
        at(41, 7).run_ended(NIGHTLY, run_id="run-1")
        at(33).child_spawned(REPORT, requester=BOSS, run_id="run-2")
        at(31, 30).watch("agent:work:main", REPORT)
        at(12, 20).child_spawned(SEARCH, requester=REPORT, run_id="run-3")
        at(11, 2).human_message(REPORT, channel="telegram", actor_id=ME, spawned_by=BOSS)
        at(8, 41).compacted(BOSS, operation_id="op-1")
        at(4, 12).goal_changed(REPORT, "goal updated", actor_type="human", actor_id=ME, spawned_by=BOSS)
        at(1, 36).human_message(SEARCH, channel="discord", actor_id="discord:7", spawned_by=REPORT)
        at(0, 24).run_ended(SEARCH, run_id="run-3", outcome="error")


def run(home: Path) -> dict[int, str]:
    """Row -> what the program wrote there last, on the board of the story."""
    path = home / ".local" / "share" / "openclaw-state" / "openclaw.sqlite"
    play(path)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OPENCLAW_", "XDG_"))}
    env |= {"HOME": str(home), "TZ": "UTC", "TERM": "xterm-256color", "OPENCLAW_STATE_NOW": str(NOON)}
    with watch(env, "--color", "always", columns=COLUMNS, rows=ROWS) as board:
        board.until("? help")
        board.send(DOWN, DOWN)
        board.until(f"> {REPORT}")
        return written(board)


def written(board: Board) -> dict[int, str]:
    """Row -> the text, with its colours, that the program put there last."""
    rows: dict[int, str] = {}
    for row, text in re.findall(r"\x1b\[(\d+);1H(.*?)\x1b\[K", board.raw):
        rows[int(row)] = text
    return rows


def svg(rows: dict[int, str]) -> str:
    """The screen as a picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, _environ={})
    for row in range(1, ROWS + 1):
        line = Text.from_ansi(rows[row])
        # Each word is a piece of its own: not every viewer keeps blanks at the edges of one.
        for word in re.finditer(r"\S+", line.plain):
            line.stylize("not blink", *word.span())
        console.print(line, crop=True, soft_wrap=True)
    return console.export_svg(title=TITLE, code_format=_FORMAT, unique_id="board")


def shown(picture: str) -> list[tuple[str, str]]:
    """The pieces of text that a picture shows, each with the role of its colours, in their order."""
    found: list[Any] = ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    return [(text.get("class", ""), text.text or "") for text in found]


def draw() -> str:
    """Run everything in a home of its own; the picture."""
    with tempfile.TemporaryDirectory() as home:
        return svg(run(Path(home)))


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(), "utf-8")
    print(PICTURE.relative_to(ROOT))
