"""Drivers for source keys, time strings and own texts (contract, upstream sections 16.5 and 16.6)."""

from __future__ import annotations

import base64
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from openclaw_state.core.jsontext import json_or_none
from openclaw_state.model import Link
from openclaw_state.upstream.links import source_key
from openclaw_state.upstream.sessions import AgentSessions
from openclaw_state.upstream.times import parse_time

from .compare import difference

Check = Callable[[], str | None]


def link_of(case: dict[str, Any], ref: Any, marker: Any = None) -> Link:
    """A link with the words of a case, and nothing of interest where it has none."""
    return Link(
        case.get("session_key", "agent:main:s"),
        case.get("agent_id", "main"),
        "catalog",
        case.get("host_id", "host"),
        case.get("thread_id", "thread"),
        case.get("upstream_kind", "kind"),
        ref,
        marker,
        created_at=0,
        updated_at=0,
    )


def source_keys(document: dict[str, Any]) -> Iterator[tuple[str, Check]]:
    for case in document["cases"]:
        link = link_of(case, json_or_none(case["upstream_ref_json"]))
        yield str(case["upstream_ref_json"]), partial(_same, case["source_key"], partial(source_key, link))


def date_parse(document: dict[str, Any]) -> Iterator[tuple[str, Check]]:
    for text, instant in document["cases"]:
        yield repr(text), partial(_same, instant, partial(parse_time, text))


def own_texts(document: dict[str, Any]) -> Iterator[tuple[str, Check]]:
    for case in document["cases"]:
        for strict in (True, False):
            name = case["name"] + (" (strict)" if strict else "")
            yield name, partial(_own_texts, case, document["columns"], strict)


def _same(expected: Any, answer: Callable[[], Any]) -> str | None:
    return difference(expected, answer(), "answer")


def _own_texts(case: dict[str, Any], columns: dict[str, list[str]], strict: bool) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "agent.sqlite"
        _write(path, case["agent_database"], columns)
        return difference(_expected(case, strict), _asked(path, case, strict), "answer")


def _expected(case: dict[str, Any], strict: bool) -> Any:
    if case.get("needs") == "zstd":
        skipped = not (find_spec("backports.zstd") or find_spec("compression"))
    else:
        skipped = "expectDefault" in case and (not strict or case.get("strictToo", False))
    return case["expectDefault"] if skipped else case["own_recent_user_texts"]


def _asked(path: Path, case: dict[str, Any], strict: bool) -> Any:
    """The own texts; None where the link is not probed; or the reason to skip it, where it has a name."""
    link = link_of(case, None)
    sessions = AgentSessions(lambda _: str(path), strict=strict)
    try:
        session_id = sessions.entries([link]).get((link.session_key, link.agent_id))
        if not isinstance(session_id, str):
            return None
        return list(sessions.own_texts(link, session_id))
    except Exception as error:
        reason = f"own texts unreadable: {error}"
        return None if case["own_recent_user_texts"] is None else {"skipped": reason}
    finally:
        sessions.close()


def _write(path: Path, tables: dict[str, list[dict[str, Any]]], columns: dict[str, list[str]]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, names in columns.items():
            connection.execute(f"CREATE TABLE {table} ({', '.join(names)})")
            for row in tables.get(table, []):
                values = [_stored(row[name]) for name in names]
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", values)


def _stored(value: Any) -> Any:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value
