"""links list and show: what adopted sessions follow, told as the monitor would find it."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.sidecar import sidecar_path
from openclaw_state.upstream.transcripts import WINDOW
from tests.adopted import ADOPTED, AgentStore, Transcript, adopt, person
from tests.cli.conftest import StateDir
from tests.cli.harness import Cli, check_row
from tests.cli.linked import only, state, tables
from tests.fault.peers import PLACES, find
from tests.support import PARENT, change, needs_permissions, query

EVENTS = "SELECT kind, session_key, summary, dedupe_key, payload_json FROM session_state_events"
HOSTILE = "a\x1b[31mb\x9bd\re\nf\u202eh"


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
