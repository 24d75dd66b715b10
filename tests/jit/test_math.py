"""exp and log against numpy's long doubles, and lanes against scalars."""

import numpy as np
from numba import njit

from limpet._jit.math import MAX_EXP_ARGUMENT, MIN_EXP_ARGUMENT, exp, fma, log
from limpet._jit.simd_transpose import load_lanes, load_lanes_unaligned, log3, store_lanes

TOLERANCE = 4e-16


@njit
def map_exp(x):
    return np.array([exp(v) for v in x])


@njit
def map_log(x):
    return np.array([log(v) for v in x])


@njit
def apply_fma(a, b, c):
    return fma(a, b, c)


@njit
def log_lanes(x):
    store_lanes(x, 8, log(load_lanes_unaligned(x, 0)))
    store_lanes(x, 16, load_lanes(x, 8))
    return log3(x[0], x[1], x[2])


def relative_error(ours, exact):
    return np.max(np.abs((ours - exact) / exact))


def test_exp_is_accurate_to_the_last_place():
    x = np.concatenate([np.random.default_rng(0).uniform(-700, 700, 200_000), np.linspace(-1, 1, 100_001)])
    assert relative_error(map_exp(x), np.exp(x.astype(np.longdouble))) < TOLERANCE
    assert map_exp(np.zeros(1))[0] == 1.0


def test_exp_is_clipped_to_normal_numbers():
    below, above = map_exp(np.array([-1e300, 1e300]))
    assert below == map_exp(np.array([MIN_EXP_ARGUMENT]))[0] > 0.0
    assert above == map_exp(np.array([MAX_EXP_ARGUMENT]))[0] < np.inf


def test_log_is_accurate_to_the_last_place():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.exp(rng.uniform(-690, 690, 200_000)), 1.0 + 1e-3 * rng.normal(size=100_000)])
    x = x[x != 1.0]
    assert relative_error(map_log(x), np.log(x.astype(np.longdouble))) < TOLERANCE
    assert map_log(np.ones(1))[0] == 0.0


def test_fma_rounds_once():
    a = 1.0 + 2.0**-30
    assert apply_fma(a, a, -1.0 - 2.0**-29) == 2.0**-60  # a·a rounded first would leave 0


def test_log_of_lanes_equals_log_bit_for_bit():
    x = np.concatenate([np.random.default_rng(1).lognormal(0.0, 30.0, 8), np.zeros(16)])
    three = log_lanes(x)
    assert np.array_equal(x[8:16], map_log(x[:8]))
    assert np.array_equal(x[16:], x[8:16])
    assert np.array_equal(three, x[8:11])
