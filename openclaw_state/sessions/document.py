"""Reading parsed JSON that may lack anything: openclaw.json and session entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from ..core.javascript import trim
from ..core.jsontext import json_text

Document = Mapping[str, Any]


def is_object(value: Any) -> TypeGuard[Document]:
    # A plain dict, which is what JSON gives, needs no look at the abstract class: that is slow.
    return type(value) is dict or isinstance(value, Mapping)


def section(document: Any, *path: str) -> Document:
    """The object at a path; an empty one where something else, or nothing, stands."""
    found = member(document, *path)
    return found if is_object(found) else {}


def member(document: Any, *path: str) -> Any:
    """The value at a path; None where there is none."""
    for name in path:
        if not is_object(document):
            return None
        document = document.get(name)
    return document


def items(document: Any, *path: str) -> list[Any]:
    """The list at a path; an empty one where something else, or nothing, stands."""
    found = member(document, *path)
    return found if isinstance(found, list) else []


def text_of(value: Any) -> str:
    """Trimmed text; a number is its decimal text, anything else blank."""
    if isinstance(value, str):
        return trim(value)
    return json_text(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def first_given(*values: Any) -> Any:
    """The first that is neither missing nor null; a blank text is given."""
    return next((value for value in values if value is not None), None)
