"""Test robust regression: streams, baselines against their libraries, and the claims on a slice."""

import math

import numpy as np
import pytest

import limpet as lp
from helpers.scripts import ROOT, import_script
from limpet.exceptions import LimpetWarning
from limpet_lab.baselines.sklearn_sgd import compute_decisions, compute_probabilities, follow_sklearn
from limpet_lab.bench import regression
from limpet_lab.bench.regression import runs
from limpet_lab.bench.regression.data import (
    FEATURE_OFFSETS,
    FEATURE_UNITS,
    PairKind,
    make_linear_pairs,
    make_logistic_pairs,
)
from limpet_lab.bench.regression.methods import PATIENT_SRA, follow_sra, make_sgd, standardize_by_past
from limpet_lab.bench.regression.runs import (
    LINEAR,
    LOGISTIC,
    Run,
    compute_errors,
    compute_outcome,
    count_rows_to_recover,
)
from limpet_lab.plots.running_errors import StreamColumn, draw_running_errors


def test_page_tables_match_the_benchmark():
    """After `limpet bench regression --json FILE`: python lab/pages/regression_page.py FILE."""
    text = (ROOT / "docs" / "guide" / "robust-regression.md").read_text(encoding="utf-8")
    script = import_script("regression_page")
    assert script.fill_page(text) == text
    assert all(figure.is_reached for figure in script.load_figures("regression").values())


# --- streams ----------------------------------------------------------------------------------------------


def test_linear_pairs_have_corrupted_targets_and_a_change_of_coefficients():
    pairs = make_linear_pairs(PairKind("abrupt"), seed=4, n=4000)
    assert 0.04 < pairs.corrupted.mean() < 0.06
    assert 0.9 < np.std((pairs.y - pairs.truth)[~pairs.corrupted]) < 1.1
    assert np.abs((pairs.y - pairs.truth)[pairs.corrupted]).mean() > 20.0
    features = np.column_stack([np.ones(4000), (pairs.X - FEATURE_OFFSETS) / FEATURE_UNITS])
    before, after = (np.linalg.lstsq(features[part], pairs.truth[part])[0] for part in np.split(np.arange(4000), 2))
    np.testing.assert_allclose(np.linalg.norm(before[1:]), 5.0)
    np.testing.assert_allclose(np.linalg.norm(after[1:] - before[1:]), 5.0)
    np.testing.assert_allclose(before[0], after[0])


def test_corrupted_targets_do_not_change_other_rows():
    some, none = (make_linear_pairs(PairKind("", share=share), seed=2, n=500) for share in (0.05, 0.0))
    np.testing.assert_array_equal(some.X, none.X)
    np.testing.assert_array_equal(some.y[~some.corrupted], none.y[~some.corrupted])
    np.testing.assert_array_equal(some.truth, none.truth)


def test_burst_corrupts_only_its_rows():
    kinds = PairKind("", drift=0.0), PairKind("", drift=0.0, burst_rows=20, burst_size=50.0)
    without, burst = (make_linear_pairs(kind, seed=2, n=500) for kind in kinds)
    inside = np.isin(np.arange(500), range(250, 270))
    np.testing.assert_array_equal(burst.y[~inside], without.y[~inside])
    np.testing.assert_allclose((burst.y - burst.truth)[inside], 50.0)
    assert burst.corrupted[inside].all()
    np.testing.assert_array_equal(burst.corrupted[~inside], without.corrupted[~inside])


def test_gradual_and_abrupt_drifts_end_with_the_same_coefficients():
    kinds = PairKind("", gradual=True), PairKind("")
    slow, quick = (make_linear_pairs(kind, seed=2, n=2000) for kind in kinds)
    assert (slow.ramp, quick.ramp) == (100, 0)
    np.testing.assert_allclose(slow.truth[1100:], quick.truth[1100:])
    np.testing.assert_array_equal(slow.truth[:1000], quick.truth[:1000])
    assert not np.allclose(slow.truth[1000:1050], quick.truth[1000:1050])


def test_flipped_labels_are_those_of_sure_rows_or_random_ones():
    sure, anywhere = (make_logistic_pairs(PairKind("", at_random=random), seed=1, n=8000) for random in (False, True))
    for pairs in (sure, anywhere):
        assert 0.04 < pairs.corrupted.mean() < 0.06
        np.testing.assert_array_equal(pairs.y != pairs.clean, pairs.corrupted)
    certain = [np.abs(pairs.truth - 0.5)[pairs.corrupted] for pairs in (sure, anywhere)]
    assert certain[0].min() > np.quantile(np.abs(sure.truth - 0.5), 0.49)
    assert certain[1].min() < 0.1


