"""Streaks of missing checks in the sidecar: written at once, apart for each database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from openclaw_state.errors import StorageError
from openclaw_state.results import Streak, StreakKey
from openclaw_state.sidecar import Sidecar

KEY = StreakKey("agent:main:a", "main", "0123456789abcdef")
OTHER = StreakKey("agent:main:a", "main", "fedcba9876543210")


@pytest.fixture
def sidecar(tmp_path: Path) -> Sidecar:
    return Sidecar(str(tmp_path / "state" / "sidecar.sqlite"))


def test_reading_creates_nothing(sidecar: Sidecar) -> None:
    assert dict(sidecar.streaks("/a.sqlite")) == {}
    assert not Path(sidecar.path).parent.exists()


def test_each_change_is_written_down_at_once(sidecar: Sidecar) -> None:
    kept = sidecar.streaks("/a.sqlite")
    kept[KEY] = Streak(1, 10, 20)
    kept[OTHER] = Streak(1, 10, 20)
    kept[KEY] = Streak(2, 10, 30)
    assert dict(sidecar.streaks("/a.sqlite")) == {KEY: Streak(2, 10, 30), OTHER: Streak(1, 10, 20)}
    del kept[KEY]
    assert kept.pop(KEY, None) is None
    assert dict(sidecar.streaks("/a.sqlite")) == dict(kept) == {OTHER: Streak(1, 10, 20)}
    assert kept.failure is None


def test_databases_have_their_own_whatever_name_leads_to_them(sidecar: Sidecar, tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").touch()
    (tmp_path / "b.sqlite").symlink_to(tmp_path / "a.sqlite")
    sidecar.streaks(str(tmp_path / "b.sqlite"))[KEY] = Streak(1, 10, 20)
    assert dict(sidecar.streaks(str(tmp_path / "a.sqlite"))) == {KEY: Streak(1, 10, 20)}
    assert dict(sidecar.streaks(str(tmp_path / "c.sqlite"))) == {}


def test_what_cannot_be_written_holds_in_memory_and_is_told(sidecar: Sidecar) -> None:
    kept = sidecar.streaks("/a.sqlite")
    Path(sidecar.path).parent.write_text("in the way")
    kept[KEY] = Streak(1, 10, 20)
    assert kept[KEY] == Streak(1, 10, 20)
    assert isinstance(kept.failure, StorageError)


def test_a_damaged_sidecar_is_an_error_and_no_empty_answer(sidecar: Sidecar) -> None:
    Path(sidecar.path).parent.mkdir()
    Path(sidecar.path).write_text("not a database at all, but long enough to look like one")
    with pytest.raises(StorageError):
        sidecar.streaks("/a.sqlite")


def test_a_sidecar_of_an_earlier_release_gets_the_table(sidecar: Sidecar) -> None:
    sidecar.save_position("/a.sqlite", "tail", "x", 1)
    with sqlite3.connect(sidecar.path) as connection:
        connection.execute("DROP TABLE streaks")
    connection.close()
    sidecar.streaks("/a.sqlite")[KEY] = Streak(1, 10, 20)
    assert len(sidecar.streaks("/a.sqlite")) == 1
