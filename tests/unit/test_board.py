"""The board as lines: what stands where, on screens of every size."""

from __future__ import annotations

import re

import pytest

from openclaw_state.model import Behind, Delivery, Event, Glance, Notice, SessionRow
from openclaw_state.report.board import Place, Scene, Size, View, draw, until_change
from openclaw_state.report.escape import width
from openclaw_state.report.panes import Line
from openclaw_state.report.tables import age, until_older
from tests.support import DAY, T

SMALL, MIDDLE, LARGE = Size(60, 15), Size(100, 30), Size(250, 80)
SIZES = [SMALL, MIDDLE, LARGE]
WORKER = "agent:main:subagent:worker-{}"
PLACE = Place("~/.openclaw/state/openclaw.sqlite", "default", "alive", "pid 4711 holds the lock, port 18789")
HOSTILE = "\x1b[2J\x07\x9b日本e\u0301\u202eשלום\r\n"


def event(sequence: int, key: str | None = None, **more: object) -> Event:
    values = {
        "sequence": sequence,
        "session_key": key or WORKER.format(sequence),
        "agent_id": "main",
        "kind": "human_direct_message",
        "actor_type": "human",
        "occurred_at": T - 1_000,
        "summary": "human message via telegram",
        "actor_id": "telegram:42",
        "run_id": "run-1",
    }
    return Event(**{**values, **more})


def session(number: int, *, pending: int = 0, watchers: int = 2, key: str | None = None) -> SessionRow:
    last = event(number, key)
    return SessionRow(
        last.session_key, "main", number, 0, 7, 1, watchers, pending, last, updated_at=T - 1_000
    )


def behind(number: int, *, waited: int | None = 96_000, watcher: str = "agent:main:main") -> Behind:
    notice = Notice(
        watcher=watcher,
        target=WORKER.format(number),
        text="",
        context_key="",
        since=3,
        head=number,
        kind="goal_changed",
        pending_since=None if waited is None else T - waited,
        wake="next-turn",
        wake_reason="",
        delivery=Delivery(True, "yes"),
        reconcile=(),
    )
    return Behind(notice, 2)


def scene(sessions: int = 100, notices: int = 40, events: int = 100, place: Place = PLACE) -> Scene:
    rows = tuple(session(number, pending=number % 3) for number in range(sessions, 0, -1))
    glance = Glance(
        sessions=rows,
        total_sessions=1_204,
        lags={row.session_key: 5 for row in rows if row.pending},
        behind=tuple(behind(number) for number in range(1, notices + 1)),
        total_pending=notices,
        events=tuple(event(number) for number in range(1, events + 1)),
        newest=events,
    )
    return Scene(glance, place, T, utc=True)


def text(line: Line) -> str:
    return "".join(span.text for span in line)


def shown(scene: Scene, view: View, size: Size) -> list[str]:
    return [text(line).rstrip() for line in draw(scene, view, size)]


def roles(lines: list[Line], role: str) -> set[str]:
    return {span.text.strip() for line in lines for span in line if span.role == role}