# --- baselines and judges --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "loss", "settings"),
    [
        ("SGDRegressor", "huber", {}),
        ("SGDRegressor", "huber", {"learning_rate": "constant", "eta0": 0.05, "alpha": 0.01, "epsilon": 0.3}),
        ("SGDClassifier", "log_loss", {"learning_rate": "constant", "eta0": 0.05, "alpha": 0.01}),
        ("SGDClassifier", "modified_huber", {"learning_rate": "constant", "eta0": 0.05}),
        ("SGDClassifier", "modified_huber", {}),
    ],
)
def test_sgd_baseline_equals_scikit_learn(cls, loss, settings):
    pytest.importorskip("sklearn")
    pairs = (make_linear_pairs if loss == "huber" else make_logistic_pairs)(PairKind(""), seed=3, n=300)
    Z, y = standardize_by_past(pairs.X), pairs.y if loss != "huber" else (pairs.y - 10.0) / 5.0
    model = make_sgd(cls, loss, **settings)
    library = follow_sklearn(model, Z, y)
    np.testing.assert_allclose(compute_decisions(make_sgd(cls, loss, **settings), Z, y), library, rtol=1e-6, atol=1e-9)
    if loss != "huber":
        predictions = Z @ model.coef_[0] + model.intercept_[0]
        np.testing.assert_allclose(compute_probabilities(predictions, loss), model.predict_proba(Z)[:, 1], atol=1e-12)


def test_errors_are_measured_against_the_true_values():
    numbers, labels = make_linear_pairs(PairKind(""), seed=1, n=100), make_logistic_pairs(PairKind(""), seed=1, n=100)
    assert compute_errors(LINEAR, numbers, numbers.truth + 2.0) == pytest.approx(np.full(100, 4.0))
    inside = np.clip(labels.truth, 1e-4, 1.0 - 1e-4)
    assert compute_errors(LOGISTIC, labels, inside) == pytest.approx(np.zeros(100), abs=1e-3)
    p = labels.truth[7]
    by_hand = -(p * math.log(0.3) + (1 - p) * math.log(0.7)) + p * math.log(p) + (1 - p) * math.log(1 - p)
    assert compute_errors(LOGISTIC, labels, np.full(100, 0.3))[7] == pytest.approx(by_hand)
    assert count_rows_to_recover(np.ones(1000), 0.5) == 1000


# --- what is claimed ------------------------------------------------------------------------------------------


def compute_mean_outcome(run):
    return np.array([compute_outcome(Run(LINEAR, PairKind("abrupt"), *run, seed, 6000)) for seed in (0, 1)]).mean(
        axis=0
    )


def test_corrupted_targets_increase_the_error_of_squared_loss_but_not_of_sra():
    pytest.importorskip("river")
    pytest.importorskip("sklearn")
    _, before, _, settled, rows, *_ = compute_mean_outcome(("SRA", (0.01, 6.0)))
    assert before < 0.1
    assert settled < 0.1
    assert rows < 1000
    for step in (0.001, 0.01):
        _, river_before, _, after, *_ = compute_mean_outcome(("river, squared loss", (step, 0.0)))
        assert river_before > 8.0 * before
        assert after > 8.0 * settled
    _, without, *_ = compute_mean_outcome(("SRA, no threshold", (0.01, 0.0)))
    assert without > 30.0 * before


def test_flipped_labels_increase_the_error_of_log_loss_more_than_of_sra():
    pytest.importorskip("river")
    pytest.importorskip("sklearn")
    tuned = ("SRA", (0.03, 0.05)), ("river, log loss", (0.03, 0.0))
    sra, river = (compute_outcome(Run(LOGISTIC, PairKind("sure"), *each, 0, 6000)) for each in tuned)
    assert river.before > 1.5 * sra.before
    assert river.settled > 1.5 * sra.settled


