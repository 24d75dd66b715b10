"""Check the reference itself, against results known without it."""

import math

import numpy as np
import pytest

from reference.sra import (
    GaussianMixture,
    LinearRegression,
    LogisticRegression,
    PoissonMixture,
    constant,
    inverse_time,
    polynomial_decay,
    run,
)

SIGMA = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.4], [-0.3, 0.4, 1.5]])
NAN = math.nan


def make_two_gaussians(**settings):
    means = np.array([[0.0, 1.0, -1.0], [2.0, -1.0, 0.5]])
    return GaussianMixture([0.3, 0.7], means, [SIGMA, SIGMA[::-1, ::-1]], **settings)


def normal_density(y, mean, covariance):
    """Written with the determinant and the inverse, as no library should."""
    difference = y - mean
    exponent = -difference @ np.linalg.inv(covariance) @ difference / 2
    return math.exp(exponent) / math.sqrt((2 * math.pi) ** len(y) * np.linalg.det(covariance))


def test_step_sizes():
    assert float(constant(0.1)(7)) == 0.1
    assert float(inverse_time()(8)) == 0.125
    assert float(polynomial_decay(3.0, 2.0, 0.5)(7)) == pytest.approx(1.0)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_one_gaussian_with_steps_1_over_t_is_the_sample_mean_and_covariance(covariance):
    X = np.random.default_rng(0).normal(size=(30, 2)) @ np.array([[1.0, 0.5], [0.0, 2.0]]) + [3.0, -4.0]
    start = 4
    model = GaussianMixture([1], [X[:start].mean(0)], [np.cov(X[:start].T, ddof=0)], covariance)
    result = run(model, X[start:], math.inf, "full", inverse_time(), 0, start)
    for i in range(len(X) - start):
        seen = X[: start + i + 1]
        expected = np.cov(seen.T, ddof=0)
        if covariance == "diagonal":
            expected = np.diag(np.diag(expected))
        np.testing.assert_allclose(result.parameters["means"][i, 0], seen.mean(0), rtol=1e-12)
        np.testing.assert_allclose(result.parameters["covariances"][i, 0], expected, rtol=1e-11, atol=1e-13)
    assert not result.rejected.any()


def test_gaussian_score_and_responsibilities_are_bayes_rule():
    model, y = make_two_gaussians(), np.array([1.0, 0.5, 0.0])
    theta = model.theta_bar()
    np.testing.assert_allclose(theta["covariances"][0].astype(float), SIGMA, rtol=1e-14)
    joint = np.array(
        [w * normal_density(y, m, S) for w, m, S in zip(*(theta[n].astype(float) for n in theta), strict=True)]
    )
    assert float(model.score(y)) == pytest.approx(-math.log(joint.sum()), rel=1e-13)
    np.testing.assert_allclose(model.responsibilities(y).astype(float), joint / joint.sum(), rtol=1e-13)


@pytest.mark.parametrize("y", [[0.0, 0.0, 0.0], [1e6, -1e6, 1e6], [NAN, 1.0, NAN]])
@pytest.mark.parametrize("alpha", [0, 1])
def test_responsibilities_and_weights_sum_to_one(y, alpha):
    model = make_two_gaussians(alpha=alpha)
    assert float(model.responsibilities(y).sum()) == pytest.approx(1, abs=1e-15)
    assert np.isfinite(float(model.score(y)))
    model.update(y, 0.1)
    assert float(model.theta_bar()["weights"].sum()) == pytest.approx(1, abs=1e-15)


