"""JSON read and written as JavaScript does, without a limit on nesting or on digits.

The standard library's C code serves the usual texts; what it refuses although JavaScript takes
it (integers of thousands of digits, deep nesting) is read by a loop (contract, upstream 0 and 3.3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring
from json.scanner import make_scanner
from typing import Any, NoReturn

from .javascript import number_text

_WHOLE_DIGITS = 400
_BLANK = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_INDEX = re.compile("0|[1-9][0-9]{0,9}")
_LAST_INDEX = 2**32 - 2


def json_value(text: str) -> Any:
    """What JSON.parse makes of a text. Raises ValueError where it throws."""
    try:
        value, end = _scan(text, 0)
    except (StopIteration, ValueError, RecursionError):
        return _patiently(text)
    return value if end == len(text) else _patiently(text)


def json_or_none(text: str | None) -> Any:
    """The parsed value; None also for an absent text and for one that is no JSON."""
    try:
        return None if text is None else json_value(text)
    except ValueError:
        return None


def json_text(value: Any) -> str:
    """Compact JSON as JavaScript writes it: non-ASCII unescaped, 1.0 as 1, NaN as null.

    Integer-like keys come first, in numeric order. Raises TypeError for what is no JSON value,
    ValueError for a value that contains itself.
    """
    text = "".join(_pieces(value))
    if text.isascii():
        return text
    return "".join(f"\\u{ord(one):04x}" if "\ud800" <= one <= "\udfff" else one for one in text)


def _refuse(word: str) -> NoReturn:
    raise json.JSONDecodeError(f"{word} is not JSON", word, 0)


_DECODER = json.JSONDecoder(parse_constant=_refuse)
# The stub of the library takes its own class for what it is made from.
_scan = make_scanner(_DECODER)  # type: ignore[arg-type]


def _patiently(text: str) -> Any:
    """A text with blanks around it, with very much in it, or with something wrong."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError):
        return _Reader(text).read()


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _WHOLE_DIGITS else float(text)


class _Reader:
    """Reads one text with a stack of its own."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        # The containers that are open, and for every object the key that waits for its value.
        self._open: list[Any] = []
        self._keys: list[str] = []

    def read(self) -> Any:
        self._skip()
        while True:
            value, opened = self._value()
            while not opened:
                if not self._open:
                    if self._at != len(self._text):
                        self._fail()
                    return value
                self._store(value)
                value, opened = self._after_item()

    def _value(self) -> tuple[Any, bool]:
        """The value that starts here; True when it is a container that goes on."""
        start = self._text[self._at : self._at + 1]
        if start in ("[", "{"):
            self._step()
            container: Any = [] if start == "[" else {}
            if self._peek() == ("]" if start == "[" else "}"):
                self._step()
                return container, False
            self._open.append(container)
            if start == "{":
                self._key()
            return container, True
        value = self._scalar(start)
        self._skip()
        return value, False

    def _scalar(self, start: str) -> Any:
        if start == '"':
            value, self._at = _DECODER.raw_decode(self._text, self._at)
            return value
        for word, meaning in _WORDS.items():
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return meaning
        match = _NUMBER.match(self._text, self._at)
        if not match:
            self._fail()
        self._at = match.end()
        return float(match[0]) if match[2] or match[3] else _integer(match[0])

    def _store(self, value: Any) -> None:
        top = self._open[-1]
        if isinstance(top, list):
            top.append(value)
        else:
            top[self._keys.pop()] = value

    def _after_item(self) -> tuple[Any, bool]:
        """A comma goes on in the open container; a bracket makes that the value."""
        top = self._open[-1]
        found = self._peek()
        if found == ",":
            self._step()
            if isinstance(top, dict):
                self._key()
            return top, True
        if found != ("]" if isinstance(top, list) else "}"):
            self._fail()
        self._step()
        return self._open.pop(), False

    def _key(self) -> None:
        if self._peek() != '"':
            self._fail()
        key, self._at = _DECODER.raw_decode(self._text, self._at)
        self._keys.append(key)
        self._skip()
        if self._peek() != ":":
            self._fail()
        self._step()

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _step(self) -> None:
        self._at += 1
        self._skip()

    def _skip(self) -> None:
        if match := _BLANK.match(self._text, self._at):
            self._at = match.end()

    def _fail(self) -> NoReturn:
        raise json.JSONDecodeError("unexpected character", self._text, self._at)


class _Close:
    """The end of a container that is being written."""

    def __init__(self, bracket: str, container: Any) -> None:
        self.bracket = bracket
        self.container = container


class _Raw(str):
    """Text that is JSON already."""

    __slots__ = ()


def _pieces(value: Any) -> Iterator[str]:
    waiting, path = [value], set[int]()
    while waiting:
        item = waiting.pop()
        if isinstance(item, _Raw):
            yield item
        elif isinstance(item, _Close):
            path.discard(id(item.container))
            yield item.bracket
        elif isinstance(item, dict | list | tuple):
            if id(item) in path:
                raise ValueError("the value contains itself")
            path.add(id(item))
            yield "{" if isinstance(item, dict) else "["
            waiting.append(_Close("}" if isinstance(item, dict) else "]", item))
            waiting.extend(reversed(_members(item) if isinstance(item, dict) else _items(item)))
        else:
            yield _scalar_text(item)


def _items(values: list[Any] | tuple[Any, ...]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found += [_Raw(","), value]
    return found[1:]


def _members(pairs: dict[Any, Any]) -> list[Any]:
    named = [(key if isinstance(key, str) else _scalar_text(key), value) for key, value in pairs.items()]
    named.sort(key=lambda pair: _rank(pair[0]))
    found: list[Any] = []
    for key, value in named:
        found += [_Raw(","), _Raw(encode_basestring(key) + ":"), value]
    return found[1:]


def own_keys(names: Iterable[str]) -> list[str]:
    """The order in which an object lists its keys: array indices first, ascending."""
    return sorted(names, key=_rank)


def _rank(key: str) -> int:
    return int(key) if _INDEX.fullmatch(key) and int(key) <= _LAST_INDEX else _LAST_INDEX + 1


def _scalar_text(value: Any) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        text = number_text(value)
        return text if text[-1].isdigit() else "null"
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
