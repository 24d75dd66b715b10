"""The counts of a run as metrics."""

from __future__ import annotations

import errno
import logging
import re
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from limpet.exceptions import InvalidInputError
from limpet.fleet import Fleet
from limpet.streams.runner import Runner

# Counters and gauges as Prometheus reads them, and a small server that tells them.

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METRICS_PATH = "/metrics"
LOOPBACK_HOST = "127.0.0.1"
METRIC_KINDS = ("counter", "gauge")
METRIC_NAME_PATTERN, LABEL_NAME_PATTERN = r"[a-zA-Z_:][a-zA-Z0-9_:]*", r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*"
log = logging.getLogger("limpet.streams")


class Metric(NamedTuple):
    """kind: "counter" or "gauge". about: a line of help. values: a number, or one for each set of labels."""

    kind: str
    help_text: str
    values: float | Sequence[tuple[Mapping[str, Any], float]]


def format_metrics(metrics: Mapping[str, Metric]) -> str:
    r"""The text format, version 0.0.4.

    >>> refused = Metric("counter", "Records that could not be read.", [({"reason": "not JSON"}, 2)])
    >>> print(exposition({"limpet_refused_total": refused, "limpet_lag_records": Metric("gauge", "Lag.", 17)}))
    # HELP limpet_refused_total Records that could not be read.
    # TYPE limpet_refused_total counter
    limpet_refused_total{reason="not JSON"} 2
    # HELP limpet_lag_records Lag.
    # TYPE limpet_lag_records gauge
    limpet_lag_records 17
    <BLANKLINE>
    """
    lines = []
    for name, (kind, help_text, values) in metrics.items():
        if not re.fullmatch(METRIC_NAME_PATTERN, name) or kind not in METRIC_KINDS:
            raise InvalidInputError(
                f"a metric is a counter or a gauge with a name of [a-zA-Z0-9_:], got {kind} {name!r}"
            )
        lines.append(f"# HELP {name} {_escape(help_text)}")
        lines.append(f"# TYPE {name} {kind}")
        samples: Sequence[tuple[Mapping[str, Any], float]] = values if isinstance(values, Sequence) else [({}, values)]
        sample_names = [f"{name}{_format_labels(labels)}" for labels, _ in samples]
        if len(set(sample_names)) < len(sample_names):
            raise InvalidInputError(f"metric {name!r}: each set of labels once, got {sample_names}")
        lines += [
            f"{sample_name} {_format_number(value)}"
            for sample_name, (_, value) in zip(sample_names, samples, strict=True)
        ]
    return "".join(f"{line}\n" for line in lines)


