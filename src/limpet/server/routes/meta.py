"""The server about itself."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from limpet import __version__
from limpet.server.monitor import Monitor, get_monitor
from limpet.server.responses import json_response
from limpet.streams.metrics import CONTENT_TYPE, Metric, format_metrics

router = APIRouter(tags=["server"])
MonitorDep = Annotated[Monitor, Depends(get_monitor)]


@router.get("/health")
async def health() -> Response:
    """Whether the server is up."""
    return json_response({"status": "ok", "version": __version__})


@router.get("/settings")
async def read_settings(monitor: MonitorDep) -> Response:
    """What the server was started with."""
    return json_response(monitor.config.to_api())


@router.get("/sources")
async def read_sources(monitor: MonitorDep) -> Response:
    """The sources that bring points in, and how they are doing."""
    return json_response([reader.told() for reader in monitor.readers])


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def read_metrics(monitor: MonitorDep) -> Response:
    """Counters and gauges, as Prometheus reads them."""
    return Response(format_metrics(collect_metrics(monitor)), headers={"Content-Type": CONTENT_TYPE})


def collect_metrics(monitor: Monitor) -> dict[str, Metric]:
    """What there is to tell at this moment."""
    registry = monitor.processor.registry
    with registry.lock:
        totals = registry.totals()
        n_rejected, n_alarms = (
            sum(getattr(stream, name) for stream in registry.iter_streams()) for name in ("n_rejected", "n_alarms")
        )
    return {
        "limpet_points_total": Metric("counter", "Points learnt or rejected.", totals["n_points"]),
        "limpet_dropped_total": Metric("counter", "Points rejected as outliers.", n_rejected),
        "limpet_alarms_total": Metric("counter", "Alarms of the streams that are there.", n_alarms),
        "limpet_streams": Metric("gauge", "Streams that are being followed.", totals["n_streams"]),
        "limpet_alarming_streams": Metric("gauge", "Streams with open alarms.", totals["n_alarming"]),
        "limpet_open_alarms": Metric("gauge", "Alarms that nobody has acknowledged.", totals["open_alarms"]),
        "limpet_waiting_points": Metric("gauge", "Points that wait to be learnt.", monitor.writer.n_queued_points),
    }