def test_missing_coordinates_by_the_precision_matrix():
    """The conditional law of m given o has covariance (Lambda_mm)^-1, where Lambda = Sigma^-1."""
    mean, y = np.array([1.0, 2.0, 3.0]), np.array([NAN, 1.0, NAN])
    model = GaussianMixture([1], [mean], [SIGMA])
    expected = model.expected_statistics(model.theta_bar(), model.point(y))
    precision, o, m = np.linalg.inv(SIGMA), [1], [0, 2]
    conditional = np.linalg.inv(precision[np.ix_(m, m)])
    filled = y.copy()
    filled[m] = mean[m] - conditional @ precision[np.ix_(m, o)] @ (y[o] - mean[o])
    second = np.outer(filled, filled)
    second[np.ix_(m, m)] += conditional
    np.testing.assert_allclose(expected["s2"][0].astype(float), filled, rtol=1e-13)
    np.testing.assert_allclose(expected["s3"][0].astype(float), second, rtol=1e-13)
    assert float(model.score(y)) == pytest.approx(-math.log(normal_density(y[o], mean[o], SIGMA[np.ix_(o, o)])))
    assert float(model.size(y, "whitened")) == pytest.approx(1.0)


def test_missing_coordinates_by_hand_in_two_dimensions():
    model = GaussianMixture([1], [[0.0, 0.0]], [[[1.0, 0.5], [0.5, 1.0]]])
    expected = model.expected_statistics(model.theta_bar(), model.point([2.0, NAN]))
    np.testing.assert_allclose(expected["s2"][0].astype(float), [2, 1])
    np.testing.assert_allclose(expected["s3"][0].astype(float), [[4, 2], [2, 1 + 0.75]])
    model = GaussianMixture([1], [[0.0, 3.0]], [[1.0, 4.0]], "diagonal")
    expected = model.expected_statistics(model.theta_bar(), model.point([2.0, NAN]))
    np.testing.assert_allclose(expected["s3"][0].astype(float), [[4, 0], [0, 9 + 4]])


def test_norms_by_hand():
    model = GaussianMixture([1], [[0.0, 0.0]], [[1.0, 4.0]], "diagonal")
    # s = (1, (0, 0), diag(1, 4)); sbar = (1, (3, 4), diag(9, 16))
    assert float(model.size([3.0, 4.0], "mean")) == pytest.approx(5)
    assert float(model.size([3.0, 4.0], "full")) == pytest.approx(math.sqrt(25 + 64 + 144))
    assert float(model.size([3.0, 4.0], "whitened")) == pytest.approx(math.sqrt(9 + 4))
    model = GaussianMixture([1], [[0.0, 0.0]], [[[1.0, 0.0], [0.0, 4.0]]])
    assert float(model.size([3.0, 4.0], "full")) == pytest.approx(math.sqrt(25 + 64 + 144 + 2 * 12**2))


def test_threshold_is_strict_and_waits_for_the_warmup():
    start = {"weights": [1], "means": [[0.0]], "covariances": [[[1.0]]]}
    X = np.array([[3.0], [3.0], [3.0]])
    on_the_edge = run(GaussianMixture(**start), X[:1], 3.0, "mean", constant(0.1), 0, 0)
    assert on_the_edge.sizes[0] == 3
    assert not on_the_edge.rejected[0]
    result = run(GaussianMixture(**start), X, 1.0, "mean", constant(0.1), 6, 5)
    np.testing.assert_array_equal(result.rejected, [False, True, True])
    np.testing.assert_allclose(result.parameters["means"][:, 0, 0], 0.3)
    assert result.scores[1] == result.scores[2]


def test_sdem_smooths_the_update_and_not_the_norm():
    plain, smooth, y, rho, alpha = make_two_gaussians(), make_two_gaussians(alpha=0.8), [1.0, 0.5, 0.0], 0.25, 0.8
    assert plain.size(y, "full") == smooth.size(y, "full")
    r = plain.responsibilities(y).astype(float)
    smooth.update(y, rho)
    expected = 0.75 * np.array([0.3, 0.7]) + 0.25 * ((1 - alpha * rho) * r + alpha * rho / 2)
    np.testing.assert_allclose(smooth.theta_bar()["weights"].astype(float), expected, rtol=1e-14)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_penalty_at_infinity_gives_the_centre_and_psi(covariance):
    centre, psi = np.array([5.0, 6.0, 7.0]), 3 * np.eye(3) + 0.5
    model = make_two_gaussians(covariance=covariance, a=1e18, kappa=1e18, nu=1e18, centre=centre, psi=psi)
    theta = model.theta_bar()
    expected = np.diag(np.diag(psi)) if covariance == "diagonal" else psi
    for k in range(2):
        assert float(theta["weights"][k]) == pytest.approx(0.5)
        np.testing.assert_allclose(theta["means"][k].astype(float), centre)
        np.testing.assert_allclose(theta["covariances"][k].astype(float), expected, atol=1e-12)


