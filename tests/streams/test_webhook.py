"""Alarms are POSTed to a real server, which fails, stops and starts again."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

import limpet as lp
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError
from limpet.learners.results import Trace
from limpet.streams.batch import Batch
from limpet.streams.results import ALARM_COLUMNS, BatchResult
from limpet.streams.sinks import webhook
from limpet.streams.sinks.webhook import WebhookSink

RETRY_DELAYS = (0.02, 0.1)


class Receiver:
    """A server that responds with `statuses`, then 200; it stores the bodies."""

    def __init__(self, port: int = 0) -> None:
        self.statuses: list[tuple[int, dict[str, str]]] = []
        self.bodies: list[dict[str, Any]] = []
        self.requests: list[tuple[float, str, str, dict[str, str]]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((time.monotonic(), self.path, self.command, dict(self.headers)))
                status, headers = receiver.statuses.pop(0) if receiver.statuses else (200, {})
                if status == 200:
                    receiver.bodies.append(json.loads(body))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port: int = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def ids(self) -> list[str]:
        return [alarm["id"] for post in self.bodies for alarm in post["alarms"]]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("no_proxy", "*")
    receiver = Receiver()
    yield receiver
    receiver.close()


def results(n: int, first: int = 0) -> BatchResult:
    """n points, each of which raises an alarm."""
    alarms = [Alarm("anomaly", first + i, first + i, 5.0, "up", ("a",), 1e-5) for i in range(n)]
    trace = Trace(np.zeros(n), np.zeros(n, np.int8), alarms=alarms, first_row=first)
    return BatchResult(Batch(np.zeros(n), first + n, ("a",)), trace, first, first, first, "run")


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("not done within ten seconds")


def make_ids(first: int, end: int) -> list[str]:
    return [f"run-{i}" for i in range(first, end)]


def test_alarms_are_posted_as_json_in_order(receiver: Receiver) -> None:
    sink = WebhookSink(f"http://me:p%40ss@127.0.0.1:{receiver.port}/hook?x=1")
    sink.truncate_to(None)
    y = np.random.default_rng(0).normal(size=3000)
    y[1500:] += 8
    model = lp.Detector()
    first = 0
    rows: list[dict[str, Any]] = []
    for begin in range(0, 3000, 1000):
        part = y[begin : begin + 1000]
        when = np.arange(begin, begin + 1000).astype("datetime64[s]")
        results_of_part = BatchResult(
            Batch(part, times=when, names=("a",)), model.process(part), begin, begin, first, "r"
        )
        first += len(results_of_part.alarms)
        rows += results_of_part.alarm_records()
        sink.write(results_of_part)
    sink.close()
    assert rows
    assert [alarm for post in receiver.bodies for alarm in post["alarms"]] == [
        {"id": f"r-{i}", **row} for i, row in enumerate(rows)
    ]
    assert {post["run"] for post in receiver.bodies} == {"r"}
    assert set(receiver.bodies[0]["alarms"][0]) == {"id", *ALARM_COLUMNS}
    _, path, _, headers = receiver.requests[0]
    assert path == "/hook?x=1"
    assert headers["Authorization"] == "Basic bWU6cEBzcw=="
    assert headers["Content-Type"] == "application/json"
    assert sink.n_delivered == len(rows)
    offset = sink.flush()
    assert offset["undelivered"] == []
    assert "pss" not in str(offset)
    assert "p@ss" not in str(offset)
    assert "x=1" not in str(offset)


def test_pending_alarms_are_posted_in_batches(receiver: Receiver) -> None:
    sink = WebhookSink(f"http://127.0.0.1:{receiver.port}", retry_delays=RETRY_DELAYS)
    sink.write(results(250))
    sink.close()
    assert [len(post["alarms"]) for post in receiver.bodies] == [100, 100, 50]
    assert receiver.ids == make_ids(0, 250)


def test_retries_have_the_same_key(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)  # of httpx, too
    receiver.statuses = [(500, {}), (503, {}), (408, {}), (429, {})]
    sink = WebhookSink(f"http://127.0.0.1:{receiver.port}/secret", retry_delays=RETRY_DELAYS)
    sink.write(results(3))
    wait_until(lambda: len(receiver.bodies) == 1)
    sink.write(results(3, 3))
    sink.close()
    assert receiver.ids == make_ids(0, 6)
    keys = [headers["Idempotency-Key"] for *_, headers in receiver.requests]
    assert len(set(keys[:5])) == 1
    assert keys[5] not in keys[:5]
    warning, info = caplog.records
    assert (warning.levelname, info.levelname) == ("WARNING", "INFO")
    assert "is down (status 500): 3 alarms are queued" in warning.getMessage()
    assert "is back" in info.getMessage()
    assert "secret" not in caplog.text


def test_delays_between_retries_increase(receiver: Receiver) -> None:
    receiver.statuses = [(500, {})] * 4
    sink = WebhookSink(f"http://127.0.0.1:{receiver.port}", retry_delays=(0.1, 0.4))
    sink.write(results(1))
    wait_until(lambda: len(receiver.requests) == 5)
    sink.close()
    pauses = np.diff([moment for moment, *_ in receiver.requests])
    assert (pauses >= [0.05, 0.1, 0.2, 0.2]).all()


def test_retry_after_is_respected(receiver: Receiver) -> None:
    receiver.statuses = [(429, {"Retry-After": "1"})]
    sink = WebhookSink(f"http://127.0.0.1:{receiver.port}", retry_delays=RETRY_DELAYS)
    sink.write(results(1))
    wait_until(lambda: len(receiver.requests) == 2)
    assert receiver.requests[1][0] - receiver.requests[0][0] >= 1.0
    sink.close()


def test_a_permanent_failure_is_not_retried(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    receiver.statuses = [(400, {}), (200, {}), (301, {"Location": "/other"}), (302, {"Location": "/other"})]
    sink = WebhookSink(f"http://127.0.0.1:{receiver.port}", retry_delays=RETRY_DELAYS)
    for i in range(5):
        sink.write(results(2, 2 * i))
        wait_until(lambda: not sink.flush()["undelivered"])
    sink.close()
    assert receiver.ids == ["run-2", "run-3", "run-8", "run-9"]
    assert (sink.n_delivered, sink.n_failed) == (4, 6)
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 3
    assert "refused 2 alarms: status 400" in caplog.text
    assert {path for _, path, *_ in receiver.requests} == {"/"}


def test_redirects_that_keep_the_post_are_followed(receiver: Receiver) -> None:
    elsewhere = Receiver()
    receiver.statuses = [(307, {"Location": "/there"}), (200, {}), (308, {"Location": "/there"}), (200, {})]
    sink = WebhookSink(f"http://me:pass@127.0.0.1:{receiver.port}", retry_delays=RETRY_DELAYS)
    sink.write(results(1))
    wait_until(lambda: sink.n_delivered == 1)
    sink.write(results(1, 1))
    wait_until(lambda: sink.n_delivered == 2)
    assert receiver.ids == make_ids(0, 2)
    assert [(path, command) for _, path, command, _ in receiver.requests] == [("/", "POST"), ("/there", "POST")] * 2
    assert len({headers["Authorization"] for *_, headers in receiver.requests}) == 1
    receiver.statuses = [(307, {"Location": f"http://127.0.0.1:{elsewhere.port}/"})]
    sink.write(results(1, 2))
    wait_until(lambda: sink.n_failed == 1)
    assert not elsewhere.requests
    sink.close()
    elsewhere.close()


def test_endpoint_that_restarts_gets_queued_alarms(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "limpet.streams")
    sink = WebhookSink(f"http://me:geheim@127.0.0.1:{receiver.port}", retry_delays=RETRY_DELAYS)
    sink.write(results(1))
    wait_until(lambda: sink.n_delivered == 1)
    receiver.close()
    for i in range(1, 40):
        sink.write(results(1, i))  # the stream does not wait
    wait_until(lambda: len(caplog.records) > 0)
    again = Receiver(receiver.port)
    sink.close()
    again.close()
    assert again.ids == make_ids(1, 40)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "geheim" not in caplog.text


def test_endpoint_that_never_responds(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sink = WebhookSink(
            f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1, retry_delays=RETRY_DELAYS, drain_timeout=0.1
        )
        sink.write(results(2))
        wait_until(lambda: "is down (timed out): 2 alarms are queued" in caplog.text)
        sink.close()
    assert len(sink.flush()["undelivered"]) == 2


def test_undelivered_alarms_are_posted_after_a_restart(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    port = receiver.port
    receiver.close()
    sink = WebhookSink(f"http://127.0.0.1:{port}", retry_delays=RETRY_DELAYS, drain_timeout=0.05)
    sink.write(results(5))
    offset = json.loads(json.dumps(sink.flush(), sort_keys=True))  # as a checkpoint writes it
    sink.write(results(2, 5))  # after the checkpoint: written again after the restart
    sink.close()
    assert "7 alarms are undelivered" in caplog.text
    assert len(sink.flush()["undelivered"]) == 7
    restarted = Receiver(port)
    resumed = WebhookSink(f"http://127.0.0.1:{port}", retry_delays=RETRY_DELAYS)
    resumed.truncate_to(offset)
    resumed.write(results(2, 5))
    resumed.close()
    restarted.close()
    assert restarted.ids == make_ids(0, 7)


def test_the_same_post_has_the_same_key_after_a_restart(receiver: Receiver) -> None:
    receiver.statuses = [(503, {})] * 2
    sink, resumed = (WebhookSink(f"http://127.0.0.1:{receiver.port}", retry_delays=RETRY_DELAYS) for _ in range(2))
    sink.write(results(5))
    offset = json.loads(json.dumps(sink.flush(), sort_keys=True))  # as a checkpoint writes it
    sink.close()
    resumed.truncate_to(offset)
    resumed.close()
    assert len(receiver.requests) >= 3
    assert len({headers["Idempotency-Key"] for *_, headers in receiver.requests}) == 1


def test_write_blocks_while_the_outbox_is_full(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "MAX_QUEUED_ALARMS", 10)
    receiver.statuses = [(503, {})] * 10_000
    sink = WebhookSink(f"http://127.0.0.1:{receiver.port}", retry_delays=RETRY_DELAYS, drain_timeout=0.0)
    sink.write(results(12))
    waiting = threading.Thread(target=sink.write, args=(results(3, 12),), daemon=True)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    assert len(sink.flush()["undelivered"]) == 12
    receiver.statuses.clear()
    waiting.join(5)
    assert not waiting.is_alive()
    wait_until(lambda: receiver.ids == make_ids(0, 15) and not sink.undelivered)
    receiver.statuses = [(503, {})] * 10_000
    sink.write(results(12, 15))
    sink.stop_waiting()
    sink.write(results(1, 27))  # does not wait any more
    assert len(sink.flush()["undelivered"]) == 13
    sink.close()


@pytest.mark.parametrize(
    "url",
    ["ftp://me:secret@host", "http://", "me:secret@host", "http://me:se/secret@host:x", "http://[::1", "http://a b"],
)
def test_invalid_url_raises(url: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^url: ") as error:
        WebhookSink(url)
    assert "secret" not in str(error.value)
