"""Seeds of mixture components for fits to few points, and their workspace."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from limpet._jit.compile import jit_entry_point, kernel
from limpet._jit.sort import quantile_of_sorted, shell_sort
from limpet.core.state import Vector
from limpet.models._standardization import BoolArray, median
from limpet.models.components.base import Component

N_RANDOM_SEEDINGS = 20  # of a mixture
MIN_POINTS_PER_COMPONENT = 10  # for seeds along one coordinate: with fewer points some coordinate always seems bimodal


class EMWorkspace(NamedTuple):
    """Workspace for n points in d dimensions and K components, shared by all streams."""

    retained: BoolArray  # (n,): the points that are not trimmed in a round
    seed_points: Vector  # (seedings, K, d): the initial means
    fit: Vector  # [ weights | components ] …
    previous_fit: Vector  # … and the same one round before
    values: Vector  # (n,): values to be sorted
    log_likelihood: Vector  # (n,): of each point
    responsibilities: Vector  # (n, K)
    peak_densities: Vector  # (K,): densities at the means, times the weights
    imputed: Vector  # (n·K·size): each point with missing values imputed by each component
    variances: Vector  # (d,): pooled over components
    work: Vector  # of a component


def make_workspace(component: Component, n: int, K: int, d: int) -> EMWorkspace:
    size = component.n_parameters(d)
    return EMWorkspace(
        retained=np.empty(n, np.bool_),
        seed_points=np.empty((N_RANDOM_SEEDINGS + d, K, d)),
        fit=np.empty(K + K * size),
        previous_fit=np.empty(K + K * size),
        values=np.empty(n),
        log_likelihood=np.empty(n),
        responsibilities=np.empty((n, K)),
        peak_densities=np.empty(K),
        imputed=np.empty(n * K * size),
        variances=np.empty(d),
        work=np.empty(component.work_size(d) + 1),
    )


@lru_cache(maxsize=64)
def draw_random_numbers(K: int, seed: int) -> Vector:
    """Return (seedings, K, 2) random numbers from 0 to 1, the same for all streams."""
    return np.random.default_rng(seed).random((N_RANDOM_SEEDINGS if K > 1 else 1, K, 2))


@kernel
def draw_seed(
    fit: Vector, k: int, uniform: float, points: Vector, trusted: BoolArray, K: int, size: int, workspace: EMWorkspace
) -> int:
    """Return the index of a point for component k, drawn by distance.

    The probability grows with the squared distance up to the median: the farthest point, most likely an outlier, is no
    more likely than others. uniform: a random number from 0 to 1.
    """
    n, d = points.shape
    draw_weights, values = workspace.log_likelihood, workspace.values
    max_weight, total_weight, drawn_index = 1.0, 0.0, 0
    for t in range(n):
        draw_weights[t] = 1.0 if k == 0 else math.inf
        for other in range(k):
            squared_distance = 0.0
            for i in range(d):
                difference = points[t, i] - fit[K + other * size + i]
                squared_distance += difference * difference
            draw_weights[t] = squared_distance if squared_distance < draw_weights[t] else draw_weights[t]
        values[t] = draw_weights[t]
    if k > 0:
        shell_sort(values, n)
        max_weight = values[(n - 1) // 2]
    for t in range(n):
        draw_weights[t] = max_weight if max_weight < draw_weights[t] else draw_weights[t]
        draw_weights[t] = draw_weights[t] if trusted[t] else 0.0
        total_weight += draw_weights[t]
    uniform *= total_weight
    for t in range(n):
        if trusted[t] and (uniform >= 0.0 or total_weight == 0.0):
            drawn_index = t
        uniform -= draw_weights[t]
    return drawn_index


@kernel
def is_distinct_seed(s: int, seeds: Vector, width: int) -> bool:
    for earlier in range(s):
        n_equal = 0
        while n_equal < width and seeds[earlier * width + n_equal] == seeds[s * width + n_equal]:
            n_equal += 1
        if n_equal == width:
            return False
    return True


def _fill_axis_seeds(points, trusted, K, axis_seeds, values):  # type: ignore[no-untyped-def]
    # points (m, n, d), trusted (m, n), axis_seeds (m, d, K, d), values (n,)
    m, n, d = points.shape
    for s in range(m):
        for i in range(d):
            count = 0
            for t in range(n):
                if trusted[s, t]:
                    values[count] = points[s, t, i]
                    count += 1
            middle = median(values, count)
            for k in range(K):
                for axis in range(d):
                    axis_seeds[s, axis, k, i] = middle
                axis_seeds[s, i, k, i] = quantile_of_sorted(values, count, (k + 0.5) / K)


compiled_fill_axis_seeds = jit_entry_point(_fill_axis_seeds, releases_gil=True)


def equidistant_seeds(points: Vector, trusted: BoolArray, K: int) -> Vector:
    """Return (m, d, K, d) seeds: K quantiles of each coordinate, others at medians.

    Groups that differ in a single coordinate are lost among distances in many. With few points no seeds are returned,
    because some coordinate always seems to separate groups.

    >>> points = np.array([[i, 0.0] for i in range(41)])
    >>> equidistant_seeds(points[None], np.full((1, 41), True), 2)[0, 0]
    array([[10.,  0.],
           [30.,  0.]])
    """
    m, n, d = points.shape
    if K == 1 or d == 1 or n <= MIN_POINTS_PER_COMPONENT * K:
        return np.empty((m, 0, K, d))
    axis_seeds = np.empty((m, d, K, d))
    compiled_fill_axis_seeds(points, trusted, K, axis_seeds, np.empty(n))
    return axis_seeds
