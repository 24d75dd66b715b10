"""Metrics in Prometheus' text format, read by a parser that is as strict as its specification; and their server."""

from __future__ import annotations

import http.client
import math
import re
import socket
from typing import Any

import pytest

from limpet.exceptions import InvalidInputError
from limpet.streams.metrics import CONTENT_TYPE, Metric, format_metrics, serve_metrics

ODD = 'a "quoted" \\ path\nand a line\\n, ü €'
METRICS = {
    "limpet_records_total": Metric("counter", "Records read,\nall \\ of them.", 12_345_678_901),
    "limpet_refused_total": Metric("counter", "Refused.", [({"reason": "not JSON"}, 2), ({"reason": ODD, "b": 1}, 3)]),
    "limpet_rate": Metric("gauge", "Records a second.", 0.1 + 0.2),
    "limpet_lag": Metric("gauge", "", [({"in": "bytes"}, math.nan), ({"in": "records"}, math.inf), ({}, -math.inf)]),
    "limpet_streams": Metric("gauge", "Streams.", []),
}


def unescaped(text: str) -> str:
    assert not re.search(r"(?<!\\)(?:\\\\)*\\[^\\n\"]", text)
    return re.sub(r'\\([\\n"])', lambda found: "\n" if found[1] == "n" else found[1], text)


def parsed(text: str) -> dict[str, tuple[str, str, dict[Any, float]]]:
    """By name: type, help, and the values by their labels. Anything that the format has no place for is an error."""
    assert text.endswith("\n")
    families: dict[str, tuple[str, str, dict[Any, float]]] = {}
    lines = text[:-1].split("\n")
    while lines:
        about = re.fullmatch(r"# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)", lines.pop(0))
        assert about is not None
        kind = re.fullmatch(rf"# TYPE {about[1]} (counter|gauge)", lines.pop(0))
        assert kind is not None
        assert about[1] not in families
        values: dict[Any, float] = {}
        while lines and not lines[0].startswith("#"):
            pair = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\[\\n"])*"'
            sample = re.fullmatch(rf"{about[1]}(?:\{{({pair}(?:,{pair})*)\}})? (\S+)", lines.pop(0))
            assert sample is not None
            labels = re.findall(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"', sample[1] or "")
            key = frozenset((name, unescaped(value)) for name, value in labels)
            assert key not in values
            values[key] = float(sample[2])
        families[about[1]] = kind[1], unescaped(about[2]), values
    return families


def test_what_is_told_is_what_was_meant() -> None:
    found = parsed(format_metrics(METRICS))
    assert list(found) == list(METRICS)
    for name, (kind, about, values) in METRICS.items():
        assert found[name][:2] == (kind, about)
        meant = values if isinstance(values, list) else [({}, values)]
        for labels, value in meant:
            told = found[name][2].pop(frozenset((label, str(one)) for label, one in labels.items()))
            assert told == value or (math.isnan(told) and math.isnan(value))
        assert not found[name][2]


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("1st", Metric("gauge", "", 1)),
        ("a-b", Metric("gauge", "", 1)),
        ("a", Metric("histogram", "", 1)),
        ("a", Metric("gauge", "", [({"1": "x"}, 1)])),
        ("a", Metric("gauge", "", [({"__name__": "x"}, 1)])),
        ("a", Metric("gauge", "", [({"x": 1}, 1), ({"x": "1"}, 2)])),
    ],
)
def test_what_has_no_place_in_the_format(name: str, metric: Metric) -> None:
    with pytest.raises(InvalidInputError):
        format_metrics({name: metric})


def asked(port: int, path: str, method: str = "GET", host: str = "127.0.0.1") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    connection.request(method, path)
    answer = connection.getresponse()
    told = answer.status, answer.headers.get("Content-Type", ""), answer.read().decode()
    connection.close()
    return told


def test_a_server_tells_the_metrics_of_the_moment(capfd: pytest.CaptureFixture[str]) -> None:
    count = iter(range(10))
    serving = serve_metrics("127.0.0.1:0", lambda: format_metrics({"n": Metric("counter", "", next(count))}))
    assert asked(serving.port, "/metrics")[:2] == (200, CONTENT_TYPE)
    assert asked(serving.port, "/metrics?x=1")[2].endswith("n 1\n")
    for method, path in [("GET", "/"), ("GET", "/metrics/x"), ("POST", "/metrics"), ("HEAD", "/metrics")]:
        assert asked(serving.port, path, method)[0] == 404
    serving.close()
    with pytest.raises(OSError):
        asked(serving.port, "/metrics")
    assert capfd.readouterr().err == ""


def test_a_failure_is_told_and_does_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    answers = iter([None, "ok 1\n"])
    serving = serve_metrics("0", lambda: next(answers))  # type: ignore[arg-type,return-value]
    assert asked(serving.port, "/metrics")[0] == 500
    assert "could not be told" in caplog.text
    assert asked(serving.port, "/metrics")[2] == "ok 1\n"
    serving.close()


def test_addresses() -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    with pytest.raises(InvalidInputError, match=f"the port {port} of 127.0.0.1 is in use: "):
        serve_metrics(f"127.0.0.1:{port}", str)
    taken.close()
    serve_metrics(f"127.0.0.1:{port}", str).close()
    for address in ("", "here", ":9464", "127.0.0.1:99999", "127.0.0.1:x", "http://127.0.0.1:1", "a b:1"):
        with pytest.raises(InvalidInputError, match="expected an address such as"):
            serve_metrics(address, str)
    with pytest.raises(InvalidInputError, match=r"cannot be told at 192\.0\.2\.1:9464: "):
        serve_metrics("192.0.2.1:9464", str)  # of no machine
    with pytest.raises(InvalidInputError, match="cannot be told at no-such-host"):
        serve_metrics("no-such-host.invalid:9464", str)