VIEWS = {
    "overview": View(),
    "selection": View(selected=(WORKER.format(60), "main"), row=40),
    "opened": View(opened=(WORKER.format(60), "main")),
    "scrolled": View(opened=(WORKER.format(60), "main"), scroll=90),
    "typing": View(typing=True, filter="日本" * 40),
    "filtered": View(filter=HOSTILE, paused=True),
    "help": View(helping=True),
    "no keys": View(keyed=False),
}
SCENES = {
    "full": scene(),
    "empty": scene(0, 0, 0),
    "nothing pending": scene(3, 0, 5),
    "waiting": scene(0, 0, 0, PLACE._replace(waiting=True)),
    "locked": scene(3, 1, 5, PLACE._replace(trouble="locked by another process, trying again")),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("what", SCENES.values(), ids=SCENES)
def test_the_board_fills_every_screen_and_leaves_none(what: Scene, view: View) -> None:
    for size in (*SIZES, *(Size(columns, rows) for columns in range(1, 90, 17) for rows in range(1, 24, 3))):
        lines = draw(what, view, size)
        assert len(lines) == size.rows
        assert max(width(text(line)) for line in lines) <= size.columns


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_pane_is_there_at_every_size(size: Size) -> None:
    lines = shown(scene(), View(), size)
    page = "\n".join(lines)
    for head in (
        "SESSION",
        "VERSION",
        "BEHIND",
        "LAG",
        "WATCHER",
        "TARGET",
        "AGE",
        "WAKE",
        "SEQUENCE",
        "KIND",
    ):
        assert head in page
    assert "1 m 36 s" in page
    assert "next-turn" in page
    assert "1/2" in page
    assert "1204 sessions · 40 notices pending · newest 100" in lines[-3]
    assert "state/openclaw.sqlite (default)" in lines[-2]
    assert "gateway alive" in lines[-2]
    assert lines[-1].startswith("q quit  p pause")
    assert lines[-1].endswith("? help")


def test_the_newest_event_stands_last_and_the_latest_session_first() -> None:
    for size in (SMALL, MIDDLE):
        lines = shown(scene(), View(), size)
        assert WORKER.format(100)[-9:] in lines[1]
        assert re.match(r" +100 ", lines[-4])


def test_a_wide_screen_shows_events_beside_sessions_and_uses_its_height() -> None:
    lines = shown(scene(), View(), LARGE)
    assert all(" │ " in line + " " for line in lines[:-3])
    left, right = (half.split() for half in lines[0].split("│"))
    assert left == ["SESSION", "VERSION", "CHANGED", "BEHIND", "LAG", "LAST", "ACTOR", "EVENTS", "AGENT"]
    assert right == ["SEQUENCE", "TIME", "KIND", "ACTOR", "SESSION", "SUMMARY"]
    assert sum("human message via telegram" in line for line in lines) == 76


def test_columns_go_by_priority_and_keys_lose_their_middle() -> None:
    small = shown(scene(), View(), SMALL)
    assert small[0].split() == ["SESSION", "VERSION", "CHANGED", "BEHIND", "LAG"]
    assert "SUMMARY" not in "\n".join(small)
    assert "…" in small[6]
    long = session(1, key="agent:main:subagent:" + "0123456789" * 9 + ":end")
    one = Scene(Glance(sessions=(long,), total_sessions=1), PLACE, T)
    assert re.match(r"  agent:main:\S+…\S+:end ", shown(one, View(), MIDDLE)[1])


def test_nothing_pending_leaves_its_room_to_the_others() -> None:
    lines = shown(scene(3, 0, 50), View(), SMALL)
    assert "WATCHER" not in "\n".join(lines)
    assert "0 notices pending" in lines[-3]
    assert not any(line == "" for line in lines)


def test_the_selected_session_is_marked_and_in_sight() -> None:
    view = VIEWS["selection"]
    for size in SIZES:
        lines = draw(scene(), view, size)
        marked = [text(line) for line in lines if text(line).startswith("> ")]
        assert len(marked) == 1
        assert "worker-60" in marked[0]
        assert ">" in roles(lines, "selected")


def test_an_opened_session_shows_its_own_events_and_scrolls_back() -> None:
    lines = shown(scene(), View(opened=(WORKER.format(99), "main")), MIDDLE)
    assert (
        lines[0] == f"  {WORKER.format(99)}   version 99, 0 of 2 watchers behind, 7 events, retained from 1"
    )
    assert lines[1].split() == ["SEQUENCE", "TIME", "KIND", "ACTOR", "SUMMARY", "WHO", "RUN"]
    assert lines[-4].split()[0] == "100"
    assert "telegram:42" in lines[-4]
    back = shown(scene(), View(opened=(WORKER.format(99), "main"), scroll=10), MIDDLE)
    assert back[-4].split()[0] == "90"


def test_help_is_whole_on_the_smallest_screen_it_is_made_for() -> None:
    assert "…" not in "".join(shown(scene(), View(helping=True), SMALL))


def test_what_is_switched_on_is_said() -> None:
    foot = shown(scene(), View(paused=True, filter="work\x1b"), SMALL)[-3]
    assert foot.startswith(r"─ paused · filter work\x1b · 1204 sessions")
    assert shown(scene(), View(typing=True, filter="work"), SMALL)[-1].startswith("/work_   Enter")
    assert shown(scene(), View(keyed=False), SMALL)[-1].startswith("Ctrl-C quit")


def test_waiting_an_empty_log_and_a_lock_are_said() -> None:
    assert "waiting for the tool's own database" in shown(SCENES["waiting"], View(), SMALL)[0]
    assert "no session has a version yet" in shown(SCENES["empty"], View(), SMALL)[0]
    assert "no session's key contains that" in shown(SCENES["empty"], View(filter="x"), SMALL)[0]
    assert "locked by another process, trying again" in shown(SCENES["locked"], View(), SMALL)[-2]


def test_colours_are_for_actors_and_states() -> None:
    lines = draw(scene(), View(), MIDDLE)
    assert roles(lines, "human") == {"human"}
    assert {"1/2", "2/2", "5", "1 m 36 s", "40 notices pending"} <= roles(lines, "pending")
    assert any("gateway alive" in found for found in roles(lines, "alive"))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_hostile_text_moves_nothing_and_stays_an_escape(size: Size) -> None:
    calm, wild = scene(3, 1, 3), scene(3, 1, 3)
    row = session(3, key=HOSTILE, pending=1)
    bad = event(
        3, HOSTILE, kind=HOSTILE, actor_type=HOSTILE, summary=HOSTILE, actor_id=HOSTILE, run_id=HOSTILE
    )
    wild = wild._replace(
        glance=wild.glance._replace(
            sessions=(row._replace(agent_id=HOSTILE, last=bad), *calm.glance.sessions[1:]),
            events=(*calm.glance.events[:2], bad),
            behind=(behind(1, watcher=HOSTILE),),
        ),
        place=Place(HOSTILE, "--db", "unknown", HOSTILE),
    )
    for view in (View(), View(opened=(HOSTILE, "main")), View(filter=HOSTILE)):
        lines = draw(wild, view, size)
        assert all(text(line).isprintable() for line in lines)
        assert any(r"\x1b" in text(line) for line in lines)
        assert len(lines) == size.rows


@pytest.mark.parametrize(
    ("duration", "words", "until"),
    [
        (-5, "0 s", 1_005),
        (0, "0 s", 1_000),
        (999, "0 s", 1),
        (96_400, "1 m 36 s", 600),
        (599_999, "9 m 59 s", 1),
        (600_000, "10 m", 60_000),
        (3 * 3_600_000 + 61_000, "3 h 1 m", 59_000),
        (DAY + 3_600_001, "1 d 1 h", 3_599_999),
    ],
)
def test_an_age_changes_when_it_says_so_and_not_before(duration: int, words: str, until: int) -> None:
    assert age(duration) == words
    assert until_older(duration) == until
    assert age(duration + until - 1) == words
    assert age(duration + until) != words


def test_the_board_can_rest_until_an_age_or_a_clock_changes() -> None:
    assert until_change(scene(3, 1, 3)) == 1_000
    assert until_change(scene(3, 0, 3)) == DAY - 1_000
    assert until_change(scene(0, 0, 0)) is None
    long = Scene(Glance(behind=(behind(1, waited=7_200_000),)), PLACE, T)
    assert until_change(long) == 60_000
    assert until_change(Scene(Glance(behind=(behind(1, waited=None),)), PLACE, T)) is None
