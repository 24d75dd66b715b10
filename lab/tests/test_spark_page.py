"""Check the tables of the page of Spark against the benchmarks."""

from helpers.scripts import ROOT, script_of
from limpet_lab.bench._measurement import Figure


def test_the_figures_of_spark_are_those_of_the_benchmark():
    """After `limpet bench spark spark_crash --json FILE`: python lab/pages/spark_page.py FILE."""
    text = (ROOT / "docs" / "guide" / "spark.md").read_text(encoding="utf-8")
    assert script_of("spark_page").page_with_figures(text) == text


def test_costs_follow_from_two_micro_batches():
    """Rows take the difference of the long and the short one; the rest is for the states."""
    reach = script_of("spark_reach")
    model = reach.Measured(long=2.0, short=0.65, written=60.0, held=100.0, shuffled=16.0, cores=2)
    assert model.seconds_per_row == 3e-6
    assert abs(model.seconds_per_key - 1e-5) < 1e-12
    assert abs(model.core_seconds(10**6, 60) - (3000.0 + 1440 * 10.0)) < 1e-6


def test_noisy_times_are_not_used():
    """A short micro-batch that takes longer than a long one was disturbed."""
    reach = script_of("spark_reach")
    figures = {
        f"{reach.called(model, reach.GOAL_KEYS)}: {what}": Figure("", 1.0)
        for model in (reach.PLAIN, reach.COMPACT, reach.DETECTOR)
        for what in (reach.FULL_BATCH, reach.TENTH_BATCH, reach.WRITTEN, reach.HELD, reach.SHUFFLED)
    }
    assert reach.reach(figures) == reach.NOISY
    figures |= {name: Figure("", 2.0) for name in figures if name.endswith(reach.FULL_BATCH)}
    assert "11,574 rows per second" in reach.reach(figures)
