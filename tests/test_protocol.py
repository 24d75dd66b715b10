"""The protocol of the reproduction: grids, starts, tuning, scores, and what is said of them in words."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import holdfast as hf
from holdfast.cli import app
from holdfast.datasets import Stream, make_abrupt
from holdfast.errors import BadInputError, DataError
from holdfast.experiments import grids, running
from holdfast.experiments.auc_anomaly import anomaly_methods
from holdfast.experiments.auc_skab import skab_methods
from holdfast.experiments.auc_tables import oracle_auc
from holdfast.experiments.auc_well_log import well_log_methods
from holdfast.experiments.choosing import choose_setting
from holdfast.experiments.comparison import rivals_above, side_by_side, verdict
from holdfast.experiments.lab import AUC, S_EVAL, Lab, measure, synthetic_methods
from holdfast.experiments.methods import Drift, Learner, sem, sra
from holdfast.experiments.paper import paper_cells, paper_tables
from holdfast.experiments.parts import read_part, write_part
from holdfast.experiments.plan import Plan
from holdfast.experiments.result import Result
from holdfast.experiments.running import NAMES, reproduce
from holdfast.experiments.starts import drawn_start
from holdfast.metrics import benefit_auc, roc_auc, segment_mse
from holdfast.plots.report import Facts, Picture, Table
from holdfast.tuning import CannotRunError, Sweep

SHARED = Path(__file__).parents[2] / "shared"
needs_data = pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason="the real data sets are not beside the project (../shared/data)"
)
TABLES = [key for key in paper_tables() if key != "_about"]


def quiet() -> Console:
    return Console(quiet=True)


def run(names, out, trials=1, **kwargs):
    assert reproduce(names, out, Plan(trials=trials), quiet(), **kwargs)
    return json.loads((out / "results.json").read_text())


# The paper's numbers and grids


def test_the_papers_numbers_are_those_handed_down():
    handed = SHARED / "paper" / "tables.json"
    if not handed.is_file():
        pytest.skip("the paper's tables are not beside the project (../shared/paper)")
    assert paper_tables() == json.loads(handed.read_text())


def test_appendix_b_has_the_papers_sixty_rows():
    rows = [tuple(row[:3]) for row in paper_tables()["appendix_b_auc_of_sra"]["rows"]]
    assert [tuple(setting.values()) for setting in grids.SRA_APPENDIX_B] == rows
    assert len(rows) == 60


def test_what_the_paper_says_it_chose_is_in_the_grids():
    for kind in ("abrupt", "gradual"):
        assert grids.SRA_PRINTED["mse_univariate"][kind] in grids.SRA_UNIVARIATE
        assert grids.SRA_PRINTED["auc_univariate"][kind] in grids.SRA_UNIVARIATE
        assert grids.SRA_PRINTED["mse_multivariate"][kind] in grids.SRA_MULTIVARIATE
        assert grids.SRA_PRINTED["auc_multivariate"][kind] in grids.SRA_MULTIVARIATE
    for printed in grids.SRA_PRINTED["auc_well_log"].values():
        assert printed in well_log_methods()[0].settings
    assert grids.SRA_WELL_LOG_FIGURE in grids.SRA_WELL_LOG
    for printed in grids.SRA_PRINTED["auc_skab"].values():
        assert printed in skab_methods()[0].settings
    for name, printed in grids.SRA_PRINTED["auc_anomaly"].items():
        assert printed in anomaly_methods(name)[0].settings
    assert len(grids.SRA_UNIVARIATE) == 100
    assert len(grids.SRA_MULTIVARIATE) == 120


def test_all_seven_methods_and_the_dummies_are_in_every_comparison():
    seven = {"SRA", "SDEM", "iEM", "sEM", "ADWIN", "KSWIN", "PH"}
    for methods in (
        synthetic_methods(1),
        synthetic_methods(3),
        well_log_methods(),
        skab_methods(),
        anomaly_methods("SMTP"),
    ):
        assert seven | {"constant", "random", "time", "PH-river"} == {method.name for method in methods}


# The protocol


@pytest.mark.filterwarnings("ignore::holdfast.errors.HoldfastWarning")
@pytest.mark.parametrize("anomalies", [False, True])
def test_no_score_looks_ahead(anomalies):
    """Whatever comes later, the scores of the rows before stay the same, bit for bit, for every method."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(600, 3)) + np.where(np.arange(600) < 300, 0.0, 2.0)[:, None]
    other = y.copy()
    other[400:] = 50.0
    methods = anomaly_methods("SMTP") if anomalies else synthetic_methods(3)
    for method in methods:
        setting = method.settings[-1]  # a KSWIN that can run
        if method.name == "random":
            continue  # its seed is taken from the stream
        first, second = (method.run(setting, Stream(values), 0).scores for values in (y, other))
        assert np.array_equal(first[:400], second[:400], equal_nan=True), method.name
        assert first.shape == (600, 3 if isinstance(method, Drift) else 1)


