"""Walking the program: every command with its options and arguments, as the user meets them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from openclaw_state.cli.app import COMMANDS, load
from tests.docs.pages import Option


def options(name: str) -> set[Option]:
    """The options of a command besides those that every command takes."""
    return _all_options(name) - common_options()


@cache
def common_options() -> set[Option]:
    """The options that every command takes."""
    return set.intersection(*map(_all_options, COMMANDS))


def arguments(name: str) -> list[str]:
    """The words for the arguments of a command, in order, without brackets and dots."""
    return [parameter.metavar.removeprefix("-- ").strip("[].") for parameter in _parameters(name, "argument")]


def option_names() -> set[str]:
    """Every option name of every command."""
    return {name for command in COMMANDS for option in _all_options(command) for name in option.names}


_command = cache(load)


def _parameters(name: str, kind: str) -> Iterator[Any]:
    return (parameter for parameter in _command(name).params if parameter.param_type_name == kind)


def _all_options(name: str) -> set[Option]:
    found = {_option(parameter) for parameter in _parameters(name, "option")}
    return found | {Option(frozenset(_command(name).context_settings["help_option_names"]), None)}


def _option(parameter: Any) -> Option:
    value = None if parameter.is_flag else parameter.metavar
    return Option(frozenset(parameter.opts), value, parameter.required)
