"""links: what adopted sessions follow, told as the monitor would find it, and changed only on order."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.sidecar import Sidecar, sidecar_path
from openclaw_state.upstream import gate
from openclaw_state.upstream.transcripts import WINDOW
from tests.adopted import ADOPTED, AgentStore, Transcript, adopt, adopt_blocked, person
from tests.cli.conftest import StateDir
from tests.cli.harness import Cli, check_row
from tests.fault.peers import PLACES, find
from tests.support import PARENT, change, needs_permissions, query

LINKS = "SELECT session_key, last_marker_json, updated_at FROM session_upstream_links ORDER BY 1"
EVENTS = "SELECT kind, session_key, summary, dedupe_key, payload_json FROM session_state_events"
TABLES = ("session_upstream_links", "session_state_events", "session_state_heads", "session_watch_cursors")
HOSTILE = "a\x1b[31mb\x9bd\re\nf\u202eh"


@pytest.fixture
def transcript(tmp_path: Path, log: SignalLog) -> Transcript:
    """The transcript of a watched session, adopted as it stands."""
    found = Transcript(tmp_path / "claude" / "thread-1.jsonl")
    adopt(log, found.path)
    return found


def only(cli: Cli, **options: Any) -> Any:
    """The one row of `links list`."""
    (row,) = cli.json("links", "list", **options)["links"]
    return row


def state(cli: Cli, **options: Any) -> tuple[str, bool | None]:
    row = only(cli, **options)
    return row["health"], row["healthy"]


def tables(path: Path) -> list[Any]:
    return [query(path, f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES]


def follow(
    cli: Cli, file: Path, *more: str, key: str = ADOPTED, catalog: str = "claude", **options: Any
) -> Any:
    argv = ("links", "add", key, "--catalog", catalog, "--thread", "thread-1", "--file", file, *more)
    return cli.json(*argv, **options)


# Looking


def test_a_quiet_link_that_was_never_scanned_is_well(cli: Cli, transcript: Transcript) -> None:
    row = only(cli)
    assert (row["health"], row["healthy"], row["reason"], row["lastScannedAt"]) == ("quiet", True, "", None)
    assert (row["offset"], row["size"], row["misses"]) == (transcript.size, transcript.size, 0)
    assert row["source"] == str(transcript.path)
    done = cli("links", "list")
    assert done.out.splitlines()[0].split() == [
        "SESSION", "CATALOG", "SOURCE", "MARKER", "SIZE", "SCANNED", "MISSES", "HEALTH",
    ]  # fmt: skip
    size = str(transcript.size)
    assert done.out.splitlines()[1].split() == [
        ADOPTED, "claude", str(transcript.path), size, size, "-", "-", "quiet",
    ]  # fmt: skip
    assert done.err == "1 link\n"


def test_without_links_there_is_an_empty_answer(cli: Cli, log: SignalLog) -> None:
    assert cli.json("links", "list")["links"] == []
    assert (cli("links", "list").out, cli("links", "list").err) == ("", "0 links\n")


def test_what_the_next_tick_would_record_is_told_and_nothing_written(
    cli: Cli, transcript: Transcript
) -> None:
    transcript.add(person("do the report"), {"type": "assistant"}, person("and the summary"))
    before = tables(cli.path)
    row = only(cli)
    assert (row["health"], row["healthy"], row["humanTurns"]) == ("behind", True, 2)
    assert row["offset"] < row["size"] == transcript.size
    assert "behind: 2 human turns" in cli("links", "list").out
    assert tables(cli.path) == before
    assert not os.path.exists(sidecar_path())
    cli("monitor")
    assert state(cli) == ("quiet", True)
    assert only(cli)["lastScannedAt"] == cli.now


def test_a_row_that_is_being_written_is_counted_once_and_complete(cli: Cli, transcript: Transcript) -> None:
    """A28: the marker waits before it, in bytes."""
    row = json.dumps(person("größer, bitte ✓"), ensure_ascii=False).encode() + b"\n"
    before = transcript.size
    transcript.write(row[:40])
    cli("monitor")
    assert state(cli) == ("waiting", True)
    assert only(cli)["offset"] == before
    transcript.write(row[40:])
    assert only(cli)["humanTurns"] == 1
    cli("monitor")
    assert (state(cli), only(cli)["offset"]) == (("quiet", True), before + len(row))
    assert [kind for kind, *_ in query(cli.path, EVENTS)] == ["human_direct_message"]


def test_gone_is_missing_with_the_streak_that_the_monitor_keeps(cli: Cli, transcript: Transcript) -> None:
    """A29: 1/3, 2/3, and at the third the link is gone; looking counts nothing."""
    transcript.path.unlink()
    for misses in (0, 1, 2):
        assert (state(cli), only(cli)["misses"]) == (("missing", False), misses)
        assert f"{misses} of 3" in cli("links", "list").out
        cli("monitor")
        cli.now += 60_000
    row = only(cli)
    assert (row["health"], row["catalogId"], row["reason"]) == ("unlinked", "claude", "its source was gone")


def test_a_directory_in_place_of_the_file_is_missing(cli: Cli, transcript: Transcript) -> None:
    """A29"""
    transcript.path.unlink()
    transcript.path.mkdir()
    assert state(cli) == ("missing", False)
    assert only(cli)["size"] is None


def _below_a_file(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_text("", "utf-8")


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def _closed(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more\n")
    path.chmod(0)


@pytest.mark.parametrize("spoil", [_below_a_file, _loop, pytest.param(_closed, marks=needs_permissions)])
def test_what_cannot_be_read_is_never_missing(cli: Cli, transcript: Transcript, spoil: Any) -> None:
    """A29: inconclusive, with the system's reason."""
    spoil(transcript.path)
    for _ in range(4):
        assert state(cli) == ("unreadable", None)
        cli("monitor", status=69)
        cli.now += 60_000
    assert only(cli)["misses"] == 0
    assert only(cli)["reason"]


