"""A position in a file or in the sidecar: what is stored, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openclaw_state.cli.position import NamedPosition, PositionFile
from openclaw_state.errors import StorageError, UsageError
from openclaw_state.sidecar import Sidecar


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "position"


@pytest.mark.parametrize("sequence", [0, 1, 2**53 - 1])
def test_what_was_saved_is_loaded(path: Path, sequence: int) -> None:
    for position in (PositionFile(str(path)), NamedPosition("/a/database", "reader")):
        assert position.load() is None
        position.save(sequence)
        assert position.load() == sequence


@pytest.mark.parametrize("content", ["5", "5\n", " 5 \r\n", "0005\n"])
def test_a_sequence_written_by_hand_is_taken(path: Path, content: str) -> None:
    path.write_text(content, newline="")
    assert PositionFile(str(path)).load() == 5


def test_what_could_not_be_replaced_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    position = PositionFile(str(path))
    position.save(1)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(StorageError, match=f"{path} could not be written: No space left on device"):
        position.save(2)
    assert [file.name for file in path.parent.iterdir()] == ["position"]
    assert position.load() == 1


def test_a_folder_is_refused_and_a_pipe_not_waited_for(path: Path, tmp_path: Path) -> None:
    os.mkfifo(path)
    for place in (path, tmp_path):
        with pytest.raises(UsageError, match="is not a file"):
            PositionFile(str(place)).load()


def test_each_says_how_to_go_on(path: Path) -> None:
    assert PositionFile(str(path)).resume == f"--position-file {path}"
    assert NamedPosition("/a/database", "reader").resume == "--position reader"
    assert NamedPosition("/a/database", "my desk").resume == "--position 'my desk'"


@pytest.mark.parametrize("value", ["five", -1, True, 1.5, [1], {"a": 1}])
def test_a_stored_value_that_is_no_sequence_is_told(value: object) -> None:
    Sidecar().save_position("/a/database", "tail", "reader", value)
    with pytest.raises(StorageError, match="holds no sequence under 'reader'"):
        NamedPosition("/a/database", "reader").load()
