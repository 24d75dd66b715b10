"""The protocol of the reproduction: starts, tuning, scores."""

import math
import zlib

import numpy as np
import pytest

import limpet as lp
from limpet.datasets import Stream, make_abrupt, make_gradual
from limpet.metrics import benefit_auc, segment_mse
from limpet.tuning import CannotRunError, SweepResult
from limpet_lab.paper import (
    fig_alpha,
    fig_gamma_rho,
    grids,
    table_appendix_b,
    table_auc_multivariate,
    table_auc_univariate,
    table_mse_multivariate,
    table_mse_univariate,
)
from limpet_lab.paper._select import choose_setting
from limpet_lab.paper.config import Plan
from limpet_lab.paper.context import (
    AUC,
    S_EVAL,
    ExperimentContext,
    make_synthetic_learners,
    make_synthetic_methods,
    measure,
)
from limpet_lab.paper.methods import (
    DETECTOR_NAME,
    DriftMethod,
    DummyMethod,
    LearnerMethod,
    draw_start_points,
    make_detector_method,
    make_sem,
    make_sra,
)
from limpet_lab.paper.oracle import compute_truth_auc, compute_truth_with_memory_auc
from limpet_lab.paper.table_auc_anomaly import make_anomaly_methods
from limpet_lab.paper.table_auc_skab import make_skab_methods
from limpet_lab.paper.table_auc_well_log import make_well_log_methods

# What a setting does to a stream is what the tables show.
pytestmark = pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")

STREAM_MAKERS = {"abrupt": make_abrupt, "gradual": make_gradual}
SYNTHETIC_TABLES = [("univariate", 1, "printed"), ("multivariate", 3, "printed"), ("multivariate", 3, "notebook")]


# How methods are run


def select_learners(methods):
    return [method for method in methods if isinstance(method, LearnerMethod) and method.name != DETECTOR_NAME]


def test_start_points_are_drawn_on_real_data_and_rejected_points_scored_for_anomalies_only():
    assert {
        (m.starts_on_drawn_points, m.scores_rejected_points) for m in select_learners(make_synthetic_methods(1))
    } == {(False, False)}
    assert {
        (m.starts_on_drawn_points, m.scores_rejected_points)
        for m in select_learners([*make_well_log_methods(), *make_skab_methods()])
    } == {(True, False)}
    for name in ("SMTP", "THYROID"):
        assert {
            (m.starts_on_drawn_points, m.scores_rejected_points) for m in select_learners(make_anomaly_methods(name))
        } == {(True, True)}


