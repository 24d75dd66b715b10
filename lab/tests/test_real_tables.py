"""The tables on real data, one restart of everything, against independent computations from the raw files."""

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

import limpet as lp
from limpet.datasets import Stream
from limpet.drift import PageHinkley
from limpet.metrics import benefit_auc, roc_auc, roc_auc_interval
from limpet.tuning import SweepResult
from limpet_lab.paper import (
    fig_skab_sample,
    fig_well_log_estimates,
    grids,
    table_auc_anomaly,
    table_auc_skab,
    table_auc_well_log,
    table_datasets,
)
from limpet_lab.paper.config import Plan
from limpet_lab.paper.context import ExperimentContext
from limpet_lab.paper.methods import DriftMethod, draw_start_points, filter_detector
from limpet_lab.paper.published import get_paper_cells, load_paper_tables

# What a setting does to a stream is what the tables show.
pytestmark = pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")

DATA_FOLDER = Path(__file__).parents[3] / "shared" / "data"
requires_data = pytest.mark.skipif(not DATA_FOLDER.is_dir(), reason="the real data sets are not next to the project")


# How cells are chosen: sweeps of made-up values, on which training and test disagree


class FakeContext(ExperimentContext):
    """A context that runs no sweep: values are random numbers of the shape that `measures` has."""

    def __init__(self, measures):
        super().__init__(Plan(trials=3, quick=True))
        self.measures = measures

    def run_sweep(self, method, streams, evaluate, restarts=1):
        variables = streams[0].y.shape[1] if isinstance(method, DriftMethod) else 1
        shape = (len(method.settings), len(streams), restarts if method.has_restarts else 1, variables, *self.measures)
        values = np.random.default_rng(zlib.crc32(f"{method.name} {streams[0].name}".encode())).random(shape)
        cannot_run = [i for i, s in enumerate(method.settings) if s.get("window", 99) < 2 * s.get("stat", 0)]
        values[cannot_run] = np.nan
        return SweepResult(method.settings, values, dict.fromkeys(cannot_run, "too short"))


def make_stream(name, d=3, **truth):
    y = np.random.default_rng(0).normal(size=(600, d))
    return Stream(y, labels=np.arange(600) % 10 == 0, name=name, split=300, **truth)


def check_a_column(result, i, method, training, testing):
    """training (settings, …, variables) decides, testing (settings, n, variables) fills the cell."""
    ((key, table),) = result.tables.items()
    column = table["metrics"][i]
    averages = {(s, v): training[s, ..., v].mean() for s in range(len(training)) for v in range(training.shape[-1])}
    setting, variable = max((pair for pair in averages if not np.isnan(averages[pair])), key=averages.get)
    chosen = result.chosen[key][column]
    assert table[method.name][i] == approximate_cell(testing[setting, :, variable])
    assert chosen[method.name]["training_auc"] == pytest.approx(averages[setting, variable])
    assert chosen[method.name].get("variable", 1) == variable + 1
    if method.name == "SRA":
        check_a_named_cell(result, i, "SRA-printed", method, grids.SRA_PRINTED[key][column], testing)


def check_a_named_cell(result, i, row, method, setting, testing):
    ((key, table),) = result.tables.items()
    assert table[row][i] == approximate_cell(testing[method.settings.index(setting), :, 0])
    assert setting.items() <= result.chosen[key][table["metrics"][i]][row].items()


def approximate_cell(values):
    return pytest.approx([np.mean(values), np.std(values)], rel=1e-12)


def test_well_log_cells_are_test_values_of_the_settings_selected_on_training_rows(monkeypatch):
    stream = make_stream("Well-log", 1, change_points={n: [150, 450 + n] for n in range(1, 6)})
    monkeypatch.setattr(table_auc_well_log, "load_well_log", lambda: stream)
    context = FakeContext((5, 2))
    result = table_auc_well_log.run(context)
    for method in table_auc_well_log.make_well_log_methods():
        values = context.run_sweep(method, [stream], None, 3).values[:, 0]
        for i in range(5):
            check_a_column(result, i, method, values[..., i, 0], values[..., i, 1])
        if method.name == "SRA":
            joint = method.settings[int(np.argmax(values[:, :, 0, :, 0].mean(axis=(1, 2))))]
            for i in range(5):
                testing = values[..., i, 1]
                check_a_named_cell(result, i, "SRA-joint", method, joint, testing)
                check_a_named_cell(result, i, "SRA-figure", method, grids.SRA_WELL_LOG_FIGURE, testing)


