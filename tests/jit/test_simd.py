"""Results of lanes equal those of scalars bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from limpet._jit.math import exp, fma, log, maximum, minimum
from limpet._jit.simd import LANES, all_lanes, any_lane, select
from limpet._jit.simd_transpose import TILE_SIZE, columns_to_rows, lane_view, rows_to_columns
from limpet.core.algorithm import HYPERPARAMETERS, STEP_PARAMETERS
from limpet.core.batched_algorithm import make_batched_kernels, padded_row_size
from limpet.core.state import HEADER_SIZE, N_BUFFERED, N_SEEN
from limpet.core.step_sizes import Constant, polynomial_decay
from limpet.models import GaussianMixture

SPECIAL = [0.0, -0.0, 1e-300, 1.0, -1.0, 709.0, -708.0, 1e300, np.inf, -np.inf, np.nan]


def _functions(x, y):  # type: ignore[no-untyped-def]
    positive = maximum(abs(x), 1e-300)
    positive = minimum(positive, 1e300)
    return (
        exp(x),
        log(positive),
        fma(x, y, 1.0),
        select((x > 1.0) | (y <= 0.0), x - 2.0, -x / y),
        select((x < y) & (x != 0.5), 1, x * y),
        polynomial_decay(positive, np.array([0.7, 2.0, 0.6, 0.0])),
    )


@njit(error_model="numpy")
def apply_to_scalars(x, y, out):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        values = _functions(x[i], y[i])
        for k in range(6):
            out[k, i] = values[k]


_functions = njit(error_model="numpy")(_functions)


@njit(error_model="numpy")
def apply_to_lanes(x, y, out):  # type: ignore[no-untyped-def]
    a, b, c, d, e, f = _functions(lane_view(x, 0)[0], lane_view(y, 0)[0])
    results = lane_view(out.reshape(-1), 0)
    results[0], results[1], results[2], results[3], results[4], results[5] = a, b, c, d, e, f


def test_lane_functions_equal_scalar_functions_bit_for_bit() -> None:
    rng = np.random.default_rng(0)
    for trial in range(300):
        x, y = rng.normal(0.0, 10.0 ** rng.integers(-3, 3), (2, LANES))
        if trial < 40:
            x[rng.integers(0, LANES, 3)], y[rng.integers(0, LANES, 2)] = rng.choice(SPECIAL, 3), rng.choice(SPECIAL, 2)
        scalars, lanes = np.empty((6, LANES)), np.empty((6, LANES))
        apply_to_scalars(x, y, scalars)
        apply_to_lanes(x, y, lanes)
        np.testing.assert_array_equal(scalars, lanes)


@njit
def check_lanes(x):  # type: ignore[no-untyped-def]
    lanes = lane_view(x, 0)[0]
    return any_lane(lanes > 0.0), all_lanes(lanes > 0.0), any_lane(x[0] > 0.0), all_lanes(x[0] > 0.0)


def test_any_lane_and_all_lanes() -> None:
    x = np.full(LANES, -1.0)
    assert check_lanes(x) == (False, False, False, False)
    x[0] = 1.0
    assert check_lanes(x) == (True, False, True, True)
    x[:] = 2.0
    assert check_lanes(x) == (True, True, True, True)


@njit
def transpose_and_back(states, streams, block, restored):  # type: ignore[no-untyped-def]
    n = states.shape[1]
    rows_to_columns(states, streams, 1, block, 3, n, 0, n)
    columns_to_rows(restored, streams, 1, block, 3, n, 0, n)


@pytest.mark.parametrize("size", [TILE_SIZE, 3 * TILE_SIZE])
def test_rows_are_transposed_and_restored(size: int) -> None:
    states = np.arange(40.0 * size).reshape(40, size)
    streams = np.random.default_rng(1).permutation(40)[: LANES + 1]
    block, restored = np.full(3 + size * LANES, np.nan), np.zeros_like(states)
    transpose_and_back(states, streams, block, restored)
    np.testing.assert_array_equal(block[3:].reshape(size, LANES), states[streams[1:]].T)
    np.testing.assert_array_equal(restored[streams[1:]], states[streams[1:]])
    assert np.count_nonzero(restored.any(axis=1)) <= LANES


def test_streams_in_lanes_are_independent() -> None:
    """Streams of unequal lengths and scales, in lanes and sequentially."""
    rng = np.random.default_rng(2)
    model = GaussianMixture(2)
    kernels, hyper = model.kernels(1), model.hyperparameters(1)
    batched = make_batched_kernels(kernels, "whitened", Constant.rule)
    assert batched.run_lanes is not None
    settings = np.zeros(HYPERPARAMETERS + len(hyper))
    settings[:2], settings[STEP_PARAMETERS] = (9.0, 20.0), 0.05
    n = 2 * LANES + 11
    states = np.zeros((n, padded_row_size(HEADER_SIZE + kernels.layout.size)))
    for state in states:
        kernels.init(
            rng.normal(rng.choice([-3.0, 3.0], (10, 1)), 1.0), state[HEADER_SIZE:][: kernels.layout.size], hyper, 0
        )
    states[:, N_SEEN], states[:, N_BUFFERED] = 10.0, -1.0
    counts = np.sort(rng.integers(1, 60, n))[::-1].copy()
    begins, streams = np.concatenate([[0], np.cumsum(counts)[:-1]]), rng.permutation(n)
    order = rng.permutation(counts.sum())
    points = rng.normal(0.0, 10.0 ** rng.integers(-3, 6, (len(order), 1)))
    lane_workspace = (np.empty(batched.block_size), np.empty(LANES, np.int64), False)
    outputs = []
    for run, workspace in (
        (batched.run_lanes, lane_workspace),
        (batched.run_sequential, (np.empty(batched.work_size),)),
    ):
        final_states, scores, outcomes = states.copy(), np.empty(len(order)), np.empty(len(order), np.int8)
        run(final_states, streams, begins, counts, order, points, settings, *workspace, scores, outcomes)
        outputs.append((final_states, scores, outcomes))
    for scalars, other in zip(*outputs, strict=True):
        np.testing.assert_array_equal(scalars, other)
    assert 0.02 < outputs[0][2].mean() < 0.98  # some rejected, some accepted
