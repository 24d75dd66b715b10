"""The server about itself."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from holdfast import __version__
from holdfast.server.api.answers import answer
from holdfast.server.live.watching import Watching, watching
from holdfast.streams.prometheus import CONTENT_TYPE, Metric, exposition

router = APIRouter(tags=["server"])
Live = Annotated[Watching, Depends(watching)]


@router.get("/health")
async def health() -> Response:
    """Whether the server is up."""
    return answer({"status": "ok", "version": __version__})


@router.get("/settings")
async def read_settings(live: Live) -> Response:
    """What the server was started with."""
    return answer(live.settings.told())


@router.get("/sources")
async def read_sources(live: Live) -> Response:
    """The sources that bring points in, and how they are doing."""
    return answer([feed.told() for feed in live.feeds])


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def read_metrics(live: Live) -> Response:
    """Counters and gauges, as Prometheus reads them."""
    return Response(exposition(metrics_of(live)), headers={"Content-Type": CONTENT_TYPE})


def metrics_of(live: Watching) -> dict[str, Metric]:
    """What there is to tell at this moment."""
    board = live.desk.board
    with board.lock:
        totals = board.totals()
        dropped, alarms = (sum(getattr(known, name) for known in board.all()) for name in ("n_dropped", "n_alarms"))
    return {
        "holdfast_points_total": Metric("counter", "Points learnt or rejected.", totals["n_points"]),
        "holdfast_dropped_total": Metric("counter", "Points rejected as outliers.", dropped),
        "holdfast_alarms_total": Metric("counter", "Alarms of the streams that are there.", alarms),
        "holdfast_streams": Metric("gauge", "Streams that are being followed.", totals["n_streams"]),
        "holdfast_alarming_streams": Metric("gauge", "Streams with open alarms.", totals["n_alarming"]),
        "holdfast_open_alarms": Metric("gauge", "Alarms that nobody has acknowledged.", totals["open_alarms"]),
        "holdfast_waiting_points": Metric("gauge", "Points that wait to be learnt.", live.keeper.n_waiting),
    }