def test_penalised_m_step_is_stationary():
    """theta_bar minimises psi(theta) + R(theta) - <s, phi(theta)>, whose slope is 0 there."""
    a, kappa, nu, c, psi = 0.1, 0.7, 0.4, np.array([1.0, 0.0, 2.0]), np.eye(3) + 0.2
    model = make_two_gaussians(a=a, kappa=kappa, nu=nu, centre=c, psi=psi)
    s = {name: model.s[name].astype(float) for name in model.s}
    theta = {name: value.astype(float) for name, value in model.theta_bar().items()}

    def loss(k, mean, covariance):
        precision = np.linalg.inv(covariance)
        scatter = s["s3"][k] - np.outer(s["s2"][k], mean) - np.outer(mean, s["s2"][k])
        scatter = scatter + s["s1"][k] * np.outer(mean, mean) + kappa * np.outer(mean - c, mean - c) + nu * psi
        return (s["s1"][k] + nu) * np.linalg.slogdet(covariance)[1] + np.trace(precision @ scatter)

    rng = np.random.default_rng(1)
    for k in range(2):
        for _ in range(20):
            du, dS = rng.normal(size=3), rng.normal(size=(3, 3))
            dS, h = dS + dS.T, 1e-5
            up = loss(k, theta["means"][k] + h * du, theta["covariances"][k] + h * dS)
            down = loss(k, theta["means"][k] - h * du, theta["covariances"][k] - h * dS)
            assert abs(up - down) / (2 * h) < 1e-7
    np.testing.assert_allclose(theta["weights"], (s["s1"] + a) / (s["s1"] + a).sum(), rtol=1e-14)


def test_poisson():
    rates = np.array([[1.0, 5.0], [4.0, 2.0]])
    model = PoissonMixture([0.4, 0.6], rates)
    pmf = np.exp(-rates) * rates ** [2, 3] / [2, 6]
    joint = np.array([0.4, 0.6]) * pmf.prod(1)
    r = joint / joint.sum()
    assert float(model.score([2, 3])) == pytest.approx(-math.log(joint.sum()), rel=1e-13)
    distances = 4 * ((np.sqrt(np.array([2, 3]) + 0.375) - np.sqrt(rates + 0.375)) ** 2).sum(1)
    assert float(model.size([2, 3], "whitened")) == pytest.approx(math.sqrt(r @ distances), rel=1e-13)
    H = np.array([0.4, 0.6])[:, None] * rates - r[:, None] * [2, 3]
    assert float(model.size([2, 3], "mean")) == pytest.approx(np.linalg.norm(H), rel=1e-13)
    full = math.hypot(np.linalg.norm(H), np.linalg.norm([0.4, 0.6] - r))
    assert float(model.size([2, 3], "full")) == pytest.approx(full, rel=1e-13)
    assert float(model.score([NAN, 3])) == pytest.approx(-math.log([0.4, 0.6] @ pmf[:, 1]), rel=1e-13)


