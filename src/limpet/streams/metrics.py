"""Counts of a run as Prometheus metrics, and the HTTP server that exposes them."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from limpet._optional import optional_import
from limpet.exceptions import InvalidInputError
from limpet.fleet import Fleet
from limpet.streams.runner import Runner

if TYPE_CHECKING:
    import threading
    from wsgiref.simple_server import WSGIServer

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LOOPBACK_HOST = "127.0.0.1"


def make_metric(
    kind: Literal["counter", "gauge"], name: str, help_text: str, value: float | Mapping[str, float], label: str = ""
) -> Metric:
    """Create a metric with one value, or with one value per value of a label.

    >>> alarms = make_metric("counter", "limpet_alarms_total", "Alarms.", {"change": 2}, label="kind")
    >>> print(format_metrics([alarms]).decode())
    # HELP limpet_alarms_total Alarms.
    # TYPE limpet_alarms_total counter
    limpet_alarms_total{kind="change"} 2.0
    <BLANKLINE>
    """
    core = _import_prometheus().core
    family = core.CounterMetricFamily if kind == "counter" else core.GaugeMetricFamily
    if not isinstance(value, Mapping):
        metric: Metric = family(name, help_text, value=value)
        return metric
    metric = family(name, help_text, labels=[label])
    for label_value, sample in value.items():
        metric.add_metric([label_value], sample)  # type: ignore[attr-defined]
    return metric


def collect_metrics(runner: Runner) -> list[Metric]:
    """Return the current metrics of a run."""
    stats, n_streams = runner.stats, len(runner.learner) if isinstance(runner.learner, Fleet) else 1
    alarms = {kind: stats.alarms[kind] for kind in ("change", "anomaly")}
    malformed, invalid = (dict(sorted(log.counts.items())) for log in (stats.malformed, stats.invalid))
    metrics = [
        make_metric("counter", "limpet_records_total", "Records read.", stats.records),
        make_metric("counter", "limpet_points_total", "Points processed.", stats.points),
        make_metric("counter", "limpet_rejected_points_total", "Points rejected as outliers.", stats.rejected),
        make_metric("counter", "limpet_anomalies_total", "Points that are anomalies.", stats.anomalies),
        make_metric("counter", "limpet_alarms_total", "Alarms.", alarms, label="kind"),
        make_metric("counter", "limpet_malformed_records_total", "Malformed records.", malformed, label="reason"),
        make_metric("counter", "limpet_invalid_points_total", "Invalid points.", invalid, label="reason"),
        make_metric("counter", "limpet_late_points_total", "Points skipped as late.", stats.late),
        make_metric("counter", "limpet_duplicate_points_total", "Points skipped as duplicates.", stats.duplicates),
        make_metric("counter", "limpet_checkpoints_total", "Checkpoints written.", stats.checkpoints),
        make_metric("gauge", "limpet_streams", "Streams.", n_streams),
    ]
    if runner.lag is not None:
        lag, unit = runner.lag
        metrics.append(make_metric("gauge", "limpet_source_lag", "Unread part of the source.", {unit: lag}, "unit"))
    if runner.committed_at is not None:
        help_text = "Unix time of the last checkpoint."
        metrics.append(make_metric("gauge", "limpet_last_checkpoint_timestamp_seconds", help_text, runner.committed_at))
    return metrics


def format_metrics(metrics: Iterable[Metric]) -> bytes:
    """Serialize metrics in the text format of Prometheus."""
    text: bytes = _import_prometheus().generate_latest(_make_registry(lambda: metrics))
    return text


class MetricsServer(NamedTuple):
    """A running HTTP server."""

    server: WSGIServer
    thread: threading.Thread

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self.server.server_port

    def close(self) -> None:
        """Stop the server and release the port."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def serve_metrics(address: str, collect: Callable[[], Iterable[Metric]]) -> MetricsServer:
    """Serve metrics at /metrics from a thread; each request calls `collect`.

    0.0.0.0:9464 is reachable from everywhere, a port alone from this machine; port 0 is any free port.
    """
    prometheus = _import_prometheus()
    host, port = parse_host_port(address)
    try:
        return MetricsServer(*prometheus.start_http_server(port, host, _make_registry(collect)))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InvalidInputError(f"address: must be a free port, got {host}:{port}, which is in use.") from None
        raise InvalidInputError(f"address: cannot serve at {host}:{port}: {error.strerror or error}.") from None


def parse_host_port(address: str) -> tuple[str, int]:
    """Split an address into host and port.

    >>> parse_host_port("localhost:9464"), parse_host_port("[::1]:9464"), parse_host_port("9464")
    (('localhost', 9464), ('::1', 9464), ('127.0.0.1', 9464))
    """
    match = re.fullmatch(r"(?:(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[^\s:/@\[\]]+)):)?(?P<port>[0-9]{1,5})", address)
    if match is None or int(match["port"]) > 65535:
        raise InvalidInputError(f"address: must be host:port such as {LOOPBACK_HOST}:9464, got {address!r}.")
    return match["six"] or match["host"] or LOOPBACK_HOST, int(match["port"])


def _make_registry(collect: Callable[[], Iterable[Metric]]) -> CollectorRegistry:
    class Collector:
        def collect(self) -> Iterable[Metric]:
            return collect()

    registry: CollectorRegistry = _import_prometheus().CollectorRegistry()
    registry.register(Collector())
    return registry


def _import_prometheus() -> Any:
    with optional_import("serving metrics", "metrics"):
        import prometheus_client
        import prometheus_client.core
    return prometheus_client
