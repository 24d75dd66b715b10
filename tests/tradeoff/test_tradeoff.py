"""The theory against reference implementations: quadrature, sums, finite differences, brute force."""

import math
import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import erfc

from limpet import tradeoff
from limpet.exceptions import InvalidInputError, MissingExtraError
from limpet.plots.tradeoff import draw_tradeoff
from limpet.tradeoff import Constants

CONSTANTS = Constants(
    c0=0.3, c1=0.7, d0=0.4, d1=2.5, L=3.0, sigma0=1.5, sigma1=0.6, alpha=0.8, U=4.0, dim=3, M=2.0, V=5.0, n=40
)
GAMMAS = [0.05, 0.9, 2.0, 5.5, 6.9, 7.0, 30.0]  # √3·4 = 6.93 lies between the fifth and the sixth


def integrate(low, high, scale):
    return quad(lambda z: math.exp(-((z / scale) ** 2)), low, high, epsabs=1e-14)[0]


def reference_bound(gamma, steps, c):
    """Theorem 2, term by term, in its general form."""
    tail = 0.0 if math.isinf(gamma) else integrate(gamma, max(gamma, 12 * c.M), c.M)
    total = sum(steps)
    squares = sum(step * step for step in steps)
    noise = c.alpha * c.sigma0**2 + (1 - c.alpha) * min(c.dim * c.U**2, gamma**2)
    return 2 * (c.c0 + c.c1 * (c.d0 + c.d1) * tail) + 2 * c.c1 * (c.V + c.L * noise * squares) / total


def grid_bound(gamma, rho, c):
    """Theorem 2 at a constant step, for whole grids of (γ, ρ) at once."""
    cut = c.M * math.sqrt(math.pi) / 2 * erfc(gamma / c.M)
    noise = c.alpha * c.sigma0**2 + (1 - c.alpha) * np.minimum(c.dim * c.U**2, gamma**2)
    return 2 * c.c0 + 2 * c.c1 * ((c.d0 + c.d1) * cut + c.V / ((c.n + 1) * rho) + c.L * noise * rho)


def grid_limit(gamma, c):
    cut = c.M * math.sqrt(math.pi) / 2 * erfc(gamma / c.M)
    return (1 - 2 * c.c1 * c.d1 * cut) / (2 * c.c1 * c.L * (c.sigma1**2 + 2))


# --- Corollary 1 -----------------------------------------------------------------------------------


def test_step_size_equals_that_of_the_paper():
    assert tradeoff.step_size(3.0, 0.1, 5.0) == pytest.approx(0.1 * math.exp(-9 / 25) / 6, rel=1e-14)
    assert round(tradeoff.step_size(3, 0.1, 5), 5) == 0.01163
    assert round(tradeoff.step_size(2e4, 2e2, 4e4), 4) == 0.0039  # Well-log


def test_step_size_for_huge_gamma_is_zero_without_a_warning():
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        assert tradeoff.step_size(1e200, 0.1, 1.0) == 0.0


@pytest.mark.parametrize("gamma", [1e-9, 0.3, 3.0, 30.0])
def test_threshold_inverts_step_size(gamma):
    rho = tradeoff.step_size(gamma, 0.4, 5.0)
    assert tradeoff.threshold(rho, 0.4, 5.0) == pytest.approx(gamma, rel=1e-12)


@pytest.mark.parametrize("gamma", [0.2, 1.0, 3.0, 6.0])
def test_corollary_1_is_stationarity_in_gamma_and_a_minimum(gamma):
    rho = tradeoff.step_size(gamma, CONSTANTS.beta, CONSTANTS.M)
    assert tradeoff.d_bound_d_gamma(gamma, rho, CONSTANTS) == pytest.approx(0.0, abs=1e-12)
    around = tradeoff.bound(gamma * np.array([0.9, 1.0, 1.1]), rho, CONSTANTS)
    assert around.argmin() == 1


def test_corollary_1_is_not_the_best_step():
    rho, best = tradeoff.step_size(1.0, CONSTANTS.beta, CONSTANTS.M), tradeoff.best_step(1.0, CONSTANTS)
    assert tradeoff.bound(1.0, best, CONSTANTS) < 0.7 * tradeoff.bound(1.0, rho, CONSTANTS)