def test_a_row_longer_than_the_window_blocks_and_says_where(cli: Cli, transcript: Transcript) -> None:
    start = transcript.size
    transcript.write(b"x" * (WINDOW + 1) + b"\n")
    row = only(cli)
    assert (row["health"], row["healthy"], row["offset"]) == ("blocked", False, start)
    assert f"at offset {start}" in row["reason"]
    assert cli.json("links", "show", ADOPTED)["next"] == f"openclaw-state links skip {ADOPTED} passes the row"


def test_a_file_that_ends_before_the_marker_has_shrunk(cli: Cli, transcript: Transcript) -> None:
    offset = transcript.size
    transcript.path.write_bytes(b"{}\n")
    row = only(cli)
    assert (row["health"], row["healthy"], row["offset"], row["size"]) == ("shrunk", False, offset, 3)


def test_who_is_not_looked_at_is_told_with_the_reason(
    cli: Cli, log: SignalLog, transcript: Transcript
) -> None:
    adopt(log, transcript.path, "agent:main:nobody", watcher=None)
    adopt(log, transcript.path, "agent:main:codex", catalog_id="codex", upstream_kind="codex-app-server")
    node = {"host_id": "node:n1", "upstream_ref": {"nodeId": "n1", "threadId": "t"}, "marker": {"uuid": None}}
    adopt(log, transcript.path, "agent:main:node", **node)
    adopt(log, transcript.path, "agent:main:other", catalog_id="emacs")
    log.watch(PARENT, "shared", agent_id="main")
    for agent in ("main", "work"):
        adopt(log, transcript.path, "shared", watcher=None, agent_id=agent)
    found = {row["sessionKey"]: row for row in cli.json("links", "list")["links"]}
    assert {key: row["health"] for key, row in found.items()} == {
        ADOPTED: "quiet",
        "agent:main:nobody": "unwatched",
        "agent:main:codex": "elsewhere",
        "agent:main:node": "elsewhere",
        "agent:main:other": "skipped",
        "shared": "ambiguous",
    }
    assert found["agent:main:other"]["reason"] == "nothing here knows this catalog"
    assert (found["agent:main:node"]["offset"], found["agent:main:node"]["marker"]) == (None, {"uuid": None})
    assert found["agent:main:nobody"]["offset"] == transcript.size
    assert found["shared"]["healthy"] is False
    words = "7 links, 2 not checkable here, 1 skipped, 2 ambiguous, 1 no watcher\n"
    assert cli("links", "list").err == words


