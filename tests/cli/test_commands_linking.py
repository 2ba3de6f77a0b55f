"""Changing what sessions follow: from the end on, on explicit order, and never behind a gateway's back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.sidecar import Sidecar, sidecar_path
from openclaw_state.upstream.transcripts import WINDOW
from tests.adopted import ADOPTED, Transcript, adopt, adopt_blocked, person
from tests.cli.conftest import StateDir
from tests.cli.harness import Cli
from tests.cli.linked import only, state, tables
from tests.support import PARENT, change, query

LINKS = "SELECT session_key, last_marker_json, updated_at FROM session_upstream_links ORDER BY 1"
CHANGES = [("remove", ADOPTED, "-y"), ("skip", ADOPTED, "-y")]
EVENTS = "SELECT kind, session_key, summary, dedupe_key, payload_json FROM session_state_events"


def follow(
    cli: Cli, file: Path, *more: str, key: str = ADOPTED, catalog: str = "claude", **options: Any
) -> Any:
    argv = ("links", "add", key, "--catalog", catalog, "--thread", "thread-1", "--file", file, *more)
    return cli.json(*argv, **options)


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


# OpenClaw's own file


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
