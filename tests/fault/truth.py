"""What the commands must answer, worked out from the rows alone (contract, signal-log sections 8 to 13)."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.fault.peers import Found

NOTIFYING = {"human_direct_message", "upstream_missing", "goal_changed"}
MONTH = 30 * 86_400_000
_OPTIONAL = {
    "sessionId": "session_id",
    "actorId": "actor_id",
    "runId": "run_id",
    "dedupeKey": "dedupe_key",
}

Row = dict[str, Any]


class Truth:
    """The rows of a database, read by SQLite alone from a copy of it and of its log."""

    def __init__(self, found: Found, copy: Path) -> None:
        self._found = found
        for ending in ("", "-wal"):
            source = found.path.with_name(found.path.name + ending)
            if source.exists():
                shutil.copyfile(source, copy.with_name(copy.name + ending))
        with closing(sqlite3.connect(copy)) as connection:
            connection.row_factory = sqlite3.Row
            self.events = _rows(connection, "session_state_events ORDER BY sequence")
            self.heads = _rows(connection, "session_state_heads ORDER BY last_sequence DESC")
            self.cursors = _rows(
                connection, "session_watch_cursors ORDER BY watcher_session_key, target_session_key"
            )
            self.links = _rows(connection, "session_upstream_links")
            issued = _rows(connection, "sqlite_sequence WHERE name = 'session_state_events'")
        self.newest = issued[0]["seq"] if issued else 0
        self.checks_stores = not self.cursors or "watcher_store_path" in self.cursors[0]

    def of(self, head: Row) -> list[Row]:
        """The retained events of a session."""
        owner = (head["session_key"], head["agent_id"])
        return [row for row in self.events if (row["session_key"], row["agent_id"]) == owner]

    def watches(self, **where: str) -> list[Row]:
        """The cursors that a command shows, whole or with watcher= or target=."""
        views = [self._watch(row) for row in self.cursors]
        return [view for view in views if all(view[name] == value for name, value in where.items())]

    def notices(self) -> list[Row]:
        """The pending notices."""
        return [self._notice(row) for row in self.cursors if _pending(row)]

    def session(self, head: Row) -> Row:
        """One session of `list`."""
        own = self.of(head)
        watching = [row for row in self.cursors if row["target_session_key"] == head["session_key"]]
        last = [row for row in own if row["sequence"] == head["last_sequence"]]
        return {
            "sessionKey": head["session_key"],
            "agentId": head["agent_id"],
            "stateVersion": head["last_sequence"],
            "events": len(own),
            "oldestSequence": own[0]["sequence"] if own else None,
            "prunedMaxSequence": head["pruned_max_sequence"],
            "watchers": len(watching),
            "pending": sum(map(_pending, watching)),
            "updatedAt": head["updated_at"],
            "lastEvent": event(last[0]) if last else None,
        }

    def ended_children(self, watcher: str) -> list[Row]:
        """Ends of child runs that a watcher has not seen, target by target."""
        return [
            event(row)
            for cursor in self.cursors
            if cursor["watcher_session_key"] == watcher
            for row in self.events
            if row["session_key"] == cursor["target_session_key"]
            and row["sequence"] > cursor["last_seen_sequence"]
            and row["kind"] in ("run_completed", "run_failed")
        ]

    def known(self, key: str) -> bool | None:
        """Does the session exist, as far as the files tell?"""
        if any(row["session_key"] == key for row in (*self.heads, *self.events)):
            return True
        agents = self._found.state_dir and self._found.state_dir / "agents"
        if agents is None or not agents.is_dir():
            return None
        store = agents / key.split(":")[1] / "agent" / "openclaw-agent.sqlite"
        if not store.exists():
            return False
        with closing(sqlite3.connect(f"file:{store}?immutable=1", uri=True)) as connection:
            sql = "SELECT count(*) FROM session_nodes WHERE session_key = ?"
            return bool(connection.execute(sql, (key,)).fetchone()[0])

    def _watch(self, row: Row) -> Row:
        watcher, target, seen = (
            row[name] for name in ("watcher_session_key", "target_session_key", "last_seen_sequence")
        )
        deliverable, delivery = self._delivery(row)
        answers = (self.known(watcher), self.known(target))
        orphaned = True if False in answers else None if None in answers else False
        heads = [head["last_sequence"] for head in self.heads if head["session_key"] == target]
        behind = [event for event in self.events if event["session_key"] == target]
        return {
            "watcher": watcher,
            "target": target,
            "lastSeenSequence": seen,
            "notifiedSequence": row["notified_sequence"],
            "materialSequence": row["material_sequence"],
            "headSequence": max(heads, default=0),
            "lag": sum(event["sequence"] > seen and event["kind"] in NOTIFYING for event in behind),
            "state": "orphaned" if orphaned else _state(row),
            "pending": _pending(row),
            "orphaned": orphaned,
            "provenance": row["provenance"],
            "deliverable": deliverable,
            "delivery": delivery,
            "watcherStorePath": row.get("watcher_store_path"),
            "updatedAt": row["updated_at"],
            "expiresAt": row["updated_at"] + MONTH,
        }

    def _notice(self, row: Row) -> Row:
        watcher, target, seen = (
            row[name] for name in ("watcher_session_key", "target_session_key", "last_seen_sequence")
        )
        opened = [event for event in self.events if event["sequence"] == row["notified_sequence"]]
        deliverable, delivery = self._delivery(row)
        ambient = row["provenance"] == "ambient-group"
        return {
            "watcher": watcher,
            "target": target,
            "text": f'Session "{target}" changed (other actor). Reconcile before acting:'
            f' session_status sessionKey "{target}" changesSince {seen}.',
            "sinceVersion": seen,
            "headVersion": max(head["last_sequence"] for head in self.heads if head["session_key"] == target),
            "kind": opened[0]["kind"] if opened else None,
            "pendingSince": opened[0]["occurred_at"] if opened else None,
            "wake": "next-turn" if ambient else "immediate",
            "deliverable": deliverable,
            "delivery": delivery,
            "reconcile": ["openclaw-state", "status", target, "--since", str(seen)],
        }

    def _delivery(self, row: Row) -> tuple[bool | None, str]:
        if not self.checks_stores:
            return True, "yes"
        if row["watcher_store_path"] is None:
            return False, "store unknown"
        if self._found.state_dir is None:
            return None, "unknown"
        agent = row["watcher_session_key"].split(":")[1]
        own = os.path.realpath(self._found.state_dir / "agents" / agent / "agent" / "openclaw-agent.sqlite")
        return (True, "yes") if row["watcher_store_path"] == own else (False, "other store")


def event(row: Row) -> Row:
    """One event as `tail` shows it."""
    view = {
        "sequence": row["sequence"],
        "sessionKey": row["session_key"],
        "agentId": row["agent_id"],
        "kind": row["kind"],
        "actorType": row["actor_type"],
        "occurredAt": row["occurred_at"],
        "summary": row["summary"],
    }
    view |= {name: row[column] for name, column in _OPTIONAL.items() if row[column]}
    return view | ({"payload": json.loads(row["payload_json"])} if row["payload_json"] else {})


def shown_change(row: Row) -> Row:
    """One event as `session_status` shows it: without keys, and with the known words of the payload."""
    hidden = ("sessionKey", "agentId", "sessionId", "dedupeKey", "payload")
    view = {name: value for name, value in event(row).items() if name not in hidden}
    payload = event(row).get("payload", {})
    shown = {name: payload[name] for name in ("outcome", "channel", "turns") if name in payload}
    return view | ({"payload": shown} if shown else {})


def without(view: Row, *names: str) -> Row:
    """A view but for some members."""
    return {name: value for name, value in view.items() if name not in names}


def _pending(row: Row) -> bool:
    return row["material_sequence"] > row["last_seen_sequence"]


def _state(row: Row) -> str:
    if _pending(row) and row["material_sequence"] > row["notified_sequence"]:
        return "reopening"
    return "pending" if _pending(row) else "quiet"


def _rows(connection: sqlite3.Connection, rest: str) -> list[Row]:
    return [dict(row) for row in connection.execute(f"SELECT * FROM {rest}")]
