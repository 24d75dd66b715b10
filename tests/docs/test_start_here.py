"""Check that following "start here" word by word, from an empty environment, prints what the page shows."""

import doctest
import shutil
from pathlib import Path

import pytest

from helpers.packages import make_clean_environment
from walking import environment_here, walk

PAGE = Path(__file__).parents[2] / "docs" / "start-here.md"
CHECKER = doctest.OutputChecker()
OUTPUT_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def follow(page, folder, environment, **how):
    """Follow the page, and compare what was printed with what it shows."""
    results = walk(page, folder, environment, **how)
    for typed, printed in results:
        assert CHECKER.check_output(typed.shown, printed, OUTPUT_FLAGS), (
            f"$ {typed.command}\nshown:\n{typed.shown}\nprinted:\n{printed}"
        )
    return [typed.command for typed, _ in results]


def test_current_environment(tmp_path):
    """With the packages installed here, without creating an environment."""
    commands = follow(PAGE.read_text(encoding="utf-8"), tmp_path, environment_here(), here=True)
    assert "limpet detect pump.csv" in commands
    assert {path.name for path in tmp_path.iterdir()} >= {"report.html", "alarms.csv", "pump.limpet"}


@pytest.mark.package
def test_empty_environment(tmp_path, wheel):
    """Word by word, except that limpet is installed from this folder."""
    page, install = PAGE.read_text(encoding="utf-8"), "pip install --quiet 'limpet[plots]'"
    assert page.count(install) == 1
    folder, home = tmp_path / "empty", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    cache = {name: str(home / name) for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
    page = page.replace(install, f"pip install --quiet '{wheel}[plots]'")
    follow(page, folder, make_clean_environment(**cache))
    assert shutil.which("limpet", path=str(folder / "hello" / "bin"))
    assert "data:image/png" in (folder / "report.html").read_text(encoding="utf-8")
