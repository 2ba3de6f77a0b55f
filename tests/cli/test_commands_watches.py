"""cursors and notices: listing, adding, removing, acknowledging, sweeping, pruning of watches."""

from __future__ import annotations

import pytest

from openclaw_state import SignalLog
from tests.cli.conftest import OTHER, StateDir
from tests.cli.harness import CURSOR_COLUMNS, Cli
from tests.support import CHILD, DAY, PARENT, T, change, goal, note, triples

SUBAGENT = "agent:main:subagent:helper"


def put(cli: Cli, *marks: int, watcher: str = PARENT, touched: int = T, store: str | None = None) -> None:
    """A watch on the child exactly as given: seen, notified, material."""
    path = "NULL" if store is None else f"'{store}'"
    seen, notified, material = marks
    change(
        cli.path,
        "INSERT OR REPLACE INTO session_watch_cursors (watcher_session_key, target_session_key,"
        " last_seen_sequence, notified_sequence, material_sequence, provenance, updated_at,"
        f" watcher_store_path) VALUES ('{watcher}', '{CHILD}', {seen}, {notified}, {material}, 'explicit',"
        f" {touched}, {path})",
    )


@pytest.fixture
def twelve(cli: Cli, log: SignalLog) -> Cli:
    """Twelve events on the child: 6, 9 and 12 notify, between them only the log moves."""
    for number in range(1, 13):
        (goal if number in (6, 9, 12) else note)(log)
    return cli


class TestList:
    @pytest.mark.parametrize(
        ("marks", "state", "pending", "lag"),
        [
            ((5, 9, 12), "reopening", True, 3),
            ((12, 12, 12), "quiet", False, 0),
            ((9, 12, 12), "pending", True, 1),
            ((5, 6, 6), "pending", True, 3),
            ((20, 20, 20), "quiet", False, 0),
        ],
    )
    def test_state_and_lag_follow_the_marks(
        self, twelve: Cli, marks: tuple[int, int, int], state: str, pending: bool, lag: int
    ) -> None:
        """A26: pending is material above seen, reopening is material above notified; lag counts the
        retained notifying events after seen and is never negative (A22)."""
        put(twelve, *marks)
        (watch,) = twelve.json("cursors", "list")["cursors"]
        assert (watch["state"], watch["pending"], watch["lag"]) == (state, pending, lag)
        assert watch["headSequence"] == 12

    def test_a_pending_watch_names_the_version_to_reconcile_from(self, twelve: Cli) -> None:
        put(twelve, 5, 9, 12)
        (notice,) = twelve.json("notices")["notices"]
        assert (notice["sinceVersion"], notice["headVersion"]) == (5, 12)
        shown = twelve("status", CHILD).out
        assert f"watched by {PARENT}: notice pending since 5 (0 s), reopens at 12" in shown

    def test_lag_counts_events_not_sequences_and_only_retained_ones(
        self, twelve: Cli, log: SignalLog
    ) -> None:
        put(twelve, 5, 9, 12)
        for _ in range(50):
            note(log, key=OTHER)
        assert twelve.json("cursors", "list")["cursors"][0]["lag"] == 3
        twelve("prune", "--max-rows", 51, "-y")
        assert twelve.json("cursors", "list")["cursors"][0]["lag"] == 1

    def test_registering_replays_nothing_and_again_keeps_what_is_pending(self, twelve: Cli) -> None:
        """A26"""
        twelve("cursors", "add", PARENT, CHILD)
        assert triples(twelve.path) == {(PARENT, CHILD): (12, 12, 12)}
        put(twelve, 5, 9, 12)
        document = twelve.json("cursors", "add", PARENT, CHILD)
        assert (document["watched"], document["created"]) == (True, False)
        assert triples(twelve.path) == {(PARENT, CHILD): (5, 9, 12)}

    def test_the_table_shows_marks_state_and_expiry(self, story: Cli) -> None:
        done = story("cursors", "list")
        heads, parent, other = (line.split() for line in done.out.splitlines())
        assert heads == CURSOR_COLUMNS
        assert parent == [
            PARENT,
            CHILD,
            *["1", "2", "3", "3", "2", "reopening", "explicit", "local", "30", "d"],
        ]
        assert other == [OTHER, CHILD, *["3", "3", "3", "3", "0", "quiet", "explicit", "local", "30", "d"]]
        assert done.err == "2 watches, 1 pending\n"

    def test_only_the_watches_of_one_session_or_on_one(self, story: Cli) -> None:
        assert story.json("cursors", "list", "--watcher", PARENT)["total"] == 1
        assert story.json("cursors", "list", "--target", CHILD)["total"] == 2
        assert story.json("cursors", "list", "--target", PARENT)["total"] == 0

    def test_the_time_left_is_shown_and_a_pending_watch_about_to_go_is_marked(self, twelve: Cli) -> None:
        put(twelve, 5, 9, 12)
        twelve.now = T + 29 * DAY + DAY // 2
        assert twelve("cursors", "list").out.splitlines()[1].endswith("12 h !")
        assert twelve.json("cursors", "list")["cursors"][0]["expiresAt"] == T + 30 * DAY
        twelve.now = T + 31 * DAY
        assert twelve("cursors", "list").out.splitlines()[1].endswith("due !")

    def test_a_watch_of_nothing_known_is_orphaned(self, cli: Cli, state_dir: StateDir) -> None:
        state_dir.add_sessions("main", PARENT)
        for target in (CHILD, PARENT):
            cli("cursors", "add", "agent:main:gone", target, path=state_dir.path)
        watches = cli.json("cursors", "list", path=state_dir.path)["cursors"]
        assert [(watch["orphaned"], watch["state"]) for watch in watches] == [(True, "orphaned")] * 2

    def test_an_unreadable_store_makes_orphans_unknown(self, cli: Cli, state_dir: StateDir) -> None:
        state_dir.add_sessions("main", PARENT)
        cli("cursors", "add", PARENT, CHILD, path=state_dir.path)
        store = state_dir.root / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
        store.write_bytes(b"no database" * 512)
        (watch,) = cli.json("cursors", "list", path=state_dir.path)["cursors"]
        assert (watch["orphaned"], watch["state"]) == (None, "quiet")

    def test_delivery_says_why_a_gateway_would_not(self, cli: Cli, state_dir: StateDir) -> None:
        cli.path = state_dir.path
        put(cli, 0, 0, 0, watcher="main")
        put(cli, 0, 0, 0, watcher=PARENT)
        put(cli, 0, 0, 0, watcher=OTHER, store="/elsewhere/openclaw-agent.sqlite")
        delivery = {row["watcher"]: row["delivery"] for row in cli.json("cursors", "list")["cursors"]}
        assert delivery == {"main": "bare key", PARENT: "store unknown", OTHER: "other store"}
        done = cli("cursors", "list", "-v")
        assert f"{OTHER} -> {CHILD}: other store, the watch names /elsewhere" in done.err

    @pytest.mark.parametrize(
        ("text", "delivery"),
        [
            ('{session: {store: "/x/{agentId}.json"}}', (False, "other store")),
            ('{session: {store: "/x/{agentId}.json"', (None, "unknown")),
        ],
        ids=["moved", "cannot be read"],
    )
    def test_a_configured_store_decides_delivery(
        self, cli: Cli, state_dir: StateDir, text: str, delivery: tuple[bool | None, str]
    ) -> None:
        cli("cursors", "add", PARENT, CHILD, path=state_dir.path)
        (state_dir.root / "openclaw.json").write_text(text)
        (watch,) = cli.json("cursors", "list", path=state_dir.path)["cursors"]
        assert (watch["deliverable"], watch["delivery"]) == delivery


