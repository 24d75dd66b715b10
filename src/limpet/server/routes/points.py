"""Endpoints that accept points."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from limpet.server import schemas
from limpet.server.ingest import parse
from limpet.server.monitor import MonitorDep
from limpet.server.responses import json_response

router = APIRouter(tags=["points"])
ERROR_RESPONSES = schemas.document_errors(400, 409, 413, 415, 422, 429, 503)
IDEMPOTENCY_KEY_PARAM = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    "description": "Makes the request safe to retry: within a day, a request with the same key returns the first "
    "response, and its points are not learned twice.",
}


def _openapi_body(schema_name: str) -> dict[str, Any]:
    """Return the documentation of a body that the endpoint parses itself."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema_name}"}}}
    return {"requestBody": {"required": True, "content": content}, "parameters": [IDEMPOTENCY_KEY_PARAM]}


@router.post(
    "/streams/{key:path}/points",
    response_model=schemas.IngestResult,
    responses=ERROR_RESPONSES,
    openapi_extra=_openapi_body("PointBody"),
)
async def post_points(request: Request, monitor: MonitorDep, key: str) -> Response:
    """Learn points of one stream, in order; a new key creates a stream.

    One number, a list of numbers, an object `{"value": 1.5, "time": …}`, `{"values": [1, 2]}` or
    `{"values": {"a": 1, "b": null}}`, or a list of those. Late points and duplicates are skipped and counted.
    Accepted points are stored before the response is sent.
    """
    parse.check_key(key)
    content, digest = await parse.read_json(request)
    points = parse.parse_stream_points(key, parse.extract_points(content))
    accepted = await monitor.ingest([points], parse.idempotency_key(request), digest)
    return json_response(accepted[0])


@router.post(
    "/points",
    response_model=list[schemas.IngestResult],
    responses=ERROR_RESPONSES,
    openapi_extra=_openapi_body("StreamPointList"),
)
async def post_many_streams(request: Request, monitor: MonitorDep) -> Response:
    """Learn points that name their streams: all of them, or none if one is invalid."""
    content, digest = await parse.read_json(request)
    parts = parse.group_by_stream(content)
    return json_response(await monitor.ingest(parts, parse.idempotency_key(request), digest))
