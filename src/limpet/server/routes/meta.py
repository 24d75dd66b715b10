"""Endpoints of the server: health, settings, sources, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.responses import Response

from limpet import __version__
from limpet.server.monitor import Monitor, MonitorDep
from limpet.server.responses import json_response
from limpet.streams.metrics import CONTENT_TYPE, format_metrics, make_metric

if TYPE_CHECKING:
    from prometheus_client.core import Metric

router = APIRouter(tags=["server"])


@router.get("/health")
async def health() -> Response:
    """Report that the server is up."""
    return json_response({"status": "ok", "version": __version__})


@router.get("/settings")
async def read_settings(monitor: MonitorDep) -> Response:
    """Return the configuration of the server."""
    return json_response(monitor.config.to_api())


@router.get("/sources")
async def read_sources(monitor: MonitorDep) -> Response:
    """Return the state of the sources."""
    return json_response([reader.to_api() for reader in monitor.readers])


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def read_metrics(monitor: MonitorDep) -> Response:
    """Return the metrics in the format of Prometheus."""
    return Response(format_metrics(collect_metrics(monitor)), headers={"Content-Type": CONTENT_TYPE})


def collect_metrics(monitor: Monitor) -> list[Metric]:
    """Return the current metrics of the server."""
    registry = monitor.processor.registry
    with registry.lock:
        totals, streams = registry.totals(), registry.streams()
        n_rejected = sum(stream.n_rejected for stream in streams)
        n_alarms = sum(stream.n_alarms for stream in streams)
    return [
        make_metric("counter", "limpet_points_total", "Points processed.", totals["n_points"]),
        make_metric("counter", "limpet_rejected_points_total", "Points rejected as outliers.", n_rejected),
        make_metric("counter", "limpet_alarms_total", "Alarms of all streams.", n_alarms),
        make_metric("gauge", "limpet_streams", "Streams.", totals["n_streams"]),
        make_metric("gauge", "limpet_alarming_streams", "Streams with open alarms.", totals["n_alarming"]),
        make_metric("gauge", "limpet_open_alarms", "Alarms not acknowledged.", totals["open_alarms"]),
        make_metric("gauge", "limpet_queued_points", "Points waiting to be processed.", monitor.writer.n_queued_points),
    ]