def test_poisson_missing_and_penalty():
    model = PoissonMixture([1], [[2.0, 5.0]])
    model.update([6, NAN], 0.5)
    np.testing.assert_allclose(model.theta_bar()["rates"][0].astype(float), [4, 5])
    model = PoissonMixture([0.4, 0.6], [[1.0], [4.0]], a=1e18, kappa=1e18, centre=[9.0])
    np.testing.assert_allclose(model.theta_bar()["rates"].astype(float), [[9], [9]])
    np.testing.assert_allclose(model.theta_bar()["weights"].astype(float), [0.5, 0.5])
    X = np.random.default_rng(2).poisson(3.0, size=(40, 1))
    result = run(PoissonMixture([1], [X[:5].mean(0)]), X[5:], math.inf, "mean", inverse_time(), 0, 5)
    np.testing.assert_allclose(result.parameters["rates"][-1, 0], X.mean(0), rtol=1e-13)


def make_regressions():
    standardization = {"feature_centres": [1.0, -2.0], "feature_scales": [2.0, 0.5], "penalty": 0.3}
    linear = LinearRegression([0.4, -0.2], 0.1, 0.5, target_centre=10.0, target_scale=4.0, **standardization)
    return [(linear, ([2.0, -1.0], 13.0)), (LogisticRegression([0.4, -0.2], 0.1, **standardization), ([2.0, -1.0], 1))]


@pytest.mark.parametrize("which", [0, 1])
def test_regression_H_is_the_gradient(which):
    model, point = make_regressions()[which]

    def loss(b, b_0):
        model.b, model.b_0 = b, b_0
        fit = model.residual(point) ** 2 / 2 if which == 0 else model.score(point)
        return fit + model.penalty * np.sum(b**2) / 2

    b, b_0, (H_b, H_0) = model.b, model.b_0, model.H(point)
    for j in range(2):
        h = np.eye(2)[j] * 1e-6
        assert float((loss(b + h, b_0) - loss(b - h, b_0)) / 2e-6) == pytest.approx(float(H_b[j]), rel=1e-8)
    assert float((loss(b, b_0 + 1e-6) - loss(b, b_0 - 1e-6)) / 2e-6) == pytest.approx(float(H_0), rel=1e-8)


def test_linear_regression_by_hand():
    model, (x, y) = make_regressions()[0]
    # x~ = (0.5, 2), prediction 0.2 - 0.4 + 0.1 = -0.1, y~ = 0.75, e = 0.85
    assert float(model.score((x, y))) == pytest.approx(
        -math.log(normal_density(np.array([13.0]), 9.6, np.array([[8.0]])))
    )
    assert float(model.size((x, y), "whitened")) == pytest.approx(0.85 / math.sqrt(0.5))
    assert float(model.size((x, y), "full")) == pytest.approx(np.linalg.norm([0.12 - 0.425, -0.06 - 1.7, -0.85]))
    result = run(model, [x], math.inf, "full", constant(0.01), 0, 0, y=[y])
    np.testing.assert_allclose(result.parameters["coefficients"][0], [0.4 + 0.00305, -0.2 + 0.0176])
    assert result.parameters["intercept"][0] == pytest.approx(0.1085)
    assert result.parameters["variance"][0] == pytest.approx(0.5 - 0.01 * (0.5 - 0.85**2))


def test_linear_regression_does_not_overshoot_and_accepts_missing_features():
    model = LinearRegression([0.4, -0.2], 0.1, 0.5, [0, 0], [1, 1], 0, 1)
    model.update(([30.0, NAN], 5.0), 0.9)
    assert float(model.residual(([30.0, NAN], 5.0))) == pytest.approx(0, abs=1e-12)
    assert float(model.b[1]) == -0.2
    model = LogisticRegression([0.0], 0.0, [0], [1])
    model.update(([3.0], 1), 0.9)  # rho' = 4/10, e = 1/2
    assert (float(model.b[0]), float(model.b_0)) == pytest.approx((0.6, 0.2))


def test_logistic_regression_by_hand():
    model, (x, _) = make_regressions()[1]
    p = 1 / (1 + math.exp(0.1))
    for y, likelihood in [(1, p), (0, 1 - p)]:
        assert float(model.score((x, y))) == pytest.approx(-math.log(likelihood))
        assert float(model.size((x, y), "whitened")) == pytest.approx(abs(y - p) / math.sqrt(p * (1 - p)))
