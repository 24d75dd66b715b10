"""Streams: the list, one of them, its past."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from holdfast.errors import HoldfastError
from holdfast.server.api import schemas
from holdfast.server.api.answers import answer
from holdfast.server.live.board import Known
from holdfast.server.live.watching import Watching, watching
from holdfast.server.store.condensing import read_history
from holdfast.server.store.points import points_after

router = APIRouter(tags=["streams"])
Live = Annotated[Watching, Depends(watching)]
Row = Annotated[int, Query(ge=0, le=2**53)]
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": schemas.Error}}


@router.get("/streams", response_model=schemas.Streams)
def list_streams(
    live: Live,
    search: Annotated[str, Query(max_length=200, description="Part of a key.")] = "",
    sort: Literal["alarming", "name", "recent"] = "alarming",
    limit: Annotated[int, Query(ge=0, le=100_000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """All streams, those with open alarms first."""
    return answer(live.desk.board.listed(search, sort, offset, limit))


@router.get("/streams/{key:path}/points", response_model=schemas.Points, responses=NOT_FOUND)
def read_points(
    live: Live,
    key: str,
    after: Annotated[int, Query(ge=-1, le=2**53, description="The row before the first one wanted.")] = -1,
    limit: Annotated[int, Query(ge=1, le=50_000)] = 1000,
) -> Response:
    """Points as they came, with what they came to. Only the latest are kept in full; see history."""
    known = live.known(key)
    with live.store.reading() as connection:
        points = points_after(connection, known.entry.number, after, limit, known.entry.width)
    return answer(points.told())


@router.get("/streams/{key:path}/history", response_model=schemas.History, responses=NOT_FOUND)
def read_past(
    live: Live,
    key: str,
    first: Row = 0,
    last: Row = 2**53,
    buckets: Annotated[int, Query(ge=1, le=20_000, description="How many at most.")] = 2000,
) -> Response:
    """The whole past, old points in buckets, as a picture needs it."""
    known = live.known(key)
    with live.store.reading() as connection:
        found = read_history(connection, known.entry.number, known.entry.width, first, last)
    shown = found.at_most(buckets)
    condensed = bool(len(shown) and shown.counts.max() > 1)
    return answer({"first_row": known.first_row, "n_rows": known.n_points, "condensed": condensed, **shown.told()})


@router.get("/streams/{key:path}", response_model=schemas.Details, responses=NOT_FOUND)
async def read_stream(live: Live, key: str) -> Response:
    """One stream, and what has been learnt of it."""
    known = live.known(key)
    return answer(await live.do(lambda: {**known.told(live.desk.board.settled), **_learnt(live, known)}))


@router.delete("/streams/{key:path}", status_code=204, response_class=Response, responses=NOT_FOUND)
async def delete_stream(live: Live, key: str) -> Response:
    """Forgets a stream with all its points and alarms."""
    number = await live.do(lambda: live.desk.remove(key))
    live.hub.notify(number, {"event": "deleted", "data": {}})
    return Response(status_code=204)


def _learnt(live: Watching, known: Known) -> dict[str, Any]:
    """Estimates, and on autopilot what it says of itself."""
    nothing: dict[str, Any] = {"estimate": None, "summary": None, "calibration": None}
    learner = live.desk.fleets.of(known.entry.width, known.entry.number)
    if learner is None:
        return nothing
    try:
        found = {name: getattr(learner, name).tolist() for name in ("weights", "means", "covariances")}
    except HoldfastError:  # it has not started
        return nothing
    told = {**nothing, "estimate": found}
    if learner.started and learner._on_autopilot:
        told |= {"summary": learner.summary(), "calibration": learner.calibration()}
    return told
