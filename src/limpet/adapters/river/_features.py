"""Which features are worth learning: those that enough of the latest points have."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from limpet.core.state import Vector
from limpet.exceptions import InvalidTypeError

# The features of river's dicts as the numbers of a point, in an order of their own.

Point = dict[Hashable, float]


def to_point(x: Mapping[Any, Any]) -> Point:
    """The features that have a value, as numbers; None and NaN are missing.

    >>> as_point({"a": 1, "b": None, "c": True, "d": float("nan")})
    {'a': 1.0, 'c': 1.0}
    """
    if not isinstance(x, Mapping):
        raise InvalidTypeError(f"expected a dict of features, got {type(x).__name__} {x!r}")
    return {
        name: value for name, value in ((name, _to_float(name, value)) for name, value in x.items()) if value == value
    }


def _to_float(name: Hashable, value: Any) -> float:
    if value is None:
        return np.nan
    if isinstance(value, str | bytes):
        raise InvalidTypeError(f"feature {name!r} is {value!r}, not a number")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all floats
        return np.inf if value > 0 else -np.inf
    except (TypeError, ValueError):
        raise InvalidTypeError(f"feature {name!r} is a {type(value).__name__}, not a number") from None


class Features:
    """Which features there are, and how a point is read as a vector.

    They are ordered by name: the order in which a dict has them makes no difference, to the last bit.
    """

    def __init__(self, names: Iterable[Hashable]) -> None:
        self.names: tuple[Hashable, ...] = tuple(sorted(names, key=lambda name: (str(name), str(type(name)))))
        self.known = frozenset(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names as text, told apart where they are the same."""
        strings = [str(name) for name in self.names]
        return tuple(
            string if strings.count(string) == 1 else repr(name)
            for string, name in zip(strings, self.names, strict=True)
        )

    def make_reader(self) -> Callable[[Mapping[Any, Any]], tuple[Any, ...]]:
        """(x) → the values of all features, in order; a KeyError if one is not there."""
        if len(self.names) > 1:
            return itemgetter(*self.names)
        return lambda x: tuple(x[name] for name in self.names)

    def to_vector(self, point: Point) -> Vector:
        """NaN where a feature is missing; one that is not known is left out."""
        return np.array([point.get(name, np.nan) for name in self.names])


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
