"""openclaw.json: JSON5, its includes, the environment, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_state.core.surroundings import STORE_UNKNOWN
from openclaw_state.errors import ConfigurationError
from openclaw_state.host import config
from openclaw_state.host.surroundings import StateDirectory
from openclaw_state.model import Cursor
from tests.support import CHILD, PARENT


def write(folder: Path, text: str, name: str = "openclaw.json") -> None:
    (folder / name).write_text(text, encoding="utf-8")


def test_a_missing_file_is_an_empty_configuration(tmp_path: Path) -> None:
    found = config.load(str(tmp_path), {})
    assert found == config.Config({}, str(tmp_path / "openclaw.json"))


def test_json5_is_read(tmp_path: Path) -> None:
    write(tmp_path, "\ufeff// by hand\n{ session: { dmScope: 'per-peer', }, a: [0x10, .5,], }\n")
    assert config.load(str(tmp_path), {}).data == {"session": {"dmScope": "per-peer"}, "a": [16, 0.5]}


def test_the_path_can_be_given_by_the_environment(tmp_path: Path) -> None:
    write(tmp_path, "{a: 1}", "other.json")
    environ = {"OPENCLAW_CONFIG_PATH": " ~/other.json ", "HOME": str(tmp_path)}
    assert config.load("/nowhere", environ) == config.Config({"a": 1}, str(tmp_path / "other.json"))


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("{a: 1,\n b: }", 2, 5, "found '}'"),
        ("{a: 1} x", 1, 8, "extra data 'x'"),
        ('{\n  é: "😀",\n  b: tru}', 3, 9, "found '}'"),
        ("{a: 1", 1, 1, "unclosed object"),
        ("", 1, 1, "no JSON data found"),
    ],
)
def test_what_is_not_json5_is_shown_where_it_is(
    tmp_path: Path, text: str, line: int, column: int, words: str
) -> None:
    write(tmp_path, text)
    with pytest.raises(ConfigurationError, match=f"line {line}, column {column}: ") as failed:
        config.load(str(tmp_path), {})
    assert words in failed.value.message
    assert failed.value.details == {"line": line, "column": column}


def test_a_list_is_no_configuration(tmp_path: Path) -> None:
    write(tmp_path, "[]")
    with pytest.raises(ConfigurationError, match="holds no object"):
        config.load(str(tmp_path), {})


def test_includes_are_merged_and_what_stands_beside_them_goes_first(tmp_path: Path) -> None:
    write(tmp_path, "{$include: ['a.json', 'b.json'], session: {mainKey: 'work'}}")
    write(tmp_path, "{session: {mainKey: 'a', scope: 'global'}, bindings: [1]}", "a.json")
    write(tmp_path, "{bindings: [2], agents: {$include: 'c.json'}}", "b.json")
    write(tmp_path, "{entries: {work: {}}}", "c.json")
    assert config.load(str(tmp_path), {}).data == {
        "session": {"mainKey": "work", "scope": "global"},
        "bindings": [1, 2],
        "agents": {"entries": {"work": {}}},
    }


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "{$include: 'openclaw.json'}")
    with pytest.raises(ConfigurationError, match="more than 10 deep"):
        config.load(str(tmp_path), {})


def test_an_include_that_is_missing_is_named(tmp_path: Path) -> None:
    write(tmp_path, "{$include: 'gone.json'}")
    with pytest.raises(ConfigurationError, match=r"gone\.json cannot be read"):
        config.load(str(tmp_path), {})


def test_variables_come_from_the_environment_then_from_the_file(tmp_path: Path) -> None:
    write(
        tmp_path, "{env: {A: 'own', vars: {B: 'own'}}, e: '${E}', session: {store: '${A}/${B}/$${C}/${D}'}}"
    )
    found = config.load(str(tmp_path), {"A": "outer"})
    assert found.data["session"] == {"store": "outer/own/${C}/${D}"}
    assert found.warnings == (f"{found.path}: session.store names ${{D}}, which is not set here",)


def test_retired_settings_are_told_with_what_replaced_them(tmp_path: Path) -> None:
    write(
        tmp_path,
        "{session: {idleMinutes: 5, resetByType: {dm: {}}, writeLock: {}}, diagnostics: {stuckSessionMs: 1}}",
    )
    told = " ".join(config.load(str(tmp_path), {}).warnings)
    assert "session.idleMinutes is retired in 2026.9; session.reset.idleMinutes replaces it" in told
    assert "session.resetByType.dm is retired in 2026.9; session.resetByType.direct replaces it" in told
    assert "session.writeLock is retired in 2026.9; nothing replaces it" in told
    assert "diagnostics.stuckSessionMs is retired" in told


def watch(store: str | None) -> Cursor:
    return Cursor(PARENT, CHILD, 0, 0, 0, "explicit", 0, store)


def test_a_configured_store_decides_the_path_and_so_the_delivery(tmp_path: Path) -> None:
    write(tmp_path, "{session: {store: '~/stores/{agentId}/sessions.json'}}")
    host = StateDirectory(str(tmp_path), environ={"HOME": str(tmp_path)})
    path = str(tmp_path / "stores" / "main" / "openclaw-agent.sqlite")
    assert host.store_path(PARENT) == path
    assert host.delivery(watch(path)).ok is True
    assert host.delivery(watch("/elsewhere")).reason == "other store"
    assert host.delivery(watch(None)) == STORE_UNKNOWN


def test_a_file_that_only_speaks_of_a_store_leaves_the_default(tmp_path: Path) -> None:
    write(tmp_path, "{skills: {store: 'x'}} // session.store")
    host = StateDirectory(str(tmp_path), environ={})
    path = str(tmp_path / "agents" / "main" / "agent" / "openclaw-agent.sqlite")
    assert host.delivery(watch(path)).ok is True


def test_delivery_is_unknown_while_the_configuration_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, "{")
    host = StateDirectory(str(tmp_path), environ={})
    assert host.store_path(PARENT) is None
    told = host.delivery(watch("/any"))
    assert (told.ok, told.reason) == (None, "unknown")
    assert "not JSON5" in told.detail