def test_skab_cells_are_means_over_odd_files_and_restarts(monkeypatch):
    streams = [make_stream(f"SKAB {n}", change_points=[200, 400]) for n in range(16)]
    monkeypatch.setattr(table_auc_skab, "load_skab", lambda *_, **__: streams)
    context = FakeContext((2,))
    result = table_auc_skab.run(context)
    for method in table_auc_skab.make_skab_methods(quick=True):
        values = context.run_sweep(method, streams, None, 2).values
        for i in range(2):
            training, testing = values[:, 0::2, ..., i], values[:, 1::2, ..., i].mean(axis=2)
            check_a_column(result, i, method, training, testing)


def test_anomaly_cells_are_test_values_of_the_settings_selected_on_training_rows(monkeypatch):
    streams = {name: make_stream(name) for name in ("SMTP", "THYROID")}
    monkeypatch.setattr(table_auc_anomaly, "LOADERS", {name: (lambda s=s: s) for name, s in streams.items()})
    context = FakeContext((2,))
    result = table_auc_anomaly.run(context)
    for i, name in enumerate(streams):
        for method in table_auc_anomaly.make_anomaly_methods(name, quick=True):
            values = context.run_sweep(method, [streams[name]], None, 3).values[:, 0]
            check_a_column(result, i, method, values[..., 0], values[..., 1])
        labels = streams[name].labels[300:]
        areas = [roc_auc(scores, labels) for scores in table_auc_anomaly.score_isolation_forest(streams[name], 3)]
        assert result.tables["auc_anomaly"]["IsolationForest"][i] == approximate_cell(areas)


def test_isolation_forest_is_fitted_on_training_rows_and_scores_the_rest():
    ensemble = pytest.importorskip("sklearn.ensemble")
    stream = make_stream("SMTP")
    forests = [ensemble.IsolationForest(random_state=restart).fit(stream.y[:300]) for restart in range(2)]
    expected = [-forest.score_samples(stream.y[300:]) for forest in forests]
    assert np.array_equal(table_auc_anomaly.score_isolation_forest(stream, 2), expected)


# The real data, one restart of everything


