"""Check the tables of the page of Spark against the benchmarks."""

from helpers.scripts import ROOT, import_script
from limpet_lab.bench._measurement import Figure


def test_spark_tables_match_the_benchmark():
    """After `limpet bench spark spark_crash --json FILE`: python lab/pages/spark_page.py FILE."""
    text = (ROOT / "docs" / "guide" / "spark.md").read_text(encoding="utf-8")
    assert import_script("spark_page").fill_page(text) == text


def test_costs_are_computed_from_two_micro_batches():
    """Rows take the difference of the long and the short one; the rest is for the states."""
    script = import_script("spark_reach")
    model = script.MeasuredModel(
        full_batch_s=2.0,
        tenth_batch_s=0.65,
        written_bytes_per_key=60.0,
        state_bytes_per_key=100.0,
        shuffled_bytes_per_row=16.0,
        n_cores=2,
    )
    assert model.seconds_per_row == 3e-6
    assert abs(model.seconds_per_key - 1e-5) < 1e-12
    assert abs(model.compute_core_seconds(10**6, 60) - (3000.0 + 1440 * 10.0)) < 1e-6


def test_inconsistent_times_are_not_used():
    """A short micro-batch that takes longer than a long one was disturbed."""
    script = import_script("spark_reach")
    labels = (
        script.FULL_BATCH_LABEL,
        script.TENTH_BATCH_LABEL,
        script.WRITTEN_BYTES_LABEL,
        script.STATE_BYTES_LABEL,
        script.SHUFFLED_BYTES_LABEL,
    )
    figures = {
        f"{script.format_case(model, script.N_GOAL_KEYS)}: {label}": Figure("", 1.0)
        for model in (script.PLAIN_MODEL, script.COMPACT_MODEL, script.DETECTOR_MODEL)
        for label in labels
    }
    assert script.make_section(figures) == script.NOISY_TEXT
    figures |= {name: Figure("", 2.0) for name in figures if name.endswith(script.FULL_BATCH_LABEL)}
    assert "11,574 rows per second" in script.make_section(figures)
