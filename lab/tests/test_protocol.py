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
from limpet_lab.paper.context import AUC, S_EVAL, Lab, measure, synthetic_learners, synthetic_methods
from limpet_lab.paper.methods import AUTO, Drift, Dummy, Learner, drawn_start, limpet_detector, sem, sra
from limpet_lab.paper.oracle import truth_auc, truth_with_memory_auc
from limpet_lab.paper.table_auc_anomaly import anomaly_methods
from limpet_lab.paper.table_auc_skab import skab_methods
from limpet_lab.paper.table_auc_well_log import well_log_methods

# What a setting does to a stream is what the tables show.
pytestmark = pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")

MAKE = {"abrupt": make_abrupt, "gradual": make_gradual}
SYNTHETIC_TABLES = [("univariate", 1, "printed"), ("multivariate", 3, "printed"), ("multivariate", 3, "notebook")]


# How methods are run


def learners(methods):
    return [method for method in methods if isinstance(method, Learner) and method.name != AUTO]


def test_learners_start_on_drawn_points_on_real_data_and_keep_scores_of_rejected_points_for_anomalies_only():
    assert {(m.drawn, m.anomalies) for m in learners(synthetic_methods(1))} == {(False, False)}
    assert {(m.drawn, m.anomalies) for m in learners([*well_log_methods(), *skab_methods()])} == {(True, False)}
    for name in ("SMTP", "THYROID"):
        assert {(m.drawn, m.anomalies) for m in learners(anomaly_methods(name))} == {(True, True)}


@pytest.mark.parametrize(
    ("methods", "dim", "start"),
    [
        pytest.param([m for m in synthetic_methods(3) if m.name != AUTO], 3, 10, id="synthetic"),
        pytest.param([m for m in well_log_methods() if m.name != AUTO], 3, 40, id="well_log"),
        pytest.param([m for m in skab_methods() if m.name != AUTO], 3, 40, id="skab"),
        pytest.param([m for m in anomaly_methods("SMTP") if m.name != AUTO], 3, 40, id="anomaly"),
        pytest.param([limpet_detector(n_components=2)], 1, 50, id="Detector"),
        pytest.param([limpet_detector(n_components=2)], 3, 50, id="Detector, d=3", marks=pytest.mark.long),
        pytest.param([limpet_detector(), limpet_detector(anomalies=True)], 1, 50, id="Detector, real data"),
    ],
)
def test_no_score_looks_ahead(methods, dim, start):
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
            assert first.shape == (600, dim if isinstance(method, Drift) else 1)
            for row, other in others.items():
                second = method.run(setting, Stream(other), 0).scores
                assert np.array_equal(first[:row], second[:row], equal_nan=True), method.name


def test_a_rejected_point_has_no_change_score_but_keeps_its_anomaly_score():
    y = np.random.default_rng(0).normal(size=(300, 1))
    y[200] = 40.0
    setting = {"n_components": 1, "gamma": 5.0, "rho": 0.01}
    for_changes = Learner("SRA", [setting], sra).run(setting, Stream(y), 0).scores[:, 0]
    for_anomalies = Learner("SRA", [setting], sra, anomalies=True).run(setting, Stream(y), 0).scores[:, 0]
    assert math.isnan(for_changes[200])
    assert np.nanargmax(for_anomalies) == 200