class TestAdd:
    def test_the_store_is_computed_in_a_state_directory(self, cli: Cli, state_dir: StateDir) -> None:
        document = cli.json("cursors", "add", PARENT, CHILD, path=state_dir.path)
        store = state_dir.root / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
        assert document["cursor"]["watcherStorePath"] == str(store)
        assert document["cursor"]["deliverable"] is True

    def test_the_store_is_taken_as_given(self, cli: Cli, state_dir: StateDir) -> None:
        document = cli.json("cursors", "add", PARENT, CHILD, "--store", "/x/a.sqlite", path=state_dir.path)
        assert document["cursor"]["watcherStorePath"] == "/x/a.sqlite"
        assert document["cursor"]["delivery"] == "other store"
        assert "may not deliver" in " ".join(document["warnings"])

    def test_the_store_is_copied_where_it_cannot_be_computed(self, cli: Cli, state_dir: StateDir) -> None:
        copy = state_dir.root / "copy.sqlite"
        copy.write_bytes(state_dir.path.read_bytes())
        cli.path = copy
        put(cli, 0, 0, 0, store="/x/a.sqlite")
        document = cli.json("cursors", "add", PARENT, OTHER)
        assert document["cursor"]["watcherStorePath"] == "/x/a.sqlite"

    def test_the_tools_own_file_needs_none(self, story: Cli) -> None:
        cursor = story.json("cursors", "add", PARENT, OTHER)["cursor"]
        assert (cursor["watcherStorePath"], cursor["delivery"]) == (None, "local")

    @pytest.mark.parametrize(
        ("watcher", "target", "rule"),
        [
            ("main", CHILD, "agent-qualified"),
            ("agent:main:", CHILD, "agent-qualified"),
            (CHILD, CHILD, "cannot watch itself"),
            (PARENT, "global", "needs its agent named"),
        ],
    )
    def test_a_refusal_names_its_rule(self, story: Cli, watcher: str, target: str, rule: str) -> None:
        before = triples(story.path)
        error = story("cursors", "add", watcher, target, "--json", status=9).error
        assert rule in error["rule"]
        assert error["watched"] is False
        assert triples(story.path) == before

    def test_a_bare_target_is_watched_under_its_agent(self, story: Cli) -> None:
        story("record", "global", "--kind", "goal_changed", "--agent", "work")
        document = story.json("cursors", "add", PARENT, "global", "--agent", "work")
        assert document["cursor"]["lastSeenSequence"] == 5

    def test_unknown_and_misspelt_targets_are_warned_of(self, story: Cli) -> None:
        (warning,) = story.json("cursors", "add", PARENT, CHILD + "ren")["warnings"]
        assert f"nothing is known of {CHILD}ren yet; did you mean {CHILD}" in warning
        warnings = story.json("cursors", "add", PARENT, "Agent:Main:Main")["warnings"]
        assert "is not the spelling that a gateway uses" in warnings[0]


