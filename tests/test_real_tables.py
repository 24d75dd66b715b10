"""The tables on real data, one restart of everything, against independent computations from the raw files."""

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


# The real data, one restart of everything


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOLDFAST_DATA", str(SHARED / "data"))
        names = ["auc_well_log", "auc_skab", "auc_anomaly", "dataset_summary", "skab_sample", "well_log_estimates"]
        yield run(names, tmp_path_factory.mktemp("real"))


@needs_data
def test_the_real_tables_have_the_papers_keys_and_values_that_make_sense(real):
    for key in ("auc_well_log", "auc_skab", "auc_anomaly"):
        paper = paper_tables()[key]
        assert real[key]["metrics"] == paper["metrics"]
        assert set(paper) <= set(real[key])
        assert all(cell[0] == 0.5 for cell in real[key]["constant"])
        assert any("window=20, stat=15" in why for why in real["cannot_run"][key]["KSWIN"])
        for method in paper_cells(key):
            assert all(0.0 <= mean <= 1.0 and std >= 0.0 for mean, std in real[key][method])
    low, high = real["intervals"]["auc_anomaly"]["SMTP"]["SRA"]
    assert low < real["auc_anomaly"]["SRA"][0][0] < high
    assert real["dataset_summary"]["SMTP"] == [95156, 3, 30]
    assert real["not_finished"] == {}


@needs_data
def test_the_figures_setting_gives_what_an_independent_trial_gave_on_well_log(real):
    figure = [mean for mean, _ in real["auc_well_log"]["SRA-figure"]]
    assert figure == pytest.approx([0.870, 0.836, 0.836, 0.722, 0.702], abs=0.002)


WELL_LOG_RATES, SKAB_RATES = ([setting["rho"] for setting in g] for g in (grids.SEM_WELL_LOG, grids.SEM_SKAB))


def scores_of(learner, y, kind="change_score"):
    """Those of a learner started on the drawn points of restart 0."""
    learner.process(drawn_start(y, 0))
    return getattr(learner.process(y), kind)


@needs_data
@pytest.mark.filterwarnings("ignore::holdfast.errors.HoldfastWarning")
def test_well_log_is_tuned_on_the_first_part_and_scored_on_the_rest(real):
    y = np.loadtxt(SHARED / "data" / "well_log" / "well.txt").reshape(-1, 1)
    times = json.loads((SHARED / "data" / "well_log" / "change_points.json").read_text())["paper_t"]
    for column, annotator in (("annotation_1", "6"), ("annotation_4", "12"), ("annotation_5", "13")):
        changes = [t - 1 for t in times[annotator]]
        scores = {rho: scores_of(hf.SEM(1, rho=rho, n_init=20), y) for rho in WELL_LOG_RATES}
        training = {rho: benefit_auc(each[:1550], changes_before(changes), 100, 19) for rho, each in scores.items()}
        best = max(training, key=training.get)
        assert real["chosen"]["auc_well_log"][column]["sEM"]["rho"] == best
        place = real["auc_well_log"]["metrics"].index(column)
        tested = benefit_auc(scores[best], changes, 100, 1550)
        assert real["auc_well_log"]["sEM"][place][0] == pytest.approx(tested)


def changes_before(changes):
    """Changes whose benefit reaches into the training part."""
    return [change for change in changes if change < 1650]


@needs_data
@pytest.mark.filterwarnings("ignore::holdfast.errors.HoldfastWarning")
def test_skab_is_tuned_on_even_files_and_scored_on_odd_ones(real):
    areas = {}
    for number in range(16):
        path = SHARED / "data" / "skab" / "valve1" / f"{number}.csv"
        table = np.genfromtxt(path, delimiter=";", skip_header=1, usecols=range(1, 11))
        y, marks = table[:, :8], np.flatnonzero(table[:, 9] == 1)
        y = (y - y[:20].mean(axis=0)) / y[:20].std(axis=0)
        changes = [marks[0], marks[2] if len(marks) == 4 else marks[1]]
        for rho in SKAB_RATES:
            scores = scores_of(hf.SEM(1, rho=rho, n_init=20), y)
            areas[number, rho] = [benefit_auc(scores, changes, tolerance, 19) for tolerance in (20, 50)]
    for place, column in enumerate(("Tb_20", "Tb_50")):
        training = {rho: np.mean([areas[n, rho][place] for n in range(0, 16, 2)]) for rho in SKAB_RATES}
        best = max(training, key=training.get)
        assert real["chosen"]["auc_skab"][column]["sEM"]["rho"] == best
        tested = [areas[n, best][place] for n in range(1, 16, 2)]
        assert real["auc_skab"]["sEM"][place] == pytest.approx([np.mean(tested), np.std(tested)])


@needs_data
@pytest.mark.filterwarnings("ignore::holdfast.errors.HoldfastWarning")
def test_anomalies_are_tuned_on_the_training_span_and_scored_on_the_rest(real):
    thyroid = pytest.importorskip("scipy.io").loadmat(SHARED / "data" / "thyroid" / "thyroid.mat")
    y, labels = thyroid["X"], thyroid["y"].ravel().astype(int)
    scores = {K: scores_of(hf.IEM(K, n_init=20), y, "score") for K in (1, 2, 3)}
    training = {K: roc_auc(each[999:2000], labels[999:2000]) for K, each in scores.items()}
    best = max(training, key=training.get)
    assert real["chosen"]["auc_anomaly"]["THYROID"]["iEM"]["n_components"] == best
    assert real["auc_anomaly"]["iEM"][1][0] == pytest.approx(roc_auc(scores[best][2000:], labels[2000:]))