def test_detector_has_one_setting_and_is_neither_tuned_nor_started():
    """It is `lp.Detector()`, given the number of components where all are, and starts on the stream's first points."""
    groups = {
        2: [synthetic_methods(1), synthetic_methods(3)],
        None: [well_log_methods(), skab_methods(), anomaly_methods("SMTP"), anomaly_methods("THYROID")],
    }
    for n_components, lists in groups.items():
        for methods in lists:
            (auto,) = (method for method in methods if method.name == AUTO)
            assert list(auto.settings) == [{} if n_components is None else {"n_components": n_components}]
            assert auto.by_itself
            assert not auto.drawn
            assert not auto.restarts
            assert auto.anomalies == any(m.anomalies for m in learners(methods))
    stream = make_abrupt(n=1000, seed=3)
    trace = lp.Detector(2).process(stream.y, record="means")
    run = limpet_detector(n_components=2).run({"n_components": 2}, stream, 4, record=True)
    assert np.isnan(trace.change_score[:50]).all()
    assert np.array_equal(run.scores[:, 0], trace.change_score, equal_nan=True)
    assert np.array_equal(run.means, trace.means, equal_nan=True)
    for_anomalies = limpet_detector(2, anomalies=True).run({"n_components": 2}, stream, 4).scores[:, 0]
    assert np.array_equal(for_anomalies, trace.score, equal_nan=True)
    assert np.isfinite(measure(limpet_detector(2), {"n_components": 2}, make_abrupt())).all()


def test_baselines_start_exactly_as_sra_does():
    """With the same step size and no threshold in reach, SRA and sEM are the same, to the last bit."""
    stream = make_abrupt(n=1000, seed=3)
    for drawn in (False, True):
        ours = Learner("SRA", [], sra, drawn=drawn).run({"gamma": 1e9, "rho": 0.01}, stream, 4).scores
        theirs = Learner("sEM", [], sem, drawn=drawn).run({"rho": 0.01}, stream, 4).scores
        assert np.array_equal(ours, theirs, equal_nan=True)


def test_sem_is_the_learner_of_that_name():
    stream = make_abrupt(n=1000, seed=3)
    theirs = lp.SEM(2, rho=0.01).process(stream.y).score
    assert np.array_equal(sem(rho=0.01).process(stream.y).score, theirs, equal_nan=True)


def test_points_to_start_from_are_drawn_in_the_range_of_rows_19_to_39():
    y = np.zeros((100, 2))
    y[19], y[39] = (-1.0, -1000.0), (1.0, 1000.0)
    y[18] = y[40] = 1e9
    points = drawn_start(y, 0)
    assert points.shape == (20, 2)
    assert (np.abs(points) <= [1.0, 1000.0]).all()
    assert (points.min(axis=0) < [-0.5, -500.0]).all()
    assert (points.max(axis=0) > [0.5, 500.0]).all()
    assert not np.array_equal(points, drawn_start(y, 1))


def test_a_learner_continues_from_the_points_drawn_for_its_restart():
    stream = make_abrupt(n=1000)
    for restart in (0, 3):
        learner = sem(rho=0.01, n_init=20)
        learner.process(drawn_start(stream.y, restart))
        scores = Learner("sEM", [], sem, drawn=True).run({"rho": 0.01}, stream, restart).scores[:, 0]
        assert np.array_equal(scores, learner.process(stream.y).change_score)


def test_the_random_dummy_differs_from_restart_to_restart_and_the_others_do_not():
    stream = make_abrupt(n=1000)
    for name, restarts in (("random", 3), ("constant", 1), ("time", 1)):
        dummy = Dummy(name)
        swept = Lab(Plan(trials=1)).sweep(dummy, [stream], lambda s, y, r, d=dummy: d.run(s, y, r).scores, restarts=3)
        assert len({values.tobytes() for values in swept.values[0, 0]}) == swept.values.shape[2] == restarts
        assert np.array_equal(dummy.run({}, stream, 0).scores, swept.values[0, 0, 0])


def test_a_window_shorter_than_two_samples_is_reported():
    methods = {method.name: method for method in synthetic_methods(1)}
    with pytest.raises(CannotRunError, match="half of window"):
        methods["KSWIN"].run({"alpha": 0.01, "window": 20, "stat": 15}, make_abrupt(n=100), 0)


# Sweeps over synthetic streams


def test_a_sweep_measures_what_a_single_run_gives():
    lab = Lab(Plan(trials=1))
    method = Learner("SRA", [{"gamma": 3.0, "beta": 0.1, "M": 5.0}], sra)
    values = lab.synthetic(method, "abrupt", 1, "printed").values[0, 0, 0, 0]
    stream = make_abrupt(seed=0)
    trace = sra(gamma=3.0, beta=0.1, M=5.0).process(stream.y, record="means")
    assert values[AUC] == benefit_auc(trace.change_score, 10000, 100)
    assert values[S_EVAL:].tolist() == list(segment_mse(trace.means, stream.means, 10000))
    assert measure(method, method.settings[0], stream, errors=False).shape == (1, 1)


