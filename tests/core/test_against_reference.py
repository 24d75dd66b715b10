"""The kernels against the reference: scores, rejections and estimates to 1e-10, on random streams."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limpet as lp
from limpet.core import Constant, InverseTime, PolynomialDecay
from limpet.models import ConjugatePrior, GaussianMixture, LinearRegression, LogisticRegression, PoissonMixture
from reference import sra

TOLERANCE = 1e-10
ROWS, N_INIT, WARMUP = 100, 40, 50

STEPS = [
    (Constant(0.05), sra.constant(0.05)),
    (InverseTime(), sra.inverse_time()),
    (PolynomialDecay(0.6, t0=3.0, scale=0.3), sra.polynomial_decay(0.3, 3.0, 0.6)),
]
steps = st.sampled_from(STEPS)
seeds = st.integers(0, 2**32 - 1)


def make_points(rng, K, d, missing=0.0):
    """A mixture with some outliers, and optionally missing coordinates (never all of a point's)."""
    centres = rng.normal(scale=3.0, size=(K, d))
    root = 0.3 * rng.normal(size=(d, d)) / math.sqrt(d) + np.eye(d)
    points = centres[rng.integers(K, size=ROWS)] + rng.normal(size=(ROWS, d)) @ root
    points[rng.random(ROWS) < 0.05] *= 10.0
    if missing:
        is_missing = rng.random((ROWS, d)) < missing
        is_missing[np.arange(ROWS), rng.integers(d, size=ROWS)] = False
        is_missing[:N_INIT] = False  # the reference starts from the initialization on complete points
        points[is_missing] = np.nan
    return points


def assert_close(ours, expected):
    np.testing.assert_allclose(
        ours, expected, rtol=TOLERANCE, atol=TOLERANCE * max(1.0, float(np.max(np.abs(expected))))
    )


def compare(model, make_reference, points, norm, step, rng, y=None):
    """Initialize ours on the first points, copy its estimates to the reference, and run both over the rest."""
    our_step, reference_step = step

    patience = int(rng.integers(4))

    def learner(gamma):
        settings = {"n_init": N_INIT, "warmup": WARMUP, "patience": patience}
        return lp.StochasticApproximation(model, our_step, gamma, norm, **settings)

    head, tail = (points[:N_INIT],), (points[N_INIT:],)
    if y is not None:
        head, tail = (points[:N_INIT], y[:N_INIT]), (points[N_INIT:], y[N_INIT:])
    ours = learner(1.0)
    ours.process(*head)
    extra_args = {} if y is None else {"y": y[N_INIT:]}
    sizes = sra.run(make_reference(ours), tail[0], math.inf, norm, reference_step, 0, N_INIT, **extra_args).sizes
    gamma = float(np.quantile(sizes[WARMUP - N_INIT :], rng.uniform(0.5, 0.95))) * 1.0000001  # rejects some later ones
    ours = learner(gamma)
    ours.process(*head)
    extra_args["patience"] = patience
    expected = sra.run(make_reference(ours), tail[0], gamma, norm, reference_step, WARMUP, N_INIT, **extra_args)
    trace = ours.process(*tail)
    np.testing.assert_array_equal(trace.rejected, expected.rejected)
    assert 0 < ours.n_rejected < len(points)
    assert_close(trace.score, expected.scores)
    return ours, expected


def get_parameters(learner, covariance, d):
    """The plain (unpenalised) parameters in the learner's state."""
    plain = GaussianMixture(learner.model.n_components, covariance=covariance)
    theta = learner._engine.buffer.theta
    return [plain.estimate(name, theta, d) for name in ("weights", "means", "covariances")]


def compare_gaussian(model, points, norm, step, rng, **reference_settings):
    d = points.shape[1]

    def make_reference(learner):
        weights, means, covariances = get_parameters(learner, model.covariance, d)
        return sra.GaussianMixture(weights, means, covariances, model.covariance, **reference_settings)

    ours, expected = compare(model, make_reference, points, norm, step, rng)
    for name in ("weights", "means", "covariances"):
        assert_close(getattr(ours, name), expected.parameters[name][-1])


NORMS = ("whitened", "mean", "full")


def parametrize_kinds(shapes, quick):
    """Return all (K, d, norm); all except `quick` are marked long, because each is compiled separately."""
    all_kinds = [(K, d, norm) for K, d in shapes for norm in NORMS]
    assert set(quick) <= set(all_kinds)
    return [pytest.param(*kind, marks=[] if kind in quick else pytest.mark.long) for kind in all_kinds]


# One or several components and variables; preferably kinds that other tests compile as well.
QUICK_KINDS = [
    *[(K, d, "whitened") for K, d in ((1, 1), (2, 1), (1, 3), (2, 3), (3, 2))],
    *[(2, 1, norm) for norm in ("mean", "full")],  # with (2, 3) they are among the tests of missing coordinates
]
few_examples = settings(max_examples=5)  # per kind


@pytest.mark.parametrize(
    ("K", "d", "norm"), parametrize_kinds([(K, d) for K in (1, 2, 3, 5) for d in (1, 2, 3, 8)], QUICK_KINDS)
)
@few_examples
@given(seed=seeds, step=steps)
def test_gaussian_mixture(K, d, norm, seed, step):
    rng = np.random.default_rng(seed)
    compare_gaussian(GaussianMixture(K), make_points(rng, K, d), norm, step, rng)


QUICK_DIAGONAL_KINDS = [(2, 1, "whitened"), (2, 3, "whitened")]


@pytest.mark.parametrize(("K", "d", "norm"), parametrize_kinds([(2, 1), (2, 3), (1, 8)], QUICK_DIAGONAL_KINDS))
@few_examples
@given(seed=seeds, step=steps)
def test_diagonal_mixture(K, d, norm, seed, step):
    rng = np.random.default_rng(seed)
    compare_gaussian(GaussianMixture(K, covariance="diagonal"), make_points(rng, K, d), norm, step, rng)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("norm", NORMS)
@few_examples
@given(seed=seeds, step=steps)
def test_missing_coordinates_are_integrated_out(covariance, norm, seed, step):
    rng = np.random.default_rng(seed)
    compare_gaussian(GaussianMixture(2, covariance=covariance), make_points(rng, 2, 3, missing=0.3), norm, step, rng)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@given(seed=seeds, step=steps, missing=st.sampled_from([0.0, 0.3]))
def test_penalty_in_the_m_step(covariance, seed, step, missing):
    rng = np.random.default_rng(seed)
    centre, scale = rng.normal(size=3), rng.uniform(0.5, 2.0, size=3)
    penalty = ConjugatePrior(weight=0.1, mean=0.2, covariance=0.3, center=tuple(centre), scale=tuple(scale))
    compare_gaussian(
        GaussianMixture(2, penalty, covariance=covariance),
        make_points(rng, 2, 3, missing),
        "whitened",
        step,
        rng,
        a=0.1,
        kappa=0.2,
        nu=0.3,
        centre=centre,
        psi=np.diag(scale**2),
    )


@given(seed=seeds, step=steps)
def test_smoothing_of_sdem(seed, step):
    rng = np.random.default_rng(seed)
    compare_gaussian(GaussianMixture(3, smoothing=1.0), make_points(rng, 3, 2), "mean", step, rng, alpha=1.0)


QUICK_POISSON_KINDS = [(1, 1, "whitened"), (2, 1, "whitened"), *[(3, 2, norm) for norm in NORMS]]


@pytest.mark.parametrize(("K", "d", "norm"), parametrize_kinds([(1, 1), (2, 1), (3, 2)], QUICK_POISSON_KINDS))
@given(seed=seeds, step=steps)
def test_poisson_mixture(K, d, norm, seed, step):
    rng = np.random.default_rng(seed)
    rates = rng.uniform(1.0, 30.0, size=(K, d))
    points = rng.poisson(rates[rng.integers(K, size=ROWS)]).astype(float)
    if d > 1:
        points[50::3, 0] = np.nan

    def make_reference(learner):
        return sra.PoissonMixture(learner.weights, learner.means)

    ours, expected = compare(PoissonMixture(K), make_reference, points, norm, step, rng)
    assert_close(ours.weights, expected.parameters["weights"][-1])
    assert_close(ours.means, expected.parameters["rates"][-1])


@given(seed=seeds, step=steps)
def test_penalty_of_a_poisson_mixture(seed, step):
    rng = np.random.default_rng(seed)
    points = rng.poisson(rng.uniform(1.0, 30.0, size=(2, 1))[rng.integers(2, size=ROWS)]).astype(float)
    model = PoissonMixture(2, ConjugatePrior(weight=0.1, mean=0.3, center=5.0))

    def make_reference(learner):
        plain, theta = PoissonMixture(2), learner._engine.buffer.theta
        weights, rates = plain.estimate("weights", theta, 1), plain.estimate("means", theta, 1)
        return sra.PoissonMixture(weights, rates, a=0.1, kappa=0.3, centre=np.array([5.0]))

    ours, expected = compare(model, make_reference, points, "whitened", step, rng)
    assert_close(ours.means, expected.parameters["rates"][-1])


def get_frame(learner, p):
    view = learner.model.kernels(p + 1).layout.view
    theta = learner._engine.buffer.theta
    return {name: view(theta, name) for name in ("reference", "scale", "coef", "intercept", "variance")}


@pytest.mark.parametrize("norm", ["whitened", "full"])
@pytest.mark.parametrize("p", [pytest.param(1, marks=pytest.mark.long), 4])
@given(seed=seeds, step=steps)
def test_linear_regression(p, norm, seed, step):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, p)) * rng.uniform(0.1, 100.0, size=p) + rng.normal(size=p)
    y = X @ rng.normal(size=p) + rng.standard_t(2, size=ROWS)
    X[50::7, 0] = np.nan

    def make_reference(learner):
        f = get_frame(learner, p)
        return sra.LinearRegression(
            f["coef"], f["intercept"][0], f["variance"][0],
            f["reference"][:p], f["scale"][:p], f["reference"][p], f["scale"][p], penalty=0.01,
        )  # fmt: skip

    ours, expected = compare(LinearRegression(l2=0.01), make_reference, X, norm, step, rng, y=y)
    f = get_frame(ours, p)
    assert_close(f["coef"], expected.parameters["coefficients"][-1])
    assert_close(f["variance"][0], expected.parameters["variance"][-1])


@pytest.mark.parametrize("norm", ["whitened", "full"])
@pytest.mark.parametrize("p", [pytest.param(1, marks=pytest.mark.long), 4])
@given(seed=seeds, step=steps)
def test_logistic_regression(p, norm, seed, step):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, p)) * rng.uniform(0.1, 100.0, size=p)
    y = (X[:, 0] + rng.normal(size=ROWS) * X[:, 0].std() > 0).astype(float)

    def make_reference(learner):
        f = get_frame(learner, p)
        return sra.LogisticRegression(f["coef"], f["intercept"][0], f["reference"][:p], f["scale"][:p], penalty=0.01)

    ours, expected = compare(LogisticRegression(l2=0.01), make_reference, X, norm, step, rng, y=y)
    f = get_frame(ours, p)
    assert_close(f["coef"], expected.parameters["coefficients"][-1])
    assert_close(f["intercept"][0], expected.parameters["intercept"][-1])