@pytest.mark.parametrize(
    ("column", "text", "reason"),
    [
        ("last_marker_json", "'{\"offset\":'", "the marker holds no offset"),
        ("last_marker_json", "'{\"offset\":-1}'", "the marker holds no offset"),
        ("last_marker_json", "'[1e999]'", "the marker holds no offset"),
        ("last_marker_json", f"'{'[' * 3000}{']' * 3000}'", "the marker holds no offset"),
        ("last_marker_json", "NULL", "the marker holds no offset"),
        ("upstream_ref_json", "'{\"filePath\":1}'", "the link names no transcript file"),
        ("upstream_ref_json", "'{'", "the link names no transcript file"),
        ("upstream_ref_json", "NULL", "the link names no transcript file"),
        ("upstream_kind", "'claude-jsonl'", "the link is of kind claude-jsonl, not claude-cli"),
    ],
)
def test_a_broken_link_is_unusable_and_hides_no_other(
    cli: Cli, log: SignalLog, transcript: Transcript, column: str, text: str, reason: str
) -> None:
    adopt(log, transcript.path, "agent:main:broken")
    change(cli.path, f"UPDATE session_upstream_links SET {column} = {text} WHERE session_key LIKE '%broken'")
    whole, broken = cli.json("links", "list")["links"]
    assert (whole["health"], broken["health"], broken["reason"]) == ("quiet", "unusable", reason)
    assert cli.json("links", "show", "agent:main:broken")["healthy"] is False
    assert cli("links", "list").status == 0


def test_adopted_sessions_without_a_link_are_listed(cli: Cli, log: SignalLog, transcript: Transcript) -> None:
    digest = sha256(b"t").hexdigest()
    pi = f"agent:main:plugin:acpx:catalog-adopt:pi:{digest}"
    log.adopted("agent:main:lost", catalog_id="claude", host_id="gateway:local")
    log.adopted("agent:main:paired", catalog_id="pi", host_id="node:n1")
    log.adopted(ADOPTED, catalog_id="claude", host_id="gateway:local")
    log.watch(PARENT, pi)
    log.watch(PARENT, "agent:main:plugin:acpx:catalog-adopt:pi:short")
    document = cli.json("links", "list")
    rows = [(row["sessionKey"], row["catalogId"], row["health"], row["reason"]) for row in document["links"]]
    advice = "continue it once from the catalog"
    assert rows == [
        (ADOPTED, "claude", "quiet", ""),
        ("agent:main:lost", "claude", "unlinked", advice),
        ("agent:main:paired", "pi", "unlinked", "a gateway makes none for node:n1"),
        (pi, "pi", "unlinked", advice),
    ]
    assert document["faulty"] == 3
    assert cli("links", "list").err == "1 link, 3 adopted sessions without one\n"
    shown = cli.json("links", "show", pi)
    assert (shown["agentId"], shown["watchers"], shown["next"]) == ("main", [PARENT], advice)


def test_show_has_all_that_is_stored(cli: Cli, log: SignalLog, transcript: Transcript) -> None:
    log.watch("agent:work:main", ADOPTED)
    shown = cli.json("links", "show", ADOPTED)
    assert shown["upstreamRef"] == {"filePath": str(transcript.path)}
    assert (shown["createdAt"], shown["updatedAt"], shown["next"]) == (cli.now, cli.now, None)
    assert len(shown["sourceKey"]) == 16
    assert shown["watchers"] == [PARENT, "agent:work:main"]
    text = cli("links", "show", ADOPTED).out
    assert text.startswith(f"{ADOPTED}   quiet\n")
    for word in (shown["sourceKey"], str(transcript.path), "thread-1", "0 of 3", "agent:work:main"):
        assert word in text