@pytest.mark.parametrize(
    ("methods", "dim", "start"),
    [
        pytest.param([m for m in make_synthetic_methods(3) if m.name != DETECTOR_NAME], 3, 10, id="synthetic"),
        pytest.param([m for m in make_well_log_methods() if m.name != DETECTOR_NAME], 3, 40, id="well_log"),
        pytest.param([m for m in make_skab_methods() if m.name != DETECTOR_NAME], 3, 40, id="skab"),
        pytest.param([m for m in make_anomaly_methods("SMTP") if m.name != DETECTOR_NAME], 3, 40, id="anomaly"),
        pytest.param([make_detector_method(n_components=2)], 1, 50, id="Detector"),
        pytest.param([make_detector_method(n_components=2)], 3, 50, id="Detector, d=3", marks=pytest.mark.long),
        pytest.param(
            [make_detector_method(), make_detector_method(scores_rejected_points=True)], 1, 50, id="Detector, real data"
        ),
    ],
)
def test_scores_do_not_depend_on_later_rows(methods, dim, start):
    """Later rows do not change the scores of earlier rows, except for those that a learner starts from, bit for
    bit: those of the first ten rows on synthetic streams, of rows 19 to 39, whose range is drawn from, on real data; of
    the first fifty of Detector."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(600, dim)) + np.where(np.arange(600) < 300, 0.0, 2.0)[:, None]
    others = {row: np.where(np.arange(600)[:, None] < row, y, 50.0) for row in (start, 400)}
    for method in methods:
        for setting in (method.settings[0], method.settings[-1]):
            if setting.get("window", 30) < 2 * setting.get("stat", 10):
                continue  # a KSWIN that cannot run
            first = method.run(setting, Stream(y), 0).scores
            assert first.shape == (600, dim if isinstance(method, DriftMethod) else 1)
            for row, other in others.items():
                second = method.run(setting, Stream(other), 0).scores
                assert np.array_equal(first[:row], second[:row], equal_nan=True), method.name


def test_a_rejected_point_has_no_change_score_but_keeps_its_anomaly_score():
    y = np.random.default_rng(0).normal(size=(300, 1))
    y[200] = 40.0
    setting = {"n_components": 1, "gamma": 5.0, "rho": 0.01}
    for_changes = LearnerMethod("SRA", [setting], make_sra).run(setting, Stream(y), 0).scores[:, 0]
    for_anomalies = (
        LearnerMethod("SRA", [setting], make_sra, scores_rejected_points=True).run(setting, Stream(y), 0).scores[:, 0]
    )
    assert math.isnan(for_changes[200])
    assert np.nanargmax(for_anomalies) == 200


def test_detector_is_not_tuned_and_starts_on_the_first_points():
    """It is `lp.Detector()`, given the number of components where all are, and starts on the stream's first points."""
    groups = {
        2: [make_synthetic_methods(1), make_synthetic_methods(3)],
        None: [
            make_well_log_methods(),
            make_skab_methods(),
            make_anomaly_methods("SMTP"),
            make_anomaly_methods("THYROID"),
        ],
    }
    for n_components, lists in groups.items():
        for methods in lists:
            (auto,) = (method for method in methods if method.name == DETECTOR_NAME)
            assert list(auto.settings) == [{} if n_components is None else {"n_components": n_components}]
            assert auto.uses_default_start
            assert not auto.starts_on_drawn_points
            assert not auto.has_restarts
            assert auto.scores_rejected_points == any(m.scores_rejected_points for m in select_learners(methods))
    stream = make_abrupt(n=1000, seed=3)
    trace = lp.Detector(2).process(stream.y, record="means")
    run = make_detector_method(n_components=2).run({"n_components": 2}, stream, 4, record=True)
    assert np.isnan(trace.change_score[:50]).all()
    assert np.array_equal(run.scores[:, 0], trace.change_score, equal_nan=True)
    assert np.array_equal(run.means, trace.means, equal_nan=True)
    for_anomalies = (
        make_detector_method(2, scores_rejected_points=True).run({"n_components": 2}, stream, 4).scores[:, 0]
    )
    assert np.array_equal(for_anomalies, trace.score, equal_nan=True)
    assert np.isfinite(measure(make_detector_method(2), {"n_components": 2}, make_abrupt())).all()


def test_baselines_and_sra_start_identically():
    """With the same step size and no threshold in reach, SRA and sEM are the same, to the last bit."""
    stream = make_abrupt(n=1000, seed=3)
    for drawn in (False, True):
        sra_scores = (
            LearnerMethod("SRA", [], make_sra, starts_on_drawn_points=drawn)
            .run({"gamma": 1e9, "rho": 0.01}, stream, 4)
            .scores
        )
        sem_scores = (
            LearnerMethod("sEM", [], make_sem, starts_on_drawn_points=drawn).run({"rho": 0.01}, stream, 4).scores
        )
        assert np.array_equal(sra_scores, sem_scores, equal_nan=True)


def test_make_sem_equals_the_learner_sem():
    stream = make_abrupt(n=1000, seed=3)
    sem_scores = lp.SEM(2, rho=0.01).process(stream.y).score
    assert np.array_equal(make_sem(rho=0.01).process(stream.y).score, sem_scores, equal_nan=True)


def test_start_points_are_drawn_in_the_range_of_rows_19_to_39():
    y = np.zeros((100, 2))
    y[19], y[39] = (-1.0, -1000.0), (1.0, 1000.0)
    y[18] = y[40] = 1e9
    points = draw_start_points(y, 0)
    assert points.shape == (20, 2)
    assert (np.abs(points) <= [1.0, 1000.0]).all()
    assert (points.min(axis=0) < [-0.5, -500.0]).all()
    assert (points.max(axis=0) > [0.5, 500.0]).all()
    assert not np.array_equal(points, draw_start_points(y, 1))


def test_learner_processes_the_start_points_of_its_restart_first():
    stream = make_abrupt(n=1000)
    for restart in (0, 3):
        learner = make_sem(rho=0.01, n_init=20)
        learner.process(draw_start_points(stream.y, restart))
        scores = (
            LearnerMethod("sEM", [], make_sem, starts_on_drawn_points=True)
            .run({"rho": 0.01}, stream, restart)
            .scores[:, 0]
        )
        assert np.array_equal(scores, learner.process(stream.y).change_score)


def test_only_the_random_dummy_differs_between_restarts():
    stream = make_abrupt(n=1000)
    for name, restarts in (("random", 3), ("constant", 1), ("time", 1)):
        dummy = DummyMethod(name)
        swept = ExperimentContext(Plan(trials=1)).run_sweep(
            dummy, [stream], lambda s, y, r, d=dummy: d.run(s, y, r).scores, restarts=3
        )
        assert len({values.tobytes() for values in swept.values[0, 0]}) == swept.values.shape[2] == restarts
        assert np.array_equal(dummy.run({}, stream, 0).scores, swept.values[0, 0, 0])


