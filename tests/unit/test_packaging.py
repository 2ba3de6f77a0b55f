"""What an installation brings: every file of the package, and every manual page in its section."""

from __future__ import annotations

import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "man").glob("*.[1-9]"))


@pytest.fixture(scope="module")
def installed() -> Distribution:
    try:
        found = distribution("openclaw-state")
    except PackageNotFoundError:
        pytest.skip("the package is not installed here")
    if not any(str(file) == "openclaw_state/__init__.py" for file in found.files or ()):
        pytest.skip("an editable installation copies no files")
    return found


def test_every_manual_page_goes_to_its_section() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    table = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert table == {f"man/{page.name}": f"share/man/man{page.suffix[1:]}/{page.name}" for page in PAGES}


def test_installation_has_the_files_of_the_package(installed: Distribution) -> None:
    copied = {str(file) for file in installed.files or () if file.parts[0] == "openclaw_state"}
    source = {str(file.relative_to(ROOT)) for file in (ROOT / "openclaw_state").rglob("*") if file.is_file()}
    assert {name for name in copied if not name.endswith(".pyc")} == {
        name for name in source if not name.endswith(".pyc")
    }
    assert "openclaw_state/py.typed" in copied


def test_installed_manual_pages_are_those_of_the_source(installed: Distribution) -> None:
    pages = {
        file.name: Path(str(file.locate())).read_bytes()
        for file in installed.files or ()
        if "share/man/" in str(file)
    }
    assert pages == {page.name: page.read_bytes() for page in PAGES}
