"""Bodies of posts: JSON, no larger than is allowed."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from fastapi import Request

from holdfast.server.errors import Refused
from holdfast.server.live.posts import Part, check_key, read_part

MOST_POINTS = 50_000  # of a post
LONGEST_NAME = 200  # characters of an Idempotency-Key


async def read_json(request: Request) -> tuple[Any, str]:
    """What the body holds, and a digest of it."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused("wrong_type", f"expected Content-Type: application/json, got {kind!r:.60}")
    body = await request.body()
    try:
        return orjson.loads(body), hashlib.sha256(body).hexdigest()
    except orjson.JSONDecodeError as error:
        raise Refused("malformed_json", f"the body is not JSON: {error}"[:300]) from None


def points_in(content: Any) -> list[Any]:
    """The points of a body: one, a list of them, or an object that holds such a list."""
    if isinstance(content, dict) and "points" in content:
        if len(content) > 1 or not isinstance(content["points"], list):
            raise Refused("bad_point", "expected a list under points, and nothing else beside it")
        content = content["points"]
    points = content if isinstance(content, list) else [content]
    if not points:
        raise Refused("bad_point", "expected at least one point, got an empty list")
    if len(points) > MOST_POINTS:
        raise Refused("too_many_points", f"a post has at most {MOST_POINTS} points, got {len(points)}")
    return points


def parts_of_many(content: Any) -> list[Part]:
    """The points of many streams, each of which names its own, in order."""
    by_key: dict[str, list[Any]] = {}
    for place, point in enumerate(points_in(content)):
        if not isinstance(point, dict) or "stream" not in point:
            raise Refused("bad_point", f"point {place}: expected an object with stream and value or values")
        key = point["stream"]
        if not isinstance(key, str) or key not in by_key:
            by_key[check_key(key)] = []
        by_key[key].append({name: value for name, value in point.items() if name != "stream"})
    return [read_part(key, points) for key, points in by_key.items()]


def post_name(request: Request) -> str | None:
    """The name of a post that may be sent again: its Idempotency-Key, which counts for one address."""
    name = request.headers.get("idempotency-key")
    if name is None:
        return None
    if not 0 < len(name) <= LONGEST_NAME or not all("!" <= letter <= "~" for letter in name):
        raise Refused("invalid", f"Idempotency-Key: expected 1 to {LONGEST_NAME} printable ASCII characters, no spaces")
    return f"{request.scope['path']} {name}"
