"""Which database is meant: every rule, their order, and what a reader is warned of."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

import pytest

from openclaw_state.errors import UsageError
from openclaw_state.host.location import Location, effective_home, locate, openclaw_state_dir
from tests.support import needs_permissions

STATE = "state/openclaw.sqlite"


def holding(directory: Path) -> Path:
    """Put a file where a state directory has its database."""
    path = directory / STATE
    path.parent.mkdir(parents=True)
    path.touch()
    return directory


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), **more}


# The order of the rules


@pytest.fixture
def everything(tmp_path: Path) -> dict[str, str]:
    """A home where every rule could match."""
    for name in (".openclaw", ".openclaw-work", "moved", "other/.openclaw"):
        holding(tmp_path / name)
    return environment(
        tmp_path,
        OPENCLAW_STATE_DB=str(tmp_path / "named.sqlite"),
        OPENCLAW_STATE_DIR=str(tmp_path / "moved"),
        OPENCLAW_HOME=str(tmp_path / "other"),
    )


OPTIONS = {"db": "/x/one.sqlite", "state_dir": "/x/tree", "profile": "work"}


@pytest.mark.parametrize(
    ("without", "path", "via"),
    [
        ((), "/x/one.sqlite", "--db"),
        (("db",), f"/x/tree/{STATE}", "--state-dir"),
        (("db", "state_dir"), "HOME/named.sqlite", "OPENCLAW_STATE_DB"),
        (
            ("db", "state_dir", "OPENCLAW_STATE_DB"),
            f"HOME/other/.openclaw-work/{STATE}",
            "--profile",
        ),
        (
            ("db", "state_dir", "OPENCLAW_STATE_DB", "profile"),
            f"HOME/moved/{STATE}",
            "OPENCLAW_STATE_DIR",
        ),
        (
            ("db", "state_dir", "OPENCLAW_STATE_DB", "profile", "OPENCLAW_STATE_DIR"),
            f"HOME/other/.openclaw/{STATE}",
            "OPENCLAW_HOME",
        ),
        (
            ("db", "state_dir", "OPENCLAW_STATE_DB", "profile", "OPENCLAW_STATE_DIR", "OPENCLAW_HOME"),
            f"HOME/.openclaw/{STATE}",
            "default",
        ),
    ],
)
def test_the_first_rule_that_matches_wins(
    tmp_path: Path, everything: dict[str, str], without: tuple[str, ...], path: str, via: str
) -> None:
    options = {name: value for name, value in OPTIONS.items() if name not in without}
    environ = {name: value for name, value in everything.items() if name not in without}
    found = locate(**options, environ=environ, cwd="/")
    assert (found.path, found.via) == (path.replace("HOME", str(tmp_path)), via)


def test_the_tools_own_file_is_the_last_resort(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    path = str(data / "openclaw-state" / "openclaw.sqlite")
    assert locate() == Location(path, "embedded", state_dir=None, embedded=True, warnings=())
    assert not data.exists()


def test_the_environment_of_the_process_counts_when_none_is_given(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DB", "a.sqlite")
    monkeypatch.chdir(home)
    assert locate() == Location(str(home / "a.sqlite"), "OPENCLAW_STATE_DB")


@pytest.mark.parametrize("value", ["", " ", "\t\n", "\ufeff"])
@pytest.mark.parametrize("option", ["db", "state_dir", "profile"])
def test_a_blank_option_is_an_error_and_not_an_absent_one(option: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"--{option.replace('_', '-')} is blank"):
        locate(**{option: value}, environ={}, cwd="/")


@pytest.mark.parametrize("value", ["", "  ", "\ufeff\u00a0"])
@pytest.mark.parametrize("name", ["OPENCLAW_STATE_DB", "OPENCLAW_STATE_DIR", "OPENCLAW_HOME"])
def test_a_blank_variable_is_an_absent_one(tmp_path: Path, name: str, value: str) -> None:
    holding(tmp_path / ".openclaw")
    found = locate(environ=environment(tmp_path, **{name: value}), cwd="/")
    assert (found.state_dir, found.via) == (str(tmp_path / ".openclaw"), "default")


def test_locating_creates_nothing(tmp_path: Path) -> None:
    locate(state_dir=str(tmp_path / "a"), environ=environment(tmp_path), cwd="/")
    locate(profile="work", environ=environment(tmp_path), cwd="/")
    locate(environ=environment(tmp_path), cwd="/")
    assert list(tmp_path.iterdir()) == []


# What a file belongs to


@pytest.mark.parametrize(
    ("path", "state_dir"),
    [
        ("/srv/oc/state/openclaw.sqlite", "/srv/oc"),
        ("/srv/oc/x/../state//openclaw.sqlite", "/srv/oc"),
        ("/state/openclaw.sqlite", "/"),
        ("state/openclaw.sqlite", "/here"),
        ("openclaw.sqlite", None),
        ("/srv/oc/state/copy.sqlite", None),
        ("/srv/oc/openclaw.sqlite", None),
        ("/srv/oc/mystate/openclaw.sqlite", None),
        ("/srv/oc/state/openclaw.sqlite/x", None),
    ],
)
def test_a_file_belongs_to_the_state_directory_around_it(path: str, state_dir: str | None) -> None:
    assert locate(db=path, environ={}, cwd="/here").state_dir == state_dir
    assert locate(environ={"OPENCLAW_STATE_DB": path}, cwd="/here").state_dir == state_dir


def test_symbolic_links_stay_as_they_are(tmp_path: Path) -> None:
    holding(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    found = locate(state_dir=str(tmp_path / "link"), environ={}, cwd="/")
    assert (found.path, found.state_dir) == (str(tmp_path / "link" / STATE), str(tmp_path / "link"))


# Spelling of paths


SPELLINGS = [
    ("/srv/oc", "/srv/oc"),
    ("/srv/oc/", "/srv/oc"),
    ("/srv/./a/../oc", "/srv/oc"),
    ("//srv///oc", "/srv/oc"),
    ("/..", "/"),
    ("oc", "/here/oc"),
    ("../oc", "/oc"),
    (".", "/here"),
    ("~", "/home/me"),
    ("~/", "/home/me"),
    ("~/oc/../x", "/home/me/x"),
    ("~\\oc", "/home/me\\oc"),
    ("~bob/x", "/here/~bob/x"),
    ("~~", "/here/~~"),
    ("x/~", "/here/x/~"),
    ("$HOME/x", "/here/$HOME/x"),
]


@pytest.mark.parametrize(("value", "path"), SPELLINGS)
def test_every_path_is_expanded_and_made_absolute_alike(value: str, path: str) -> None:
    environ = {"HOME": "/home/me"}
    assert locate(db=value, environ=environ, cwd="/here").path == path
    assert locate(state_dir=value, environ=environ, cwd="/here").state_dir == path
    assert locate(environ={**environ, "OPENCLAW_STATE_DB": value}, cwd="/here").path == path
    assert openclaw_state_dir({**environ, "OPENCLAW_STATE_DIR": value}, "/here")[0] == path


@pytest.mark.parametrize("space", [" ", "\t", "\n", "\ufeff", "\u00a0", "\u2003", "\u2028"])
def test_variables_are_trimmed_as_javascript_trims(space: str) -> None:
    environ = {"HOME": "/h", "OPENCLAW_STATE_DIR": f"{space}~/oc{space}"}
    assert openclaw_state_dir(environ, "/") == ("/h/oc", "OPENCLAW_STATE_DIR")


@pytest.mark.parametrize("letter", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u200b"])
def test_what_only_python_calls_white_space_belongs_to_the_name(letter: str) -> None:
    assert openclaw_state_dir({"OPENCLAW_STATE_DIR": f"/oc{letter}"}, "/")[0] == f"/oc{letter}"


def test_an_option_is_taken_as_typed() -> None:
    assert locate(db="/srv/a ", environ={}, cwd="/").path == "/srv/a "
    assert locate(state_dir=" a", environ={}, cwd="/").state_dir == "/ a"


def test_the_tilde_means_the_home_that_openclaw_uses() -> None:
    environ = {"HOME": "/home/me", "OPENCLAW_HOME": "~/claw", "OPENCLAW_STATE_DIR": "~/oc"}
    assert openclaw_state_dir(environ, "/")[0] == "/home/me/claw/oc"


# The home


@pytest.mark.parametrize(
    ("environ", "home"),
    [
        ({"HOME": "/h"}, "/h"),
        ({"HOME": " /h/ "}, "/h"),
        ({"HOME": "h"}, "/here/h"),
        ({"HOME": "/h", "OPENCLAW_HOME": "/o"}, "/o"),
        ({"HOME": "/h", "OPENCLAW_HOME": "~"}, "/h"),
        ({"HOME": "/h", "OPENCLAW_HOME": "~/o/"}, "/h/o"),
        ({"HOME": "/h", "OPENCLAW_HOME": "~bob"}, "/here/~bob"),
        ({"HOME": "/h", "OPENCLAW_HOME": "o"}, "/here/o"),
        ({"HOME": "/h", "OPENCLAW_HOME": "undefined"}, "/h"),
        ({"HOME": "/h", "OPENCLAW_HOME": " null "}, "/h"),
        ({"HOME": "/h", "OPENCLAW_HOME": "NULL"}, "/here/NULL"),
        ({"HOME": "/h", "USERPROFILE": "/u"}, "/h"),
        ({"HOME": "undefined", "USERPROFILE": "/u"}, "/u"),
        ({"HOME": "null", "USERPROFILE": "/u"}, "/u"),
        ({"HOME": " ", "USERPROFILE": "/u"}, "/u"),
        ({"USERPROFILE": "/u", "PREFIX": "/data/data/com.termux/files/usr"}, "/u"),
        ({"PREFIX": "/data/data/com.termux/files/usr"}, "/data/data/com.termux/files/home"),
        ({"PREFIX": "/data/data/com.termux/files/usr/"}, "/data/data/com.termux/files/home"),
    ],
)
def test_home(environ: Mapping[str, str], home: str) -> None:
    assert effective_home(environ, "/here") == home


@pytest.mark.parametrize(
    "environ",
    [{}, {"HOME": "undefined", "USERPROFILE": "null"}, {"PREFIX": "/usr/local"}, {"OPENCLAW_HOME": "~"}],
)
def test_without_a_variable_the_account_has_the_home(environ: Mapping[str, str], home: Path) -> None:
    assert os.environ["HOME"] == str(home)
    assert effective_home(environ, "/here") == os.path.normpath(pwd.getpwuid(os.getuid()).pw_dir)


def test_a_user_without_an_account_is_at_home_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert effective_home({}, "/here") == "/here"


# A current directory that is gone


def test_a_deleted_current_directory_hinders_only_relative_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert locate(db="/srv/a", environ={}).path == "/srv/a"
    with pytest.raises(UsageError, match="'a' is a relative path"):
        locate(db="a", environ={})


# The state directory without a variable


@pytest.mark.parametrize(
    ("present", "name", "via"),
    [
        ((), ".openclaw", "default"),
        ((".openclaw",), ".openclaw", "default"),
        ((".clawdbot",), ".clawdbot", "legacy"),
        ((".openclaw", ".clawdbot"), ".openclaw", "default"),
        ((".moltbot",), ".openclaw", "default"),
    ],
)
def test_the_legacy_directory_counts_only_without_the_current_one(
    tmp_path: Path, present: tuple[str, ...], name: str, via: str
) -> None:
    for folder in present:
        (tmp_path / folder).mkdir()
    assert openclaw_state_dir(environment(tmp_path), "/") == (str(tmp_path / name), via)
    moved = {"HOME": "/nowhere", "OPENCLAW_HOME": str(tmp_path)}
    assert openclaw_state_dir(moved, "/") == (str(tmp_path / name), "OPENCLAW_HOME")


def test_the_legacy_database_is_found(tmp_path: Path) -> None:
    legacy = holding(tmp_path / ".clawdbot")
    found = locate(environ=environment(tmp_path), cwd="/")
    assert found == Location(str(legacy / STATE), "legacy", str(legacy))


def test_a_profile_variable_alone_moves_nothing(tmp_path: Path) -> None:
    holding(tmp_path / ".openclaw-work")
    holding(tmp_path / ".openclaw")
    found = locate(environ=environment(tmp_path, OPENCLAW_PROFILE="work"), cwd="/")
    assert (found.via, found.state_dir) == ("default", str(tmp_path / ".openclaw"))


def test_a_database_that_is_a_broken_link_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".openclaw" / "state").mkdir(parents=True)
    (tmp_path / ".openclaw" / STATE).symlink_to("/nowhere/else")
    assert locate(environ=environment(tmp_path), cwd="/").via == "default"


@needs_permissions
def test_a_directory_that_may_not_be_searched_is_not_passed_over(tmp_path: Path) -> None:
    tree = holding(tmp_path / ".openclaw")
    tree.chmod(0)
    try:
        found = locate(environ=environment(tmp_path), cwd="/")
    finally:
        tree.chmod(0o700)
    assert found == Location(str(tree / STATE), "default", str(tree))


# Profiles


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("work", ".openclaw-work"),
        (" work ", ".openclaw-work"),
        ("default", ".openclaw"),
        ("Default", ".openclaw"),
        ("A", ".openclaw-A"),
        ("0_-", ".openclaw-0_-"),
        ("x" * 64, ".openclaw-" + "x" * 64),
    ],
)
def test_a_profile_names_a_directory_in_the_home(name: str, folder: str) -> None:
    found = locate(profile=name, environ={"HOME": "/h"}, cwd="/")
    assert found == Location(f"/h/{folder}/{STATE}", "--profile", f"/h/{folder}")


@pytest.mark.parametrize("name", ["-work", "_x", "a b", "a/b", "..", "é", "x" * 65, "work\n\x85", "٣"])
def test_an_impossible_profile_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not a profile name"):
        locate(profile=name, environ={"HOME": "/h"}, cwd="/")


def test_a_profile_stands_in_the_home_that_openclaw_uses() -> None:
    environ = {"HOME": "/h", "OPENCLAW_HOME": "/o"}
    assert locate(profile="work", environ=environ, cwd="/").state_dir == "/o/.openclaw-work"


@pytest.mark.parametrize(
    ("variable", "warned"),
    [("/elsewhere", True), ("~/.openclaw", True), ("~/.openclaw-work/", False), (" ", False)],
)
def test_a_profile_beside_another_state_directory_warns(variable: str, warned: bool) -> None:
    environ = {"HOME": "/h", "OPENCLAW_STATE_DIR": variable}
    found = locate(profile="work", environ=environ, cwd="/")
    assert found.state_dir == "/h/.openclaw-work"
    assert len(found.warnings) == warned
    assert all("OPENCLAW_STATE_DIR" in warning for warning in found.warnings)


def test_a_profile_that_a_variable_outdoes_warns() -> None:
    environ = {"HOME": "/h", "OPENCLAW_STATE_DB": "/srv/a.sqlite"}
    found = locate(profile="work", environ=environ, cwd="/")
    assert found.path == "/srv/a.sqlite"
    assert found.warnings == ("OPENCLAW_STATE_DB is set and goes before --profile",)


# Warnings of a wrong or a second tree


@pytest.mark.parametrize("name", ["OPENCLAW_STATE_DIR", "OPENCLAW_HOME"])
def test_a_variable_that_leads_to_no_database_is_told(tmp_path: Path, name: str) -> None:
    found = locate(environ=environment(tmp_path, **{name: str(tmp_path / "typo")}), cwd="/")
    assert found.embedded
    assert [warning.split(",")[0] for warning in found.warnings] == [
        f"{name} leads to {tmp_path}/typo" + ("/.openclaw" if name == "OPENCLAW_HOME" else "")
    ]


def test_the_default_directory_may_lack_a_database_silently(tmp_path: Path) -> None:
    (tmp_path / ".openclaw").mkdir()
    found = locate(environ=environment(tmp_path), cwd="/")
    assert (found.embedded, found.warnings) == (True, ())


@pytest.mark.parametrize(
    ("trees", "variables", "chosen", "others"),
    [
        ((".openclaw", ".clawdbot"), {}, "default", [".clawdbot"]),
        ((".openclaw", "moved"), {"OPENCLAW_STATE_DIR": "moved"}, "OPENCLAW_STATE_DIR", [".openclaw"]),
        (
            (".openclaw", ".clawdbot", "moved"),
            {"OPENCLAW_STATE_DIR": "moved"},
            "OPENCLAW_STATE_DIR",
            [".openclaw", ".clawdbot"],
        ),
        (
            (".openclaw", "moved/.openclaw"),
            {"OPENCLAW_HOME": "moved"},
            "OPENCLAW_HOME",
            [".openclaw"],
        ),
        ((".openclaw",), {"OPENCLAW_STATE_DIR": ".openclaw"}, "OPENCLAW_STATE_DIR", []),
        ((".openclaw", ".openclaw-work"), {}, "default", []),
    ],
)
def test_a_second_tree_that_holds_a_database_is_told(
    tmp_path: Path, trees: tuple[str, ...], variables: dict[str, str], chosen: str, others: list[str]
) -> None:
    for tree in trees:
        holding(tmp_path / tree)
    found = locate(environ=environment(tmp_path, **variables), cwd=str(tmp_path))
    assert found.via == chosen
    named = [warning.split(": ")[1].split(" (")[0] for warning in found.warnings]
    assert named == [str(tmp_path / other) for other in others]


def test_a_tree_passed_over_for_want_of_a_database_tells_of_the_one_that_has_it(tmp_path: Path) -> None:
    (tmp_path / ".openclaw").mkdir()
    holding(tmp_path / ".clawdbot")
    found = locate(environ=environment(tmp_path), cwd="/")
    assert found.embedded
    assert [str(tmp_path / ".clawdbot") in warning for warning in found.warnings] == [True]


def test_one_tree_under_two_names_is_no_second_one(tmp_path: Path) -> None:
    holding(tmp_path / ".openclaw")
    (tmp_path / ".clawdbot").symlink_to(".openclaw")
    environ = environment(tmp_path, OPENCLAW_STATE_DIR=str(tmp_path / ".clawdbot"))
    assert locate(environ=environment(tmp_path), cwd="/").warnings == ()
    assert locate(environ=environ, cwd="/").warnings == ()


def test_an_explicit_choice_needs_no_warning(tmp_path: Path) -> None:
    holding(tmp_path / ".openclaw")
    holding(tmp_path / ".clawdbot")
    environ = environment(tmp_path)
    assert locate(db="/srv/copy.sqlite", environ=environ, cwd="/").warnings == ()
    assert locate(state_dir="/srv/oc", environ=environ, cwd="/").warnings == ()
