"""Check the tables of runtime in the README and on their page against the benchmark, and that the pictures exist."""

import re

import pytest

from helpers.scripts import ROOT, script_of
from limpet_lab.bench._measurement import Figure


@pytest.fixture(scope="module")
def script():
    return script_of("runtime_page")


@pytest.mark.parametrize("page", ["docs/runtime.md", "README.md"])
def test_the_tables_are_those_of_the_benchmark(script, page):
    """After `limpet bench fleet runtime --json FILE`: python lab/pages/runtime_page.py FILE."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert script.page_with_figures(page, text) == text


def test_the_pictures_exist_and_are_described():
    page = ROOT / "docs" / "runtime.md"
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", page.read_text(encoding="utf-8"))
    assert {path.rpartition("/")[2] for _, path in pictures} >= {"runtime-streams.png", "runtime-sizes.png"}
    for words, path in pictures:
        assert len(words.split()) > 8
        assert (page.parent / path).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def figure(value, unit="ns per point", at_least=None):
    return Figure("", value, unit, None, at_least)


RUNTIME = {
    "K=2, d=1: state": figure(128.0, "bytes per stream"),
    "K=2, d=1: update(x)": figure(318.4),
    "K=2, d=1: process": figure(44.44),
    "K=2, d=1: fleet of 10^3": figure(25.0),
    "K=2, d=1: fleet of 10^5": figure(12.5),
    "river KSWIN: one stream": figure(412_345.0),
    "river KSWIN: a dict of 10^3": figure(500_000.0),
    "streams: fleet: 1": figure(20_000.0),
    "streams: fleet: 1000": figure(25.0),
    "components K: process: 8": figure(100.0),
}


def test_tables_hold_the_measured_figures_only(script):
    assert "| K = 2, d = 1 | 318 | 44.4 | 25 (40) | 12.5 (80) | – | 128 |\n" in script.whole(RUNTIME, {})
    assert "| river KSWIN | 412,000 | 500,000 | 10³ |\n" in script.baselines(RUNTIME)
    assert "| river KSWIN | 412,000 | – | 500,000 | – | – | – |\n" in script.short(RUNTIME, {})
    goals = script.goals({"K=2: speed": figure(40.0, "million/s", at_least=50.0)})
    assert "| K = 2: speed | 40 million/s | ≥ 50 ✗ |\n" in goals
    assert script.whole({}, {}) == script.short({}, {}) == script.NOT_MEASURED


def test_lines_are_drawn_in_their_panels(script):
    drawn = script.lines(RUNTIME, ("streams", "points per call"))
    assert drawn == {"streams": {"fleet": {1.0: pytest.approx(2e-5), 1000.0: pytest.approx(2.5e-8)}}}
