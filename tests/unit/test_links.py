"""Links from Python: adoption in one piece, own texts as hashes, adopted keys, long rows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openclaw_state import Link, SignalLog
from openclaw_state.errors import RefusedError, UsageError
from openclaw_state.results import Health
from openclaw_state.sidecar import Sidecar, sidecar_path
from openclaw_state.upstream.adopted import Unlinked, adopted_from
from openclaw_state.upstream.embedded import EmbeddedSessions, HashedTexts, digest, digest_of
from openclaw_state.upstream.findings import echo_of
from openclaw_state.upstream.transcripts import WINDOW, Row, measure_row, size_of
from tests.support import PARENT, Clock, openclaw_file, query

KEY = "agent:main:adopted"
LINK = Link(
    KEY, "main", "claude", "gateway:local", "t", "claude-cli", {"filePath": "/a"}, {"offset": 5}, 0, 0
)
HEX = "0123456789abcdef" * 4


def texts(*known: str) -> HashedTexts:
    return HashedTexts(map(digest, known))


def test_an_adoption_is_link_and_event(log: SignalLog, clock: Clock) -> None:
    done = log.adopt(LINK)
    assert (done.before, done.rebased, done.duplicate) == (None, True, False)
    assert done.event is not None
    assert (done.event.kind, done.event.sequence) == ("adopted", 1)
    assert log.link(KEY) == done.link == LINK._replace(created_at=clock.now, updated_at=clock.now)


def test_a_second_adoption_of_the_same_source_keeps_the_marker(log: SignalLog, clock: Clock) -> None:
    log.adopt(LINK)
    clock.now += 1
    done = log.adopt(LINK._replace(marker={"offset": 9}, catalog_id="other"))
    assert (done.link.marker, done.link.catalog_id, done.rebased) == ({"offset": 5}, "other", False)
    assert (done.duplicate, done.link.updated_at) == (True, clock.now)
    moved = log.adopt(LINK._replace(thread_id="u", marker={"offset": 9}))
    assert (moved.link.marker, moved.rebased) == ({"offset": 9}, True)


@pytest.mark.parametrize("key", ["agent:main:\x1b", "bare", " "])
def test_an_adoption_that_is_refused_leaves_neither(log: SignalLog, path: Path, key: str) -> None:
    with pytest.raises(UsageError):
        log.adopt(LINK._replace(session_key=key, agent_id=""))
    assert log.links() == []
    assert query(path, "SELECT count(*) FROM session_state_events") == [(0,)]


def test_a_link_without_its_event_is_never_stored(log: SignalLog, path: Path) -> None:
    with pytest.raises(UsageError):
        log.adopt(LINK._replace(host_id="\ud800"))
    assert log.links() == []
    assert query(path, "SELECT count(*) FROM session_state_events") == [(0,)]


def test_adopted_sessions_without_a_link(log: SignalLog) -> None:
    log.adopt(LINK)
    assert log.unlinked() == []
    log.upstream_missing(LINK)
    log.delete_link(KEY)
    assert log.unlinked() == [Unlinked(KEY, "main", "claude", None, lost=True)]
    log.adopted("global", catalog_id="pi", host_id="node:n", agent_id="ops")
    assert log.unlinked()[1] == Unlinked("global", "ops", "pi", "node:n", lost=False)


@pytest.mark.parametrize(
    ("rest", "catalog"),
    [
        (f"plugin:anthropic:catalog-adopt:claude:{HEX}", "claude"),
        (f"plugin:acpx:catalog-adopt:pi:{HEX}", "pi"),
        (f"plugin:opencode:catalog-adopt:{HEX}", "opencode"),
        (f"harness:codex:supervision:{HEX}", "codex"),
        (f"plugin:anthropic:catalog-adopt:pi:{HEX}", None),
        (f"plugin:acpx:catalog-adopt:pi:{HEX[1:]}", None),
        (f"plugin:acpx:catalog-adopt:pi:{HEX}:more", None),
        ("main", None),
    ],
)
def test_the_key_of_an_adopted_session_names_its_catalog(rest: str, catalog: str | None) -> None:
    assert adopted_from(f"agent:main:{rest}") == catalog
    assert adopted_from(rest) is None


def test_hashed_texts_answer_as_texts_do() -> None:
    plain, hashed = ("a", "b", "a"), texts("a", "b", "a")
    for text in ("a", "b", "c", "", digest("a")):
        assert (text in hashed) == (text in plain)
        assert echo_of(text, hashed) == echo_of(text, plain)
    assert hashed.index("b") == plain.index("b")
    assert "b" in hashed[1:]
    assert "b" not in hashed[2:]
    with pytest.raises(ValueError, match="not in"):
        hashed.index("c")
    assert hashed == texts("a", "b", "a") != texts("a", "b")


def test_a_digest_is_of_the_normalised_text() -> None:
    assert digest_of(" do\u00a0 the\nreport\ufeff") == digest("do the report") != digest("do the Report")
    assert digest_of(" \n") is None
    assert digest_of("\ud800") == digest("\ud800")


def test_the_newest_ten_are_kept_for_each_session_and_database(log: SignalLog, tmp_path: Path) -> None:
    assert [log.note_own_text(KEY, f"text {number}") for number in range(12)] == [*range(1, 11), 10, 10]
    assert log.note_own_text(KEY, " ") == 10
    assert log.note_own_text(PARENT, "text 11") == 1
    sidecar = Sidecar()
    kept = sidecar.own_texts(log.path, KEY, "main")
    assert kept == [digest(f"text {number}") for number in range(2, 12)]
    assert sidecar.own_texts(log.path, KEY, "work") == []
    assert sidecar.own_texts(str(tmp_path / "other.sqlite"), KEY, "main") == []
    own = EmbeddedSessions(lambda *session: sidecar.own_texts(log.path, *session)).own_texts(LINK, KEY)
    assert "text 11" in own
    assert "text 1" not in own


def test_nothing_is_noted_for_openclaws_sessions(tmp_path: Path) -> None:
    with SignalLog(openclaw_file(tmp_path / "log.sqlite")) as log, pytest.raises(RefusedError):
        log.note_own_text(KEY, "text")
    assert not os.path.exists(sidecar_path())


@pytest.mark.parametrize("length", [1, 5, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW])
def test_a_row_is_measured_whatever_its_length(tmp_path: Path, length: int) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"first\n" + b"x" * (length - 1))
    assert measure_row(str(path), 6) == Row(6, length - 1, ended=False)
    with path.open("ab") as file:
        file.write(b"\nmore\n")
    assert measure_row(str(path), 6) == Row(6, length, ended=True)


def test_only_an_ordinary_file_has_a_size(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"12345")
    assert size_of(str(path)) == 5
    for other in (tmp_path, path / "below", tmp_path / "gone", "a\0b"):
        assert size_of(str(other)) is None


def test_health_is_good_bad_or_unknown() -> None:
    assert {state for state in Health if state.good} == {Health.QUIET, Health.BEHIND, Health.WAITING}
    unknown = {state.name for state in Health if state.good is None}
    assert unknown == {"UNREADABLE", "ISOLATED", "ELSEWHERE", "SKIPPED", "FAILED", "UNWATCHED"}
