"""exp and log against numpy's long doubles, and against themselves."""

import numpy as np
from numba import njit

from limpet._jit.math import MAX_EXP_ARGUMENT, MIN_EXP_ARGUMENT, exp, fma, log
from limpet._jit.simd_transpose import load_lanes, load_lanes_unaligned, log3, store_lanes

TOLERANCE = 4e-16


@njit
def each_exp(x):
    return np.array([exp(v) for v in x])


@njit
def each_log(x):
    return np.array([log(v) for v in x])


@njit
def one_fma(a, b, c):
    return fma(a, b, c)


@njit
def logs_in_lanes(x):
    store_lanes(x, 8, log(load_lanes_unaligned(x, 0)))
    store_lanes(x, 16, load_lanes(x, 8))
    return log3(x[0], x[1], x[2])


def relative(ours, exact):
    return np.max(np.abs((ours - exact) / exact))


def test_exp_is_right_to_the_last_place():
    x = np.concatenate([np.random.default_rng(0).uniform(-700, 700, 200_000), np.linspace(-1, 1, 100_001)])
    assert relative(each_exp(x), np.exp(x.astype(np.longdouble))) < TOLERANCE
    assert each_exp(np.zeros(1))[0] == 1.0


def test_exp_is_held_within_normal_numbers():
    below, above = each_exp(np.array([-1e300, 1e300]))
    assert below == each_exp(np.array([MIN_EXP_ARGUMENT]))[0] > 0.0
    assert above == each_exp(np.array([MAX_EXP_ARGUMENT]))[0] < np.inf


def test_log_is_right_to_the_last_place():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.exp(rng.uniform(-690, 690, 200_000)), 1.0 + 1e-3 * rng.normal(size=100_000)])
    x = x[x != 1.0]
    assert relative(each_log(x), np.log(x.astype(np.longdouble))) < TOLERANCE
    assert each_log(np.ones(1))[0] == 0.0


def test_fma_rounds_once():
    a = 1.0 + 2.0**-30
    assert one_fma(a, a, -1.0 - 2.0**-29) == 2.0**-60  # a·a rounded first would leave 0


def test_lanes_have_the_same_bits():
    x = np.concatenate([np.random.default_rng(1).lognormal(0.0, 30.0, 8), np.zeros(16)])
    three = logs_in_lanes(x)
    assert np.array_equal(x[8:16], each_log(x[:8]))
    assert np.array_equal(x[16:], x[8:16])
    assert np.array_equal(three, x[8:11])
