"""Endpoints for points: parse, validate and learn a body, return what was stored."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson
from fastapi import APIRouter, Request
from fastapi.responses import Response

from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.core.state import Vector
from limpet.server import schemas
from limpet.server.db.points import VariableNames
from limpet.server.ingest.processor import IngestRequest, StreamPoints, check_key
from limpet.server.monitor import Monitor, MonitorDep
from limpet.server.responses import ApiError, json_response
from limpet.server.schemas import MAX_IDEMPOTENCY_KEY_CHARS, MAX_KEY_CHARS, MAX_VARIABLES
from limpet.streams.event_time import EventTime
from limpet.streams.timestamps import is_number, parse_iso_ns

router = APIRouter(tags=["points"])
MAX_REQUEST_POINTS = 50_000
ERROR_RESPONSES = schemas.document_errors(400, 409, 413, 415, 422, 429, 503)
IDEMPOTENCY_KEY_PARAM = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY_CHARS, "pattern": "^[!-~]+$"},
    "description": "Makes the request safe to retry: within a day, a request with the same key returns the first "
    "response, and its points are not learned twice.",
}


def _document_body(schema_name: str) -> dict[str, Any]:
    """Return the documentation of a body that the endpoint parses itself."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema_name}"}}}
    return {"requestBody": {"required": True, "content": content}, "parameters": [IDEMPOTENCY_KEY_PARAM]}


@router.post(
    "/streams/{key:path}/points",
    response_model=schemas.IngestResult,
    responses=ERROR_RESPONSES,
    openapi_extra=_document_body("PointBody"),
)
async def post_points(request: Request, monitor: MonitorDep, key: str) -> Response:
    """Learn points of one stream, in order; a new key creates a stream.

    One number, a list of numbers, an object `{"value": 1.5, "time": …}`, `{"values": [1, 2]}` or
    `{"values": {"a": 1, "b": null}}`, or a list of those. Late points and duplicates are skipped and counted.
    Accepted points are stored before the response is sent.
    """
    check_key(key)
    accepted = await _learn(request, monitor, lambda points: [parse_stream_points(key, points)])
    return json_response(accepted[0])


@router.post(
    "/points",
    response_model=list[schemas.IngestResult],
    responses=ERROR_RESPONSES,
    openapi_extra=_document_body("StreamPointList"),
)
async def post_many_streams(request: Request, monitor: MonitorDep) -> Response:
    """Learn points that name their streams: all of them, or none if one is invalid."""
    return json_response(await _learn(request, monitor, _group_by_stream))


async def _learn(
    request: Request, monitor: Monitor, parse: Callable[[list[Any]], list[StreamPoints]]
) -> list[dict[str, Any]]:
    """Parse a body, learn its points, return a response per stream once stored."""
    media_type = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ApiError("unsupported_media_type", f"Content-Type: must be application/json, got {media_type!r:.60}.")
    body = await request.body()
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError("malformed_json", f"body: must be valid JSON: {error}."[:300]) from None
    parts = parse(_extract_points(content))
    if (key := request.headers.get("idempotency-key")) is not None:
        if not 0 < len(key) <= MAX_IDEMPOTENCY_KEY_CHARS or not all("!" <= char <= "~" for char in key):
            constraint = f"must be 1 to {MAX_IDEMPOTENCY_KEY_CHARS} printable ASCII characters without spaces"
            raise ApiError("invalid", f"Idempotency-Key: {constraint}, got {key!r:.60}.")
        key = f"{request.scope['path']} {key}"
    digest = hashlib.sha256(body).hexdigest()
    return await asyncio.wrap_future(monitor.writer.submit(IngestRequest(parts, key, digest)))


# From decoded JSON to arrays by stream


def _extract_points(content: Any) -> list[Any]:
    """Return the points of a decoded body: a point, list, or object with `points`."""
    if isinstance(content, dict) and "points" in content:
        if len(content) > 1 or not isinstance(content["points"], list):
            raise ApiError("invalid_point", "points: must be a list, without further fields next to it.")
        content = content["points"]
    points = content if isinstance(content, list) else [content]
    if not points:
        raise ApiError("invalid_point", "points: must have at least one point, got an empty list.")
    if len(points) > MAX_REQUEST_POINTS:
        raise ApiError("too_many_points", f"points: must be at most {MAX_REQUEST_POINTS}, got {len(points)}.")
    return points


def _group_by_stream(points: list[Any]) -> list[StreamPoints]:
    """Parse decoded points that name their streams."""
    by_key: dict[str, list[Any]] = {}
    for index, point in enumerate(points):
        if not isinstance(point, dict) or "stream" not in point:
            raise _invalid_point(index, "must be an object with stream and value or values")
        key = point["stream"]
        if not isinstance(key, str) or key not in by_key:
            by_key[check_key(key)] = []
        by_key[key].append({name: value for name, value in point.items() if name != "stream"})
    return [parse_stream_points(key, group) for key, group in by_key.items()]


