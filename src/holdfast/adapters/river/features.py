"""The features of river's dicts as the numbers of a point, in an order of their own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from holdfast.errors import InvalidTypeError
from holdfast.scheme.state import Vector

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
