"""JSON, JSON lines and TSV: exact, streamed, and without raw control characters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import StateError, UsageError
from .escape import escape

_RAW = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"


def dumps(value: Any) -> str:
    """Compact JSON; DEL, C1, line separators, bidirectional marks and broken surrogates are escapes."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text if text.isascii() and "\x7f" not in text else re.sub(_RAW, _unicode_escape, text)


def stored(value: Any) -> Any:
    """JSON that stood in a database, if it can be written again; else None, as where it was no JSON."""
    try:
        dumps(value)
    except (ValueError, RecursionError):
        return None
    return value


def _unicode_escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def document(members: Mapping[str, Any]) -> Iterator[str]:
    """One JSON object in pieces, a line for each member.

    An iterator becomes a list, one element a line, without ever being held; a callable is
    asked when its turn comes, so that a count can follow what it counts.
    """
    yield "{"
    for number, (name, value) in enumerate(members.items()):
        yield f"{',' if number else ''}\n  {dumps(name)}: "
        if isinstance(value, Iterator):
            yield from _list(value)
        else:
            yield dumps(value() if callable(value) else value)
    yield "\n}\n"


def _list(values: Iterator[Any]) -> Iterator[str]:
    empty = True
    for value in values:
        yield ("[" if empty else ",") + "\n    " + dumps(value)
        empty = False
    yield "[]" if empty else "\n  ]"


def envelope(
    command: str,
    *,
    database: Mapping[str, Any] | None,
    body: Mapping[str, Any],
    warnings: Sequence[str],
) -> dict[str, Any]:
    """The members that every document of a success has, around those of the command."""
    return {
        "schema": schema_name(command),
        "ok": True,
        "database": database,
        **body,
        "warnings": list(warnings),
    }


def error_document(command: str, error: StateError) -> dict[str, Any]:
    """What stands on stdout when a command fails in JSON mode."""
    words = {"code": error.code, "message": error.message, "hint": error.hint}
    return {"schema": schema_name(command), "ok": False, "error": words | error.details}


def schema_name(command: str) -> str:
    return f"openclaw-state/{command.replace(' ', '-')}/v1"


def check_fields(fields: Sequence[str] | None, known: Sequence[str]) -> None:
    """Raise UsageError for a choice of fields that the command does not have."""
    unknown = [field for field in fields or () if field not in known]
    if unknown or fields == []:
        raise UsageError(
            f"there is no field {unknown[0]!r}" if unknown else "--fields names none",
            hint=f"fields: {', '.join(known)}",
        )


def select_fields(
    rows: Iterable[Mapping[str, Any]], fields: Sequence[str] | None
) -> Iterator[dict[str, Any]]:
    """Rows with only these fields, in this order; None keeps rows as they are."""
    return (dict(row) if fields is None else {field: row.get(field) for field in fields} for row in rows)


def jsonl(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One object a line."""
    return (dumps(row) + "\n" for row in rows)


def tsv(rows: Iterable[Mapping[str, Any]], fields: Sequence[str]) -> Iterator[str]:
    """A line of field names, then a line a row."""
    yield "\t".join(fields) + "\n"
    for row in rows:
        yield "\t".join(_cell(row.get(field)) for field in fields) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else dumps(value)
    return escape(text.replace("\\", "\\\\"))
