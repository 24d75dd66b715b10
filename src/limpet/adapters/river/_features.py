"""Read the features of river's dicts, and decide which of them are learned."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from limpet.core.state import Vector
from limpet.exceptions import InvalidTypeError

Point = dict[Hashable, float]


def to_point(x: Mapping[Any, Any]) -> Point:
    """Return the features that have a value, as floats; None and NaN are missing.

    >>> to_point({"a": 1, "b": None, "c": True, "d": float("nan")})
    {'a': 1.0, 'c': 1.0}
    """
    if not isinstance(x, Mapping):
        raise InvalidTypeError(f"x: must be a dict of features, got {type(x).__name__} {x!r}.")
    return {
        name: value for name, value in ((name, _to_float(name, value)) for name, value in x.items()) if value == value
    }


def _to_float(name: Hashable, value: Any) -> float:
    if value is None:
        return np.nan
    if isinstance(value, str | bytes):
        raise InvalidTypeError(f"feature {name!r}: must be a number, got {value!r}.")
    try:
        return float(value)
    except OverflowError:  # an integer beyond the largest float
        return np.inf if value > 0 else -np.inf
    except (TypeError, ValueError):
        raise InvalidTypeError(f"feature {name!r}: must be a number, got {type(value).__name__}.") from None


class Features:
    """A set of features, sorted by name.

    Results do not depend on the order in a dict.
    """

    def __init__(self, names: Iterable[Hashable]) -> None:
        self.names: tuple[Hashable, ...] = tuple(sorted(names, key=lambda name: (str(name), str(type(name)))))
        self.known = frozenset(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names as distinct strings."""
        strings = [str(name) for name in self.names]
        return tuple(
            string if strings.count(string) == 1 else repr(name)
            for string, name in zip(strings, self.names, strict=True)
        )

    def make_reader(self) -> Callable[[Mapping[Any, Any]], tuple[Any, ...]]:
        """Return a function from a dict to the values of all features.

        It raises KeyError for a missing one.
        """
        if len(self.names) > 1:
            return itemgetter(*self.names)
        return lambda x: tuple(x[name] for name in self.names)

    def to_vector(self, point: Point) -> Vector:
        """Return the values of a point, NaN for missing features.

        Unknown features are ignored.
        """
        return np.array([point.get(name, np.nan) for name in self.names])


MIN_PRESENCE_SHARE = 0.2  # of the points must have a feature for it to be learned …
MIN_PRESENCE_POINTS = 3  # … and at least so many points


class FeatureAdmission:
    """Collect points with new features, and select the features of the next model."""

    def __init__(self, n_points: int, max_features: int) -> None:
        self.n_points, self.max_features = n_points, max_features
        self.points: list[Point] = []

    def add(self, point: Point) -> list[Hashable] | None:
        """Add a valid point.

        Return the frequent features once enough points are collected, else None.
        """
        if point and all(map(math.isfinite, point.values())):
            self.points.append(point)
        if len(self.points) < self.n_points:
            return None
        min_count = max(min(MIN_PRESENCE_POINTS, self.n_points), MIN_PRESENCE_SHARE * self.n_points)
        counts = Counter(name for each in self.points for name in each)
        frequent = [name for name in counts if counts[name] >= min_count]
        return sorted(frequent, key=lambda name: (-counts[name], str(name)))

    def limit(self, names: list[Hashable]) -> list[Hashable]:
        """Return the first max_features names."""
        return names[: self.max_features]

    def pop_points(self) -> list[Point]:
        """Remove and return the points."""
        points, self.points = self.points, []
        return points
