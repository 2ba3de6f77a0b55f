"""The picture in the README shows what the board draws now, and nothing of the machine that drew it."""

from __future__ import annotations

import os
import re
import sys

import pytest

from tests.docs import picture
from tests.docs.examples import ROOT
from tests.docs.picture import PICTURE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the picture is drawn where the tests run")


@pytest.fixture(scope="module")
def committed() -> str:
    return PICTURE.read_text("utf-8")


def test_the_readme_shows_the_picture() -> None:
    (path,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert ROOT / path == PICTURE


def test_the_picture_shows_what_the_board_draws_now(committed: str) -> None:
    assert picture.shown(committed) == picture.shown(picture.draw()), "python -m tests.docs.picture draws it"


def test_the_picture_tells_nothing_of_its_machine_and_loads_nothing(committed: str) -> None:
    words = [word for _, word in picture.shown(committed)]
    assert "~/.local/share/openclaw-state/openclaw.sqlite" in words
    assert "/tmp" not in committed
    assert os.path.expanduser("~") not in committed
    assert not re.search(r"url\((?!#)|href|@import|@font-face", committed)
    assert len(committed) < 60_000
