"""What a session sent itself, read from agents' databases in every state."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openclaw_state.errors import BadDatabaseError
from openclaw_state.model import Link
from openclaw_state.upstream import own_texts
from openclaw_state.upstream.embedded import EmbeddedSessions
from openclaw_state.upstream.sessions import AgentSessions
from tests.support import change

KEY = "agent:main:s"

_TABLES = """
    CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_valid INTEGER);
    CREATE TABLE session_transcript_index_state (session_id TEXT, indexed_seq INTEGER, needs_rebuild INTEGER);
    CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB,
        event_utf8_bytes INTEGER, navigation_json TEXT);
    CREATE TABLE transcript_event_identities (session_id TEXT, event_id TEXT, seq INTEGER, event_type TEXT);
    CREATE TABLE session_transcript_active_events (session_id TEXT, active_position INTEGER,
        event_seq INTEGER, message_position INTEGER, context_eligible INTEGER);
    CREATE TABLE session_transcript_cold_archives (session_id TEXT);
"""


class Agent:
    """An agent's database with one session, written as OpenClaw leaves it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(_TABLES)
        self.sql("INSERT INTO session_nodes VALUES (?, 'sid', 1)", KEY)
        self.count = 0

    def sql(self, sql: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(sql, values)

    def add(
        self,
        event: dict[str, Any] | str | None,
        *,
        kind: str | None = "message",
        frame: tuple[bytes, int] | None = None,
        navigation: dict[str, Any] | None = None,
    ) -> None:
        """One more row of the active path; kind None leaves it without an identity."""
        seq = self.count
        self.count += 1
        text = json.dumps(event) if isinstance(event, dict) else event
        self.sql(
            "INSERT INTO transcript_events VALUES ('sid', ?, ?, ?, ?, ?)",
            seq,
            text,
            *(frame or (None, None)),
            json.dumps(navigation) if navigation else None,
        )
        if kind:
            self.sql("INSERT INTO transcript_event_identities VALUES ('sid', ?, ?, ?)", f"e{seq}", seq, kind)
        self.sql("INSERT INTO session_transcript_active_events VALUES ('sid', ?, ?, ?, 1)", seq, seq, seq)
        self.sql("DELETE FROM session_transcript_index_state")
        self.sql("INSERT INTO session_transcript_index_state VALUES ('sid', ?, 0)", seq)

    def user(self, content: Any, **more: Any) -> None:
        self.add({"type": "message", "message": {"role": "user", "content": content, **more}})


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "agent.sqlite")


@pytest.fixture
def sessions(agent: Agent) -> Iterator[AgentSessions]:
    found = AgentSessions(lambda _: str(agent.path))
    yield found
    found.close()


def link(key: str = KEY, agent_id: str = "main") -> Link:
    return Link(key, agent_id, "claude", "gateway:local", "t", "claude-cli", None, None, 0, 0)


def texts(sessions: AgentSessions) -> tuple[str, ...]:
    return sessions.own_texts(link(), "sid")


def zstd() -> Any:
    """The library that this Python has for it."""
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    return pytest.importorskip(name)


def frame_of(text: str) -> tuple[bytes, int]:
    return zstd().compress(text.encode()), len(text.encode())


_USER_ROLE = {"navigation": {"message": {"role": "user"}}}


def test_the_ten_newest_come_oldest_first_and_normalised(agent: Agent, sessions: AgentSessions) -> None:
    for number in range(12):
        agent.user(f"  text\n {number} ")
    assert texts(sessions) == tuple(f"text {number}" for number in range(2, 12))


def test_a_role_hidden_behind_escapes_is_still_the_users(agent: Agent, sessions: AgentSessions) -> None:
    agent.add('{"message":{"role":"us\\u0065r","content":"escaped"}}')
    assert texts(sessions) == ("escaped",)


def test_a_compressed_prompt_is_decoded(agent: Agent, sessions: AgentSessions) -> None:
    event = json.dumps({"message": {"role": "user", "content": "long \ufeff" * 900}})
    agent.add(None, frame=frame_of(event), navigation=_USER_ROLE)
    assert texts(sessions) == (" ".join(["long"] * 900),)