@pytest.mark.parametrize(("dim", "variant"), [(1, "printed"), (3, "printed"), (3, "notebook")])
@pytest.mark.parametrize("kind", MAKE)
def test_sweeps_are_over_the_requested_streams(kind, dim, variant):
    lab = Lab(Plan(trials=2))
    method = Learner("sEM", [{"rho": 0.01}], sem)
    for held_out, seeds in ((False, (0, 1)), (True, (1000, 1001))):
        streams = [MAKE[kind](dim=dim, variant=variant, seed=seed) for seed in seeds]
        from_lab = lab.streams(kind, dim, variant, held_out)
        assert all(np.array_equal(a.y, b.y) for a, b in zip(from_lab, streams, strict=True))
        areas = [benefit_auc(sem(rho=0.01).process(stream.y).change_score, 10000, 100) for stream in streams]
        assert lab.synthetic(method, kind, dim, variant, held_out).values[0, :, 0, 0, AUC].tolist() == areas


def test_a_detectors_variable_is_chosen_with_its_setting():
    method = Drift("PH", [{"delta": 1.0}, {"delta": 2.0}], None)
    areas = np.zeros((2, 4, 3))  # settings, streams, variables
    areas[1, :, 2] = 0.9
    best = choose_setting(method, SweepResult(method.settings, areas), areas)
    assert (best.row, best.variable, best.setting) == (1, 2, {"delta": 2.0})
    assert best.written == {"delta": 2.0, "variable": 3}


# The synthetic tables, from sweeps of made-up values on which every way to choose leads to another cell


class MadeUpLab(Lab):
    """A lab that runs nothing: values are random numbers, others for each method, kind, variant and part."""

    def __init__(self):
        super().__init__(Plan(trials=2, quick=True))

    def synthetic(self, method, kind, dim, variant, held_out=False):
        variables = dim if isinstance(method, Drift) else 1
        measures = 5 if isinstance(method, Learner) and not held_out else 1
        seed = zlib.crc32(repr((method.name, kind, dim, variant, held_out)).encode())
        shape = (len(method.settings), self.plan.trials, 1, variables, measures)
        return SweepResult(method.settings, np.random.default_rng(seed).random(shape))


def table_of(name, variant):
    return name + "_notebook" * (variant == "notebook")


def mean_and_std(values):
    return pytest.approx([np.mean(values), np.std(values)], rel=1e-12)


def test_auc_cells_are_grid_maxima_on_the_scored_streams_and_sra_heldout_is_chosen_on_others():
    results = [module.run(MadeUpLab()) for module in (table_auc_univariate, table_auc_multivariate)]
    tables, chosen = ({k: v for r in results for k, v in getattr(r, part).items()} for part in ("tables", "chosen"))
    for name, dim, variant in SYNTHETIC_TABLES:
        key = table_of(f"auc_{name}", variant)
        for i, kind in enumerate(MAKE):
            for method in synthetic_methods(dim, quick=True):
                areas = MadeUpLab().synthetic(method, kind, dim, variant).values[:, :, 0, :, 0]
                pairs = [(s, v) for s in range(areas.shape[0]) for v in range(areas.shape[2])]
                setting, variable = max(pairs, key=lambda pair: areas[pair[0], :, pair[1]].mean())
                assert tables[key][method.name][i] == mean_and_std(areas[setting, :, variable])
                if areas.shape[2] > 1:
                    assert chosen[key][kind][method.name]["variable"] == variable + 1
            ours = synthetic_methods(dim)[0]
            scored, unseen = (
                MadeUpLab().synthetic(ours, kind, dim, variant, held_out).values[:, :, 0, 0, 0]
                for held_out in (False, True)
            )
            best = int(np.argmax(unseen.mean(axis=1)))
            named = ours.settings.index(grids.SRA_PRINTED[f"auc_{name}"][kind])
            for row, setting in (("SRA-heldout", best), ("SRA-printed", named)):
                assert tables[key][row][i] == mean_and_std(scored[setting])
                assert ours.settings[setting].items() <= chosen[key][kind][row].items()
            streams = [MAKE[kind](dim=dim, variant=variant, seed=seed) for seed in (0, 1)]
            assert tables[key]["truth"][i] == mean_and_std([truth_auc(stream) for stream in streams])
            memory = [truth_with_memory_auc(stream) for stream in streams]
            assert tables[key]["truth-memory"][i] == mean_and_std(memory)


