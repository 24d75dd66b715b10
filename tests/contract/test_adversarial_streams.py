"""Streams that break estimators: constants, collinear columns, extreme scales and offsets, too few points."""

import math
import warnings

import numpy as np
import pytest

import limpet as lp
from limpet.exceptions import LimpetWarning, NotFittedError
from limpet.models import GaussianMixture, LinearRegression, LogisticRegression, PoissonMixture
from limpet.testing import assert_sound

LEARNERS = {
    "SRA": lambda K: lp.SRA(K, rho=0.01),
    "SRA mean": lambda K: lp.SRA(K, 3.0, 0.01, norm="mean"),
    "SRA full": lambda K: lp.SRA(K, 3.0, 0.01, norm="full"),
    "SEM": lambda K: lp.SEM(K, rho=0.1),
    "IEM": lambda K: lp.IEM(K),
    "SDEM": lambda K: lp.SDEM(K, r=0.05),
    "diagonal": lambda K: lp.SRA(K, rho=0.01, covariance="diagonal"),
}
N = 1500


def make_normal(d, n=N, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def make_two_values(d):
    return np.random.default_rng(1).integers(2, size=(N, d)).astype(float)


def start_with_an_outlier(d):
    y = make_normal(d)
    y[0] = 1e12
    return y


def jump_to_another_scale(d):
    y = make_normal(d)
    y[N // 2 :] *= 1e9
    return y


def add_one_huge_point(d):
    y = make_normal(d)
    y[N // 2] = 1e140
    return y


STREAMS = {
    "constant zero": lambda d: np.zeros((N, d)),
    "constant": lambda d: np.full((N, d), 5.0),
    "constant huge": lambda d: np.full((N, d), -1e140),
    "constant, then noise": lambda d: np.vstack([np.full((N // 2, d), 5.0), make_normal(d, N // 2)]),
    "two values": make_two_values,
    "duplicated columns": lambda d: np.repeat(make_normal(1), d, axis=1),
    "collinear columns": lambda d: make_normal(1) * np.arange(1, d + 1) + np.arange(d),
    "scale 1e-100": lambda d: 1e-100 * make_normal(d),
    "scale 1e100": lambda d: 1e100 * make_normal(d),
    "scales apart": lambda d: make_normal(d) * 10.0 ** np.linspace(-100, 100, d),
    "offset of 1e9 sd": lambda d: 1e9 + make_normal(d),
    "offset of 1e9 sd, tiny": lambda d: 1e-91 + 1e-100 * make_normal(d),
    "first point an outlier": start_with_an_outlier,
    "jump to another scale": jump_to_another_scale,
    "one absurd point": add_one_huge_point,
    "ramp": lambda d: np.arange(N * d, dtype=float).reshape(N, d) * 1e6,
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("K", [1, 2, 3])
def test_no_stream_breaks_a_learner(K, d, name):
    y = STREAMS[name](d)
    for kind, make in LEARNERS.items():
        learner = make(K)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LimpetWarning)  # a lost component is warned of: see below
            trace = learner.process(y)
        assert np.isfinite(trace.score[learner.n_init :]).all(), kind
        assert_sound(learner)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(
    ("K", "d", "covariance"),
    [(1, 1, "full"), (2, 1, "full"), (1, 3, "full"), pytest.param(1, 3, "diagonal", marks=pytest.mark.long)],
)
def test_no_stream_breaks_the_detector(K, d, covariance, name):
    learner = lp.Detector(K, covariance=covariance)
    trace = learner.process(STREAMS[name](d))
    for result in (trace.score, trace.change_score, trace.p_value):
        assert np.isfinite(result[learner.n_init :]).all()
    assert (trace.p_value[learner.n_init :] > 0.0).all()
    assert_sound(learner)
    assert all(alarm.size > 0.0 or math.isnan(alarm.size) for alarm in trace.alarms)
    assert not any("nan" in str(alarm) or "inf" in str(alarm) for alarm in trace.alarms)
    assert trace.rejected[-N // 4 :].mean() < 0.05  # any change has been followed


@pytest.mark.parametrize("name", ["duplicated columns", "collinear columns", "offset of 1e9 sd"])
def test_eight_variables(name):
    learner = lp.SRA(rho=0.01)
    learner.process(STREAMS[name](8))
    assert_sound(learner)


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e-100), (0.0, 1e100), (1e9, 1.0), (-1e9, 1.0), (1e-91, 1e-100)])
@pytest.mark.parametrize("K", [1, 2])
def test_units_do_not_matter(K, offset, scale):
    """The same stream in other units: the same points rejected, the same estimates in those units."""
    y = make_normal(2, 3000) + 6.0 * np.random.default_rng(5).integers(K, size=(3000, 1))
    y[500::100] += 40.0
    plain, other = lp.SRA(K, rho=0.01), lp.SRA(K, rho=0.01)
    rejected = plain.process(y).rejected
    trace = other.process(offset + scale * y)
    np.testing.assert_array_equal(trace.rejected, rejected)
    np.testing.assert_allclose((other.means - offset) / scale, plain.means, atol=1e-5)
    np.testing.assert_allclose(other.covariances / scale**2, plain.covariances, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other.weights, plain.weights, rtol=1e-5)


def test_state_is_sound_after_a_million_points():
    learner = lp.SRA(2, gamma=6.0, rho=0.01)
    y = lp.datasets.make_abrupt(n=100_000).y
    for _ in range(10):
        learner.process(y)
    assert learner.n_seen == 1_000_000
    assert_sound(learner)


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_fewer_points_than_components(K, n):
    learner = lp.SRA(K, rho=0.01)
    with pytest.raises(NotFittedError):
        _ = learner.means
    learner.process(np.arange(n, dtype=float))
    assert not learner.started
    assert_sound(learner)  # of a preliminary initialization
    with pytest.warns(LimpetWarning, match="^n_init: ") as warned:
        early = lp.SRA(K, rho=0.01, n_init=1)
    warning = warned[0].message
    assert (warning.code, warning.fields) == ("few_init_points", {"n_init": 1, "min_init_points": 2 * K})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        early.process(np.arange(200.0) % 3)
    assert_sound(early)


def test_values_with_overflowing_squares_are_invalid():
    learner = lp.Detector()
    y = make_normal(1)
    y[100], y[200] = 1e200, -1e308
    with pytest.warns(LimpetWarning, match="2 of 1500 rows are invalid"):
        trace = learner.process(y)
    assert trace.invalid[[100, 200]].all()
    assert_sound(learner)


def test_duplicate_components_are_reported():
    learner = lp.SRA(2, gamma=6.0)
    learner.process(make_normal(1) + 8.0 * (np.arange(N) % 2)[:, None])
    components = learner._engine.functions.layout.view(learner._engine.buffer.theta, "components")
    components[1] = components[0]
    with pytest.warns(LimpetWarning, match="component 0 of 2 has a copy"):
        learner.process([0.0])


def test_lost_component_is_reported_by_update_too():
    stream = lp.datasets.make_abrupt(dim=3, seed=0)
    learner = lp.SRA(2, gamma=7.0, beta=0.5, M=5.0, norm="mean")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for row in stream.y:
            learner.update(row)
    assert join_messages(warned).count("has lost its points") == 1


def join_messages(warned):
    return " ".join(str(warning.message) for warning in warned)


def test_a_lock_out_is_reported():
    learner = lp.SRA(rho=0.01)
    learner.process(make_normal(1))
    again = lp.from_bytes(learner.to_bytes())
    with pytest.warns(LimpetWarning) as warned:
        learner.process(50.0 + make_normal(1, 300))
    assert "the last 200 points were all rejected" in join_messages(warned)
    assert "100 % of 300 rows were rejected" in join_messages(warned)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for x in (50.0 + make_normal(1, 300)).ravel().tolist():
            again.update(x)
    assert "the last 200 points were all rejected" in join_messages(warned)
    assert len(warned) == 1


@pytest.mark.parametrize("level", [0.0, 5.0])
def test_constant_start_does_not_lock_the_model_out(level):
    y = np.concatenate([np.full(60, level), level + make_normal(1, 2000).ravel() * max(level, 1.0) / 5.0])
    learner = lp.Detector()
    trace = learner.process(y)
    assert trace.rejected.mean() < 0.04  # until the spread is estimated
    np.testing.assert_allclose(learner.means, level, atol=0.5)


def test_rare_counts_are_accepted():
    for rate in (0.01, 0.05, 0.1):
        learner = lp.SRA(rho=0.01, model=PoissonMixture())
        learner.process(np.random.default_rng(0).poisson(rate, 20_000))
        np.testing.assert_allclose(learner.means.item(), rate, atol=0.1)
        assert learner.n_rejected < 5


def test_missing_values_in_the_first_points_do_not_narrow_the_initialization():
    rng = np.random.default_rng(0)
    variances = []
    for _ in range(10):
        y = rng.normal(size=(60, 3))
        missing = rng.random(y.shape) < 0.6
        missing[np.arange(60), rng.integers(3, size=60)] = False
        y[missing] = np.nan
        learner = lp.Detector(n_init=60)
        learner.process(y)
        variances.append(np.diag(learner.covariances[0]))
    assert 0.5 < np.median(variances) < 1.5


def test_large_penalty_keeps_a_regression_stable():
    X, y = make_normal(2), make_normal(1, N, 1).ravel()
    for model, target in ((LinearRegression(l2=100.0), y), (LogisticRegression(l2=1000.0), (y > 0).astype(float))):
        learner = lp.StochasticApproximation(model)
        learner.process(X, target)
        assert_sound(learner)
        np.testing.assert_allclose(learner.coef, 0.0, atol=0.1)


def test_a_lost_component_is_reported():
    rng = np.random.default_rng(0)
    first, later = rng.normal(0.0, 1.0, 500), rng.normal(0.0, 1.0, 5000)
    first[::2] += 50.0
    learner = lp.SEM(2, rho=0.05)
    learner.process(first)
    with pytest.warns(LimpetWarning, match="component . of 2 has lost its points"):
        learner.process(later)
    assert_sound(learner)
    learner.process(later)  # warned of once


def test_an_outlier_among_the_first_points_does_not_become_a_component():
    failures = 0
    for seed in range(20):
        stream = lp.datasets.make_abrupt(n=4000, seed=seed)
        y = stream.y.copy()
        y[seed % 10] = 15.0
        learner = lp.SRA(2, gamma=6.0, rho=0.01)
        learner.process(y[:1500])
        failures += bool(np.abs(np.sort(learner.means.ravel()) - (-0.5, 0.5)).max() > 0.1)
    assert failures <= 2


def test_initialization_waits_for_a_variable_that_is_missing_at_first():
    y = make_normal(3, 200)
    y[:50, 1] = np.nan
    learner = lp.Detector()
    trace = learner.process(y)
    assert np.isnan(trace.score[:53]).all()
    assert np.isfinite(trace.score[53:]).all()
    np.testing.assert_allclose(learner.means, 0.0, atol=1.0)


def test_variable_that_is_always_missing_is_reported():
    y = make_normal(2, 600)
    y[:, 1] = np.nan
    learner = lp.Detector()
    with pytest.warns(LimpetWarning, match="variable 1: no value"):
        learner.process(y)
    assert not learner.started


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_regressions_are_sound_at_every_scale(scale):
    X = make_normal(2, 4000) * (1.0, 1000.0)
    X[2000] = 1e30
    y = X @ (3.0, -0.002) + 0.1 * make_normal(1, 4000, 1)[:, 0]
    learner = lp.SRA(model=LinearRegression(), gamma=6.0, rho=0.02)
    learner.process(scale * X, y)
    assert_sound(learner)
    np.testing.assert_allclose(learner.coef * scale, (3.0, -0.002), rtol=0.05)
    labels = (y > 0).astype(float)
    classifier = lp.StochasticApproximation(LogisticRegression())
    classifier.process(scale * X, labels)
    assert_sound(classifier)
    assert np.mean((classifier.predict(scale * X) > 0.5) == labels) > 0.9


def test_poisson_mixture_scores_a_rare_count_higher():
    learner = lp.SRA(model=PoissonMixture(2), gamma=8.0)
    y = np.zeros(500)
    y[400] = 3.0
    trace = learner.process(y)
    assert np.isfinite(trace.score[10:]).all()
    assert trace.score[400] > trace.score[399] + 3.0
    assert_sound(learner)


def test_negative_and_fractional_counts_are_invalid():
    learner = lp.SRA(model=PoissonMixture(), gamma=8.0)
    with pytest.warns(LimpetWarning, match="2 of 52 rows"):
        trace = learner.process([*([4.0, 5.0] * 25), -1.0, 2.5])
    assert trace.invalid[-2:].all()


def test_model_shapes():
    learner = lp.StochasticApproximation(GaussianMixture(3), n_init=20)
    learner.process(make_normal(4))
    assert learner.weights.shape == (3,)
    assert learner.means.shape == (3, 4)
    assert learner.covariances.shape == (3, 4, 4)
