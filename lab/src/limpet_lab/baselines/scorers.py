"""Baseline scorers for real streams: exponentially weighted Gaussians and half-space trees.

Each gives a score to every row before it learns it; higher is more surprising. The Gaussians' score is −log f.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import jit_entry_point
from limpet._optional import optional_import

FloatArray = npt.NDArray[np.float64]
MIN_PIVOT_SHARE = 1e-6  # of a variance: the least that may be left of it when the variables before it are known
MIN_SD_SHARE = 1e-9  # of a mean: the least standard deviation, so that a constant stream has a finite score
MIN_VARIANCE = 1e-300


def score_exponential_gaussian(y: FloatArray, step: float) -> FloatArray:
    """Score points (T, d) under a Gaussian with weights that fall exponentially with age; 1/n until n = 1 / step."""
    scores: FloatArray = _exponential_gaussian(np.ascontiguousarray(y, dtype=np.float64), step)
    return scores


def half_life_to_step(rows: float) -> float:
    """Return the step with which a point has half its weight after so many rows.

    >>> round(half_life_to_step(200), 5)
    0.00346
    """
    return float(1.0 - 0.5 ** (1.0 / rows))


def score_window_gaussian(y: FloatArray, rows: int) -> FloatArray:
    """Score points (T, 1) under the Gaussian fitted to the last so many rows."""
    (column,) = y.T
    scores: FloatArray = _window_gaussian(np.ascontiguousarray(column, dtype=np.float64), rows)
    return scores


def score_half_space_trees(
    y: FloatArray, n_trees: int = 25, height: int = 8, window_size: int = 250, seed: int = 0
) -> FloatArray:
    """Score points (T, d) by river's HalfSpaceTrees, each variable scaled to its range so far."""
    with optional_import("this benchmark", "limpet-lab[bench]"):
        from river.anomaly import HalfSpaceTrees
        from river.preprocessing import MinMaxScaler
    scaler = MinMaxScaler()
    trees = HalfSpaceTrees(n_trees=n_trees, height=height, window_size=window_size, seed=seed)
    scores = np.empty(len(y))
    for t, row in enumerate(y.tolist()):
        x = dict(enumerate(row))
        scaler.learn_one(x)  # first, so that a new extreme lies on the edge of the range and not outside
        scaled = scaler.transform_one(x)
        scores[t] = trees.score_one(scaled)
        trees.learn_one(scaled)
    return scores


def _exponential_gaussian_loop(y: Any, step: float) -> Any:
    n_rows, d = y.shape
    scores, mean, covariance = np.zeros(n_rows), y[0].copy(), np.zeros((d, d))
    root, whitened = np.zeros((d, d)), np.zeros(d)
    for t in range(1, n_rows):
        score = 0.5 * d * math.log(2.0 * math.pi)
        for i in range(d):  # the Cholesky root, row by row, and the whitened difference along with it
            for j in range(i + 1):
                rest = covariance[i, j]
                for k in range(j):
                    rest -= root[i, k] * root[j, k]
                if i > j:
                    root[i, j] = rest / root[j, j]
                else:
                    floor = (MIN_SD_SHARE * mean[i]) ** 2 + MIN_VARIANCE
                    root[i, i] = math.sqrt(max(rest, MIN_PIVOT_SHARE * covariance[i, i]) + floor)
            rest = y[t, i] - mean[i]
            for k in range(i):
                rest -= root[i, k] * whitened[k]
            whitened[i] = rest / root[i, i]
            score += 0.5 * whitened[i] ** 2 + math.log(root[i, i])
        scores[t] = score
        weight = max(step, 1.0 / (t + 1))
        for i in range(d):
            for j in range(d):
                product = (y[t, i] - mean[i]) * (y[t, j] - mean[j])
                covariance[i, j] = (1.0 - weight) * (covariance[i, j] + weight * product)
        for i in range(d):
            mean[i] += weight * (y[t, i] - mean[i])
    return scores


def _window_gaussian_loop(y: Any, rows: int) -> Any:
    scores = np.zeros(len(y))
    for t in range(1, len(y)):
        # Summed again for each row: a running sum would lose the digits of a stretch with little variance.
        window = y[max(0, t - rows) : t]
        mean = window.mean()
        variance = ((window - mean) ** 2).mean() + (MIN_SD_SHARE * mean) ** 2 + MIN_VARIANCE
        scores[t] = 0.5 * ((y[t] - mean) ** 2 / variance + math.log(2.0 * math.pi * variance))
    return scores


_exponential_gaussian = jit_entry_point(_exponential_gaussian_loop, allocates=True)
_window_gaussian = jit_entry_point(_window_gaussian_loop, allocates=True)
