"""Check that the pages of the Detector and its alarms hold what the script writes, and that their pictures exist."""

import re

import pytest

from helpers.scripts import ROOT, import_script
from limpet_lab.bench._measurement import Figure

GUIDE = ROOT / "docs" / "guide"


@pytest.fixture(scope="module")
def script():
    return import_script("detector_page")


@pytest.mark.parametrize("page", ["detector.md", "alarms.md"])
def test_page_tables_match_the_benchmarks(script, page):
    """After `limpet bench … --json FILE`: python lab/pages/detector_page.py FILE."""
    text = (GUIDE / page).read_text(encoding="utf-8")
    assert script.fill_page(page, text) == text


@pytest.mark.parametrize("page", ["detector.md", "alarms.md"])
def test_every_picture_exists_and_has_alternative_text(page):
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", (GUIDE / page).read_text(encoding="utf-8"))
    assert pictures
    for words, path in pictures:
        assert len(words.split()) > 8
        assert (GUIDE / path).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_tables_contain_only_measured_figures(script):
    def map_by_name(*figures):
        return {each.name: each for each in figures}

    rates = map_by_name(
        Figure("change, Gaussian, d=1, 0% outliers, far 0.001", 0.931),
        Figure("change, Gaussian, d=1, 5% outliers, far 0.001", 0.8),
        Figure("change, Gaussian, d=1, 0% outliers, far 0.001, rows 200–2000", 1.7, "", 1.5),
    )
    assert "| Gaussian | 1 | 0.93 / – / 0.80 | – / – / – | – / – / – |" in script.make_rate_table(rates, "change")
    assert script.make_rate_table(rates, "change").count("\n") == 3
    assert "| Gaussian | 1 | 1.70 / – / – | – / – / – |" in script.make_rate_table(rates, "change", early=True)
    assert script.make_rate_table(rates, "anomaly") == script.NOT_MEASURED
    assert (
        "3 cells: the largest is 1.70 (Gaussian, d=1, 0% outliers, far 0.001, rows 200–2000)"
        in script.describe_rates(rates)
    )
    assert "Outside the goal: 1.70" in script.describe_rates(rates)
    with_setting = map_by_name(
        Figure("not promised: change, season 288, far 0.001", 7.0),
        Figure("not promised: change, season 288, far 0.001, with season=288", 1.0),
    )
    assert "| season 288 | 10⁻³ | 7.00 | – | 1.00 (`season=288`) |" in script.make_unpromised_table(with_setting)
    delays = map_by_name(
        Figure("1 sd, 5% outliers: ours", 20.0, "points"),
        Figure("1 sd, 5% outliers: KSWIN", 2000.0, "points"),
        Figure("1 sd, 5% outliers: ours over the quickest baseline", 0.5, "×"),
    )
    assert script.make_delay_table(delays, 0.05).endswith("| **limpet** | 20 |\n| KSWIN | none |\n")
    assert script.make_delay_table(delays, 0.0) == script.make_burst_table({}) == script.NOT_MEASURED
    shares = map_by_name(
        Figure("shift, K=1: of 40 runs", 99.5, "%"),
        Figure("shift, K=1: oracle", 100.0, "%"),
        Figure("shift, K=1: d 1", 100.0, "%"),
        Figure("shift, K=1: d 3", 99.0, "%"),
        Figure("1-D abrupt: S_tot, mean", 0.00031, "", 0.001),
    )
    assert "| shift, K=1 | 40 runs | 99.5 % | 100.0 % | 99.0 % (d 3) |" in script.make_recovery_table(shares)
    assert "| 1-D abrupt: S_tot, mean | 0.00031 | ≤ 0.001 |" in script.make_error_table(shares)
    real = map_by_name(
        Figure("24 series, NAB score: Detector()", 56.61), Figure("24 series, NAB score: EW Gaussian, step .01", 45.0)
    )
    assert "| 24 series, NAB score | 56.6 | 45 |" in script.make_real_streams_table(real)
    assert "`update`" in script.make_cost_table({})
    assert "| K = 1, d = 1 | 512 | – | " in script.make_cost_table(
        map_by_name(Figure("process, K=1, d=1", 512.3, "ns per point"))
    )
