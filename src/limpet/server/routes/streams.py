"""Endpoints of streams: list, details, points, history."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response

from limpet.exceptions import LimpetError
from limpet.learners import Detector
from limpet.server import schemas
from limpet.server.db.history import read_history
from limpet.server.db.points import read_points_after
from limpet.server.ingest.stream_state import StreamInfo
from limpet.server.monitor import Monitor, MonitorDep
from limpet.server.responses import json_response

router = APIRouter(tags=["streams"])
RowIndex = Annotated[int, Query(ge=0, le=2**53)]
NOT_FOUND_RESPONSE = schemas.document_errors(404)


@router.get("/streams", response_model=schemas.StreamPage)
def list_streams(
    monitor: MonitorDep,
    search: Annotated[str, Query(max_length=schemas.MAX_KEY_CHARS, description="Part of a key.")] = "",
    sort: Literal["alarming", "name", "recent"] = "alarming",
    limit: Annotated[int, Query(ge=0, le=100_000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """List streams, by default those with open alarms first."""
    return json_response(monitor.processor.registry.list_streams(search, sort, offset, limit))


@router.get("/streams/{key:path}/points", response_model=schemas.PointColumns, responses=NOT_FOUND_RESPONSE)
def read_points(
    monitor: MonitorDep,
    key: str,
    after: Annotated[int, Query(ge=-1, le=2**53, description="The row before the first one to return.")] = -1,
    limit: Annotated[int, Query(ge=1, le=50_000)] = 1000,
) -> Response:
    """Return the latest points with their results; older ones are in the history."""
    stream = monitor.get_stream(key)
    with monitor.store.read_connection() as connection:
        points = read_points_after(connection, stream.entry.id, after, limit, stream.entry.width)
    return json_response(points.to_api())


@router.get("/streams/{key:path}/history", response_model=schemas.History, responses=NOT_FOUND_RESPONSE)
def read_stream_history(
    monitor: MonitorDep,
    key: str,
    first: RowIndex = 0,
    last: RowIndex = 2**53,
    buckets: Annotated[int, Query(ge=1, le=20_000, description="The largest number of buckets.")] = 2000,
) -> Response:
    """Return the history of a stream, old points in buckets."""
    stream = monitor.get_stream(key)
    with monitor.store.read_connection() as connection:
        history = read_history(connection, stream.entry.id, stream.entry.width, first, last)
    reduced = history.reduce_to(buckets)
    is_downsampled = bool(len(reduced) and reduced.counts.max() > 1)
    header = {"first_row": stream.first_row, "n_rows": stream.n_points, "is_downsampled": is_downsampled}
    return json_response(header | reduced.to_api())


@router.get("/streams/{key:path}", response_model=schemas.StreamDetails, responses=NOT_FOUND_RESPONSE)
async def read_stream(monitor: MonitorDep, key: str) -> Response:
    """Return a stream with the state of its learner."""
    stream = monitor.get_stream(key)
    return json_response(await monitor.run_on_writer(lambda: _describe_stream(monitor, stream)))


@router.delete("/streams/{key:path}", status_code=204, response_class=Response, responses=NOT_FOUND_RESPONSE)
async def delete_stream(monitor: MonitorDep, key: str) -> Response:
    """Delete a stream with all its points and alarms."""
    stream_id = await monitor.run_on_writer(lambda: monitor.processor.delete_stream(key))
    monitor.notifier.notify(stream_id, {"event": "deleted", "data": {}})
    return Response(status_code=204)


def _describe_stream(monitor: Monitor, stream: StreamInfo) -> dict[str, Any]:
    """Return a stream's summary and estimates, and an automatic learner's summary."""
    content = stream.to_api(monitor.processor.registry.n_warmup_points)
    content |= {"estimate": None, "summary": None, "fitted_params": None}
    learner = monitor.processor.learners.get(stream.entry.width, stream.entry.id)
    with suppress(LimpetError):  # not initialized yet
        names = ("weights", "means", "covariances")
        content["estimate"] = learner and {name: getattr(learner, name).tolist() for name in names}
    if content["estimate"] and isinstance(learner, Detector) and learner.started:
        content |= {"summary": learner.summary(), "fitted_params": learner.fitted_params()}
    return content