def test_show_needs_a_link_and_one_alone(cli: Cli, log: SignalLog, transcript: Transcript) -> None:
    assert "has no upstream link" in cli("links", "show", PARENT, status=4).err
    assert "did you mean" in cli("links", "show", ADOPTED + "x", status=4).err
    for agent in ("main", "work"):
        adopt(log, transcript.path, "shared", watcher=None, agent_id=agent)
    assert cli("links", "show", "shared", "--json", status=2).error["agents"] == ["main", "work"]
    assert cli.json("links", "show", "shared", "--agent", "work")["agentId"] == "work"


def test_row_formats_hold_the_same_rows(cli: Cli, transcript: Transcript) -> None:
    document = cli.json("links", "list")["links"]
    rows = cli("links", "list", "--format", "jsonl").rows
    assert rows == document
    for row in rows:
        check_row("links list", row)
    assert cli("links", "list", "--fields", "sessionKey,health").cells[1] == [ADOPTED, "quiet"]


def test_hostile_text_never_reaches_a_terminal_raw(cli: Cli, log: SignalLog, tmp_path: Path) -> None:
    """A30"""
    ref = {"filePath": str(tmp_path / HOSTILE)}
    adopt(log, tmp_path / "none", thread_id=HOSTILE, upstream_ref=ref, marker={HOSTILE: HOSTILE})
    change(cli.path, "UPDATE session_watch_cursors SET target_session_key = 'agent:main:\x1b[2J'")
    change(cli.path, "UPDATE session_upstream_links SET session_key = 'agent:main:\x1b[2J'")
    for argv in (["list"], ["show", "agent:main:\x1b[2J"], ["remove", "agent:main:\x1b[2J", "--dry-run"]):
        done = cli("links", *argv)
        assert (done.out + done.err).replace("\n", "").isprintable()
    assert only(cli)["threadId"] == HOSTILE


def test_streaks_that_cannot_be_read_are_unknown(cli: Cli, transcript: Transcript) -> None:
    Path(sidecar_path()).parent.mkdir(parents=True)
    Path(sidecar_path()).write_bytes(b"no database" * 100)
    document = cli.json("links", "list")
    assert document["links"][0]["misses"] is None
    assert "is not known" in document["warnings"][0]


# OpenClaw's own file


@pytest.fixture
def gateway(state_dir: StateDir, home: Path, monkeypatch: pytest.MonkeyPatch) -> StateDir:
    """A state directory whose gate is open."""
    monkeypatch.setattr(gate, "account_home", lambda: str(home))
    (home / ".openclaw").symlink_to(state_dir.root)
    return state_dir


def test_an_agent_store_that_is_damaged_holds_up_its_own_links_alone(
    cli: Cli, gateway: StateDir, tmp_path: Path
) -> None:
    good, bad = Transcript(tmp_path / "good.jsonl"), Transcript(tmp_path / "bad.jsonl")
    AgentStore(gateway.root, "main").add_session("agent:main:good", "sid-1")
    store = AgentStore(gateway.root, "work").path
    with SignalLog(gateway.path, change=True) as log:
        for key, transcript in (("agent:main:good", good), ("agent:work:bad", bad)):
            adopt(log, transcript.path, key)
            transcript.add(person("hello"))
    store.write_bytes(b"damaged " * 512)
    rows = cli.json("links", "list", path=gateway.path)["links"]
    assert [row["health"] for row in rows] == ["behind", "skipped"]
    assert "is not an SQLite database" in rows[1]["reason"]
    assert rows[1]["healthy"] is None


def test_own_texts_of_an_agent_are_no_persons(cli: Cli, gateway: StateDir, tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "good.jsonl")
    store = AgentStore(gateway.root)
    store.add_session(ADOPTED)
    with SignalLog(gateway.path, change=True) as log:
        adopt(log, transcript.path)
    store.send("do  the report")
    transcript.add(person("do the report"), person("now"))
    assert only(cli, path=gateway.path)["humanTurns"] == 1


