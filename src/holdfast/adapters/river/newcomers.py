"""Which features are worth learning: those that enough of the latest points have."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable

from holdfast.adapters.river.features import Point

MIN_PRESENCE_SHARE = 0.2  # share of the points that must have a feature …
MIN_PRESENCE_POINTS = 3  # … and so many of them at least, for a model to start with it


class FeatureAdmission:
    """Gathers points from the first that shows a new feature on, and says which features a model of them should have.

    size: how many points are gathered. most: features that are taken at the most, those that were shown most.
    """

    def __init__(self, n_points: int, max_features: int) -> None:
        self.n_points, self.max_features = n_points, max_features
        self.points: list[Point] = []

    def add(self, point: Point) -> list[Hashable] | None:
        """The features to learn, once enough points have come; None before. A point that cannot be used is none."""
        if point and all(map(math.isfinite, point.values())):
            self.points.append(point)
        if len(self.points) < self.n_points:
            return None
        min_count = max(min(MIN_PRESENCE_POINTS, self.n_points), MIN_PRESENCE_SHARE * self.n_points)
        counts = Counter(name for each in self.points for name in each)
        frequent = [name for name in counts if counts[name] >= min_count]
        return sorted(frequent, key=lambda name: (-counts[name], str(name)))

    def limit(self, names: list[Hashable]) -> list[Hashable]:
        """As many of these as may be learnt."""
        return names[: self.max_features]

    def pop_points(self) -> list[Point]:
        """The points, which are no longer kept here."""
        points, self.points = self.points, []
        return points