def parse_stream_points(key: str, points: Sequence[Any]) -> StreamPoints:
    """Parse decoded points of a stream; raise for the first that cannot be used.

    Each is a number, a list of numbers, or an object with value or values, and optionally time.
    """
    times: list[str | None] = [None] * len(points)
    event_times: list[EventTime | None] = [None] * len(points)
    if set(map(type, points)) <= {int, float}:  # the most common case, without a loop over the points
        return StreamPoints(key, _to_column(points), None, times, event_times)
    raw_values: list[Any] = list(points)
    for index, point in enumerate(points):
        if isinstance(point, dict):
            raw_values[index] = _extract_value(point, index)
            if point.get("time") is not None:
                times[index], event_times[index] = _parse_time(point["time"], index)
    values, names = _to_matrix(raw_values)
    if len({type(event_time) for event_time in event_times if event_time is not None}) > 1:
        raise ApiError("invalid_time", "time: must be numbers or dates, got both.")
    return StreamPoints(key, values, names, times, event_times)


def _extract_value(point: dict[str, Any], index: int) -> Any:
    """Return the value of a point, or its list or object of values."""
    value = point.get("value")
    if type(value) in (int, float) and len(point) == 1 + ("time" in point):  # the most common case
        return value
    if unknown := sorted(point.keys() - {"value", "values", "time"}):
        raise _invalid_point(index, f"must have value or values, and time, got {unknown[0]!r:.60}")
    if ("value" in point) == ("values" in point):
        raise _invalid_point(index, "must have either value or values")
    if "value" not in point:
        value = point["values"]
        if not isinstance(value, list | dict) or not value:
            raise _invalid_point(index, "values: must be a list or an object of numbers")
    elif not is_number(value):
        raise _invalid_point(index, f"value: must be a number, got {_json_type_name(value)}")
    return value


def _parse_time(time: Any, index: int) -> tuple[str, EventTime]:
    """Return a time as a string and in comparable form."""
    if is_number(time) and abs(time) < 1e300:
        return (str(time) if isinstance(time, int) else repr(time)), float(time)
    if (event_time := parse_iso_ns(time)) is None:
        message = f"point {index}: time: must be a number or an ISO 8601 string, got {str(time)!r:.60}."
        raise ApiError("invalid_time", message)
    return str(time), event_time


def _to_matrix(points: list[Any]) -> tuple[Vector, VariableNames]:
    """Return the values, (n, d), and the names of variables, if the points name them."""
    if any(isinstance(point, dict) for point in points):
        return _to_matrix_by_name(points)
    if set(map(type, points)) <= {int, float}:
        return _to_column(points), None
    width = len(points[0]) if isinstance(points[0], list) else 1
    rows = []
    for index, point in enumerate(points):
        row = point if isinstance(point, list) else [point]
        if len(row) != width:
            message = f"point {index}: must have {width} values as in the first point, got {len(row)}."
            raise ApiError("dimension_mismatch", message)
        rows.append([_to_float(value, index) for value in row])
    _check_width(width)
    return _check_values(np.array(rows, np.float64).reshape(len(rows), width)), None


def _to_column(points: Sequence[float]) -> Vector:
    """Return the values of univariate points, (n, 1)."""
    try:
        values = np.array(points, np.float64)
    except OverflowError:  # integers of JSON may be larger than any float
        values = np.array([_to_float(point, index) for index, point in enumerate(points)])
    return _check_values(values.reshape(-1, 1))


def _to_matrix_by_name(points: list[Any]) -> tuple[Vector, VariableNames]:
    """Return values (n, d) of named variables, and names in order of appearance."""
    names: dict[str, int] = {}
    for index, point in enumerate(points):
        if not isinstance(point, dict):
            raise _invalid_point(index, "must be an object of values by name, as in other points")
        for name in point:
            names.setdefault(name, len(names))
    _check_width(len(names))
    if invalid_names := [name for name in names if not 0 < len(name) <= MAX_KEY_CHARS or not name.isprintable()]:
        message = f"must have names of 1 to {MAX_KEY_CHARS} printable characters, got {invalid_names[0]!r:.60}."
        raise ApiError("invalid_point", f"values: {message}")
    values = np.full((len(points), len(names)), np.nan)
    for index, point in enumerate(points):
        for name, value in point.items():
            values[index, names[name]] = _to_float(value, index)
    return _check_values(values), tuple(names)


def _to_float(value: Any, index: int) -> float:
    """Return a value as a float: NaN for null, infinity beyond the range of floats."""
    if value is None:
        return np.nan
    if not is_number(value):
        raise _invalid_point(index, f"must be a number, or null for a missing value, got {_json_type_name(value)}")
    return float(value) if -1e300 < value < 1e300 else np.inf


def _check_width(width: int) -> None:
    if not 0 < width <= MAX_VARIABLES:
        raise ApiError("dimension_mismatch", f"values: must be 1 to {MAX_VARIABLES} per point, got {width}.")


def _check_values(values: Vector) -> Vector:
    """Return values that a learner can use: in range, at least one per point."""
    if (np.abs(values) <= MAX_ABS_VALUE).all():  # the most common case
        return values
    if (too_large := np.flatnonzero((np.abs(values) > MAX_ABS_VALUE).any(axis=1))).size:
        raise _invalid_point(too_large[0], f"must have absolute values of at most {MAX_ABS_VALUE:g}")
    if (empty := np.flatnonzero(np.isnan(values).all(axis=1))).size:
        raise _invalid_point(empty[0], "must have at least one value, got null only")
    return values


def _invalid_point(index: int, message: str) -> ApiError:
    return ApiError("invalid_point", f"point {index}: {message}.")


def _json_type_name(value: Any) -> str:
    names = {bool: "true or false", str: "a string", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), type(value).__name__)