def test_an_isolated_state_does_not_look_at_the_accounts_files(
    cli: Cli, state_dir: StateDir, tmp_path: Path
) -> None:
    transcript = Transcript(tmp_path / "t.jsonl")
    with SignalLog(state_dir.path, change=True) as log:
        adopt(log, transcript.path)
    row = only(cli, path=state_dir.path)
    assert (row["health"], row["healthy"], row["reason"]) == ("isolated", None, "isolated state")
    assert (row["offset"], row["size"]) == (None, None)
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    assert state(cli, path=state_dir.path, env=env) == ("quiet", True)


def test_a_copy_away_from_its_stores_does_not_know_its_sessions(
    cli: Cli, gateway: StateDir, tmp_path: Path
) -> None:
    transcript = Transcript(tmp_path / "t.jsonl")
    with SignalLog(gateway.path, change=True) as log:
        adopt(log, transcript.path)
    transcript.add(person("hello"))
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(gateway.path.read_bytes())
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    row = only(cli, path=copy, env=env)
    assert (row["health"], row["healthy"]) == ("skipped", None)
    assert "no store of the agent main beside this file" in row["reason"]


CHANGES = [("remove", ADOPTED, "-y"), ("skip", ADOPTED, "-y")]


@pytest.mark.parametrize("argv", [*CHANGES, ("add", ADOPTED)], ids=lambda argv: argv[0])
def test_openclaws_links_are_changed_only_anyway(
    cli: Cli, gateway: StateDir, tmp_path: Path, argv: tuple[str, ...]
) -> None:
    path = tmp_path / "t.jsonl"
    transcript = Transcript(path)
    with SignalLog(gateway.path, change=True) as log:
        adopt(log, path)
    transcript.write(b"x" * (WINDOW + 1) + b"\n")
    gateway.start_gateway()
    more = ("--catalog", "claude", "--thread", "thread-2", "--file", str(path)) if argv[0] == "add" else ()
    before = tables(gateway.path)
    refused = cli("links", *argv, *more, "--json", status=9, path=gateway.path)
    assert f"running as pid {os.getpid()}" in refused.error["message"]
    assert refused.error["hint"].startswith("--anyway does it all the same: ")
    assert tables(gateway.path) == before
    cli("links", *argv, *more, "--anyway", path=gateway.path)
    assert tables(gateway.path)[0] != before[0]


