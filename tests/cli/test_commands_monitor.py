"""monitor: what people wrote in adopted sessions is recorded once, and what cannot be told is said."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from openclaw_state.upstream import gate
from tests.adopted import ADOPTED, Transcript, adopt, line, person
from tests.cli.harness import Cli, check_row
from tests.support import PARENT, Clock, change, needs_permissions, query, triples

MARKER = "SELECT last_marker_json, updated_at FROM session_upstream_links"
EVENTS = "SELECT kind, summary, payload_json FROM session_state_events ORDER BY sequence"
HUMAN = ("human_direct_message", "human message via claude", None)
TABLES = ("session_upstream_links", "session_state_events", "session_state_heads", "session_watch_cursors")


@pytest.fixture
def transcript(tmp_path: Path, log: SignalLog) -> Transcript:
    """The transcript of a watched session, adopted as it stands."""
    found = Transcript(tmp_path / "claude" / "thread-1.jsonl")
    adopt(log, found.path)
    return found


def tables(path: Path) -> list[Any]:
    return [query(path, f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES]


def only(document: Any) -> Any:
    """The one link of a document."""
    (link,) = document["links"]
    return link


def test_what_a_person_wrote_becomes_one_event_and_one_notice(cli: Cli, transcript: Transcript) -> None:
    transcript.add(person("do the report"), {"type": "assistant"}, person("and the summary"))
    found = cli("monitor").out.splitlines()
    assert found[0] == f"recorded            {ADOPTED}  claude  2 human turns, event 1"
    assert found[1].startswith(f'Session "{ADOPTED}" changed (other actor).')
    assert found[-1] == "1 link: 1 probed, 2 human turns"
    assert query(cli.path, EVENTS) == [(*HUMAN[:2], '{"turns":2}')]
    assert triples(cli.path) == {(PARENT, ADOPTED): (0, 1, 1)}
    assert cli("monitor").out == "1 link: 1 probed, 0 human turns\n"
    assert len(query(cli.path, EVENTS)) == 1


def test_the_document_names_link_marker_and_event(cli: Cli, transcript: Transcript) -> None:
    before = transcript.size
    transcript.add(person("do the report"))
    document = cli.json("monitor")
    link = only(document)
    assert (link["verdict"], link["humanTurns"]) == ("recorded", 1)
    assert (link["marker"], link["nextMarker"]) == ({"offset": before}, {"offset": transcript.size})
    assert link["event"]["sequence"] == 1
    assert [notice["watcher"] for notice in document["notices"]] == [PARENT]
    assert document["summary"]["recorded"] == document["summary"]["humanTurns"] == 1


@pytest.mark.parametrize("options", [(), ("--catch-up",), ("--strict",)])
def test_a_plan_says_what_the_run_then_does_and_writes_nothing(
    cli: Cli, log: SignalLog, transcript: Transcript, tmp_path: Path, options: tuple[str, ...]
) -> None:
    transcript.add(person("do the report"))
    adopt(log, tmp_path / "gone.jsonl", "agent:main:gone")
    adopt(log, transcript.path, "agent:main:nobody", watcher=None)
    before = tables(cli.path)
    planned = cli.json("monitor", "--dry-run", *options)
    assert tables(cli.path) == before
    assert not (Path(os.environ["HOME"]) / ".local" / "state").exists()
    done = cli.json("monitor", *options)
    assert (planned.pop("dryRun"), done.pop("dryRun")) == (True, False)
    assert [link.pop("event") for link in planned["links"]] == [None] * 3
    assert [bool(link.pop("event")) for link in done["links"]] == [True, False, False]
    assert (planned.pop("notices"), len(done.pop("notices"))) == ([], 1)
    assert planned == done


def test_a_run_without_news_neither_writes_nor_waits_for_a_writer(cli: Cli, transcript: Transcript) -> None:
    before = tables(cli.path)
    assert cli("monitor", "--exit-code", "-q").out == ""
    assert tables(cli.path) == before


def test_exit_code_tells_whether_something_was_recorded(cli: Cli, transcript: Transcript) -> None:
    transcript.add(person("do the report"))
    assert cli("monitor", "--exit-code", status=1).out
    cli("monitor", "--exit-code")


def test_keys_restrict_it_and_leave_the_others_alone(
    cli: Cli, log: SignalLog, transcript: Transcript, tmp_path: Path
) -> None:
    other = Transcript(tmp_path / "claude" / "thread-2.jsonl")
    adopt(log, other.path, "agent:main:other")
    adopt(log, tmp_path / "gone.jsonl", "agent:main:gone")
    cli("monitor")
    transcript.add(person("one"))
    other.add(person("two"))
    cli.now += 60_000
    assert only(cli.json("monitor", "agent:main:other"))["verdict"] == "recorded"
    assert len(query(cli.path, EVENTS)) == 1
    found = cli.json("monitor", "agent:main:gone")
    assert (only(found)["verdict"], only(found)["misses"]) == ("missing", 2)
    assert "no upstream link" in cli("monitor", PARENT, status=4).err


def test_each_turn_is_counted_once_with_its_reason(cli: Cli, transcript: Transcript) -> None:
    """Claude Code writes summaries, caveats and results of tools as rows of the user, too."""
    transcript.add(
        person("This session is being continued", isCompactSummary=True),
        person("Caveat: the messages below", isMeta=True),
        person("the agent's own", isSidechain=True),
        {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": "ok"}]}},
        person("[Inter-session message] hello"),
        {"type": "user", "message": {"role": "user", "content": [{"type": "image"}]}},
        {"type": "summary"},
        person("the one real prompt"),
    )
    transcript.write(b"garbage\n\n")
    link = only(cli.json("monitor", "--explain"))
    assert link["humanTurns"] == 1
    assert [row["reason"] for row in link["rows"]] == [
        "isCompactSummary",
        "isMeta",
        "isSidechain",
        "tool result",
        "written by OpenClaw",
        "no text",
        "type summary",
        "human turn",
        "not JSON",
    ]
    assert [row["human"] for row in link["rows"]].count(True) == 1
    data = transcript.path.read_bytes()
    starts = [row["offset"] for row in link["rows"]]
    assert all(data[start - 1 : start] == b"\n" for start in starts)


@pytest.mark.parametrize(
    "text",
    ["<command-name>/clear</command-name>", "<local-command-stdout>done</local-command-stdout>", ""],
)
def test_what_openclaw_takes_for_a_person_counts_here_too(
    cli: Cli, transcript: Transcript, text: str
) -> None:
    transcript.add(person(text))
    assert only(cli.json("monitor", "--explain"))["humanTurns"] == 1


def test_a_row_that_is_still_written_is_counted_once_when_it_is_whole(
    cli: Cli, transcript: Transcript
) -> None:
    whole = line(person("naïve 😀 prompt"))
    for cut in (whole[:10], whole[10:40]):
        before = query(cli.path, MARKER)
        transcript.write(cut)
        assert only(cli.json("monitor"))["verdict"] == "waiting"
        assert query(cli.path, MARKER) == before
    transcript.write(whole[40:])
    link = only(cli.json("monitor"))
    assert (link["humanTurns"], link["nextMarker"]) == (1, {"offset": transcript.size})
    assert len(cli.json("tail")["events"]) == 1


def test_rows_before_a_half_written_one_are_not_held_up_by_it(cli: Cli, transcript: Transcript) -> None:
    transcript.add(person("first"))
    at = transcript.size
    whole = line(person("second"))
    transcript.write(whole[:11])
    assert only(cli.json("monitor"))["nextMarker"] == {"offset": at}
    transcript.write(whole[11:])
    assert only(cli.json("monitor"))["humanTurns"] == 1


def test_a_source_that_is_gone_ends_the_link_at_the_third_look(cli: Cli, transcript: Transcript) -> None:
    transcript.path.unlink()
    for misses in (1, 2):
        link = only(cli.json("monitor"))
        assert (link["verdict"], link["misses"]) == ("missing", misses)
        cli.now += 45_000
    assert only(cli.json("monitor"))["verdict"] == "removed"
    assert query(cli.path, EVENTS) == [
        ("upstream_missing", "upstream missing via claude", '{"channel":"claude"}')
    ]
    assert query(cli.path, MARKER) == []
    assert cli("monitor").out == "0 links: 0 probed, 0 human turns\n"


def test_looks_in_quick_succession_count_as_one(cli: Cli, transcript: Transcript) -> None:
    transcript.path.unlink()
    seen = []
    for _ in range(5):
        seen.append(only(cli.json("monitor"))["misses"])
        cli.now += 22_500
    assert seen == [1, 1, 2, 2, 3]
    assert len(query(cli.path, EVENTS)) == 1


@pytest.mark.parametrize("back", ["file", "link"])
def test_a_streak_begins_anew_when_the_source_or_the_link_changes(
    cli: Cli, log: SignalLog, clock: Clock, transcript: Transcript, back: str
) -> None:
    data = transcript.path.read_bytes()
    transcript.path.unlink()
    cli("monitor")
    cli.now += 60_000
    assert only(cli.json("monitor"))["misses"] == 2
    if back == "file":
        transcript.path.write_bytes(data)
        assert only(cli.json("monitor"))["verdict"] == "quiet"
        transcript.path.unlink()
    else:
        clock.now += 1
        log.set_link_marker(ADOPTED, {"offset": 0})
    cli.now += 60_000
    assert only(cli.json("monitor"))["misses"] == 1


def test_a_plan_counts_no_miss(cli: Cli, transcript: Transcript) -> None:
    transcript.path.unlink()
    for _ in range(4):
        assert only(cli.json("monitor", "--dry-run"))["misses"] == 1
        cli.now += 60_000


def test_databases_do_not_share_their_streaks(
    cli: Cli, transcript: Transcript, tmp_path: Path, clock: Clock
) -> None:
    second = tmp_path / "second.sqlite"
    with SignalLog(second, change=True, create=True, clock=clock) as log:
        adopt(log, transcript.path)
    transcript.path.unlink()
    for path in (cli.path, second):
        assert only(cli.json("monitor", path=path))["misses"] == 1


def test_streaks_that_cannot_be_kept_are_an_error_after_everything_was_told(
    cli: Cli, log: SignalLog, transcript: Transcript, tmp_path: Path, home: Path
) -> None:
    adopt(log, tmp_path / "gone.jsonl", "agent:main:gone")
    (home / ".local").write_text("in the way")
    transcript.add(person("do the report"))
    found = cli("monitor", status=74)
    assert "2 links: 2 probed, 1 human turn, 1 missing" in found.out
    assert "sidecar" in found.err


@pytest.mark.parametrize("how", [pytest.param("mode", marks=needs_permissions), "loop"])
def test_unreadable_is_not_missing(cli: Cli, transcript: Transcript, how: str) -> None:
    transcript.add(person("do the report"))
    aside = transcript.path.rename(transcript.path.with_name("aside"))
    if how == "loop":
        transcript.path.symlink_to(transcript.path)
    else:
        transcript.path.symlink_to(aside)
        aside.chmod(0)
    for _ in range(4):
        found = cli("monitor", status=69)
        assert found.out.startswith("unreadable")
        assert "nothing of the catalog claude could be checked" in found.err
        cli.now += 60_000
    transcript.path.unlink()
    aside.rename(transcript.path).chmod(0o600)
    assert only(cli.json("monitor"))["verdict"] == "recorded"


def test_a_directory_in_its_place_is_missing_and_an_untouched_file_is_quiet(
    cli: Cli, transcript: Transcript
) -> None:
    assert only(cli.json("monitor"))["verdict"] == "quiet"
    transcript.path.unlink()
    transcript.path.mkdir()
    assert only(cli.json("monitor"))["verdict"] == "missing"


def test_a_row_that_fills_the_window_blocks_its_link_with_a_warning(cli: Cli, transcript: Transcript) -> None:
    at = transcript.size
    transcript.add(person("x" * 1_048_576), person("behind it"))
    found = cli("monitor")
    assert f"warning: {ADOPTED} is blocked at offset {at}" in found.err
    assert found.out == "1 link: 1 probed, 0 human turns, 1 blocked\n"
    document = cli.json("monitor")
    assert only(document)["verdict"] == "blocked"
    assert len(document["warnings"]) == 1


def test_one_tick_reads_one_window_and_catching_up_all_of_them(cli: Cli, transcript: Transcript) -> None:
    for number in range(5):
        transcript.add(person(f"prompt {number}"), {"type": "assistant", "text": "x" * 700_000})
    planned = cli.json("monitor", "--dry-run", "--catch-up")
    assert cli.json("monitor")["summary"]["humanTurns"] == 2
    rest = cli.json("monitor", "--catch-up")
    assert rest["summary"]["humanTurns"] == 3
    assert planned["summary"]["humanTurns"] == 5
    assert rest["links"][-1]["nextMarker"] == {"offset": transcript.size}
    assert rest["summary"]["links"] == 1


def test_links_that_only_a_gateway_can_check_are_listed_and_left_alone(cli: Cli, log: SignalLog) -> None:
    for key, link in {
        "agent:main:node": {"host_id": "node:n1", "upstream_ref": {"nodeId": "n1"}, "marker": {"uuid": None}},
        "agent:main:codex": {"catalog_id": "codex", "upstream_kind": "codex-app-server"},
        "agent:main:strange": {"catalog_id": "strange"},
    }.items():
        adopt(log, Path("/nowhere"), key, **link)
    before = tables(cli.path)
    found = cli("monitor")
    assert tables(cli.path) == before
    assert [row.split("  ")[0].rstrip() for row in found.out.splitlines()[:-1]] == [
        "not checkable here",
        "not checkable here",
        "skipped",
    ]
    assert found.out.endswith("3 links: 0 probed, 0 human turns, 2 not checkable here, 1 skipped\n")


def test_bad_links_are_skipped_alone_each_with_its_reason(
    cli: Cli, log: SignalLog, transcript: Transcript
) -> None:
    adopt(log, transcript.path, "agent:main:a", upstream_ref={"filePath": 7})
    adopt(log, transcript.path, "agent:main:b", marker={"offset": -1})
    adopt(log, transcript.path, "agent:main:c", upstream_kind="other")
    adopt(log, transcript.path, "agent:main:d", agent_id="main")
    adopt(log, transcript.path, "agent:main:d", agent_id="work")
    transcript.add(person("do the report"))
    found = {(link["sessionKey"], link["agentId"]): link for link in cli.json("monitor")["links"]}
    assert {key[0][11:]: link["verdict"] for key, link in found.items()} == {
        "adopted": "recorded",
        "a": "unusable",
        "b": "unusable",
        "c": "unusable",
        "d": "ambiguous",
    }
    assert all(link["reason"] for link in found.values() if link["verdict"] != "recorded")


def test_a_reference_that_is_no_text_does_not_stop_the_others(
    cli: Cli, log: SignalLog, transcript: Transcript
) -> None:
    adopt(log, transcript.path, "agent:main:z")
    change(
        cli.path,
        "UPDATE session_upstream_links SET upstream_ref_json = CAST(x'7b22ff' AS TEXT)"
        " WHERE session_key = 'agent:main:z'",
    )
    transcript.add(person("do the report"))
    verdicts = {link["sessionKey"]: link["verdict"] for link in cli.json("monitor")["links"]}
    assert verdicts == {ADOPTED: "recorded", "agent:main:z": "unusable"}


def test_ticks_follow_at_a_pace_one_line_each(cli: Cli, transcript: Transcript) -> None:
    transcript.add(person("do the report"))
    first, second = cli("monitor", "--every", "200ms", "--count", 2, "--format", "jsonl").rows
    for row in (first, second):
        check_row("monitor", row, kind="tick")
    assert [row["summary"]["humanTurns"] for row in (first, second)] == [1, 0]
    text = cli("monitor", "--every", "200ms", "--count", 1).out
    assert text == "08:00:00  1 link: 1 probed, 0 human turns\n"


def test_a_passed_timeout_ends_the_ticks(cli: Cli, transcript: Transcript) -> None:
    assert "rest waits" in cli("monitor", "--every", "100ms", "--timeout", "350ms", status=124).err


@pytest.mark.parametrize(
    "argv",
    [
        ("--every", "60s", "--once"),
        ("--every", "60s", "--exit-code"),
        ("--every", "0"),
        ("--provider-timeout", "0"),
        ("--count", "2"),
        ("--anyway", "--unless-gateway"),
        ("--deliver", "mail"),
        ("--deliver", "openclaw", "--dry-run"),
        ("--fields", "nothing"),
    ],
    ids=" ".join,
)
def test_arguments_that_mean_nothing_are_refused(cli: Cli, log: SignalLog, argv: tuple[str, ...]) -> None:
    cli("monitor", *argv, status=2)


def test_without_a_database_nothing_is_created(cli: Cli) -> None:
    cli("monitor", status=66)
    assert not cli.path.exists()
    cli("monitor", status=66, env={"OPENCLAW_STATE_DB": ""})
    assert not (Path(os.environ["HOME"]) / ".local").exists()


def test_opencode_that_is_not_installed_fails_for_its_catalog_alone(
    cli: Cli, log: SignalLog, transcript: Transcript, tmp_path: Path
) -> None:
    adopt(
        log,
        transcript.path,
        "agent:main:oc",
        catalog_id="opencode",
        host_id="gateway",
        thread_id="ses_a",
        upstream_kind="opencode-cli",
        upstream_ref={"threadId": "ses_a"},
        marker={"seq": 1, "lastHumanMessageId": None},
    )
    transcript.add(person("do the report"))
    found = cli("monitor", status=69, env={"PATH": str(tmp_path)})
    assert "recorded" in found.out
    assert "nothing of the catalog opencode could be checked: the command opencode was not found" in found.err


def test_the_gate_does_not_hold_for_the_tools_own_file(
    cli: Cli, transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "account_home", lambda: None)
    assert only(cli.json("monitor"))["verdict"] == "quiet"
