"""What comes in: points of one stream or of many, checked before anything is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.scheme.algorithm import LARGEST
from holdfast.scheme.state import Vector
from holdfast.server.errors import Refused
from holdfast.server.live.clock import Moment
from holdfast.server.store.streams import Names
from holdfast.streams.times import is_number, nanoseconds

LONGEST_KEY = 200  # characters
LAST_PARTS = ("points", "history", "events")  # of a path: a key that ends in one of these could not be told from it
MOST_VARIABLES = 32


@dataclass(eq=False)
class Part:
    """Points of one stream. times: as they were given, None for those without; moments: the same to compare."""

    key: str
    values: Vector
    names: Names
    times: list[str | None]
    moments: list[Moment | None]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(eq=False)
class Post:
    """What somebody sent, and where the answer goes.

    name, digest: of a post that may be sent again, and of what it holds. position: (source, where it goes on), of a
    post that comes from a source.
    """

    parts: list[Part]
    name: str | None = None
    digest: str = ""
    position: tuple[str, Any] | None = None
    answer: Future[list[dict[str, Any]]] = field(default_factory=Future)
    left_out: list[tuple[Part, Refused]] = field(default_factory=list)

    @property
    def n_points(self) -> int:
        """All of its points."""
        return sum(map(len, self.parts))


def check_key(key: Any) -> str:
    """A key that can be kept, shown, and asked for."""
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY:
        raise Refused("bad_key", f"the key of a stream is a text of 1 to {LONGEST_KEY} characters")
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 or "\ud800" <= letter <= "\udfff" for letter in key):
        raise Refused("bad_key", "the key of a stream has no control characters, and no halves of characters")
    if key != key.strip():
        raise Refused("bad_key", "the key of a stream neither begins nor ends with white space")
    parts = key.split("/")
    if "." in parts or ".." in parts or "" in parts or (len(parts) > 1 and parts[-1] in LAST_PARTS):
        raise Refused(
            "bad_key", f"a key has no empty part, . or .. between slashes, nor {', '.join(LAST_PARTS)} after the last"
        )
    return key


def read_part(key: str, points: Sequence[Any]) -> Part:
    """Points of one stream, each a number, a list of numbers, or an object with value or values, and maybe time."""
    times: list[str | None] = [None] * len(points)
    moments: list[Moment | None] = [None] * len(points)
    if set(map(type, points)) <= {int, float}:  # the most common case, without a look at each
        return Part(key, _column(points), None, times, moments)
    listed: list[Any] = list(points)
    for place, point in enumerate(points):
        if isinstance(point, dict):
            listed[place] = _value_of(point, place)
            if point.get("time") is not None:
                times[place], moments[place] = _time_of(point["time"], place)
    values, names = _matrix(listed)
    kinds = {type(moment) for moment in moments if moment is not None}
    if len(kinds) > 1:
        raise Refused("bad_time", "times are given as numbers and as dates in turn")
    return Part(key, values, names, times, moments)


def _value_of(point: dict[str, Any], place: int) -> Any:
    unknown = point.keys() - {"value", "values", "time"}
    if unknown:
        raise Refused("bad_point", f"{at(place)}: expected value or values, time, got {sorted(unknown)[0]!r:.60}")
    if ("value" in point) == ("values" in point):
        raise Refused("bad_point", f"{at(place)}: expected either value or values")
    if "value" in point:
        if not is_number(point["value"]):
            raise Refused("bad_point", f"{at(place)}: value: expected a number, got {_kind(point['value'])}")
        return point["value"]
    if not isinstance(point["values"], list | dict) or not point["values"]:
        raise Refused("bad_point", f"{at(place)}: values: expected a list or an object with numbers")
    return point["values"]


def _time_of(time: Any, place: int) -> tuple[str, Moment]:
    if is_number(time) and abs(time) < 1e300:
        return (str(time) if isinstance(time, int) else repr(time)), float(time)
    moment = nanoseconds(time)
    if moment is None:
        raise Refused("bad_time", f"{at(place)}: time: expected a number, or a text in ISO 8601, got {str(time)!r:.60}")
    return str(time), moment


def _matrix(points: list[Any]) -> tuple[Vector, Names]:
    """Values as (n, d), and names of variables, where they are given by name."""
    if any(isinstance(point, dict) for point in points):
        return _by_name(points)
    if set(map(type, points)) <= {int, float}:
        return _column(points), None
    width = len(points[0]) if isinstance(points[0], list) else 1
    rows = []
    for place, point in enumerate(points):
        row = point if isinstance(point, list) else [point]
        if len(row) != width:
            raise Refused("wrong_width", f"{at(place)}: expected {width} values as in the first point, got {len(row)}")
        rows.append([_number(value, place) for value in row])
    if not 0 < width <= MOST_VARIABLES:
        raise Refused("wrong_width", f"a point has 1 to {MOST_VARIABLES} values, got {width}")
    return _checked(np.array(rows, np.float64).reshape(len(rows), width)), None


def _column(points: Sequence[float]) -> Vector:
    """Points of one number each."""
    try:
        values = np.array(points, np.float64)
    except OverflowError:  # whole numbers of JSON may be larger than any float
        values = np.array([point if _fit(point) else np.inf for point in points])
    return _checked(values.reshape(-1, 1))


def _by_name(points: list[Any]) -> tuple[Vector, Names]:
    names: dict[str, int] = {}
    for place, point in enumerate(points):
        if not isinstance(point, dict):
            raise Refused("bad_point", f"{at(place)}: some points name their values, this one does not")
        for name in point:
            names.setdefault(name, len(names))
    if len(names) > MOST_VARIABLES:
        raise Refused("wrong_width", f"a point has 1 to {MOST_VARIABLES} values, got {len(names)}")
    if bad := [name for name in names if not 0 < len(name) <= LONGEST_KEY or not name.isprintable()]:
        raise Refused(
            "bad_point", f"a variable has a name of 1 to {LONGEST_KEY} printable characters, got {bad[0]!r:.60}"
        )
    values = np.full((len(points), len(names)), np.nan)
    for place, point in enumerate(points):
        for name, value in point.items():
            values[place, names[name]] = _number(value, place)
    return _checked(values), tuple(names)


def _number(value: Any, place: int) -> float:
    if value is None:
        return np.nan
    if not is_number(value):
        raise Refused("bad_point", f"{at(place)}: expected a number, or null for a missing one, got {_kind(value)}")
    return float(value) if _fit(value) else np.inf


def _checked(values: Vector) -> Vector:
    """Values that can be learnt from: at least one in each point, and none that is out of reach."""
    if (np.abs(values) <= LARGEST).all():  # the most common case
        return values
    if (far := np.flatnonzero((np.abs(values) > LARGEST).any(axis=1))).size:
        raise Refused("bad_point", f"{at(int(far[0]))}: a value is larger than {LARGEST:g}")
    if (empty := np.flatnonzero(np.isnan(values).all(axis=1))).size:
        raise Refused("bad_point", f"{at(int(empty[0]))}: all values are missing")
    return values


def _fit(number: float) -> bool:
    """Whether this is no larger than a float can be."""
    return -1e300 < number < 1e300


def _kind(value: Any) -> str:
    named = {bool: "true or false", str: "a text", list: "a list", dict: "an object", type(None): "null"}
    return named.get(type(value), type(value).__name__)


def at(place: int) -> str:
    """Which point, as people count in a list."""
    return f"point {place}"
