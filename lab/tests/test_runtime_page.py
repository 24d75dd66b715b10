"""Check the tables of runtime in the README and on their page against the benchmark, and that the pictures exist."""

import re

import pytest

from helpers.scripts import ROOT, import_script
from limpet_lab.bench._measurement import Figure


@pytest.fixture(scope="module")
def script():
    return import_script("runtime_page")


@pytest.mark.parametrize("page", ["docs/runtime.md", "README.md"])
def test_runtime_tables_match_the_benchmark(script, page):
    """After `limpet bench fleet runtime --json FILE`: python lab/pages/runtime_page.py FILE."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert script.fill_page(page, text) == text


def test_pictures_exist_and_have_alternative_text():
    page = ROOT / "docs" / "runtime.md"
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", page.read_text(encoding="utf-8"))
    assert {path.rpartition("/")[2] for _, path in pictures} >= {"runtime-streams.png", "runtime-sizes.png"}
    for words, path in pictures:
        assert len(words.split()) > 8
        assert (page.parent / path).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def make_figure(value, unit="ns per point", at_least=None):
    return Figure("", value, unit, None, at_least)


RUNTIME_FIGURES = {
    "K=2, d=1: state": make_figure(128.0, "bytes per stream"),
    "K=2, d=1: update(x)": make_figure(318.4),
    "K=2, d=1: process": make_figure(44.44),
    "K=2, d=1: fleet of 10^3": make_figure(25.0),
    "K=2, d=1: fleet of 10^5": make_figure(12.5),
    "river KSWIN: one stream": make_figure(412_345.0),
    "river KSWIN: a dict of 10^3": make_figure(500_000.0),
    "streams: fleet: 1": make_figure(20_000.0),
    "streams: fleet: 1000": make_figure(25.0),
    "components K: process: 8": make_figure(100.0),
}


def test_tables_contain_only_measured_figures(script):
    assert "| K = 2, d = 1 | 318 | 44.4 | 25 (40) | 12.5 (80) | – | 128 |\n" in script.make_page_section(
        RUNTIME_FIGURES, {}
    )
    assert "| river KSWIN | 412,000 | 500,000 | 10³ |\n" in script.make_baseline_table(RUNTIME_FIGURES)
    assert "| river KSWIN | 412,000 | – | 500,000 | – | – | – |\n" in script.make_readme_table(RUNTIME_FIGURES, {})
    goals = script.make_goal_table({"K=2: speed": make_figure(40.0, "million/s", at_least=50.0)})
    assert "| K = 2: speed | 40 million/s | ≥ 50 ✗ |\n" in goals
    assert script.make_page_section({}, {}) == script.make_readme_table({}, {}) == script.NOT_MEASURED


def test_lines_are_grouped_by_panel(script):
    drawn = script.group_lines(RUNTIME_FIGURES, ("streams", "points per call"))
    assert drawn == {"streams": {"fleet": {1.0: pytest.approx(2e-5), 1000.0: pytest.approx(2.5e-8)}}}
