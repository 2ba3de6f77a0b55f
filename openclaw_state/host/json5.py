"""JSON5 text, and where exactly it goes wrong."""

from __future__ import annotations

import re
from typing import Any

from ..errors import ConfigurationError

MAX_DEPTH = 200


def read_json5(text: str, path: str) -> Any:
    """The value that the text of a file is. Raises ConfigurationError with line and column."""
    import pyjson5

    try:
        return pyjson5.decode(text, maxdepth=MAX_DEPTH)
    except pyjson5.Json5DecoderException as error:
        line, column = _place(text, str(error.args[0]), getattr(error, "character", None))
        found = re.search(r"near \d+, (found .*)", str(error.args[0]))
        raise ConfigurationError(
            f"{path} is not JSON5: line {line}, column {column}: {_reason(error, found is not None)}",
            hint="correct the file; openclaw doctor shows what OpenClaw makes of it",
            line=line,
            column=column,
        ) from error


def _place(text: str, message: str, character: str | None) -> tuple[int, int]:
    """Line and column, from 1, of the character that the parser stumbled on."""
    near = re.search(r"near (\d+)", message)
    offset = max(0, int(near[1]) - 1) if near else 0
    if character:
        # The parser counts to the start of the token that the character ends.
        offset = max(text.find(character, offset), 0)
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _reason(error: Exception, is_character: bool) -> str:
    message = re.sub(r"b'([^']*)'", r"\1", str(error.args[0]))
    message = re.sub(r"U\+([0-9a-f]{4,6})", lambda code: repr(chr(int(code[1], 16))), message)
    message = re.sub(r" (?:starting )?near \d+", "" if is_character else " here", message)
    return message[:1].lower() + message[1:]
