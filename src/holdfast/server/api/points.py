"""Points come in."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from holdfast.server.api import schemas
from holdfast.server.api.answers import answer
from holdfast.server.api.bodies import parts_of_many, points_in, post_name, read_json
from holdfast.server.live.posts import check_key, read_part
from holdfast.server.live.watching import Watching, watching

router = APIRouter(tags=["points"])
Live = Annotated[Watching, Depends(watching)]
REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Error} for status in (400, 409, 413, 415, 422, 429, 503)
}
IDEMPOTENCY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    "description": "A name for this post: sent again with the same name within a day, it is answered as before and "
    "not learnt twice.",
}


def _documented(body: str) -> dict[str, Any]:
    """The body is read by hand, which is quicker; this is what the documentation says of it."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{body}"}}}
    return {"requestBody": {"required": True, "content": content}, "parameters": [IDEMPOTENCY]}


@router.post(
    "/streams/{key:path}/points",
    response_model=schemas.Accepted,
    responses=REFUSED,
    openapi_extra=_documented("Body"),
)
async def post_points(request: Request, live: Live, key: str) -> Response:
    """Learns points of one stream, in order; a new key begins a new stream.

    One number, a list of numbers, an object `{"value": 1.5, "time": …}`, `{"values": [1, 2]}` or
    `{"values": {"a": 1, "b": null}}`, or a list of those. Points older than the last one of the stream are skipped and
    counted, and so is an exact repetition of it. Once it is answered, what was accepted is in the store.
    """
    check_key(key)
    content, digest = await read_json(request)
    accepted = await live.post([read_part(key, points_in(content))], post_name(request), digest)
    return answer(accepted[0])


@router.post("/points", response_model=list[schemas.Accepted], responses=REFUSED, openapi_extra=_documented("Many"))
async def post_many(request: Request, live: Live) -> Response:
    """Learns points of many streams, each of which names its own: all of them, or none if one cannot be used."""
    content, digest = await read_json(request)
    return answer(await live.post(parts_of_many(content), post_name(request), digest))