class TestRemove:
    def test_one_watch_goes_and_the_others_stay(self, story: Cli) -> None:
        assert story.json("cursors", "remove", PARENT, CHILD, "-y")["removed"] == 1
        assert list(triples(story.path)) == [(OTHER, CHILD)]
        assert "does not watch" in story("cursors", "remove", PARENT, CHILD, "-y", status=4).err

    def test_reset_removes_all_of_a_watcher(self, story: Cli) -> None:
        story("cursors", "add", PARENT, OTHER)
        assert story.json("cursors", "reset", PARENT, "-y")["removed"] == 2
        assert list(triples(story.path)) == [(OTHER, CHILD)]
        assert story.json("version", PARENT)["versions"][0]["stateVersion"] == 4, "its own log stays"
        story("cursors", "reset", PARENT, "-y", status=4)


class TestAck:
    def test_a_follow_up_is_printed_when_one_opens(self, story: Cli) -> None:
        shown = story("cursors", "ack", PARENT).out
        assert shown.startswith(f"acknowledged 1 watch of {PARENT}\n")
        assert f'Session "{CHILD}" changed' in shown
        assert "changesSince 2." in shown
        assert triples(story.path)[PARENT, CHILD] == (2, 3, 3)
        assert story.json("cursors", "ack", PARENT)["notices"] == []
        assert triples(story.path)[PARENT, CHILD] == (3, 3, 3)

    def test_without_a_target_only_pending_ones_are_acknowledged(self, story: Cli) -> None:
        story("cursors", "add", PARENT, OTHER)
        assert story.json("cursors", "ack", PARENT)["acknowledged"] == [CHILD]
        assert story.json("cursors", "ack", OTHER)["acknowledged"] == []
        assert story.json("cursors", "ack", OTHER, CHILD)["acknowledged"] == [CHILD]

    def test_what_is_not_watched_is_not_found(self, story: Cli) -> None:
        before = triples(story.path)
        story("cursors", "ack", PARENT, OTHER, status=4)
        story("cursors", "ack", CHILD, status=4)
        assert triples(story.path) == before

    def test_what_no_gateway_would_deliver_is_left_alone(self, cli: Cli, state_dir: StateDir) -> None:
        cli.path = state_dir.path
        put(cli, 1, 2, 2)
        document = cli.json("cursors", "ack", PARENT)
        assert document["acknowledged"] == []
        assert document["skipped"] == [{"target": CHILD, "reason": "store unknown"}]
        assert triples(cli.path)[PARENT, CHILD] == (1, 2, 2)

    @pytest.mark.parametrize("argv", [("cursors", "ack", PARENT), ("notices", PARENT, "--ack")])
    def test_the_line_queued_in_a_live_gateway_is_warned_of(
        self, cli: Cli, state_dir: StateDir, argv: tuple[str, ...]
    ) -> None:
        state_dir.start_gateway()
        cli("record", CHILD, "--kind", "goal_changed", "--watcher", PARENT, path=state_dir.path)
        assert "stays in its queue" in " ".join(cli.json(*argv, path=state_dir.path)["warnings"])


