"""`${NAME}` in the texts of a configuration, filled in from the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_VARIABLE = re.compile(r"\$?\$\{([A-Z_][A-Z0-9_]*)\}")


class Substitution:
    """A configuration with its variables filled in; `$${NAME}` stands for the text itself.

    The environment goes before the `env` block of the configuration. unset lists the place and
    the name of each variable that is in neither: its text stays as it is.
    """

    def __init__(self, data: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self.unset: list[tuple[str, str]] = []
        self._environ = _own(data) | {name: value for name, value in environ.items() if value}
        self.data: dict[str, Any] = {name: self._filled(value, name) for name, value in data.items()}

    def _filled(self, value: Any, place: str) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(item, f"{place}.{name}") for name, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item, f"{place}[{number}]") for number, item in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        return re.sub(_VARIABLE, lambda match: self._value(match, place), value)

    def _value(self, match: re.Match[str], place: str) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        if match[1] not in self._environ:
            self.unset.append((place, match[1]))
            return match[0]
        return self._environ[match[1]]


def _own(data: Mapping[str, Any]) -> dict[str, str]:
    """The variables that the configuration itself sets."""
    block = data.get("env")
    if not isinstance(block, dict):
        return {}
    named = block.get("vars")
    both = block | (named if isinstance(named, dict) else {})
    return {name: value for name, value in both.items() if isinstance(value, str)}