@pytest.mark.parametrize("place", PLACES)
def test_databases_of_openclaw_are_read_without_a_trace(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = find(place, tmp_path, request)
    stored = query(found.path, "SELECT session_key, last_marker_json FROM session_upstream_links ORDER BY 1")
    rows = [row for row in found.json("links", "list")["links"] if row["health"] != "unlinked"]
    assert [(row["sessionKey"], json.dumps(row["marker"]).replace(" ", "")) for row in rows] == stored
    for row in rows:
        shown = found.json("links", "show", row["sessionKey"], "--agent", row["agentId"])
        assert {name: shown[name] for name in row} == row
    found.look("links", "list")


# Changing


def test_adding_begins_at_the_end_and_records_the_adoption(cli: Cli, tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "t.jsonl")
    done = follow(cli, transcript.path)
    assert (done["marker"], done["created"], done["sequence"]) == ({"offset": transcript.size}, True, 1)
    assert (done["hostId"], done["upstreamKind"]) == ("gateway:local", "claude-cli")
    assert query(cli.path, EVENTS) == [
        (
            "adopted",
            ADOPTED,
            "adopted from claude",
            f"adopted:{ADOPTED}",
            '{"catalogId":"claude","hostId":"gateway:local"}',
        )
    ]
    assert "nobody watches" in done["warnings"][0]
    assert cli.json("links", "list")["links"][0]["health"] == "unwatched"
    cli("cursors", "add", PARENT, ADOPTED)
    transcript.add(person("hello"))
    assert only(cli)["humanTurns"] == 1


def test_the_same_source_keeps_its_marker_and_another_begins_anew(cli: Cli, tmp_path: Path) -> None:
    transcript, other = Transcript(tmp_path / "t.jsonl"), Transcript(tmp_path / "o.jsonl")
    first = follow(cli, transcript.path)["marker"]
    transcript.add(person("hello"))
    again = follow(cli, transcript.path)
    assert (again["marker"], again["created"], again["rebased"], again["sequence"]) == (
        first,
        False,
        False,
        None,
    )
    moved = follow(cli, other.path)
    assert (moved["marker"], moved["rebased"]) == ({"offset": other.size}, True)
    assert len(query(cli.path, EVENTS)) == 1


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
def test_a_plan_to_add_is_what_is_done(cli: Cli, log: SignalLog, tmp_path: Path, known: bool) -> None:
    transcript = Transcript(tmp_path / "t.jsonl")
    log.watch(PARENT, ADOPTED)
    if known:
        follow(cli, transcript.path)
        transcript.add(person("hello"))
    before = tables(cli.path)
    planned = follow(cli, transcript.path, "--dry-run")
    assert tables(cli.path) == before
    done = follow(cli, transcript.path)
    assert (planned.pop("dryRun"), done.pop("dryRun"), planned.pop("sequence")) == (True, False, None)
    done.pop("sequence")
    assert planned == done


def test_adding_ends_a_streak(cli: Cli, transcript: Transcript) -> None:
    aside = transcript.path.rename(transcript.path.with_name("aside"))
    cli("monitor")
    assert only(cli)["misses"] == 1
    aside.rename(transcript.path)
    follow(cli, transcript.path)
    transcript.path.unlink()
    assert only(cli)["misses"] == 0
    assert dict(Sidecar().streaks(str(cli.path))) == {}


def test_pi_and_references_as_openclaw_stores_them(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"type":"session","version":3}\n', "utf-8")
    done = follow(cli, path, catalog="pi")
    assert (done["hostId"], done["upstreamKind"], done["marker"]) == ("gateway", "pi-cli", {"offset": 31})
    argv = ("links", "add", ADOPTED, "--catalog", "claude", "--thread", "t", "--ref")
    done = cli.json(*argv, json.dumps({"filePath": str(path)}))
    assert done["upstreamRef"] == {"filePath": str(path)}


@pytest.fixture
def opencode(tmp_path: Path) -> dict[str, str]:
    """An environment whose `opencode` has one session of two messages, the second a person's."""
    export = {
        "messages": [
            {"info": {"id": "msg_1", "role": "assistant", "time": {"created": 1}}, "parts": []},
            {
                "info": {"id": "msg_2", "role": "user", "time": {"created": 2}},
                "parts": [{"type": "text", "text": "hello"}],
            },
        ]
    }
    program = tmp_path / "bin" / "opencode"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncase "$2 $3" in\n*ses_b*) echo \'[]\';;\ndb*) echo \'[{{"id":"ses_a","seq":7}}]\';;\n'
        f"export*) echo '{json.dumps(export)}';;\nesac\n"
    )
    program.chmod(0o755)
    return {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}