def compute_result(module):
    """Without Detector where there are several variables: it takes long to compile, and Well-log has it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LIMPET_DATA", str(DATA_FOLDER))
        if hasattr(module, "filter_detector"):
            patched.setattr(
                module, "filter_detector", lambda methods, dim, quick: filter_detector(methods, dim, quick=True)
            )
        return module.run(ExperimentContext(Plan(trials=1)))


@pytest.fixture(scope="module")
def well_log():
    return compute_result(table_auc_well_log)


@pytest.fixture(scope="module")
def skab():
    return compute_result(table_auc_skab)


@pytest.fixture(scope="module")
def anomaly():
    return compute_result(table_auc_anomaly)


def check_result(result, key):
    table, paper = result.tables[key], load_paper_tables()[key]
    json.dumps([result.tables, result.chosen, result.intervals, result.verdicts], allow_nan=False)
    assert table["metrics"] == paper["metrics"]
    assert set(paper) <= set(table)
    assert all(cell[0] == 0.5 for cell in table["constant"])
    assert any("window=20, stat=15" in why for why in result.cannot_run[key]["KSWIN"])
    for method in get_paper_cells(key):
        assert all(0.0 <= mean <= 1.0 and std >= 0.0 for mean, std in table[method])


def compute_scores(learner, y, kind="change_score"):
    """Those of a learner started on the drawn points of restart 0."""
    learner.process(draw_start_points(y, 0))
    return getattr(learner.process(y), kind)


def make_plain_sra(n_components, gamma, beta, M):
    return lp.SRA(n_components, gamma=gamma, beta=beta, M=M, norm="mean", n_init=20)


@requires_data
def test_data_sets_have_the_sizes_and_changes_of_the_paper():
    assert compute_result(table_datasets).tables["dataset_summary"]["SMTP"] == [95156, 3, 30]
    assert "at 574 and 919" in compute_result(fig_skab_sample).parts[0].caption
    assert "of 4050 rows without a score" in compute_result(fig_well_log_estimates).parts[1]


@requires_data
def test_well_log_auc_of_the_setting_of_the_figure_equals_an_independent_run(well_log):
    figure = [mean for mean, _ in well_log.tables["auc_well_log"]["SRA-figure"]]
    assert figure == pytest.approx([0.870, 0.836, 0.836, 0.722, 0.702], abs=0.002)


@requires_data
def test_well_log_is_tuned_on_the_first_part_and_scored_on_the_rest(well_log):
    """Rows 19 to 1549, and 1550 on; a change lends its benefit across the border."""
    check_result(well_log, "auc_well_log")
    y = np.loadtxt(DATA_FOLDER / "well_log" / "well.txt").reshape(-1, 1)
    times = json.loads((DATA_FOLDER / "well_log" / "change_points.json").read_text())["paper_t"]
    changes = [[t - 1 for t in times[annotator]] for annotator in ("6", "7", "8", "12", "13")]
    rates = (0.001, 0.003, 0.005, 0.01, 0.03, 0.05, 0.1)
    triples = [(g, b * g, m * g) for g in (2e6, 3e6, 4e6) for b in (0.01, 0.03, 0.05) for m in (1.0, 2.0, 3.0, 4.0)]
    scores = {
        "sEM": [compute_scores(lp.SEM(1, rho=rho, n_init=20), y) for rho in rates],
        "SRA": [compute_scores(make_plain_sra(1, *triple), y) for triple in [*triples, (2e4, 2e2, 4e4)]],
    }
    table, chosen = well_log.tables["auc_well_log"], well_log.chosen["auc_well_log"]
    for name, of_settings in scores.items():
        training = np.array([[benefit_auc(s, rows, 100, 19, 1550) for rows in changes] for s in of_settings])
        testing = np.array([[benefit_auc(s, rows, 100, 1550) for rows in changes] for s in of_settings])
        best = training.argmax(axis=0)
        columns = range(5)
        assert [mean for mean, _ in table[name]] == pytest.approx(testing[best, columns])
        areas = [chosen[f"annotation_{n}"][name]["training_auc"] for n in range(1, 6)]
        assert areas == pytest.approx(training[best, columns], rel=1e-9)
        if name == "SRA":
            assert [mean for mean, _ in table["SRA-joint"]] == pytest.approx(testing[training.mean(axis=1).argmax()])
            assert [mean for mean, _ in table["SRA-figure"]] == pytest.approx(testing[-1])
    untouched = lp.Detector().process(y).change_score
    assert table["Detector"] == [[pytest.approx(benefit_auc(untouched, rows, 100, 1550)), 0.0] for rows in changes]


@requires_data
def test_skab_is_standardised_on_20_rows_tuned_on_even_files_and_scored_on_odd_ones(skab):
    """sEM's scores do not depend on units, Page–Hinkley's do; of its eight variables the training files choose one."""
    check_result(skab, "auc_skab")
    rates, deltas = (0.01, 0.03, 0.05, 0.1, 0.3, 0.5), (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
    areas = {
        "sEM": np.empty((16, 2, len(rates), 1)),
        "PH": np.empty((16, 2, len(deltas), 8)),
    }
    for number in range(16):
        path = DATA_FOLDER / "skab" / "valve1" / f"{number}.csv"
        table = np.genfromtxt(path, delimiter=";", skip_header=1, usecols=range(1, 11))
        y, marks = table[:, :8], np.flatnonzero(table[:, 9] == 1)
        y = (y - y[:20].mean(axis=0)) / y[:20].std(axis=0)
        changes = [marks[0], marks[2] if len(marks) == 4 else marks[1]]
        scores = {
            "sEM": [compute_scores(lp.SEM(1, rho=rho, n_init=20), y)[:, None] for rho in rates],
            "PH": [PageHinkley(delta=delta).process(y) for delta in deltas],
        }
        for name, of_settings in scores.items():
            areas[name][number] = [
                [[benefit_auc(column, changes, tolerance, 19) for column in s.T] for s in of_settings]
                for tolerance in (20, 50)
            ]
    for name, values in areas.items():
        for i, column in enumerate(("Tb_20", "Tb_50")):
            training = values[0::2, i].mean(axis=0)
            setting, variable = np.unravel_index(training.argmax(), training.shape)
            record = skab.chosen["auc_skab"][column][name]
            assert record["training_auc"] == pytest.approx(training.max(), rel=1e-9)
            if name == "PH":
                assert (record["delta"], record["variable"]) == (deltas[setting], variable + 1)
            elif name == "sEM":
                assert record["rho"] == rates[setting]
            tested = values[1::2, i, setting, variable]
            assert skab.tables["auc_skab"][name][i] == pytest.approx([np.mean(tested), np.std(tested)])


@requires_data
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "first", "split", "components"), [("SMTP", 9_999, 40_000, 2), ("THYROID", 999, 2000, 3)]
)
def test_anomaly_methods_are_tuned_on_training_rows_and_scored_on_the_rest(anomaly, name, first, split, components):
    check_result(anomaly, "auc_anomaly")
    if name == "SMTP":
        with np.load(DATA_FOLDER / "smtp" / "smtp_adbench.npz") as arrays:
            y, labels = arrays["X"], arrays["y"]
    else:
        arrays = pytest.importorskip("scipy.io").loadmat(DATA_FOLDER / "thyroid" / "thyroid.mat")
        y, labels = arrays["X"], arrays["y"].ravel().astype(int)
    table, chosen = anomaly.tables["auc_anomaly"], anomaly.chosen["auc_anomaly"][name]
    i = table["metrics"].index(name)
    scores = {K: compute_scores(lp.IEM(K, n_init=20), y, "score") for K in (1, 2, 3)}
    training = {K: roc_auc(each[first:split], labels[first:split]) for K, each in scores.items()}
    best = max(training, key=training.get)
    assert chosen["iEM"]["n_components"] == best
    assert chosen["iEM"]["training_auc"] == pytest.approx(training[best], rel=1e-9)
    expected = {
        "iEM": scores[best][split:],
        "SRA-printed": compute_scores(make_plain_sra(components, 10.0, 0.5, 5.0), y, "score")[split:],
    }
    for row, tested in expected.items():
        assert table[row][i][0] == pytest.approx(roc_auc(tested, labels[split:]))
        for kind, together in (("rows", False), ("events", True)):
            interval = roc_auc_interval(tested, labels[split:], by_event=together)
            assert anomaly.intervals["auc_anomaly"][name][row][kind] == pytest.approx(list(interval))


@requires_data
@pytest.mark.long
def test_intervals_contain_their_cells_and_record_whether_they_contain_the_published_value(anomaly):
    table, intervals = anomaly.tables["auc_anomaly"], anomaly.intervals["auc_anomaly"]
    for i, name in enumerate(("SMTP", "THYROID")):
        assert set(intervals[name]) == set(table) - {"metrics"}
        for method, kinds in intervals[name].items():
            for low, high in kinds.values():
                assert low <= table[method][i][0] <= high
    assert [record["ours"] for record in anomaly.verdicts] == [mean for mean, _ in table["SRA"]]
    for record in anomaly.verdicts:
        low, high = record["interval"]
        assert [low, high] == intervals[record["cell"]]["SRA"]["events"]
        assert record["paper_inside_interval"] == (low <= record["paper"] <= high)