def test_kswin_window_shorter_than_two_samples_raises():
    methods = {method.name: method for method in make_synthetic_methods(1)}
    with pytest.raises(CannotRunError, match="half of window"):
        methods["KSWIN"].run({"alpha": 0.01, "window": 20, "stat": 15}, make_abrupt(n=100), 0)


# Sweeps over synthetic streams


def test_sweep_equals_a_single_run():
    context = ExperimentContext(Plan(trials=1))
    method = LearnerMethod("SRA", [{"gamma": 3.0, "beta": 0.1, "M": 5.0}], make_sra)
    values = context.sweep_synthetic(method, "abrupt", 1, "printed").values[0, 0, 0, 0]
    stream = make_abrupt(seed=0)
    trace = make_sra(gamma=3.0, beta=0.1, M=5.0).process(stream.y, record="means")
    assert values[AUC] == benefit_auc(trace.change_score, 10000, 100)
    assert values[S_EVAL:].tolist() == list(segment_mse(trace.means, stream.means, 10000))
    assert measure(method, method.settings[0], stream, errors=False).shape == (1, 1)


@pytest.mark.parametrize(("dim", "variant"), [(1, "printed"), (3, "printed"), (3, "notebook")])
@pytest.mark.parametrize("kind", STREAM_MAKERS)
def test_sweep_uses_the_requested_streams(kind, dim, variant):
    context = ExperimentContext(Plan(trials=2))
    method = LearnerMethod("sEM", [{"rho": 0.01}], make_sem)
    for held_out, seeds in ((False, (0, 1)), (True, (1000, 1001))):
        streams = [STREAM_MAKERS[kind](dim=dim, variant=variant, seed=seed) for seed in seeds]
        streams_of_context = context.get_streams(kind, dim, variant, held_out)
        assert all(np.array_equal(a.y, b.y) for a, b in zip(streams_of_context, streams, strict=True))
        areas = [benefit_auc(make_sem(rho=0.01).process(stream.y).change_score, 10000, 100) for stream in streams]
        assert context.sweep_synthetic(method, kind, dim, variant, held_out).values[0, :, 0, 0, AUC].tolist() == areas


def test_setting_and_variable_of_a_drift_method_are_selected_together():
    method = DriftMethod("PH", [{"delta": 1.0}, {"delta": 2.0}], None)
    areas = np.zeros((2, 4, 3))  # settings, streams, variables
    areas[1, :, 2] = 0.9
    best = choose_setting(method, SweepResult(method.settings, areas), areas)
    assert (best.setting_index, best.variable, best.setting) == (1, 2, {"delta": 2.0})
    assert best.record == {"delta": 2.0, "variable": 3}


# The synthetic tables, from sweeps of made-up values on which every way to choose leads to another cell


class FakeContext(ExperimentContext):
    """A context that runs nothing: values are random numbers, others for each method, kind, variant and part."""

    def __init__(self):
        super().__init__(Plan(trials=2, quick=True))

    def sweep_synthetic(self, method, kind, dim, variant, held_out=False):
        variables = dim if isinstance(method, DriftMethod) else 1
        measures = 5 if isinstance(method, LearnerMethod) and not held_out else 1
        seed = zlib.crc32(repr((method.name, kind, dim, variant, held_out)).encode())
        shape = (len(method.settings), self.plan.trials, 1, variables, measures)
        return SweepResult(method.settings, np.random.default_rng(seed).random(shape))


def get_table_key(name, variant):
    return name + "_notebook" * (variant == "notebook")


def approximate_cell(values):
    return pytest.approx([np.mean(values), np.std(values)], rel=1e-12)


