"""The texts of an OpenCode message: what a person sees of it, and what a replay would repeat.

Contract, upstream section 9: visible text, cuts, human text, replay text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.javascript import collapse, is_finite

_TOOL_SENTINEL = "The following tool was executed by the user"
_UNIT = 2

Part = dict[str, Any]


def human_text(parts: Sequence[Part]) -> str:
    """The visible text of a message that a person wrote; empty when nobody did."""
    if any(part["type"] == "compaction" or _continues_compaction(part) for part in parts):
        return ""
    text = collapse("\n".join(_lines(parts, with_files=False)))
    return "" if text == _TOOL_SENTINEL else text


def replay_text(parts: Sequence[Part]) -> str:
    """The text by which a later copy of the message is recognised; attachments are named in it."""
    return collapse("\n".join(_lines(parts, with_files=True)))


def _lines(parts: Sequence[Part], *, with_files: bool) -> list[str]:
    cuts = _cuts(parts)
    lines = []
    for part in parts:
        if part.get("synthetic") is True or part.get("ignored") is True or _continues_compaction(part):
            continue
        if part["type"] == "text" and isinstance(part.get("text"), str):
            lines.append(_cut(part["text"], cuts))
        elif with_files and part["type"] == "file" and (line := _attachment(part)):
            lines.append(line)
    return lines


def _continues_compaction(part: Part) -> bool:
    metadata = part.get("metadata")
    return isinstance(metadata, dict) and metadata.get("compaction_continue") is True


def _attachment(part: Part) -> str | None:
    mime, name = part.get("mime"), part.get("filename")
    if not isinstance(mime, str) or not (mime.startswith("image/") or mime == "application/pdf"):
        return None
    return f"[Attached {mime}: {name if isinstance(name, str) else 'file'}]"


def _cuts(parts: Sequence[Part]) -> list[tuple[float, float, str]]:
    """The ranges that mentions take up, from the end of the text to its start."""
    found = []
    for part in parts:
        source = part.get("source")
        mention = source.get("text") if isinstance(source, dict) else None
        if isinstance(mention, dict):
            start, end, value = mention.get("start"), mention.get("end"), mention.get("value")
            if is_finite(start) and is_finite(end) and isinstance(value, str):
                found.append((start, end, value))
    return sorted(found, key=lambda cut: -cut[0])


def _cut(text: str, cuts: Sequence[tuple[float, float, str]]) -> str:
    """The text without the ranges that still hold what they say; offsets count UTF-16 units."""
    if not cuts:
        return text
    units = text.encode("utf-16-le", "surrogatepass")
    for start, end, value in cuts:
        if start != int(start) or end != int(end) or not 0 <= start <= end <= len(units) // _UNIT:
            continue
        first, last = int(start) * _UNIT, int(end) * _UNIT
        if units[first:last] == value.encode("utf-16-le", "surrogatepass"):
            units = units[:first] + units[last:]
    return units.decode("utf-16-le", "surrogatepass")