def test_a_dropped_point_has_no_change_score_but_keeps_its_anomaly_score():
    y = np.random.default_rng(0).normal(size=(300, 1))
    y[200] = 40.0
    setting = {"n_components": 1, "gamma": 5.0, "rho": 0.01}
    for_changes = Learner("SRA", [setting], sra).run(setting, Stream(y), 0).scores[:, 0]
    for_anomalies = Learner("SRA", [setting], sra, anomalies=True).run(setting, Stream(y), 0).scores[:, 0]
    assert math.isnan(for_changes[200])
    assert np.nanargmax(for_anomalies) == 200


def test_rivals_start_exactly_as_sra_does():
    """With the same step size and no threshold in reach, SRA and sEM are the same, to the last bit."""
    stream = make_abrupt(n=1000, seed=3)
    for drawn in (False, True):
        ours = Learner("SRA", [], sra, drawn=drawn).run({"gamma": 1e9, "rho": 0.01}, stream, 4).scores
        theirs = Learner("sEM", [], sem, drawn=drawn).run({"rho": 0.01}, stream, 4).scores
        assert np.array_equal(ours, theirs, equal_nan=True)


def test_sem_is_the_learner_of_that_name():
    stream = make_abrupt(n=1000, seed=3)
    theirs = hf.SEM(2, rho=0.01).process(stream.y).score
    assert np.array_equal(sem(rho=0.01).process(stream.y).score, theirs, equal_nan=True)


def test_points_to_start_from_are_drawn_in_the_range_of_the_first():
    y = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 1000.0]
    points = drawn_start(y, 0)
    assert points.shape == (20, 2)
    assert (points >= y[19:40].min(axis=0)).all()
    assert (points <= y[19:40].max(axis=0)).all()
    assert not np.array_equal(points, drawn_start(y, 1))


def test_a_window_shorter_than_two_samples_is_reported():
    methods = {method.name: method for method in synthetic_methods(1)}
    with pytest.raises(CannotRunError, match="half of window"):
        methods["KSWIN"].run({"alpha": 0.01, "window": 20, "stat": 15}, make_abrupt(n=100), 0)


def test_a_sweep_measures_what_a_single_run_gives():
    lab = Lab(Plan(trials=1))
    method = synthetic_methods(1)[0]
    method = Learner("SRA", [{"gamma": 3.0, "beta": 0.1, "M": 5.0}], method.make)
    values = lab.synthetic(method, "abrupt", 1, "printed").values[0, 0, 0, 0]
    stream = make_abrupt(seed=0)
    trace = sra(gamma=3.0, beta=0.1, M=5.0).process(stream.y, record="means")
    assert values[AUC] == benefit_auc(trace.change_score, 10000, 100)
    assert values[S_EVAL:].tolist() == list(segment_mse(trace.means, stream.means, 10000))
    assert measure(method, method.settings[0], stream, errors=False).shape == (1, 1)


def test_held_out_streams_are_never_scored():
    plan = Plan(trials=10)
    assert not set(plan.seeds) & set(plan.held_out_seeds)
    lab = Lab(Plan(trials=1))
    assert not np.array_equal(
        lab.streams("abrupt", 1, "printed")[0].y, lab.streams("abrupt", 1, "printed", held_out=True)[0].y
    )


def test_a_detectors_variable_is_chosen_with_its_setting():
    method = Drift("PH", [{"delta": 1.0}, {"delta": 2.0}], None)
    areas = np.zeros((2, 4, 3))  # settings, streams, variables
    areas[1, :, 2] = 0.9
    best = choose_setting(method, Sweep(method.settings, areas), areas)
    assert (best.setting, best.variable, best.written) == (1, 2, {"delta": 2.0, "variable": 3})


def test_the_oracle_is_near_what_an_honest_score_can_reach():
    assert 0.65 < oracle_auc(make_abrupt(seed=0)) < 0.78


# In words


def test_verdicts():
    assert verdict(0.7165, [0.717, 0.021]) == "at or above"  # at the paper's three digits
    assert verdict(0.6965, [0.717, 0.021]) == "equal"
    assert verdict(0.696, [0.717, 0.021]) == "short"
    assert verdict(0.971, [0.972, 0.0]) == "short"
    assert verdict(0.0106, [0.01, 0.001], largest=False) == "short"
    assert verdict(0.0103, [0.01, 0.001], largest=False) == "at or above"


def test_rivals_above_are_named_and_dummies_are_not():
    table = {"SRA": [[0.5, 0.0]], "sEM": [[0.6, 0.0]], "KSWIN": [[0.4, 0.0]], "random": [[0.7, 0.0]]}
    assert rivals_above(["Tb_20"], table) == "Honest rivals above SRA: sEM in Tb_20 (0.600 against 0.500)."
    assert "KSWIN" in rivals_above(["S_bc"], table, largest=False)


def test_a_table_has_ours_the_papers_and_the_difference():
    table = side_by_side(["a"], {"SRA": [[0.75, 0.02]], "oracle": [[0.8, 0.0]]}, {"SRA": [[0.717, 0.021]]})
    assert table.rows[:2] == [["SRA", "0.750 ± 0.020"], ["paper", "0.717 ± 0.021"]]
    assert table.rows[2:] == [["difference", "+0.033"], ["oracle", "0.800 ± 0.000"]]
    assert table.aside == [1, 2]
