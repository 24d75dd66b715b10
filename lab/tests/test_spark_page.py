"""The tables of the page of Spark are those of the benchmarks."""

import json

from helpers.scripts import ROOT, script_of


def test_the_figures_of_spark_are_those_of_the_benchmark():
    """After `limpet bench spark spark_crash --json FILE`: python lab/pages/spark_page.py FILE."""
    text = (ROOT / "docs" / "guide" / "spark.md").read_text(encoding="utf-8")
    assert script_of("spark_page").page_with_figures(text) == text
    results = json.loads((ROOT / "lab" / "results" / "spark.json").read_text(encoding="utf-8"))
    assert not results["quick"]
    assert {"spark", "spark_crash"} <= set(results)


def test_how_far_it_goes_follows_from_two_micro_batches():
    """Rows take what the long one takes more than the short one; the rest is for the states."""
    reach = script_of("spark_reach")
    model = reach.Measured(long=2.0, short=0.65, written=60.0, held=100.0, shuffled=16.0, cores=2)
    assert model.seconds_per_row == 3e-6
    assert abs(model.seconds_per_key - 1e-5) < 1e-12
    assert abs(model.core_seconds(10**6, 60) - (3000.0 + 1440 * 10.0)) < 1e-6


def test_times_that_mean_nothing_are_not_computed_with():
    """A short micro-batch that took longer than a long one says that something else was going on."""
    reach = script_of("spark_reach")
    figures = {
        f"{reach.called(model, reach.GOAL_KEYS)}: {what}": {"value": 1.0}
        for model in (reach.PLAIN, reach.COMPACT, reach.DETECTOR)
        for what in (reach.FULL_BATCH, reach.TENTH_BATCH, reach.WRITTEN, reach.HELD, reach.SHUFFLED)
    }
    assert reach.reach(figures) == reach.NOISY
    for name, figure in figures.items():
        figure["value"] = 2.0 if name.endswith(reach.FULL_BATCH) else figure["value"]
    assert "11,574 rows a second" in reach.reach(figures)