def test_only_users_compressed_rows_need_a_decoder(
    agent: Agent, sessions: AgentSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_decoder(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(own_texts, "import_module", no_decoder)
    agent.user("plain")
    agent.add(None, frame=(b"frame", 9), navigation={"navigation": {"message": {"role": "assistant"}}})
    assert texts(sessions) == ("plain",)
    agent.add(None, frame=(b"frame", 9), navigation=_USER_ROLE)
    with pytest.raises(own_texts.OwnTextsError, match=r"^compressed transcript row$"):
        texts(sessions)


@pytest.mark.parametrize("change_by", [-1, 1])
def test_a_compressed_row_of_another_length_than_it_says_is_damaged(
    agent: Agent, sessions: AgentSessions, change_by: int
) -> None:
    frame, size = frame_of('{"message":{"role":"user","content":"x"}}')
    agent.add(None, frame=(frame, size + change_by), navigation=_USER_ROLE)
    with pytest.raises(own_texts.OwnTextsError, match="another length"):
        texts(sessions)


def test_a_frame_that_is_none_is_damaged(agent: Agent, sessions: AgentSessions) -> None:
    zstd()
    agent.add(None, frame=(b"not a frame", 40), navigation=_USER_ROLE)
    with pytest.raises(own_texts.OwnTextsError, match="damaged compressed row"):
        texts(sessions)


@pytest.mark.parametrize("kind", ["reset", None])
@pytest.mark.parametrize(("kept", "expected"), [(None, ("after",)), ("e1", ("kept", "after"))])
def test_a_reset_hides_what_it_did_not_keep(
    agent: Agent, sessions: AgentSessions, kind: str | None, kept: str | None, expected: tuple[str, ...]
) -> None:
    agent.user("hidden")
    agent.user("kept")
    agent.add({"type": "reset", "firstKeptEntryId": kept}, kind=kind)
    agent.user("after")
    assert texts(sessions) == expected


def test_the_newest_of_several_resets_counts(agent: Agent, sessions: AgentSessions) -> None:
    agent.add({"type": "reset"}, kind="reset")
    agent.user("between")
    agent.add({"type": "reset"}, kind=None)
    agent.user("after")
    assert texts(sessions) == ("after",)


def test_an_unfinished_index_is_no_empty_list_unless_openclaw_is_followed(
    agent: Agent, sessions: AgentSessions
) -> None:
    agent.user("x")
    agent.sql("UPDATE session_transcript_index_state SET needs_rebuild = 1")
    with pytest.raises(own_texts.OwnTextsError, match=r"^transcript index being rebuilt$"):
        texts(sessions)
    followed = AgentSessions(lambda _: str(agent.path), strict=True)
    assert texts(followed) == ()
    followed.close()


def test_a_damaged_row_is_a_failure_and_no_missing_text(agent: Agent, sessions: AgentSessions) -> None:
    agent.add('{"message":{"role":"user",')
    with pytest.raises(ValueError, match=r"JSON|Expecting|delimiter|double quotes"):
        texts(sessions)


def test_a_link_of_another_agent_than_its_key_is_refused(sessions: AgentSessions) -> None:
    with pytest.raises(own_texts.OwnTextsError, match="names the agent main, the link ops"):
        sessions.own_texts(link(agent_id="ops"), "sid")


def test_letter_case_makes_no_other_agent(agent: Agent, sessions: AgentSessions) -> None:
    agent.user("x")
    assert sessions.own_texts(link("Agent:MAIN:s", " Main "), "sid") == ("x",)


def test_entries_are_the_current_session_ids(agent: Agent, sessions: AgentSessions) -> None:
    agent.sql("INSERT INTO session_nodes VALUES ('agent:main:none', 'sid2', -1)")
    agent.sql("INSERT INTO session_nodes VALUES ('agent:main:blank', '', 1)")
    agent.sql("INSERT INTO session_nodes VALUES ('agent:main:zero', 'sid3', 0)")
    links = [link(f"agent:main:{name}") for name in ("s", "none", "blank", "zero", "absent")]
    assert sessions.entries(links) == {(KEY, "main"): "sid", ("agent:main:zero", "main"): "sid3"}


def test_an_agent_without_a_database_has_no_entries(tmp_path: Path) -> None:
    sessions = AgentSessions(lambda _: str(tmp_path / "absent.sqlite"))
    assert sessions.entries([link()]) == {}
    assert not (tmp_path / "absent.sqlite").exists()


def test_a_damaged_database_is_the_reason_of_its_own_links_alone(tmp_path: Path, agent: Agent) -> None:
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"nonsense" * 128)
    sessions = AgentSessions(lambda name: str(agent.path if name == "main" else damaged))
    found = sessions.entries([link(), link("agent:ops:s", "ops")])
    sessions.close()
    assert found[KEY, "main"] == "sid"
    assert isinstance(found["agent:ops:s", "ops"], BadDatabaseError)


def test_reading_changes_nothing_and_holds_no_lock(agent: Agent, sessions: AgentSessions) -> None:
    agent.user("x")
    before = agent.path.read_bytes()
    assert texts(sessions) == ("x",)
    assert agent.path.read_bytes() == before
    change(agent.path, "DELETE FROM session_nodes")
    assert sessions.entries([link()]) == {}


def test_in_the_tools_own_file_every_session_is_there_and_sent_nothing() -> None:
    sessions = EmbeddedSessions()
    assert sessions.entries([link()]) == {(KEY, "main"): KEY}
    assert sessions.own_texts(link(), KEY) == ()
    assert not sessions.run_active(KEY)
