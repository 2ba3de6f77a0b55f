"""What a person types at the live board: keys by name, out of what the terminal sends."""

from __future__ import annotations

import re

_NAMES = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "H": "home",
    "F": "end",
    "1~": "home",
    "4~": "end",
    "5~": "page up",
    "6~": "page down",
    "7~": "home",
    "8~": "end",
}
_CONTROLS = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\x15": "erase"}
# A control sequence (CSI) or an application key (SS3). Alt with a key cannot be told from Escape
# and that key, and is read as those.
_SEQUENCE = re.compile(r"\x1b(?:\[(?P<csi>[0-?]*[ -/]*[@-~])|O(?P<ss3>[ -~]))")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")


def parse(text: str) -> tuple[list[str], str]:
    """(keys, the beginning of a sequence whose end has not come yet).

    A key is a character that prints, or a name such as `up`, `enter` or `escape`; whatever else
    a terminal sends is passed over.
    """
    keys: list[str] = []
    at = 0
    while at < len(text):
        if _UNFINISHED.match(text, at):
            return keys, text[at:]
        found = _SEQUENCE.match(text, at)
        if found:
            at = found.end()
            keys += [_NAMES[name]] if (name := found["csi"] or found["ss3"]) in _NAMES else []
        elif text[at] == "\x1b":
            at += 1
            keys.append("escape")
        else:
            keys += [_CONTROLS[text[at]]] if text[at] in _CONTROLS else [text[at]] * text[at].isprintable()
            at += 1
    return keys, ""


def finished(rest: str) -> list[str]:
    """The keys of a sequence that stayed unfinished: the Escape key, if it was only that."""
    return ["escape"] if rest == "\x1b" else []