def test_error_cells_are_of_the_setting_with_the_least_s_eval():
    tables = {
        k: v
        for module in (table_mse_univariate, table_mse_multivariate)
        for k, v in module.run(MadeUpLab()).tables.items()
    }
    for name, dim, variant in SYNTHETIC_TABLES:
        for kind in MAKE:
            rows = tables[table_of(f"mse_{name}", variant)][kind]
            for method in synthetic_learners(dim, quick=True):
                errors = MadeUpLab().synthetic(method, kind, dim, variant).values[:, :, 0, 0]  # AUC, S_eval, S_bc, …
                best = int(np.argmin(errors[:, :, 1].mean(axis=1)))
                assert rows[method.name] == [mean_and_std(errors[best, :, i]) for i in (2, 3, 4)]
                if method.name == "SRA":
                    named = method.settings.index(grids.SRA_PRINTED[f"mse_{name}"][kind])
                    assert rows["SRA-printed"] == [mean_and_std(errors[named, :, i]) for i in (2, 3, 4)]


def test_for_each_gamma_the_rest_is_chosen_by_s_eval():
    table = fig_gamma_rho.run(MadeUpLab()).tables["gamma_rho"]
    ours = synthetic_learners(1)[0]
    for kind in MAKE:
        errors = MadeUpLab().synthetic(ours, kind, 1, "printed").values[:, :, 0, 0].mean(axis=1)
        assert [record["gamma"] for record in table[kind]] == [1.0, 3.0, 5.0, 10.0, 15.0]
        for record in table[kind]:
            among = [i for i, setting in enumerate(ours.settings) if setting["gamma"] == record["gamma"]]
            best = min(among, key=lambda i: errors[i, 1])
            assert ours.settings[best].items() <= record.items()
            assert [record[name] for name in ("S_eval", "S_bc", "S_ac", "S_tot")] == pytest.approx(errors[best, 1:])


# Results that run, recomputed


def plain_sra(stream, gamma, beta, M):
    return lp.SRA(2, gamma=gamma, beta=beta, M=M, norm="mean").process(stream.y, record="means")


def test_alpha_is_that_of_the_data_and_of_beta():
    table = fig_alpha.run(Lab(Plan(trials=1))).tables["alpha"]
    for kind, make in MAKE.items():
        for share in (0.9, 0.95, 0.99):
            stream = make(alpha=share)
            trace = plain_sra(stream, 3.0, 1e-3 / (1.0 - share), 5.0)
            errors = segment_mse(trace.means, stream.means, 10000)
            assert [mean for mean, _ in table[kind][f"{share:g}"]] == pytest.approx(list(errors))
        errors = segment_mse(lp.Detector(2).process(stream.y, record="means").means, stream.means, 10000)
        assert [mean for mean, _ in table[AUTO][kind]["0.99"]] == pytest.approx(list(errors))


def test_appendix_b_is_the_auc_of_the_change_score_within_100_rows():
    rows = table_appendix_b.run(Lab(Plan(trials=1))).tables["appendix_b_auc_of_sra"]["rows"]
    for row in rows[::7]:
        for make, (area, _) in zip(MAKE.values(), row[3:], strict=True):
            assert area == benefit_auc(plain_sra(make(), *row[:3]).change_score, 10000, 100)
