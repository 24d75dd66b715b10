"""Streams: the list, one of them, its past."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from limpet.exceptions import LimpetError
from limpet.server import schemas
from limpet.server.db.history import read_history
from limpet.server.db.points import read_points_after
from limpet.server.ingest.stream_registry import StreamInfo
from limpet.server.monitor import Monitor, get_monitor
from limpet.server.responses import json_response

router = APIRouter(tags=["streams"])
MonitorDep = Annotated[Monitor, Depends(get_monitor)]
RowIndex = Annotated[int, Query(ge=0, le=2**53)]
NOT_FOUND_RESPONSE: dict[int | str, dict[str, Any]] = {404: {"model": schemas.Error}}


@router.get("/streams", response_model=schemas.Streams)
def list_streams(
    monitor: MonitorDep,
    search: Annotated[str, Query(max_length=200, description="Part of a key.")] = "",
    sort: Literal["alarming", "name", "recent"] = "alarming",
    limit: Annotated[int, Query(ge=0, le=100_000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """All streams, those with open alarms first."""
    return json_response(monitor.processor.registry.list_streams(search, sort, offset, limit))


@router.get("/streams/{key:path}/points", response_model=schemas.Points, responses=NOT_FOUND_RESPONSE)
def read_points(
    monitor: MonitorDep,
    key: str,
    after: Annotated[int, Query(ge=-1, le=2**53, description="The row before the first one wanted.")] = -1,
    limit: Annotated[int, Query(ge=1, le=50_000)] = 1000,
) -> Response:
    """Points as they came, with what they came to. Only the latest are kept in full; see history."""
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
    buckets: Annotated[int, Query(ge=1, le=20_000, description="How many at most.")] = 2000,
) -> Response:
    """The whole past, old points in buckets, as a picture needs it."""
    stream = monitor.get_stream(key)
    with monitor.store.read_connection() as connection:
        history = read_history(connection, stream.entry.id, stream.entry.width, first, last)
    reduced = history.reduce_to(buckets)
    condensed = bool(len(reduced) and reduced.counts.max() > 1)
    return json_response(
        {"first_row": stream.first_row, "n_rows": stream.n_points, "condensed": condensed, **reduced.to_api()}
    )


@router.get("/streams/{key:path}", response_model=schemas.Details, responses=NOT_FOUND_RESPONSE)
async def read_stream(monitor: MonitorDep, key: str) -> Response:
    """One stream, and what has been learnt of it."""
    stream = monitor.get_stream(key)
    return json_response(
        await monitor.run_on_writer(
            lambda: {
                **stream.to_api(monitor.processor.registry.n_settling_points),
                **_read_model_state(monitor, stream),
            }
        )
    )


@router.delete("/streams/{key:path}", status_code=204, response_class=Response, responses=NOT_FOUND_RESPONSE)
async def delete_stream(monitor: MonitorDep, key: str) -> Response:
    """Forgets a stream with all its points and alarms."""
    stream_id = await monitor.run_on_writer(lambda: monitor.processor.delete_stream(key))
    monitor.notifier.notify(stream_id, {"event": "deleted", "data": {}})
    return Response(status_code=204)


def _read_model_state(monitor: Monitor, stream: StreamInfo) -> dict[str, Any]:
    """Estimates, and on autopilot what it says of itself."""
    empty: dict[str, Any] = {"estimate": None, "summary": None, "calibration": None}
    learner = monitor.processor.models.get(stream.entry.width, stream.entry.id)
    if learner is None:
        return empty
    try:
        estimate = {name: getattr(learner, name).tolist() for name in ("weights", "means", "covariances")}
    except LimpetError:  # it has not started
        return empty
    result = {**empty, "estimate": estimate}
    if learner.started and learner._is_auto:
        result |= {"summary": learner.summary(), "calibration": learner.fitted_params()}
    return result