def test_beta_printed_and_general():
    assert tradeoff.beta_from(0.5, 3.0, 0.8) == pytest.approx(1.5 / 0.6)
    assert tradeoff.beta_from(0.5, 3.0, 0.8, d1=2.5) == pytest.approx(3.0 / 0.6)
    assert CONSTANTS.beta == pytest.approx(2.9 / 0.6)
    assert Constants(alpha=1.0).beta == math.inf


# --- constants -------------------------------------------------------------------------------------


def test_from_beta_keeps_beta_and_the_rest():
    c = Constants.from_beta(0.1, 5.0, alpha=0.9, d0=0.5, d1=3.0, U=7.0, dim=4)
    assert c.beta == pytest.approx(0.1, rel=1e-14)
    assert (c.M, c.alpha, c.d1, c.U) == (5.0, 0.9, 3.0, 7.0)
    assert c.outlier_radius == 14.0


def test_constants_are_frozen():
    with pytest.raises(FrozenInstanceError):
        CONSTANTS.M = 3.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("c0", -1.0),
        ("c1", 0.0),
        ("d0", -0.1),
        ("d1", 0.0),
        ("L", -1.0),
        ("sigma0", -1.0),
        ("sigma1", math.inf),
        ("alpha", 1.1),
        ("alpha", -0.1),
        ("alpha", math.nan),
        ("U", 0.0),
        ("dim", 0),
        ("dim", 1.5),
        ("dim", True),
        ("M", 0.0),
        ("M", math.inf),
        ("M", "5"),
        ("V", -1.0),
        ("V", None),
        ("n", 0),
        ("n", 10.0),
        ("L", [1.0, 2.0]),
    ],
)
def test_invalid_constants_raise(name, value):
    with pytest.raises(InvalidInputError, match=f"^{name}: "):
        Constants(**{name: value})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta": 0.0, "M": 5.0}, "^beta: "),
        ({"beta": 0.1, "M": 5.0, "alpha": 1.0}, "^alpha: "),
        ({"beta": 0.1, "M": 5.0, "L": 1.0}, r"got \['L'\]"),
    ],
)
def test_invalid_arguments_of_from_beta_raise(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        Constants.from_beta(**arguments)


# --- tail, Theorems 1 and 2, Corollaries 2 and 3 ---------------------------------------------------


@pytest.mark.parametrize("M", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("gamma", [0.0, 0.1, 1.0, 4.0])
def test_tail_against_quadrature(gamma, M):
    assert tradeoff.tail(gamma, M) == pytest.approx(integrate(gamma, gamma + 12 * M, M), rel=1e-9, abs=1e-13)


def test_tail_without_threshold_is_zero():
    assert tradeoff.tail(math.inf, 5.0) == 0.0


@pytest.mark.parametrize("gamma", [*GAMMAS, math.inf])
def test_bound_equals_the_reference(gamma):
    steps = [0.3 / math.sqrt(t) for t in range(1, 30)]
    assert tradeoff.bound(gamma, steps, CONSTANTS) == pytest.approx(reference_bound(gamma, steps, CONSTANTS), rel=1e-10)
    constant = [0.02] * (CONSTANTS.n + 1)
    assert tradeoff.bound(gamma, 0.02, CONSTANTS) == pytest.approx(
        reference_bound(gamma, constant, CONSTANTS), rel=1e-10
    )


def test_printed_bound_is_the_general_one_with_d1_equal_to_1():
    noise = 0.8 * 1.5**2 + 0.2 * 2.0**2
    rest = 2 * 0.7 * (5.0 + 3.0 * noise * 41 * 0.02**2) / (41 * 0.02)
    printed = 2 * (0.3 + 0.7 * (0.4 + 1) * integrate(2.0, 24.0, 2.0)) + rest
    assert tradeoff.bound(2.0, 0.02, replace(CONSTANTS, d1=1.0)) == pytest.approx(printed, rel=1e-10)


@pytest.mark.parametrize("rho", [0.02, [0.1, 0.05, 0.01]])
def test_corollary_2_is_the_limit(rho):
    limit = tradeoff.bound_without_threshold(rho, CONSTANTS)
    steps = rho if isinstance(rho, list) else [rho] * (CONSTANTS.n + 1)
    assert limit == pytest.approx(reference_bound(math.inf, steps, CONSTANTS), rel=1e-12)
    assert tradeoff.bound(1e6, rho, CONSTANTS) == pytest.approx(limit, rel=1e-12)
    assert tradeoff.bound(math.inf, rho, CONSTANTS) == limit


def test_theorem_1():
    steps = [0.1, 0.05, 0.01]
    expected = 2 * 0.7 * (5.0 + 1.5**2 * 3.0 * (0.01 + 0.0025 + 0.0001)) / 0.16 + 0.6
    assert tradeoff.karimi_bound(steps, CONSTANTS) == pytest.approx(expected, rel=1e-12)
    assert tradeoff.karimi_bound(0.02, CONSTANTS) == pytest.approx(
        tradeoff.karimi_bound([0.02] * 41, CONSTANTS), rel=1e-12
    )
    clean = replace(CONSTANTS, alpha=1.0)
    assert tradeoff.bound_without_threshold(steps, clean) == pytest.approx(expected, rel=1e-12)
    assert tradeoff.karimi_step_limit(CONSTANTS) == pytest.approx(1 / (2 * 0.7 * 3.0 * 1.36), rel=1e-12)


def test_theorem_1_rate_is_log_n_over_root_n():
    first = tradeoff.karimi_step_limit(CONSTANTS)
    excess = [
        tradeoff.karimi_bound(first / np.sqrt(np.arange(1, n + 1)), CONSTANTS) - 2 * CONSTANTS.c0
        for n in (10**4, 10**6)
    ]
    assert 0.1 < excess[1] / excess[0] < 0.16  # log n/√n gives 0.15 and 1/√n 0.1; log n/n would give 0.015


@pytest.mark.parametrize("gamma", [*GAMMAS, math.inf])
@pytest.mark.parametrize("rho", [0.02, [0.1, 0.05, 0.01]])
def test_gain_is_the_difference_of_the_bounds(gamma, rho):
    difference = tradeoff.bound_without_threshold(rho, CONSTANTS) - tradeoff.bound(gamma, rho, CONSTANTS)
    assert tradeoff.gain(gamma, rho, CONSTANTS) == pytest.approx(difference, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("gamma", [0.01, 1.0, 2.9, 3.0, 5.0, 7.5])
def test_gain_of_bounded_updates_against_quadrature(gamma):
    star = 3.0
    cost = integrate(gamma, star, star - gamma) if gamma < star else 0.0
    avoided = max(0.0, 3 * 4.0**2 - gamma**2)
    expected = 2 * 0.7 * (3.0 * (1 - 0.8) * avoided * 0.02 - 2.9 * cost)
    assert tradeoff.gain(gamma, 0.02, CONSTANTS, gamma_star=star) == pytest.approx(expected, rel=1e-9, abs=1e-13)


def test_admissible_step_and_gamma():
    lowest = tradeoff.admissible_gamma(CONSTANTS)
    assert 2 * CONSTANTS.c1 * CONSTANTS.d1 * integrate(lowest, 30, CONSTANTS.M) == pytest.approx(1.0, rel=1e-9)
    assert tradeoff.admissible_step(0.99 * lowest, CONSTANTS) == 0.0
    assert tradeoff.admissible_step(1.01 * lowest, CONSTANTS) > 0.0
    assert tradeoff.admissible_step(3.0, CONSTANTS) == pytest.approx(grid_limit(3.0, CONSTANTS), rel=1e-12)
    assert tradeoff.admissible_step(math.inf, CONSTANTS) == pytest.approx(1 / (2 * 0.7 * 3.0 * 2.36), rel=1e-12)
    assert tradeoff.admissible_gamma(replace(CONSTANTS, c1=0.01)) == 0.0


# --- slopes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("rho", [0.005, 0.2])
def test_slopes_against_finite_differences(gamma, rho):
    h = 1e-5
    in_gamma = (tradeoff.bound(gamma + h, rho, CONSTANTS) - tradeoff.bound(gamma - h, rho, CONSTANTS)) / (2 * h)
    assert tradeoff.d_bound_d_gamma(gamma, rho, CONSTANTS) == pytest.approx(in_gamma, rel=1e-6, abs=1e-7)
    k = 1e-6 * rho
    in_rho = (tradeoff.bound(gamma, rho + k, CONSTANTS) - tradeoff.bound(gamma, rho - k, CONSTANTS)) / (2 * k)
    assert tradeoff.d_bound_d_rho(gamma, rho, CONSTANTS) == pytest.approx(in_rho, rel=1e-6, abs=1e-4)


def test_slope_in_gamma_of_a_sequence_of_steps():
    steps, h = [0.3, 0.1, 0.05], 1e-5
    expected = (tradeoff.bound(2 + h, steps, CONSTANTS) - tradeoff.bound(2 - h, steps, CONSTANTS)) / (2 * h)
    assert tradeoff.d_bound_d_gamma(2.0, steps, CONSTANTS) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("gamma", [*GAMMAS, math.inf])
def test_best_step(gamma):
    best = tradeoff.best_step(gamma, CONSTANTS)
    noise = 0.8 * 1.5**2 + (1 - 0.8) * min(3 * 4.0**2, gamma**2)
    assert best**2 == pytest.approx(5.0 / (41 * 3.0 * noise), rel=1e-12)
    values = [tradeoff.bound(gamma, factor * best, CONSTANTS) for factor in (0.99, 1.0, 1.01)]
    assert min(values) == values[1]


def test_best_step_at_the_edges():
    assert tradeoff.best_step(1.0, replace(CONSTANTS, V=0.0)) == 0.0
    assert tradeoff.best_step(1.0, replace(CONSTANTS, alpha=1.0, sigma0=0.0)) == math.inf


# --- optimum ---------------------------------------------------------------------------------------

CASES = [
    ("interior", Constants()),
    ("interior", Constants(c1=0.01, L=2000.0)),
    ("interior", Constants(M=1e-6)),
    ("interior", Constants(alpha=0.0, c0=1e9)),
    ("interior", replace(CONSTANTS, n=10**6)),
    ("boundary", Constants(n=1)),
    ("boundary", Constants(M=0.1, alpha=0.5, U=100.0, V=1e3, n=10)),
    ("boundary", Constants(c1=1e6, M=1e6, U=1e9, V=1e3, n=10)),
    ("infinity", Constants(M=100.0)),
    ("infinity", Constants(M=1e6)),
    ("infinity", Constants(M=10.0, U=12.0)),
    ("infinity", Constants(U=14.0)),  # a finite local minimum exists and is not the global one
    ("infinity", Constants(U=14.0, c0=1e15)),  # the same under a large bias
    ("infinity", Constants(U=5.0)),  # no threshold below √d·U is admissible
    ("infinity", Constants(alpha=1.0)),
    ("infinity", Constants(alpha=1.0, sigma0=0.0)),
    ("infinity", Constants(U=5.0, n=1)),
]


def search_optimum(c):
    """Least bound on a fine grid over thresholds (those beyond √d·U too) and admissible steps."""
    low = max(1e-3 * min(c.M, c.outlier_radius), tradeoff.admissible_gamma(c) * (1 + 1e-9))
    gammas = np.geomspace(low, max(30 * c.M, 2 * c.outlier_radius, 2 * low), 3000)[:, None]
    limits = np.maximum(grid_limit(gammas, c), 0.0)
    with np.errstate(divide="ignore"):
        values = grid_bound(gammas, limits * np.geomspace(1e-6, 1.0, 600)[None, :], replace(c, c0=0.0))
    row, column = np.unravel_index(np.argmin(values), values.shape)
    return float(gammas[row, 0]), float(values[row, column])


@pytest.mark.parametrize(("kind", "constants"), CASES)
def test_optimum_against_brute_force(kind, constants):
    best = tradeoff.optimum(constants)
    gamma, least = search_optimum(constants)
    value = tradeoff.bound(best.gamma, best.rho, replace(constants, c0=0.0))
    assert best.kind == kind
    assert best.bound == tradeoff.bound(best.gamma, best.rho, constants)
    assert value <= least * (1 + 1e-12)
    assert least <= value * (1 + 1e-3)
    if kind == "infinity":
        assert best.gamma == math.inf
        assert gamma > constants.outlier_radius
    else:
        assert best.gamma == pytest.approx(gamma, rel=0.05)


@pytest.mark.parametrize("constants", [c for kind, c in CASES if kind == "interior"])
def test_interior_optimum_satisfies_both_equations(constants):
    best = tradeoff.optimum(constants)
    assert best.rho < tradeoff.admissible_step(best.gamma, constants)
    assert best.rho == pytest.approx(tradeoff.best_step(best.gamma, constants), rel=1e-12)
    assert best.rho == pytest.approx(tradeoff.step_size(best.gamma, constants.beta, constants.M), rel=1e-9)


@pytest.mark.parametrize("constants", [c for kind, c in CASES if kind == "boundary"])
def test_boundary_optimum_has_the_largest_admissible_step(constants):
    best = tradeoff.optimum(constants)
    assert best.rho == tradeoff.admissible_step(best.gamma, constants)
    assert tradeoff.d_bound_d_rho(best.gamma, best.rho, constants) < 0.0
    assert f"{best.rho:.4g}" in best.explanation


def test_optimum_for_v_equal_to_0():
    best = tradeoff.optimum(replace(CONSTANTS, V=0.0))
    assert (best.gamma, best.rho, best.bound, best.kind) == (math.inf, 0.0, 2 * CONSTANTS.c0, "infinity")
    assert "V = 0" in best.explanation
    assert tradeoff.bound(math.inf, 1e-12, replace(CONSTANTS, V=0.0)) == pytest.approx(best.bound, rel=1e-9)


def test_optimum_is_continuous_as_v_vanishes():
    best = tradeoff.optimum(Constants(V=1e-14))
    assert 0.0 < best.bound < 1e-7


def draw_scales(low, high):
    return st.floats(math.log10(low), math.log10(high)).map(lambda power: 10.0**power)


random_constants = st.builds(
    Constants,
    c0=st.sampled_from([0.0, 2.0]),
    c1=draw_scales(1e-3, 1e2),
    d0=st.floats(0.0, 5.0),
    d1=draw_scales(0.1, 10.0),
    L=draw_scales(1e-2, 1e4),
    sigma0=st.floats(0.0, 5.0),
    sigma1=st.floats(0.0, 3.0),
    alpha=st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.99, 1.0]),
    U=draw_scales(1e-2, 1e3),
    dim=st.integers(1, 5),
    M=draw_scales(1e-3, 1e3),
    V=draw_scales(1e-4, 1e4) | st.just(0.0),
    n=st.integers(1, 10**6),
)


@settings(max_examples=100, deadline=None)
@given(random_constants, st.integers(0, 2**32 - 1))
def test_optimum_is_the_minimum_of_all_admissible_pairs(constants, seed):
    best = tradeoff.optimum(constants)
    rng = np.random.default_rng(seed)
    lowest = tradeoff.admissible_gamma(constants)
    spread = lowest + constants.M * 10 ** rng.uniform(-3, 2, 300)
    nearby = best.gamma * rng.uniform(0.8, 1.2, 100) if math.isfinite(best.gamma) else spread
    gammas = np.concatenate([spread, nearby[nearby > lowest]])
    limits = np.asarray(tradeoff.admissible_step(gammas, constants))
    gammas, limits = gammas[limits > 0.0], limits[limits > 0.0]
    rhos = limits * np.minimum(rng.uniform(0.0, 3.0, limits.size), 1 - 1e-12) + 1e-300
    best_rhos = np.minimum(np.asarray(tradeoff.best_step(gammas, constants)) + 1e-300, limits)
    for steps in (rhos, best_rhos):
        assert best.bound <= grid_bound(gammas, steps, constants).min() * (1 + 1e-9)


# --- arrays and invalid arguments ----------------------------------------------------------------------

FUNCTIONS_OF_GAMMA = {
    "step_size": lambda gamma: tradeoff.step_size(gamma, 0.1, 5.0),
    "tail": lambda gamma: tradeoff.tail(gamma, 5.0),
    "bound": lambda gamma: tradeoff.bound(gamma, 0.02, CONSTANTS),
    "gain": lambda gamma: tradeoff.gain(gamma, 0.02, CONSTANTS),
    "gain_bounded": lambda gamma: tradeoff.gain(gamma, 0.02, CONSTANTS, gamma_star=3.0),
    "admissible_step": lambda gamma: tradeoff.admissible_step(gamma, CONSTANTS),
    "best_step": lambda gamma: tradeoff.best_step(gamma, CONSTANTS),
    "d_bound_d_gamma": lambda gamma: tradeoff.d_bound_d_gamma(gamma, 0.02, CONSTANTS),
    "d_bound_d_rho": lambda gamma: tradeoff.d_bound_d_rho(gamma, 0.02, CONSTANTS),
}


@pytest.mark.parametrize("function", FUNCTIONS_OF_GAMMA.values(), ids=FUNCTIONS_OF_GAMMA)
def test_arrays_and_floats_give_equal_results(function):
    from_floats = [function(gamma) for gamma in GAMMAS]
    assert all(type(value) is float for value in from_floats)
    from_array = function(np.array(GAMMAS).reshape(1, -1))
    assert from_array.shape == (1, len(GAMMAS))
    assert from_array.dtype == np.float64
    np.testing.assert_array_equal(from_array[0], from_floats)
    np.testing.assert_array_equal(function(GAMMAS), from_floats)  # a list will do


@pytest.mark.parametrize("function", FUNCTIONS_OF_GAMMA.values(), ids=FUNCTIONS_OF_GAMMA)
@pytest.mark.parametrize("gamma", [-1.0, math.nan, "3", None, [1.0, -1.0], True])
def test_invalid_gamma_raises(function, gamma):
    with pytest.raises(InvalidInputError, match=r"^gamma"):
        function(gamma)


@pytest.mark.parametrize("rho", [0.0, -0.1, math.nan, math.inf, "0.1", None, [], [0.1, 0.0], [[0.1, 0.2]]])
def test_invalid_rho_raises(rho):
    for function in (tradeoff.bound, tradeoff.gain, tradeoff.d_bound_d_gamma):
        with pytest.raises(InvalidInputError, match=r"^rho"):
            function(2.0, rho, CONSTANTS)
    with pytest.raises(InvalidInputError, match=r"^rho"):
        tradeoff.karimi_bound(rho, CONSTANTS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tradeoff.step_size(math.inf, 0.1, 5.0), "^gamma: "),
        (lambda: tradeoff.step_size(0.0, 0.1, 5.0), "^gamma: "),
        (lambda: tradeoff.step_size(3.0, -0.1, 5.0), "^beta: "),
        (lambda: tradeoff.step_size(3.0, 0.1, 0.0), "^M: "),
        (lambda: tradeoff.threshold(0.0, 0.1, 5.0), "^rho: "),
        (lambda: tradeoff.tail(1.0, -5.0), "^M: "),
        (lambda: tradeoff.beta_from(1.0, 1.0, 1.0), "^alpha: "),
        (lambda: tradeoff.beta_from(1.0, 0.0, 0.5), "^L: "),
        (lambda: tradeoff.gain(1.0, 0.1, CONSTANTS, gamma_star=math.inf), "^gamma_star: "),
        (lambda: tradeoff.d_bound_d_rho(1.0, 0.0, CONSTANTS), "^rho: "),
    ],
)
def test_invalid_arguments_raise(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


# --- the picture ---------------------------------------------------------------------------------------

DRAWN_CONSTANTS = [
    Constants(),
    Constants(n=1),
    Constants(M=100.0),
    Constants(V=0.0),
    Constants(alpha=1.0, sigma0=0.0),
]


@pytest.mark.parametrize("constants", DRAWN_CONSTANTS)
def test_picture_is_drawn_for_every_kind(constants, tmp_path, recwarn):
    image = pytest.importorskip("matplotlib.image")
    path = draw_tradeoff(np.linspace(1.0, 30.0, 50), constants, tmp_path / "tradeoff.png")
    pixels = image.imread(path)
    assert pixels.shape == (1200, 1125, 4)
    blue = np.isclose(pixels[..., :3], [0.0, 0.447, 0.698], atol=0.01).all(axis=-1)  # the line of the best step
    assert blue.any() == (constants.V > 0.0)
    assert not recwarn.list


def test_missing_extra_raises(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'limpet\[plots\]'"):
        draw_tradeoff([1.0, 2.0], Constants(), tmp_path / "tradeoff.png")


@pytest.mark.parametrize("gammas", [[], [1.0], [1.0, 1.0], [1.0, -2.0], [1.0, math.inf], "ab"])
def test_picture_raises_for_invalid_thresholds(gammas, tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(InvalidInputError, match=r"^gamma"):
        draw_tradeoff(gammas, Constants(), tmp_path / "tradeoff.png")
