"""Bodies of posts: JSON, no larger than is allowed."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from fastapi import Request

from holdfast.server.errors import ApiError
from holdfast.server.live.posts import StreamPoints, check_key, parse_stream_points

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
