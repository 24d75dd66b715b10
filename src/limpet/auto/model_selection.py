"""Select the number of components on the first points, by the trimmed likelihood.

Each number up to `MAX_COMPONENTS` is fitted robustly. The cost is the −log-likelihood of the most likely four fifths of
the points, plus Schwarz's penalty for the parameters. Fits with a component that is hardly wider than a single value,
or that has few points, are excluded: rounded values cause such fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from limpet._format import plural
from limpet.auto.initialization import fit_robust_mixture
from limpet.auto.step_kernel import make_auto_kernels
from limpet.core.state import Vector
from limpet.models._standardization import fit_location_scale, standardize
from limpet.models.components.base import Component

MAX_COMPONENTS = 3
LIKELIHOOD_POINTS_SHARE = 0.8
PENALTY_FACTOR = 1.5  # times Schwarz's penalty: the best of many seedings is optimistic
MIN_RELATIVE_WIDTH = 0.1  # of the widest component, in every coordinate
MAX_DISTINCT_SHARE = 0.8  # of the points: with fewer distinct values, values are rounded
MIN_COMPONENT_WEIGHT = 0.1


class ComponentSelection(NamedTuple):
    """The selected number of components, and the costs in nats, inf if excluded."""

    n_components: int
    costs: tuple[float, ...]

    @classmethod
    def from_costs(cls, costs: Iterable[float]) -> ComponentSelection:
        """Select the smallest cost."""
        costs = tuple(costs)
        return cls(costs.index(min(costs)) + 1, costs)

    def __str__(self) -> str:
        """Return the number of components and the costs.

        >>> print(ComponentSelection(2, (130.0, 100.0, math.inf)))
        2 components: costs 130, 100, excluded for 1 to 3
        """
        text = ", ".join(f"{cost:.4g}" if math.isfinite(cost) else "excluded" for cost in self.costs)
        return f"{plural(self.n_components, 'component')}: costs {text} for 1 to {len(self.costs)}"


def select_n_components(covariance: str, points: Vector, seed: int) -> ComponentSelection:
    """Select the number of components for the first points."""
    n, d = points.shape
    scaled = standardize(points, *fit_location_scale(points))
    costs = []
    for K in range(1, min(MAX_COMPONENTS, n // 10) + 1):
        kernels = make_auto_kernels(covariance, K, d)
        fit = fit_robust_mixture(kernels, scaled, seed)
        losses, _ = kernels.score_under_fit(fit, scaled)
        n_parameters = K * kernels.component.n_parameters(d) + K - 1
        trimmed_loss = np.sort(losses)[: int(LIKELIHOOD_POINTS_SHARE * n)].sum()
        widths = component_widths(kernels.component, fit, K, d)
        min_widths = np.maximum(MIN_RELATIVE_WIDTH * widths.max(axis=0), 0.5 * resolution(scaled))
        is_plausible = np.all(widths >= min_widths) and fit[:K].min() >= MIN_COMPONENT_WEIGHT
        cost = float(trimmed_loss + PENALTY_FACTOR * 0.5 * n_parameters * math.log(n))
        costs.append(cost if is_plausible or K == 1 else math.inf)
    return ComponentSelection.from_costs(costs)


def component_widths(component: Component, fit: Vector, K: int, d: int) -> Vector:
    """Return (K, d): the standard deviations of each component."""
    variances = np.zeros((K, d))
    for k, part in enumerate(fit[K:].reshape(K, -1)):
        component.add_variances(part, 0, d, variances[k], 1.0)
    return np.asarray(np.sqrt(variances))


def resolution(points: Vector) -> Vector:
    """Return (d,): the median step between rounded values of a coordinate, or 0.

    >>> resolution(np.array([[1.0, 0.1], [2.0, 0.3], [2.0, 0.7], [4.0, 0.2], [1.0, 0.9]]))
    array([1.5, 0. ])
    """
    values = [np.unique(column[~np.isnan(column)]) for column in points.T]
    are_rounded = [1 < len(distinct) < MAX_DISTINCT_SHARE * len(points) for distinct in values]
    return np.array(
        [np.median(np.diff(v)) if is_rounded else 0.0 for v, is_rounded in zip(values, are_rounded, strict=True)]
    )
