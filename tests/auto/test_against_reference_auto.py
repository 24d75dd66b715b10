"""Compare the automatic learner with its reference, row by row; test re-initialization, which the reference omits."""

import math

import numpy as np
import pytest

import limpet as lp
from limpet.auto import reinitialization
from limpet.auto.initialization import fit_robust_mixture, match_component_order
from limpet.auto.step_kernel import make_auto_kernels
from limpet.core.algorithm import OUTCOME_NEEDS_REINIT
from limpet.core.state import MISSING_SENTINEL, Layout
from limpet.core.threshold import gamma_for_rate
from limpet.detection.anomaly_detector import N_ANOMALIES, fenwick_prefix_sum
from limpet.models.mixture import COMPONENT_BY_COVARIANCE
from reference import auto as reference_auto
from reference import sra

TOLERANCE = 1e-9
N_INIT = 50


# The state of a learner, converted to the reference


def to_mixture(fit, K, d, covariance):
    """[ weights | for each component its mean and its (packed) covariance ] as a mixture of the reference."""
    components = fit[K:].reshape(K, -1)
    covariances = np.zeros((K, d, d))
    for k in range(K):
        if covariance == "diagonal":
            covariances[k] = np.diag(components[k, d:])
        else:
            covariances[k][np.tril_indices(d)] = components[k, d:]
            covariances[k] = covariances[k] + np.tril(covariances[k], -1).T
    return sra.GaussianMixture(fit[:K], components[:, :d], covariances, covariance)


def get_field(learner, name):
    return learner._engine.layout.view(learner._engine.buffer.theta, name).copy()


def to_ensemble(learner, K, d, covariance):
    experts = [to_mixture(fit, K, d, covariance) for fit in get_field(learner, "experts")]
    counts, trust = get_field(learner, "counts"), get_field(learner, "trust")
    loose, strict = (gamma_for_rate(rate, d) ** 2 for rate in (1e-4 if K == 1 else 1e-7, 1e-4))
    return reference_auto.Ensemble(
        experts,
        counts,
        trust,
        get_field(learner, "lead")[0],
        get_field(learner, "tail_scale_squared")[0],
        loose,
        strict,
    )


def to_reinitializer(learner, K):
    counts = get_field(learner, "reinitialization")
    evidence, points_since_zero, n_rejected, contamination, n_points, points_until_check, checks_left = counts[:7]
    return reference_auto.Reinitializer(
        K > 1,
        evidence,
        points_since_zero,
        n_rejected,
        contamination,
        n_points,
        points_until_check,
        checks_left,
        get_recent_points(learner),
    )


def get_recent_points(learner):
    """Return the latest points, oldest first, from the ring of the re-initialization or of the detector."""
    if "recent_points" in learner._engine.layout.fields:
        return np.roll(
            get_field(learner, "recent_points"),
            -int(get_field(learner, "reinitialization")[reinitialization.NEXT_RING_INDEX]),
            axis=0,
        )
    return learner._engine.kernels.detector.recent_values(get_field(learner, "change_detector"), 64)[:, None]


def to_scorer(learner, name, K, d, covariance):
    state = get_field(learner, name)
    size = 1 + COMPONENT_BY_COVARIANCE[covariance].n_parameters(d)
    core, outlier_component = (
        to_mixture(state[: K * size], K, d, covariance),
        to_mixture(state[K * size :][:size], 1, d, covariance),
    )
    return reference_auto.Scorer(core, outlier_component, *state[(K + 1) * size :])


def get_surprise_histogram(learner):
    return get_field(learner, "surprise_histogram").view(np.int32)


def get_bin_counts(tree):
    """Return the counts of the bins of a Fenwick tree."""
    return np.diff([fenwick_prefix_sum(tree, i) for i in range(len(tree) + 1)])


def to_reference(learner, K, d, covariance, far):
    moments = get_field(learner, "change_score")
    ar1 = get_field(learner, "ar1")
    return reference_auto.AutoLearner(
        get_field(learner, "scale"),
        to_scorer(learner, "value_scorer", K, d, covariance),
        to_scorer(learner, "residual_scorer", 1, d, covariance),
        reference_auto.AR1(*ar1[:-1].reshape(d, 4).T, ar1[-1]),
        to_ensemble(learner, K, d, covariance),
        to_reinitializer(learner, K),
        reference_auto.PValues(
            get_bin_counts(get_surprise_histogram(learner)),
            get_field(learner, "p_value_counts").view(np.int32)[N_ANOMALIES],
        ),
        reference_auto.ChangeScore(
            [reference_auto.SlowMoments(*row) for row in moments[:-2].reshape(d, 7)], *moments[-2:]
        ),
        gamma_for_rate(1e-4, d) ** 2,
        gamma_for_rate(min(10 * far, 0.5), d) ** 2,
        far,
    )


