"""An OpenClaw state directory with sessions, and a program that stands in for OpenClaw's cleanup."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.cli.harness import Cli
from tests.support import T

_TABLES = """
CREATE TABLE schema_meta (meta_key TEXT PRIMARY KEY, role TEXT, schema_version INTEGER, agent_id TEXT,
  app_version TEXT, created_at INTEGER, updated_at INTEGER);
CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT NOT NULL,
  entry_json TEXT NOT NULL, entry_valid INTEGER NOT NULL DEFAULT 1, updated_at INTEGER NOT NULL);
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER);
PRAGMA user_version = 23;
"""
# What OpenClaw's program is told to do: a file beside it says it key by key.
_PROGRAM = """#!{python}
import json, os, sqlite3, sys
here = os.path.dirname(os.path.abspath(__file__))
json.dump([sys.argv[1:], os.environ["OPENCLAW_STATE_DIR"]], open(os.path.join(here, "called"), "w"))
task = json.load(open(os.path.join(here, "task")))
store = os.path.join(os.environ["OPENCLAW_STATE_DIR"], "agents", "main", "agent", "openclaw-agent.sqlite")
with sqlite3.connect(store) as database:
    for key, entry in task["rows"].items():
        if entry is None:
            database.execute("DELETE FROM session_nodes WHERE session_key = ?", [key])
        else:
            change = "UPDATE session_nodes SET entry_json = json_patch(entry_json, ?) WHERE session_key = ?"
            database.execute(change, [json.dumps(entry), key])
print(json.dumps({{"applied": True}}))
sys.exit(task["status"])
"""


class Agents:
    """A state directory, its configuration, and the rows of its agents."""

    def __init__(self, cli: Cli, root: Path) -> None:
        self.cli, self.root = cli, root
        self.programs = root.parent / "programs"
        self.programs.mkdir(parents=True, exist_ok=True)
        (root / "agents").mkdir(parents=True, exist_ok=True)

    def configure(self, **settings: Any) -> None:
        (self.root / "openclaw.json").write_text(json.dumps(settings), "utf-8")

    def store(self, agent: str = "main") -> Path:
        return self.root / "agents" / agent / "agent" / "openclaw-agent.sqlite"

    def add(
        self,
        rows: Mapping[str, Mapping[str, Any]],
        *,
        agent: str = "main",
        release: str = "2026.9.6",
        transcripts: tuple[str, ...] = (),
    ) -> None:
        """Put sessions into an agent's store; those named in transcripts have one with a message."""
        path = self.store(agent)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        with closing(sqlite3.connect(path)) as database, database:
            if new:
                database.executescript(_TABLES)
                database.execute(
                    "INSERT INTO schema_meta VALUES ('primary', 'agent', 23, ?, ?, ?, ?)",
                    (agent, release, T, T),
                )
            for key, entry in rows.items():
                whole = {"sessionId": f"id of {key}", "updatedAt": T, **entry}
                database.execute(
                    "INSERT INTO session_nodes VALUES (?, ?, ?, 1, ?)",
                    (key, whole["sessionId"], json.dumps(whole), whole["updatedAt"] or 0),
                )
                if key in transcripts:
                    event = json.dumps({"type": "message", "message": {"role": "user"}})
                    database.execute(
                        "INSERT INTO transcript_events VALUES (?, 0, ?, ?)", (whole["sessionId"], event, T)
                    )

    def __call__(self, *argv: object, **options: Any) -> Any:
        return self.cli(*argv, "--state-dir", self.root, env=self._environment(), **options)

    def json(self, *argv: object, **options: Any) -> Any:
        return self(*argv, "--json", **options).document

    def _environment(self) -> dict[str, str]:
        return {"PATH": str(self.programs), "TZ": "UTC"}

    def install(self, rows: Mapping[str, Mapping[str, Any] | None] | None = None, *, status: int = 0) -> None:
        """Install a program `openclaw` that removes rows (None) or changes them, and then ends."""
        program = self.programs / "openclaw"
        program.write_text(_PROGRAM.format(python=sys.executable))
        program.chmod(0o755)
        (self.programs / "task").write_text(json.dumps({"rows": rows or {}, "status": status}))

    @property
    def called(self) -> list[str]:
        """The arguments of the program's last run."""
        arguments, directory = json.loads((self.programs / "called").read_text())
        assert os.path.samefile(directory, self.root)
        return list(arguments)

    def keys(self) -> set[str]:
        with closing(sqlite3.connect(self.store())) as database:
            return {row[0] for row in database.execute("SELECT session_key FROM session_nodes")}
