"""Which features are worth learning: those that enough of the latest points have."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable

from holdfast.adapters.river.features import Point

SHOWN = 0.2  # share of the points that must have a feature …
LEAST = 3  # … and so many of them at least, for a model to start with it


class Newcomers:
    """Gathers points from the first that shows a new feature on, and says which features a model of them should have.

    size: how many points are gathered. most: features that are taken at the most, those that were shown most.
    """

    def __init__(self, size: int, most: int) -> None:
        self.size, self.most = size, most
        self.points: list[Point] = []

    def add(self, point: Point) -> list[Hashable] | None:
        """The features to learn, once enough points have come; None before. A point that cannot be used is none."""
        if point and all(map(math.isfinite, point.values())):
            self.points.append(point)
        if len(self.points) < self.size:
            return None
        needed = max(min(LEAST, self.size), SHOWN * self.size)
        shown = Counter(name for each in self.points for name in each)
        enough = [name for name in shown if shown[name] >= needed]
        return sorted(enough, key=lambda name: (-shown[name], str(name)))

    def taken(self, names: list[Hashable]) -> list[Hashable]:
        """As many of these as may be learnt."""
        return names[: self.most]

    def leave(self) -> list[Point]:
        """The points, which are no longer kept here."""
        points, self.points = self.points, []
        return points