def test_jump_of_the_level_locks_sra_out_and_drift_of_the_coefficients_does_not():
    """The limits that the page reports."""
    for kind, locked in ((PairKind("", drift=20.0), False), (PairKind("", drift=0.0, jump=20.0), True)):
        pairs = make_linear_pairs(kind, seed=0, n=8000)
        model = lp.SRA(rho=0.01, model=lp.models.LinearRegression())
        if locked:
            with pytest.warns(LimpetWarning):
                trace = model.process(pairs.X, pairs.y)
        else:
            trace = model.process(pairs.X, pairs.y)
        assert (trace.rejected[-1000:].mean() > 0.99) == locked
        assert (np.mean((model.predict(pairs.X[-1000:]) - pairs.truth[-1000:]) ** 2) > 100.0) == locked


@pytest.mark.parametrize(
    "settings", [{"rho": 0.01}, {"rho": 0.01, "gamma": 6.0, "n_init": 50}], ids=["defaults", "tuned"]
)
@pytest.mark.parametrize("jump", [20.0, 50.0])
def test_sra_with_patience_follows_a_jump_of_the_level(settings, jump):
    pairs = make_linear_pairs(PairKind("", drift=0.0, jump=jump), seed=0, n=8000)
    model = lp.SRA(model=lp.models.LinearRegression(), patience=20, **settings)
    trace = model.process(pairs.X, pairs.y)
    assert trace.rejected[-1000:].mean() < 0.08
    assert trace.rejected[-1000:][pairs.corrupted[-1000:]].mean() > 0.95
    assert np.mean((model.predict(pairs.X[-1000:]) - pairs.truth[-1000:]) ** 2) < 0.25


def test_patience_changes_results_only_after_a_long_burst():
    """Tuned as SRA is: the same to the last digit, and worse where more than twenty consecutive rows are corrupted."""
    pytest.importorskip("river")
    pytest.importorskip("sklearn")
    short, long = (PairKind("", drift=0.0, burst_rows=rows, burst_size=20.0) for rows in (10, 40))
    for kind in (PairKind("abrupt"), short):
        usual, patient = (
            compute_outcome(Run(LINEAR, kind, name, (0.01, 6.0), 0, 4000)) for name in ("SRA", PATIENT_SRA)
        )
        assert patient == usual
    usual, patient = (compute_outcome(Run(LINEAR, long, name, (0.01, 6.0), 0, 4000)) for name in ("SRA", PATIENT_SRA))
    assert patient.after > 2.0 * usual.after


def test_sra_predicts_each_row_before_learning_it():
    pairs = make_linear_pairs(PairKind(""), seed=0, n=200)
    model = lp.SRA(model=lp.models.LinearRegression(), rho=0.01, gamma=6.0)
    predicted = follow_sra(model, pairs.X, pairs.y)
    other = lp.SRA(model=lp.models.LinearRegression(), rho=0.01, gamma=6.0)
    other.process(pairs.X[:150], pairs.y[:150])
    assert predicted[150] == other.predict(pairs.X[150])
    assert np.isnan(predicted[:10]).all()


def test_quick_run_measures_all_methods(monkeypatch):
    pytest.importorskip("river")
    pytest.importorskip("sklearn")
    monkeypatch.setattr(
        regression, "STREAM_KINDS", {family: kinds[:1] for family, kinds in regression.STREAM_KINDS.items()}
    )
    figures = {figure.name: figure for figure in regression.measure(quick=True)}
    assert all(math.isfinite(figure.value) for figure in figures.values())
    for name in ("linear, abrupt, SRA: before", "logistic, sure labels, river, log loss, defaults: right after"):
        assert name in figures
    assert figures["scikit-learn written out, off by"].value < 1e-9
    for kind in runs.JUMP_KINDS[::5]:
        assert f"jump, {kind.name}, {PATIENT_SRA}, defaults: found again" in figures
    for kind in runs.BURST_KINDS[::5]:
        assert figures[f"burst, {kind.name}, {PATIENT_SRA}: error"].value > 0.0


def test_running_errors_are_drawn_reproducibly():
    rng = np.random.default_rng(0)
    corrupted = rng.random(1000) < 0.1
    lines = {"SRA": np.append([np.nan] * 20, rng.random(980)), "other": 10.0 * rng.random(1000)}
    column = StreamColumn("numbers", "error", rng.normal(size=1000), corrupted, lines)
    picture = draw_running_errors([column, column], change_points=[500], window=50)
    assert picture.startswith(b"\x89PNG")
    assert picture == draw_running_errors([column, column], change_points=[500], window=50)
    other = StreamColumn("numbers", "error", column.target_errors, corrupted, {"SRA": lines["SRA"]})
    assert picture != draw_running_errors([column, other], change_points=[500], window=50)
