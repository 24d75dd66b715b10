"""How many components? Chosen on the first points, by the likelihood of those that are no outliers.

Each number up to `MOST` is fitted robustly. What counts is −log likelihood of the four fifths of the points that the
fit likes best, plus Schwarz's penalty for its parameters. A fit with a component that is hardly wider than a single
value, or that has hardly any points, is not believed: rounding makes such ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from holdfast.autopilot.pilot import make_pilot
from holdfast.autopilot.robust_fit import robust_fit
from holdfast.models.component import Component
from holdfast.models.frame import frame_of, in_frame
from holdfast.scheme.state import Vector

MOST = 3
KEPT = 0.8
STRICT = 1.5  # times Schwarz's penalty: the best of many seedings looks better than it is
NARROWEST = 0.1  # of the widest component, in every coordinate
ROUNDED = 0.8  # of the points: values that repeat themselves so often are rounded
RAREST = 0.1  # weight


class Choice(NamedTuple):
    """The number chosen, and what each number costs: nats, infinite if it is not believed."""

    n_components: int
    costs: tuple[float, ...]

    @classmethod
    def of(cls, costs: Iterable[float]) -> Choice:
        """The least of these costs."""
        costs = tuple(costs)
        return cls(costs.index(min(costs)) + 1, costs)

    def __str__(self) -> str:
        """In words.

        >>> print(Choice(2, (130.0, 100.0, math.inf)))
        2 components: costs 130, 100, not believed for 1 to 3
        """
        told = ", ".join(f"{cost:.4g}" if math.isfinite(cost) else "not believed" for cost in self.costs)
        return f"{self.n_components} component{'s' * (self.n_components > 1)}: costs {told} for 1 to {len(self.costs)}"


def choose_components(covariance: str, points: Vector, seed: int) -> Choice:
    """The number of components for these first points, NaN where a coordinate is missing."""
    n, d = points.shape
    scaled = in_frame(points, *frame_of(points))
    costs = []
    for K in range(1, min(MOST, n // 10) + 1):
        pilot = make_pilot(covariance, K, d)
        fit = robust_fit(pilot, scaled, seed)
        losses, _ = pilot.judge(fit, scaled)
        parameters = K * pilot.component.size(d) + K - 1
        likelihood = np.sort(losses)[: int(KEPT * n)].sum()
        sizes = widths(pilot.component, fit, K, d)
        alike = bool(np.all(sizes >= NARROWEST * sizes.max(axis=0)) and np.all(sizes >= 0.5 * ticks(scaled)))
        believed = alike and fit[:K].min() >= RAREST
        costs.append(float(likelihood + STRICT * 0.5 * parameters * math.log(n)) if believed or K == 1 else math.inf)
    return Choice.of(costs)


def widths(component: Component, fit: Vector, K: int, d: int) -> Vector:
    """(K, d): the standard deviations of each component."""
    variances = np.zeros((K, d))
    for k, part in enumerate(fit[K:].reshape(K, -1)):
        component.spread(part, 0, d, variances[k], 1.0)
    return np.asarray(np.sqrt(variances))


def ticks(points: Vector) -> Vector:
    """(d,): the usual step between the values of each coordinate, if they are rounded; else 0.

    >>> ticks(np.array([[1.0, 0.1], [2.0, 0.3], [2.0, 0.7], [4.0, 0.2], [1.0, 0.9]]))
    array([1.5, 0. ])
    """
    values = [np.unique(column[~np.isnan(column)]) for column in points.T]
    rounded = [1 < len(distinct) < ROUNDED * len(points) for distinct in values]
    return np.array(
        [np.median(np.diff(v)) if is_rounded else 0.0 for v, is_rounded in zip(values, rounded, strict=True)]
    )