def test_opencode_is_asked_where_its_session_ends(cli: Cli, opencode: dict[str, str]) -> None:
    argv = ("links", "add", ADOPTED, "--catalog", "opencode", "--thread")
    done = cli.json(*argv, "ses_a", env=opencode)
    assert (done["marker"], done["hostId"]) == ({"seq": 7, "lastHumanMessageId": "msg_2"}, "gateway")
    assert done["upstreamRef"] == {"threadId": "ses_a"}
    cli("cursors", "add", PARENT, ADOPTED)
    assert state(cli, env=opencode) == ("quiet", True)
    assert cli("links", "add", PARENT, *argv[3:], "ses_b", status=4, env=opencode).err
    none = {"PATH": "/nowhere"}
    assert "was not found" in cli(*argv, "ses_a", status=69, env=none).err
    assert state(cli, env=none) == ("unreadable", None)


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (("--catalog", "emacs"), 2, "there is no catalog 'emacs'"),
        (("--catalog", "codex"), 9, "only a gateway can follow codex"),
        (("--catalog", "claude", "--host", "node:n1"), 9, "only a gateway can follow claude on node:n1"),
        (("--catalog", "claude"), 2, "names no transcript file"),
        (("--catalog", "claude", "--file", "nowhere"), 2, "there is no transcript at"),
        (("--catalog", "claude", "--file", "/"), 2, "there is no transcript at"),
        (("--catalog", "claude", "--ref", "{"), 2, "--ref is no JSON object"),
        (("--catalog", "claude", "--ref", "[1]"), 2, "--ref is no JSON object"),
        (("--catalog", "claude", "--ref", "{}", "--file", "x"), 2, "leave one out"),
        (("--catalog", "claude", "--ref", '{"filePath":"a\\u0000b"}'), 2, "there is no transcript at"),
        (("--catalog", "pi", "--host", "elsewhere", "--file", __file__), 2, "not pi-cli on gateway"),
        (("--catalog", "opencode", "--ref", '{"threadId":"other"}'), 69, "names no session of OpenCode"),
        ((), 2, "catalog"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_followed_is_refused_and_stored_nowhere(
    cli: Cli, log: SignalLog, argv: tuple[str, ...], status: int, words: str
) -> None:
    done = cli("links", "add", ADOPTED, "--thread", "t", *argv, status=status)
    assert words in done.err
    assert tables(cli.path) == [[], [], [], []]


def test_a_key_needs_an_agent(cli: Cli, tmp_path: Path) -> None:
    path = Transcript(tmp_path / "t.jsonl").path
    follow(cli, path, key="bare", status=2)
    assert follow(cli, path, "--agent", "main", key="bare")["agentId"] == "main"
    follow(cli, path, key="agent:main:\x1b", status=2)


@pytest.mark.parametrize("argv", CHANGES, ids=lambda argv: argv[0])
def test_removing_and_skipping_ask(cli: Cli, log: SignalLog, tmp_path: Path, argv: tuple[str, ...]) -> None:
    adopt_blocked(log, tmp_path / "s.jsonl", ADOPTED)
    before = tables(cli.path)
    assert "add -y" in cli("links", *argv[:2], status=9).err
    assert "the answer was no" in cli("links", *argv[:2], status=9, answer="n\n").err
    cli("links", *argv[:2], "--dry-run")
    assert tables(cli.path) == before
    assert "[y/N]" in cli("links", *argv[:2], answer="y\n").err
    assert tables(cli.path) != before


def test_removing_leaves_the_log_and_the_watches(cli: Cli, transcript: Transcript) -> None:
    before = tables(cli.path)
    planned = cli.json("links", "remove", ADOPTED, "--dry-run")
    done = cli.json("links", "remove", ADOPTED, "-y")
    assert (planned.pop("dryRun"), done.pop("dryRun")) == (True, False)
    assert planned == done
    assert tables(cli.path) == [[], *before[1:]]
    assert "has no upstream link" in cli("links", "remove", ADOPTED, "-y", status=4).err
    cli("links", "remove", "agent:main:nothing", "-y", status=4)


def test_a_link_that_changed_meanwhile_is_left_alone(
    cli: Cli, log: SignalLog, transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = SignalLog.links

    def changed(self: SignalLog) -> Any:
        found = look(self)
        change(cli.path, "UPDATE session_upstream_links SET updated_at = updated_at + 1")
        return found

    monkeypatch.setattr(SignalLog, "links", changed)
    assert "changed meanwhile" in cli("links", "remove", ADOPTED, "-y", status=75).err
    assert len(query(cli.path, LINKS)) == 1


def test_skipping_passes_exactly_the_row_that_blocks(cli: Cli, transcript: Transcript) -> None:
    start = transcript.size
    transcript.write(b"x" * (3 * WINDOW) + b"\n")
    transcript.add(person("behind it"))
    planned = cli.json("links", "skip", ADOPTED, "--dry-run")
    done = cli.json("links", "skip", ADOPTED, "-y")
    assert (planned.pop("dryRun"), done.pop("dryRun")) == (True, False)
    assert planned == done
    assert (done["offset"], done["length"]) == (start, 3 * WINDOW + 1)
    assert done["marker"] == {"offset": start + 3 * WINDOW + 1}
    assert (only(cli)["health"], only(cli)["humanTurns"]) == ("behind", 1)
    assert query(cli.path, EVENTS) == []


def test_what_is_not_blocked_is_not_skipped(cli: Cli, log: SignalLog, transcript: Transcript) -> None:
    assert "is not blocked: quiet" in cli("links", "skip", ADOPTED, "-y", status=9).err
    transcript.add(person("hello"))
    assert "rows that the monitor can read" in cli("links", "skip", ADOPTED, "-y", status=9).err
    cli("monitor")
    transcript.write(b"x" * (WINDOW + 5))
    refused = cli("links", "skip", ADOPTED, "-y", status=9).err
    assert f"has no end yet ({WINDOW + 5} bytes so far)" in refused
    transcript.path.unlink()
    assert "is not blocked: the source is gone" in cli("links", "skip", ADOPTED, "-y", status=9).err
    adopt(log, transcript.path, "agent:main:codex", catalog_id="codex", upstream_kind="codex-app-server")
    assert "no transcript" in cli("links", "skip", "agent:main:codex", "-y", status=9).err
    adopt(log, transcript.path, "agent:main:broken", marker={"offset": -1})
    assert "the marker holds no offset" in cli("links", "skip", "agent:main:broken", "-y", status=9).err


# Own texts


def test_own_texts_are_no_persons_and_only_hashes_are_kept(cli: Cli, transcript: Transcript) -> None:
    secret = "write  the\n report"
    done = cli("links", "own-text", ADOPTED, "--json", answer=secret).document
    assert (done["kept"], done["most"], done["agentId"]) == (1, 10, "main")
    transcript.add(person("write the report"), person("something else"))
    assert only(cli)["humanTurns"] == 1
    link = cli.json("monitor")["links"][0]
    assert (link["humanTurns"], link["ownEchoes"]) == (1, [{"position": 1, "of": 1}])
    files = Path(sidecar_path()).parent.iterdir()
    assert not any(b"report" in file.read_bytes() for file in files)
    assert b"write" not in cli.path.read_bytes()


def test_the_ten_newest_own_texts_of_each_session_count(
    cli: Cli, log: SignalLog, transcript: Transcript
) -> None:
    for number in range(12):
        cli("links", "own-text", ADOPTED, "--text", f"text {number}")
    adopt(log, transcript.path, "agent:main:other")
    assert cli.json("links", "own-text", "agent:main:other", "--text", "text 0")["kept"] == 1
    transcript.add(*(person(f"text {number}") for number in range(12)))
    found = {row["sessionKey"]: row["humanTurns"] for row in cli.json("links", "list")["links"]}
    assert found == {ADOPTED: 2, "agent:main:other": 11}


def test_rows_explain_an_echo_by_its_hash(cli: Cli, transcript: Transcript) -> None:
    cli("links", "own-text", ADOPTED, "--text", "hello")
    transcript.add(person("hello"))
    (link,) = cli.json("monitor", "--explain")["links"]
    assert [row["reason"] for row in link["rows"]] == ["own echo, message 1 of 1"]


def test_own_texts_need_words_a_session_and_the_tools_own_file(
    cli: Cli, transcript: Transcript, state_dir: StateDir
) -> None:
    assert "the text is blank" in cli("links", "own-text", ADOPTED, status=2, answer=" \n").err
    cli("links", "own-text", ADOPTED, "--text", "", status=2)
    cli("links", "own-text", "agent:main:nothing", "--text", "x", status=4)
    with SignalLog(state_dir.path, change=True) as log:
        adopt(log, transcript.path)
    refused = cli("links", "own-text", ADOPTED, "--text", "x", status=9, path=state_dir.path)
    assert "the agents' own databases" in refused.err
    assert not os.path.exists(sidecar_path())
