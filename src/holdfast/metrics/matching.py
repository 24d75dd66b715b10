"""Which estimated component stands for which true one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holdfast.errors import InvalidInputError
from holdfast.metrics.reading import FloatArray, check_paired_means

MAX_COMPONENTS = 16  # the search visits 2**K subsets in plain Python: a fraction of a second at 16


def match_components(means: npt.ArrayLike, true_means: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the order of the estimated components that lies nearest to the true ones.

    A mixture does not know the names of its components. Of all orders this is the one with the least sum,
    over rows, components and coordinates, of squared differences; the search is exact. Rows with a value
    that is not finite on either side take no part.

    Parameters
    ----------
    means : array (T, K, d)
        Estimated component means; K is at most 16.
    true_means : array (T, K, d)
        True component means.

    Returns
    -------
    int array (K,)
        `order`, such that `means[:, order]` stands beside `true_means`.

    Examples
    --------
    >>> match_components([[[-0.9], [0.1], [1.2]]], [[[0.0], [1.0], [-1.0]]])
    array([1, 2, 0])
    """
    estimated, true = check_paired_means(means, true_means)
    if estimated.shape[1] > MAX_COMPONENTS:
        raise InvalidInputError(f"means: expected at most {MAX_COMPONENTS} components, got {estimated.shape[1]}")
    usable = np.isfinite(estimated).all(axis=(1, 2)) & np.isfinite(true).all(axis=(1, 2))
    if not usable.any():
        raise InvalidInputError("means: expected at least one row that is finite in both arrays, got none")
    return _min_cost_assignment(_squared_distances(estimated[usable], true[usable]))


def _squared_distances(estimated: FloatArray, true: FloatArray) -> FloatArray:
    """Return cost[j, k], the squared distance of estimate j from truth k summed over rows and coordinates."""
    with np.errstate(over="ignore"):  # a diverged estimate costs inf, and that is all one needs to know
        components = (estimated[:, j, None] for j in range(estimated.shape[1]))
        return np.array([((component - true) ** 2).sum(axis=(0, 2)) for component in components])


def _min_cost_assignment(cost: FloatArray) -> npt.NDArray[np.int64]:
    """Solve the assignment problem by dynamic programming over subsets of estimates.

    least[S] is the least cost at which the estimates in S serve the first |S| truths: the last of those
    truths is served by some j in S, and the others by S without j. That is K·2ᴷ steps; all orders are K!.
    """
    n_components = len(cost)
    costs = cost.tolist()  # plain floats: reading numpy scalars one by one is several times slower
    min_cost = [0.0] * (1 << n_components)
    last_estimate = [0] * (1 << n_components)
    for subset in range(1, 1 << n_components):
        truth = subset.bit_count() - 1
        members = [j for j in range(n_components) if subset >> j & 1]
        min_cost[subset], last_estimate[subset] = min((min_cost[subset ^ 1 << j] + costs[j][truth], j) for j in members)
    order = np.empty(n_components, dtype=np.int64)
    subset = (1 << n_components) - 1
    for truth in reversed(range(n_components)):
        order[truth] = last_estimate[subset]
        subset ^= 1 << last_estimate[subset]
    return order