class MetricsServer:
    """A server that tells metrics until it is closed."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self.port: int = server.server_address[1]
        self._thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="limpet-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The port is free again."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serve_metrics(address: str, make_text: Callable[[], str]) -> MetricsServer:
    """Answers GET /metrics at this address, host:port, with the text of that moment; port 0 is any that is free.

    A port alone is one of this machine only; 0.0.0.0:9464 is reached from everywhere.
    """
    host, port = parse_host_port(address)
    try:
        family, _, _, _, socket_address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return MetricsServer(_make_server(family, (str(socket_address[0]), port), make_text))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InvalidInputError(
                f"the port {port} of {host} is in use: stop what uses it, or take another"
            ) from None
        raise InvalidInputError(f"metrics cannot be told at {host}:{port}: {error.strerror or error}") from None


def parse_host_port(address: str) -> tuple[str, int]:
    """An address as it is written.

    >>> host_and_port("localhost:9464"), host_and_port("[::1]:9464"), host_and_port("9464")
    (('localhost', 9464), ('::1', 9464), ('127.0.0.1', 9464))
    """
    match = re.fullmatch(r"(?:(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[^\s:/@\[\]]+)):)?(?P<port>[0-9]{1,5})", address)
    if match is None or int(match["port"]) > 65535:
        raise InvalidInputError(f"expected an address such as {LOOPBACK_HOST}:9464, got {address!r}")
    return match["six"] or match["host"] or LOOPBACK_HOST, int(match["port"])


def _make_server(family: int, socket_address: tuple[str, int], make_text: Callable[[], str]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10.0  # seconds for a request to come
        server_version, sys_version = "limpet", ""

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != METRICS_PATH:
                self.send_error(404)
                return
            try:
                body = make_text().encode("utf-8", "replace")
            except Exception:
                log.exception("the metrics could not be told")
                self.send_error(500)
                return
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def send_not_found(self) -> None:
            self.send_error(404)

        do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = send_not_found

        def log_message(self, format: str, *args: Any) -> None:  # the scrapes of every few seconds are no news
            pass

    class Server(ThreadingHTTPServer):
        address_family = family
        daemon_threads = True

        def server_bind(self) -> None:
            socketserver.TCPServer.server_bind(self)  # without asking for the name of this machine, which may take long
            self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

        def handle_error(self, request: Any, client_address: Any) -> None:  # those who hang up are no news, either
            pass

    return Server(socket_address, Handler)


def _format_labels(labels: Mapping[str, Any]) -> str:
    for name in labels:
        if not re.fullmatch(LABEL_NAME_PATTERN, name):
            raise InvalidInputError(f"a label has a name of [a-zA-Z0-9_], got {name!r}")
    pairs = (f'{name}="{_escape(str(value), quotes=True)}"' for name, value in sorted(labels.items()))
    return "{" + ",".join(pairs) + "}" if labels else ""


def _escape(text: str, quotes: bool = False) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.replace('"', '\\"') if quotes else escaped


def _format_number(value: float) -> str:
    """As Go reads it.

    >>> [_number(one) for one in (3, 3.0, 0.1, float("nan"), float("-inf"), 1e300)]
    ['3', '3', '0.1', 'NaN', '-Inf', '1e+300']
    """
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        return "NaN" if number != number else "+Inf" if number > 0 else "-Inf"
    return str(int(number)) if number == int(number) and abs(number) < 2.0**53 else repr(number)


def collect_metrics(runner: Runner) -> dict[str, Metric]:
    """What there is to tell of a run at this moment."""
    stats = runner.stats
    n_streams = len(runner.model) if isinstance(runner.model, Fleet) else 1
    metrics = {
        "limpet_records_total": Metric(
            "counter", "Records read, those that could not be used included.", stats.records
        ),
        "limpet_points_total": Metric("counter", "Points learnt or rejected.", stats.points),
        "limpet_dropped_total": Metric("counter", "Points rejected as outliers.", stats.dropped),
        "limpet_anomalies_total": Metric("counter", "Points that stand out.", stats.anomalies),
        "limpet_alarms_total": Metric(
            "counter", "Alarms.", [({"kind": kind}, stats.alarms[kind]) for kind in ("change", "anomaly")]
        ),
        "limpet_refused_total": Metric(
            "counter",
            "Records and points that could not be used.",
            [({"reason": reason}, count) for reason, count in sorted(stats.rejects.counts.items())],
        ),
        "limpet_late_total": Metric("counter", "Points older than the last one of their stream.", stats.late),
        "limpet_repeated_total": Metric("counter", "Points that repeat the last one of their stream.", stats.repeated),
        "limpet_checkpoints_total": Metric("counter", "Checkpoints written.", stats.checkpoints),
        "limpet_streams": Metric("gauge", "Streams that are being followed.", n_streams),
    }
    if runner.lag is not None:
        lag, unit = runner.lag
        metrics[f"limpet_lag_{unit}"] = Metric("gauge", f"What waits to be read, in {unit}.", lag)
    if runner.committed_at is not None:
        age = time.time() - runner.committed_at
        metrics["limpet_checkpoint_age_seconds"] = Metric("gauge", "Time since all was last made sure of.", age)
    return metrics