def test_auc_cells_are_grid_maxima_and_sra_heldout_is_selected_on_other_streams():
    results = [module.run(FakeContext()) for module in (table_auc_univariate, table_auc_multivariate)]
    tables, chosen = ({k: v for r in results for k, v in getattr(r, part).items()} for part in ("tables", "chosen"))
    for name, dim, variant in SYNTHETIC_TABLES:
        key = get_table_key(f"auc_{name}", variant)
        for i, kind in enumerate(STREAM_MAKERS):
            for method in make_synthetic_methods(dim, quick=True):
                areas = FakeContext().sweep_synthetic(method, kind, dim, variant).values[:, :, 0, :, 0]
                pairs = [(s, v) for s in range(areas.shape[0]) for v in range(areas.shape[2])]
                setting, variable = max(pairs, key=lambda pair: areas[pair[0], :, pair[1]].mean())
                assert tables[key][method.name][i] == approximate_cell(areas[setting, :, variable])
                if areas.shape[2] > 1:
                    assert chosen[key][kind][method.name]["variable"] == variable + 1
            ours = make_synthetic_methods(dim)[0]
            scored, unseen = (
                FakeContext().sweep_synthetic(ours, kind, dim, variant, held_out).values[:, :, 0, 0, 0]
                for held_out in (False, True)
            )
            best = int(np.argmax(unseen.mean(axis=1)))
            named = ours.settings.index(grids.SRA_PRINTED[f"auc_{name}"][kind])
            for row, setting in (("SRA-heldout", best), ("SRA-printed", named)):
                assert tables[key][row][i] == approximate_cell(scored[setting])
                assert ours.settings[setting].items() <= chosen[key][kind][row].items()
            streams = [STREAM_MAKERS[kind](dim=dim, variant=variant, seed=seed) for seed in (0, 1)]
            assert tables[key]["truth"][i] == approximate_cell([compute_truth_auc(stream) for stream in streams])
            memory = [compute_truth_with_memory_auc(stream) for stream in streams]
            assert tables[key]["truth-memory"][i] == approximate_cell(memory)


def test_error_cells_are_those_of_the_setting_with_the_smallest_s_eval():
    tables = {
        k: v
        for module in (table_mse_univariate, table_mse_multivariate)
        for k, v in module.run(FakeContext()).tables.items()
    }
    for name, dim, variant in SYNTHETIC_TABLES:
        for kind in STREAM_MAKERS:
            rows = tables[get_table_key(f"mse_{name}", variant)][kind]
            for method in make_synthetic_learners(dim, quick=True):
                # AUC, S_eval, S_bc, …
                errors = FakeContext().sweep_synthetic(method, kind, dim, variant).values[:, :, 0, 0]
                best = int(np.argmin(errors[:, :, 1].mean(axis=1)))
                assert rows[method.name] == [approximate_cell(errors[best, :, i]) for i in (2, 3, 4)]
                if method.name == "SRA":
                    named = method.settings.index(grids.SRA_PRINTED[f"mse_{name}"][kind])
                    assert rows["SRA-printed"] == [approximate_cell(errors[named, :, i]) for i in (2, 3, 4)]


def test_other_parameters_of_each_gamma_minimize_s_eval():
    table = fig_gamma_rho.run(FakeContext()).tables["gamma_rho"]
    ours = make_synthetic_learners(1)[0]
    for kind in STREAM_MAKERS:
        errors = FakeContext().sweep_synthetic(ours, kind, 1, "printed").values[:, :, 0, 0].mean(axis=1)
        assert [record["gamma"] for record in table[kind]] == [1.0, 3.0, 5.0, 10.0, 15.0]
        for record in table[kind]:
            among = [i for i, setting in enumerate(ours.settings) if setting["gamma"] == record["gamma"]]
            best = min(among, key=lambda i: errors[i, 1])
            assert ours.settings[best].items() <= record.items()
            assert [record[name] for name in ("S_eval", "S_bc", "S_ac", "S_tot")] == pytest.approx(errors[best, 1:])


# Results that run, recomputed


def run_plain_sra(stream, gamma, beta, M):
    return lp.SRA(2, gamma=gamma, beta=beta, M=M, norm="mean").process(stream.y, record="means")


def test_alpha_determines_the_outlier_share_and_beta():
    table = fig_alpha.run(ExperimentContext(Plan(trials=1))).tables["alpha"]
    for kind, make in STREAM_MAKERS.items():
        for share in (0.9, 0.95, 0.99):
            stream = make(alpha=share)
            trace = run_plain_sra(stream, 3.0, 1e-3 / (1.0 - share), 5.0)
            errors = segment_mse(trace.means, stream.means, 10000)
            assert [mean for mean, _ in table[kind][f"{share:g}"]] == pytest.approx(list(errors))
        errors = segment_mse(lp.Detector(2).process(stream.y, record="means").means, stream.means, 10000)
        assert [mean for mean, _ in table[DETECTOR_NAME][kind]["0.99"]] == pytest.approx(list(errors))


def test_appendix_b_has_the_auc_of_the_change_score_within_100_rows():
    rows = table_appendix_b.run(ExperimentContext(Plan(trials=1))).tables["appendix_b_auc_of_sra"]["rows"]
    for row in rows[::7]:
        for make, (area, _) in zip(STREAM_MAKERS.values(), row[3:], strict=True):
            assert area == benefit_auc(run_plain_sra(make(), *row[:3]).change_score, 10000, 100)