# Streams


def make_stream(K, d, missing_share, seed):
    """Make an autocorrelated stream with missing values, outliers, and shifts within and beyond the threshold."""
    rng = np.random.default_rng(seed)
    n = 440
    y = rng.normal(size=(n, d))
    for t in range(1, n):
        y[t] += 0.4 * y[t - 1]
    y = y @ (np.eye(d) + 0.3 * np.tri(d, k=-1)) + 7.0 * rng.integers(K, size=(n, 1))
    y[150:260] += 2.0 * K
    y[260:390] += 60.0
    y[rng.random(n) < 0.04] += rng.normal(scale=60.0, size=d)
    y[[110, 140]] += 2e3
    missing = rng.random((n, d)) < missing_share
    missing[np.arange(n), rng.integers(d, size=n)] = False
    y[missing] = np.nan
    return 100.0 + 5.0 * y


def make_slow_stream(seed=0):
    """Make two groups that shift slightly once."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(500, 1)) + 7.0 * rng.integers(2, size=(500, 1))
    y[90:] += 1.5
    return y


@pytest.mark.parametrize(
    ("K", "d", "covariance", "missing_share", "far"),
    [
        (1, 1, "full", 0.0, 1e-2),
        (2, 1, "full", 0.0, 1e-2),
        (1, 3, "full", 0.0, 1e-4),
        (1, 3, "full", 0.3, 1e-2),
        (1, 3, "diagonal", 0.2, 1e-4),
    ],
)
def test_automatic_learner_equals_its_reference(K, d, covariance, missing_share, far):
    n_events = compare(make_stream(K, d, missing_share, seed=1), K, d, covariance, far)
    assert n_events["rejected"] > 10
    assert n_events["anomaly"] > 0 or far < 1e-3
    assert n_events["needs_check"] > 0
    assert n_events["core_replaced"] > 0
    assert n_events["change"] > 0
    assert n_events["experts_replaced"] > 0 or K > 1


def test_mixture_is_checked_several_times_after_a_change_within_the_threshold():
    n_events = compare(make_slow_stream(), 2, 1, "full", 1e-4)
    assert n_events["experts_replaced"] > 0
    assert n_events["needs_check"] == 5


def compare(y, K, d, covariance, far):
    """Compare learner and reference at each row; return how often each event occurred."""
    learner = lp.Detector(K, covariance=covariance, far=far)
    learner.process(y[:N_INIT])
    location, scale = get_field(learner, "reference"), get_field(learner, "scale")
    reference = to_reference(learner, K, d, covariance, far)
    n_events = dict.fromkeys(("rejected", "anomaly", "needs_check", "experts_replaced", "core_replaced", "change"), 0)
    for t in range(N_INIT, len(y)):
        trace = learner.process(y[t : t + 1], record="means")
        expected = reference.step((y[t] - location) / scale)
        for name in ("score", "change_score", "p_value"):
            assert_close(getattr(trace, name)[0], expected[name], f"{name} of row {t}")
        for name in ("rejected", "anomaly"):
            assert getattr(trace, name)[0] == expected[name], f"{name} of row {t}"
        checked = bool(trace.outcomes[0] & OUTCOME_NEEDS_REINIT)
        assert checked == expected["needs_check"], t
        reinitialized = checked and (get_field(learner, "trust") == 0.2).all()
        if reinitialized:
            reference.ensemble, reference.reinitializer = (
                to_ensemble(learner, K, d, covariance),
                to_reinitializer(learner, K),
            )
        if reinitialized or trace.change[0]:
            reference.ar1.recenter(*reference.ensemble.moments())
        assert_close(get_field(learner, "trust"), reference.ensemble.trust, f"trust after row {t}")
        assert_close(get_field(learner, "lead")[0], reference.ensemble.lead, f"lead after row {t}")
        assert_close((trace.means[0] - location) / scale, reference.ensemble.means(), f"means after row {t}")
        for name in n_events:
            n_events[name] += bool(expected.get(name, trace.change[0]))
    assert_same_state(learner, reference, d)
    return n_events


def assert_close(ours, expected, label):
    np.testing.assert_allclose(
        np.asarray(ours, float), np.asarray(expected, float), rtol=TOLERANCE, atol=TOLERANCE, err_msg=label
    )


def assert_same_state(learner, reference, d):
    """Compare the parts of the state that no result shows."""
    assert_close(get_field(learner, "tail_scale_squared")[0], reference.ensemble.tail, "tail_scale_squared")
    assert_close(get_field(learner, "counts"), reference.ensemble.counts, "counts")
    reinitializer = reference.reinitializer
    expected = (
        reinitializer.evidence,
        reinitializer.points_since_zero,
        reinitializer.n_rejected,
        reinitializer.contamination,
        reinitializer.n_points,
    )
    assert_close(get_field(learner, "reinitialization")[:5], expected, "reinitialization")
    recent_points = get_recent_points(learner)
    np.testing.assert_allclose(
        np.where(recent_points == MISSING_SENTINEL, np.nan, recent_points),
        np.where(np.array(reinitializer.recent_points) == MISSING_SENTINEL, np.nan, reinitializer.recent_points),
    )
    ar1 = reference.ar1
    assert_close(
        get_field(learner, "ar1")[:-1].reshape(d, 4).T, (ar1.mean, ar1.variance, ar1.covariance, ar1.last), "ar1"
    )
    np.testing.assert_array_equal(get_bin_counts(get_surprise_histogram(learner)), reference.p_values.counts)
    for name, scorer in (("value_scorer", reference.value_scorer), ("residual_scorer", reference.residual_scorer)):
        tally = (scorer.n_core, scorer.n_outlier, scorer.outlier_share, scorer.n_points, scorer.recent_outlier_share)
        assert_close(get_field(learner, name)[-5:], tally, name)


# Re-initialization


def pack_fit(weights, means, variances):
    """Return [ weights | components ] of a mixture in one dimension."""
    return np.concatenate([weights, np.column_stack([means, variances]).ravel()])


@pytest.mark.parametrize("seed", range(5))
def test_robust_fit_of_one_component_ignores_outliers(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(60, 1))
    points[:12] += 40.0
    _, mean, variance = fit_robust_mixture(make_auto_kernels("full", 1, 1), rng.permutation(points), 0)
    np.testing.assert_allclose(mean, np.mean(points[12:]), atol=0.2)
    assert 0.5 < variance < 1.5


@pytest.mark.parametrize("seed", range(5))
def test_robust_fit_of_two_components_ignores_outliers(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(64, 1)) + 9.0 * (np.arange(64) % 2)[:, None]
    points[:9] = rng.uniform(30.0, 90.0, (9, 1)) * rng.choice([-1.0, 1.0], (9, 1))
    fit = fit_robust_mixture(make_auto_kernels("full", 2, 1), points, 0)
    means, variances = fit[2:].reshape(2, 2).T
    np.testing.assert_allclose(np.sort(means), (0.0, 9.0), atol=0.8)
    assert ((variances > 0.3) & (variances < 3.0)).all()
    np.testing.assert_allclose(fit[:2], 0.5, atol=0.15)


def test_robust_fit_accepts_missing_values():
    rng = np.random.default_rng(0)
    points = rng.normal((0.0, 1.0, 2.0), size=(60, 3))
    points[rng.random(points.shape) < 0.3] = np.nan
    points[:10, 0] = 50.0
    fit = fit_robust_mixture(make_auto_kernels("full", 1, 3), points, 0)
    np.testing.assert_allclose(fit[1:4], (0.0, 1.0, 2.0), atol=0.6)


def test_components_keep_their_order_under_any_shift():
    old = pack_fit((0.3, 0.7), (0.0, 8.0), (1.0, 2.0))
    for shift in (0.0, 7.0, -500.0):
        new = pack_fit((0.6, 0.4), (8.2 + shift, 0.1 + shift), (2.1, 1.1))
        ordered = match_component_order(COMPONENT_BY_COVARIANCE["full"], old, new, 2, 1)
        np.testing.assert_array_equal(ordered, pack_fit((0.4, 0.6), (0.1 + shift, 8.2 + shift), (1.1, 2.1)))
        again = match_component_order(COMPONENT_BY_COVARIANCE["full"], old, ordered, 2, 1)
        np.testing.assert_array_equal(again, ordered)
    single = pack_fit((1.0,), (3.0,), (1.0,))
    np.testing.assert_array_equal(match_component_order(COMPONENT_BY_COVARIANCE["full"], single, single, 1, 1), single)


def test_component_order_is_scaled_by_the_widths():
    """A coordinate that is a thousand times as wide has no weight."""
    diagonal = COMPONENT_BY_COVARIANCE["diagonal"]
    wide = np.array([1.0, 1e6, 1.0])
    old = np.concatenate([(0.5, 0.5), [0.0, 0.0, 0.0], wide, [5.0, 900.0, 5.0], wide])
    new = np.concatenate([(0.5, 0.5), [5.0, 0.0, 5.0], wide, [0.0, 900.0, 0.0], wide])
    ordered = match_component_order(diagonal, old, new, 2, 3)
    np.testing.assert_array_equal(ordered[2:5], (0.0, 900.0, 0.0))


def reinit_state(d, points, points_since_zero, rejected=0, contamination=0.0):
    """Return a state of the re-initialization alone, whose ring buffer has had these points."""
    layout = Layout(reinitialization.reinit_fields(1, d))
    theta = np.zeros(layout.size)
    ring = layout.view(theta, "recent_points")
    for i, point in enumerate(points):
        ring[i % len(ring)] = np.where(np.isnan(point), MISSING_SENTINEL, point)
    values = layout.view(theta, "reinitialization")
    values[reinitialization.NEXT_RING_INDEX] = len(points) % len(ring)
    (
        values[reinitialization.POINTS_SINCE_ZERO],
        values[reinitialization.N_REJECTED],
        values[reinitialization.CONTAMINATION],
    ) = (
        points_since_zero,
        rejected,
        contamination,
    )
    return layout, theta


def test_recent_points_are_ordered_and_keep_missing_values():
    points = np.arange(200.0).reshape(100, 2)
    points[95, 1] = np.nan
    for points_since_zero, n in ((5, 5), (40, 40), (64, 64), (90, 64), (0, 64)):
        state = reinit_state(2, points, points_since_zero)
        assert reinitialization.n_recent(*state) == n
        np.testing.assert_array_equal(reinitialization.recent_points(*state, n), points[-n:])


@pytest.mark.parametrize(
    ("rejected", "contamination", "width", "expected"),
    [
        (9, 0.0, 0.1, False),  # too few
        (10, 0.0, 0.1, True),  # few, but in one place
        (10, 0.0, 9.0, False),  # few, and all over the place
        (16, 0.0, 9.0, True),  # many
        (16, 0.2, 0.1, False),  # of a stream with so many outliers, few …
        (30, 0.2, 0.1, True),
        (48, 0.2, 9.0, True),  # … and many
        (63, 0.9, 0.1, True),  # no more doubt than at 30 %
        (39, 0.9, 0.1, False),
    ],
)
def test_stable_regime_is_many_points_or_a_tight_cluster(rejected, contamination, width, expected):
    points = 100.0 + width * np.random.default_rng(0).normal(size=(rejected, 1))
    state = reinit_state(1, points, rejected, rejected, contamination)
    assert reinitialization.is_stable_regime(*state, points, np.ones(1)) is expected


def test_fit_is_better_if_most_points_gain():
    old = np.full(50, 3.0)
    assert reinitialization.improves_likelihood(old, old - 1.0)
    assert not reinitialization.improves_likelihood(old, old)
    assert not reinitialization.improves_likelihood(old, old + 1.0)
    few_gain = old.copy()
    few_gain[:4] = -1e9  # a few points do not decide
    assert not reinitialization.improves_likelihood(old, few_gain)
    one_loss = old - 1.0
    one_loss[0] = 1e9
    assert reinitialization.improves_likelihood(old, one_loss)


def test_evidence_is_cleared():
    layout, theta = reinit_state(1, np.ones((5, 1)), 5, 5, 0.1)
    reinitialization.clear_evidence(layout, theta)
    values = layout.view(theta, "reinitialization")
    assert (
        values[
            [
                reinitialization.REJECTION_EVIDENCE,
                reinitialization.POINTS_SINCE_ZERO,
                reinitialization.N_REJECTED,
                reinitialization.POINTS_UNTIL_CHECK,
                reinitialization.CHECKS_LEFT,
            ]
        ]
        == 0.0
    ).all()
    assert values[reinitialization.CONTAMINATION] == 0.1
    assert values[reinitialization.NEXT_RING_INDEX] == 5.0


def test_p_value_of_the_reference_decreases_with_the_surprise():
    """Without counts it is 1; the reference itself is checked."""
    p_values = reference_auto.PValues(np.zeros(128))
    for surprise in np.random.default_rng(0).exponential(1.0, 5000):
        p_values.count(surprise, 1.0, 0.0, 0.0)
    surprises = np.linspace(0.0, 40.0, 500)
    p = [p_values.p_value(surprise, 1e-4) for surprise in surprises]
    assert (np.diff(p) < 0.0).all()
    np.testing.assert_allclose(p[:30], np.exp(-surprises[:30]), rtol=0.15)
    assert math.isclose(p_values.p_value(9.0, 1e-4), math.exp(-9.0), rel_tol=1.0)
