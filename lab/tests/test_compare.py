"""Test the comparison with the paper: tables, verdicts, the first page of the report."""

from limpet_lab.paper import table_mse_multivariate
from limpet_lab.paper._compare import (
    EQUAL,
    REACHED,
    SHORT,
    compare_cells,
    compute_verdict,
    describe_auto,
    describe_baselines_ahead,
    describe_tally,
    make_auto_records,
)
from limpet_lab.paper._report import describe_run, write_whole_report
from limpet_lab.paper._results import Result
from limpet_lab.paper.config import Plan
from limpet_lab.paper.context import ExperimentContext


def test_verdicts():
    assert compute_verdict(0.7165, [0.717, 0.021]) == REACHED  # at the paper's three digits
    assert compute_verdict(0.6965, [0.717, 0.021]) == EQUAL
    assert compute_verdict(0.696, [0.717, 0.021]) == SHORT
    assert compute_verdict(0.971, [0.972, 0.0]) == SHORT
    assert compute_verdict(0.0106, [0.01, 0.001], largest=False) == SHORT
    assert compute_verdict(0.0103, [0.01, 0.001], largest=False) == REACHED


def test_baselines_ahead_of_sra_are_listed_without_dummies():
    table = {"SRA": [[0.5, 0.0]], "sEM": [[0.6, 0.0]], "KSWIN": [[0.4, 0.0]], "random": [[0.7, 0.0]]}
    assert describe_baselines_ahead(["Tb_20"], table) == "Ahead of SRA: sEM in Tb_20 (0.600 against 0.500)."
    assert "KSWIN" in describe_baselines_ahead(["S_bc"], table, largest=False)


def test_baseline_is_ahead_only_if_the_printed_digits_differ():
    assert (
        describe_baselines_ahead(["a"], {"SRA": [[0.5, 0.0]], "sEM": [[0.5004, 0.0]]}) == "No baseline is ahead of SRA."
    )
    assert "sEM" in describe_baselines_ahead(["a"], {"SRA": [[0.5, 0.0]], "sEM": [[0.5006, 0.0]]})


def test_table_has_our_value_the_published_one_and_their_difference():
    table = compare_cells(["a"], {"SRA": [[0.75, 0.02]], "truth": [[0.8, 0.0]]}, {"SRA": [[0.717, 0.021]]})
    assert table.rows[:2] == [["SRA", "0.750 ± 0.020"], ["paper", "0.717 ± 0.021"]]
    assert table.rows[2:] == [["difference", "+0.033"], ["truth", "0.800 ± 0.000"]]
    assert table.note_rows == [1, 2]


def make_result(*kinds):
    """A result with cells of these verdicts."""
    cell = {"table": "auc_x", "ours": 0.7, "paper": 0.7, "paper_std": 0.1}
    records = [{**cell, "cell": str(i), "verdict": kind} for i, kind in enumerate(kinds)]
    return Result("A table", verdicts=records, chosen={"auc_x": {"0": {"SRA": {"gamma": 3.0}}}}, parts=["words"])


def test_tally_counts_cells_by_verdict():
    result = make_result(REACHED, REACHED, EQUAL, SHORT, SHORT)
    result.verdicts[4]["paper_inside_interval"] = True
    assert "of 5 cells 2 reached, 1 equal, 2 short (1 of them with the paper’s value inside" in describe_tally(
        result.verdicts
    )
    finished = {"alpha": (result, 1.0)}
    assert describe_run(finished, Plan(trials=10)) == [describe_tally(result.verdicts)]
    assert "Quick run" in describe_run(finished, Plan(trials=4))[0]
    assert "None of these" in describe_run({}, Plan(trials=10))[0]


TABLE_ROWS = {"SRA": [[0.70, 0.0], [0.6, 0.0]], "SRA-heldout": [[0.1, 0.0]] * 2, "Detector": [[0.65, 0.0], [0.8, 0.0]]}
PAPER_ROWS = {"SRA": [[0.717, 0.021], [0.702, 0.023]]}


def test_detector_is_compared_with_the_published_sra_and_ours():
    first, second = make_auto_records("auc_x", ["a", "b"], TABLE_ROWS, PAPER_ROWS)
    assert (first["ours"], first["tuned"], first["paper"], first["verdict"]) == (0.65, 0.7, 0.717, SHORT)
    assert (second["ours"], second["tuned"], second["paper"], second["verdict"]) == (0.8, 0.6, 0.702, REACHED)
    assert "heldout" not in first
    assert describe_auto(["a", "b"], TABLE_ROWS, [first, second]) == (
        "Detector, untuned, reaches the paper’s SRA in b (0.800 against 0.702); it does not reach the paper’s SRA in a "
        "(0.650 against 0.717). Compared with our tuned SRA it is ahead in b (0.800 against 0.600); behind in a (0.650 "
        "against 0.700)."
    )
    assert "ahead in a (0.650 against 0.700); behind in b" in describe_auto(["a", "b"], TABLE_ROWS, [], largest=False)
    # Detector is not a baseline.
    assert describe_baselines_ahead(["a", "b"], TABLE_ROWS) == "No baseline is ahead of SRA."


def test_cells_of_the_detector_are_counted_separately(tmp_path):
    result = make_result(REACHED, SHORT)
    result.auto_verdicts = make_auto_records("auc_x", ["0", "1"], TABLE_ROWS, PAPER_ROWS)
    finished = {"alpha": (result, 1.0)}
    ours, auto = describe_run(finished, Plan(trials=10))
    assert ours == "SRA compared with the paper’s SRA: of 2 cells 1 reached, 0 equal, 1 short."
    assert auto == "Detector, untuned, compared with the paper’s tuned SRA: of 2 cells 1 reached, 0 equal, 1 short."
    write_whole_report(tmp_path / "r.html", finished, {}, Plan(trials=10))
    page = (tmp_path / "r.html").read_text()
    assert auto in page
    assert "1 of 2" in page
    assert "our tuned SRA" in page


def test_report_lists_the_cells_and_links_to_every_result(tmp_path):
    result = make_result(REACHED, SHORT)
    result.verdicts[1]["paper_inside_interval"] = True
    write_whole_report(tmp_path / "r.html", {"alpha": (result, 1.0)}, {}, Plan(trials=10))
    page = (tmp_path / "r.html").read_text()
    assert "short, in interval" in page
    assert "auc_x, 1" in page
    assert '<a href="#alpha">A table</a>' in page
    assert '<section id="alpha">' in page
    assert "γ 3" in page


def test_errors_in_three_dimensions_have_no_verdicts():
    result = table_mse_multivariate.run(ExperimentContext(Plan(trials=1, quick=True)))
    assert set(result.tables) == {"mse_multivariate", "mse_multivariate_notebook"}
    assert result.verdicts == []
