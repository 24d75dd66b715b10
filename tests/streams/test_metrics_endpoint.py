"""Metrics as the official parser reads them, and the server that exposes them."""

from __future__ import annotations

import http.client
import math
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

import limpet as lp
from limpet.exceptions import InvalidInputError
from limpet.streams import BaseSource, Batch
from limpet.streams.metrics import CONTENT_TYPE, collect_metrics, format_metrics, make_metric, serve_metrics
from limpet.streams.runner import Runner
from limpet.streams.sinks.base import MultiSink

UNUSUAL_LABEL = 'a "quoted" \\ path\nand a line\\n, ü €'
METRICS: list[tuple[Any, str, str, Any]] = [
    ("counter", "limpet_records_total", "Records read,\nall \\ of them.", 12_345_678_901),
    ("counter", "limpet_malformed_records_total", "Malformed.", {"not JSON": 2, UNUSUAL_LABEL: 3}),
    ("gauge", "limpet_rate", "Records per second.", 0.1 + 0.2),
    ("gauge", "limpet_source_lag", "", {"bytes": math.nan, "records": math.inf, "": -math.inf}),
    ("gauge", "limpet_streams", "Streams.", {}),
]


def parse(text: bytes) -> dict[str, tuple[str, str, dict[str, float]]]:
    """Return type, help and samples by name; the official parser raises on anything outside the format."""
    families = {}
    for family in text_string_to_metric_families(text.decode()):
        samples = {next(iter(sample.labels.values()), ""): sample.value for sample in family.samples}
        assert len(samples) == len(family.samples)
        families[family.name] = family.type, family.documentation, samples
    return families


def test_official_parser_reads_the_metrics() -> None:
    result = parse(format_metrics([make_metric(*fields, label="of") for fields in METRICS]))
    for kind, name, help_text, values in METRICS:
        family = result.pop(name.removesuffix("_total"))
        assert family[:2] == (kind, help_text)
        expected = values if isinstance(values, Mapping) else {"": values}
        assert str(family[2]) == str({label: float(value) for label, value in expected.items()})  # NaN is NaN
    assert not result


def test_the_metrics_of_a_run() -> None:
    class Rows(BaseSource):
        def read(self, position: Any) -> Iterator[Batch]:
            yield Batch([1.0, math.nan, 2.0], position=3, lag=17, lag_unit="bytes")

    runner = Runner(Rows(), lp.SRA(gamma=4.0, rho=0.02), MultiSink([]))
    assert "limpet_source_lag" not in parse(format_metrics(collect_metrics(runner)))
    runner.run()
    result = parse(format_metrics(collect_metrics(runner)))
    assert result["limpet_points"][2] == {"": 3.0}
    assert b'limpet_source_lag{unit="bytes"} 17.0\n' in format_metrics(collect_metrics(runner))
    assert b'limpet_invalid_points_total{reason="no value"} 1.0\n' in format_metrics(collect_metrics(runner))
    assert result["limpet_alarms"][0] == "counter"


def request(port: int, path: str, method: str = "GET", host: str = "127.0.0.1") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    connection.request(method, path)
    response = connection.getresponse()
    result = response.status, response.headers.get("Content-Type", ""), response.read().decode()
    connection.close()
    return result


def test_each_request_gets_the_current_metrics(capfd: pytest.CaptureFixture[str]) -> None:
    count = iter(range(10))
    server = serve_metrics("127.0.0.1:0", lambda: [make_metric("counter", "n", "", next(count))])
    assert request(server.port, "/metrics")[:2] == (200, CONTENT_TYPE)
    assert request(server.port, "/metrics?x=1")[2].endswith("n_total 1.0\n")
    for method in ("POST", "PUT", "DELETE"):
        assert request(server.port, "/metrics", method)[0] == 405
    server.close()
    with pytest.raises(OSError):
        request(server.port, "/metrics")
    assert capfd.readouterr().err == ""


def test_the_server_survives_an_error() -> None:
    responses: Iterator[list[Metric] | None] = iter([None, [make_metric("gauge", "ok", "", 1)]])
    server = serve_metrics("0", lambda: next(responses))  # type: ignore[arg-type,return-value]
    assert request(server.port, "/metrics")[0] == 500
    assert request(server.port, "/metrics")[2].endswith("ok 1.0\n")
    server.close()


def test_invalid_addresses_raise() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with pytest.raises(InvalidInputError, match=f"address: .*127.0.0.1:{port}, which is in use"):
        serve_metrics(f"127.0.0.1:{port}", list)
    listener.close()
    serve_metrics(f"127.0.0.1:{port}", list).close()
    for address in ("", "here", ":9464", "127.0.0.1:99999", "127.0.0.1:x", "http://127.0.0.1:1", "a b:1"):
        with pytest.raises(InvalidInputError, match="address: must be host:port"):
            serve_metrics(address, list)
    for address in ("192.0.2.1:9464", "no-such-host.invalid:9464"):  # of no machine
        with pytest.raises(InvalidInputError, match=f"cannot serve at {address}: "):
            serve_metrics(address, list)
