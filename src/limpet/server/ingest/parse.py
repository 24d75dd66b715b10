"""Bodies of posts: JSON, no larger than is allowed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from fastapi import Request

from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.core.state import Vector
from limpet.server.db.streams import VariableNames
from limpet.server.errors import ApiError
from limpet.server.ingest.event_time import EventTime
from limpet.streams.timestamps import is_number, parse_iso_ns

# What comes in: points of one stream or of many, checked before anything is done with them.

MAX_KEY_CHARS = 200  # characters
RESERVED_KEY_SUFFIXES = (
    "points",
    "history",
    "events",
)  # of a path: a key that ends in one of these could not be told from it
MAX_VARIABLES = 32


@dataclass(eq=False)
class StreamPoints:
    """Points of one stream. times: as they were given, None for those without; moments: the same to compare."""

    key: str
    values: Vector
    names: VariableNames
    times: list[str | None]
    event_times: list[EventTime | None]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(eq=False)
class IngestRequest:
    """What somebody sent, and where the answer goes.

    name, digest: of a post that may be sent again, and of what it holds. position: (source, where it goes on), of a
    post that comes from a source.
    """

    parts: list[StreamPoints]
    idempotency_key: str | None = None
    digest: str = ""
    source_position: tuple[str, Any] | None = None
    future: Future[list[dict[str, Any]]] = field(default_factory=Future)
    rejected_parts: list[tuple[StreamPoints, ApiError]] = field(default_factory=list)

    @property
    def n_points(self) -> int:
        """All of its points."""
        return sum(map(len, self.parts))


def check_key(key: Any) -> str:
    """A key that can be kept, shown, and asked for."""
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY_CHARS:
        raise ApiError("bad_key", f"the key of a stream is a text of 1 to {MAX_KEY_CHARS} characters")
    if any(ord(char) < 32 or 127 <= ord(char) < 160 or "\ud800" <= char <= "\udfff" for char in key):
        raise ApiError("bad_key", "the key of a stream has no control characters, and no halves of characters")
    if key != key.strip():
        raise ApiError("bad_key", "the key of a stream neither begins nor ends with white space")
    parts = key.split("/")
    if "." in parts or ".." in parts or "" in parts or (len(parts) > 1 and parts[-1] in RESERVED_KEY_SUFFIXES):
        raise ApiError(
            "bad_key",
            f"a key has no empty part, . or .. between slashes, nor {', '.join(RESERVED_KEY_SUFFIXES)} after the last",
        )
    return key


def parse_stream_points(key: str, points: Sequence[Any]) -> StreamPoints:
    """Points of one stream, each a number, a list of numbers, or an object with value or values, and maybe time."""
    times: list[str | None] = [None] * len(points)
    event_times: list[EventTime | None] = [None] * len(points)
    if set(map(type, points)) <= {int, float}:  # the most common case, without a look at each
        return StreamPoints(key, _to_column(points), None, times, event_times)
    raw_values: list[Any] = list(points)
    for index, point in enumerate(points):
        if isinstance(point, dict):
            raw_values[index] = _extract_value(point, index)
            if point.get("time") is not None:
                times[index], event_times[index] = _parse_time(point["time"], index)
    values, names = _to_matrix(raw_values)
    kinds = {type(event_time) for event_time in event_times if event_time is not None}
    if len(kinds) > 1:
        raise ApiError("bad_time", "times are given as numbers and as dates in turn")
    return StreamPoints(key, values, names, times, event_times)


def _extract_value(point: dict[str, Any], index: int) -> Any:
    unknown = point.keys() - {"value", "values", "time"}
    if unknown:
        raise ApiError(
            "bad_point", f"{point_label(index)}: expected value or values, time, got {sorted(unknown)[0]!r:.60}"
        )
    if ("value" in point) == ("values" in point):
        raise ApiError("bad_point", f"{point_label(index)}: expected either value or values")
    if "value" in point:
        if not is_number(point["value"]):
            raise ApiError(
                "bad_point", f"{point_label(index)}: value: expected a number, got {_json_type_name(point['value'])}"
            )
        return point["value"]
    if not isinstance(point["values"], list | dict) or not point["values"]:
        raise ApiError("bad_point", f"{point_label(index)}: values: expected a list or an object with numbers")
    return point["values"]


def _parse_time(time: Any, index: int) -> tuple[str, EventTime]:
    if is_number(time) and abs(time) < 1e300:
        return (str(time) if isinstance(time, int) else repr(time)), float(time)
    event_time = parse_iso_ns(time)
    if event_time is None:
        raise ApiError(
            "bad_time", f"{point_label(index)}: time: expected a number, or a text in ISO 8601, got {str(time)!r:.60}"
        )
    return str(time), event_time


def _to_matrix(points: list[Any]) -> tuple[Vector, VariableNames]:
    """Values as (n, d), and names of variables, where they are given by name."""
    if any(isinstance(point, dict) for point in points):
        return _to_matrix_by_name(points)
    if set(map(type, points)) <= {int, float}:
        return _to_column(points), None
    width = len(points[0]) if isinstance(points[0], list) else 1
    rows = []
    for index, point in enumerate(points):
        row = point if isinstance(point, list) else [point]
        if len(row) != width:
            raise ApiError(
                "wrong_width", f"{point_label(index)}: expected {width} values as in the first point, got {len(row)}"
            )
        rows.append([_to_float(value, index) for value in row])
    if not 0 < width <= MAX_VARIABLES:
        raise ApiError("wrong_width", f"a point has 1 to {MAX_VARIABLES} values, got {width}")
    return _check_values(np.array(rows, np.float64).reshape(len(rows), width)), None


def _to_column(points: Sequence[float]) -> Vector:
    """Points of one number each."""
    try:
        values = np.array(points, np.float64)
    except OverflowError:  # whole numbers of JSON may be larger than any float
        values = np.array([point if _is_in_float_range(point) else np.inf for point in points])
    return _check_values(values.reshape(-1, 1))


def _to_matrix_by_name(points: list[Any]) -> tuple[Vector, VariableNames]:
    names: dict[str, int] = {}
    for index, point in enumerate(points):
        if not isinstance(point, dict):
            raise ApiError("bad_point", f"{point_label(index)}: some points name their values, this one does not")
        for name in point:
            names.setdefault(name, len(names))
    if len(names) > MAX_VARIABLES:
        raise ApiError("wrong_width", f"a point has 1 to {MAX_VARIABLES} values, got {len(names)}")
    if invalid_names := [name for name in names if not 0 < len(name) <= MAX_KEY_CHARS or not name.isprintable()]:
        raise ApiError(
            "bad_point",
            f"a variable has a name of 1 to {MAX_KEY_CHARS} printable characters, got {invalid_names[0]!r:.60}",
        )
    values = np.full((len(points), len(names)), np.nan)
    for index, point in enumerate(points):
        for name, value in point.items():
            values[index, names[name]] = _to_float(value, index)
    return _check_values(values), tuple(names)


def _to_float(value: Any, index: int) -> float:
    if value is None:
        return np.nan
    if not is_number(value):
        raise ApiError(
            "bad_point",
            f"{point_label(index)}: expected a number, or null for a missing one, got {_json_type_name(value)}",
        )
    return float(value) if _is_in_float_range(value) else np.inf


def _check_values(values: Vector) -> Vector:
    """Values that can be learnt from: at least one in each point, and none that is out of reach."""
    if (np.abs(values) <= MAX_ABS_VALUE).all():  # the most common case
        return values
    if (too_large := np.flatnonzero((np.abs(values) > MAX_ABS_VALUE).any(axis=1))).size:
        raise ApiError("bad_point", f"{point_label(int(too_large[0]))}: a value is larger than {MAX_ABS_VALUE:g}")
    if (empty := np.flatnonzero(np.isnan(values).all(axis=1))).size:
        raise ApiError("bad_point", f"{point_label(int(empty[0]))}: all values are missing")
    return values


def _is_in_float_range(number: float) -> bool:
    """Whether this is no larger than a float can be."""
    return -1e300 < number < 1e300


def _json_type_name(value: Any) -> str:
    names = {bool: "true or false", str: "a text", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def point_label(index: int) -> str:
    """Which point, as people count in a list."""
    return f"point {index}"


MAX_REQUEST_POINTS = 50_000  # of a post
MAX_IDEMPOTENCY_KEY_CHARS = 200  # characters of an Idempotency-Key


async def read_json(request: Request) -> tuple[Any, str]:
    """What the body holds, and a digest of it."""
    media_type = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ApiError("wrong_type", f"expected Content-Type: application/json, got {media_type!r:.60}")
    body = await request.body()
    try:
        return orjson.loads(body), hashlib.sha256(body).hexdigest()
    except orjson.JSONDecodeError as error:
        raise ApiError("malformed_json", f"the body is not JSON: {error}"[:300]) from None


def extract_points(content: Any) -> list[Any]:
    """The points of a body: one, a list of them, or an object that holds such a list."""
    if isinstance(content, dict) and "points" in content:
        if len(content) > 1 or not isinstance(content["points"], list):
            raise ApiError("bad_point", "expected a list under points, and nothing else beside it")
        content = content["points"]
    points = content if isinstance(content, list) else [content]
    if not points:
        raise ApiError("bad_point", "expected at least one point, got an empty list")
    if len(points) > MAX_REQUEST_POINTS:
        raise ApiError("too_many_points", f"a post has at most {MAX_REQUEST_POINTS} points, got {len(points)}")
    return points


def group_by_stream(content: Any) -> list[StreamPoints]:
    """The points of many streams, each of which names its own, in order."""
    by_key: dict[str, list[Any]] = {}
    for index, point in enumerate(extract_points(content)):
        if not isinstance(point, dict) or "stream" not in point:
            raise ApiError("bad_point", f"point {index}: expected an object with stream and value or values")
        key = point["stream"]
        if not isinstance(key, str) or key not in by_key:
            by_key[check_key(key)] = []
        by_key[key].append({name: value for name, value in point.items() if name != "stream"})
    return [parse_stream_points(key, points) for key, points in by_key.items()]


def idempotency_key(request: Request) -> str | None:
    """The name of a post that may be sent again: its Idempotency-Key, which counts for one address."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= MAX_IDEMPOTENCY_KEY_CHARS or not all("!" <= char <= "~" for char in key):
        raise ApiError(
            "invalid",
            f"Idempotency-Key: expected 1 to {MAX_IDEMPOTENCY_KEY_CHARS} printable ASCII characters, no spaces",
        )
    return f"{request.scope['path']} {key}"