class TestPruneOfWatches:
    @pytest.fixture
    def aging(self, story: Cli) -> Cli:
        """The story 31 days later, with one fresh watch."""
        story.now = T + 31 * DAY
        put(story, 3, 3, 3, watcher=SUBAGENT, touched=story.now)
        return story

    def test_dry_run_equals_apply(self, aging: Cli) -> None:
        argv = ["cursors", "prune", "--expired", "--include-pending"]
        before = triples(aging.path)
        planned = aging.json(*argv, "--dry-run")
        assert triples(aging.path) == before
        done = aging.json(*argv)
        assert (planned["dryRun"], planned["removed"], done["dryRun"], done["removed"]) == (True, 0, False, 2)
        assert planned["cursors"] == done["cursors"]
        assert list(triples(aging.path)) == [(SUBAGENT, CHILD)]

    def test_pending_watches_stay_unless_asked_for(self, aging: Cli) -> None:
        document = aging.json("cursors", "prune", "--expired")
        assert (document["planned"], document["removed"], document["pendingKept"]) == (1, 1, 1)
        assert (PARENT, CHILD) in triples(aging.path)
        assert "1 pending watch kept" in aging("cursors", "prune", "--expired").err

    def test_each_test_names_itself(self, aging: Cli) -> None:
        argv = ["cursors", "prune", "--expired", "--older-than", "0", "--include-pending", "--dry-run"]
        why = {row["watcher"]: row["why"] for row in aging.json(*argv)["cursors"]}
        assert why == {PARENT: ["expired", "older"], OTHER: ["expired", "older"]}

    def test_orphaned_and_undeliverable_watches(self, cli: Cli, state_dir: StateDir) -> None:
        cli.path = state_dir.path
        state_dir.add_sessions("main", PARENT, CHILD)
        put(cli, 0, 0, 0, watcher="agent:main:gone")
        cli("cursors", "add", PARENT, CHILD)
        document = cli.json("cursors", "prune", "--orphaned", "--undeliverable")
        assert [(row["watcher"], row["why"]) for row in document["cursors"]] == [
            ("agent:main:gone", ["orphaned", "undeliverable"])
        ]
        assert list(triples(cli.path)) == [(PARENT, CHILD)]

    def test_nothing_to_remove_is_said(self, story: Cli) -> None:
        assert story("cursors", "prune", "--expired").out == "no watches to remove\n"


class TestNotices:
    def test_a_notice_has_the_exact_line_and_how_it_will_be_heard(self, story: Cli) -> None:
        (notice,) = story.json("notices")["notices"]
        line = (
            f'Session "{CHILD}" changed (other actor). Reconcile before acting:'
            f' session_status sessionKey "{CHILD}" changesSince 1.'
        )
        assert (notice["text"], notice["kind"], notice["pendingSince"]) == (line, "human_direct_message", T)
        assert (notice["wake"], notice["wakeReason"]) == ("immediate", "explicit watch")
        done = story("notices", PARENT)
        assert done.out.splitlines() == [
            line,
            f"  for {PARENT}: wake immediate (explicit watch), pending for 0 s",
        ]
        assert done.err == "1 notice pending\n"

    def test_a_sub_agent_waits_for_its_next_turn(self, cli: Cli) -> None:
        cli("record", CHILD, "--kind", "goal_changed", "--watcher", SUBAGENT)
        (notice,) = cli.json("notices", SUBAGENT)["notices"]
        assert (notice["wake"], notice["wakeReason"]) == ("next-turn", "sub-agent watcher")

    def test_acknowledging_shows_what_it_acknowledges_and_what_is_left(self, story: Cli) -> None:
        done = story("notices", PARENT, "--ack")
        assert "changesSince 1." in done.out
        assert done.err.startswith("1 notice acknowledged\n1 notice still pending")
        document = story.json("notices", PARENT, "--ack")
        assert (document["total"], document["acknowledged"]) == (1, True)
        assert story.json("notices", PARENT)["total"] == 0

    def test_reading_moves_nothing(self, story: Cli) -> None:
        before = triples(story.path)
        assert story.json("notices") == story.json("notices")
        assert triples(story.path) == before

    def test_an_unknown_watcher_is_not_found(self, story: Cli) -> None:
        story("notices", "agent:main:nobody", status=4)


class TestSweep:
    def test_pending_notices_are_re_armed(self, story: Cli) -> None:
        document = story.json("notices", "sweep")
        assert [notice["sinceVersion"] for notice in document["notices"]] == [1]
        assert triples(story.path)[PARENT, CHILD] == (1, 3, 3)

    def test_watchers_that_are_gone_are_skipped_with_the_reason(self, cli: Cli, state_dir: StateDir) -> None:
        state_dir.add_sessions("main", PARENT)
        argv = [
            "record",
            CHILD,
            "--kind",
            "goal_changed",
            "--watcher",
            PARENT,
            "--watcher",
            "agent:main:gone",
        ]
        cli(*argv, path=state_dir.path)
        document = cli.json("notices", "sweep", path=state_dir.path)
        assert [notice["watcher"] for notice in document["notices"]] == [PARENT]
        assert document["skipped"] == [
            {"watcher": "agent:main:gone", "target": CHILD, "reason": "no such session"}
        ]
        assert "skipped agent:main:gone" in cli("notices", "sweep", path=state_dir.path).out
