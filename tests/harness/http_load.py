"""Load generators for a server on this machine, with low overhead, because they share its cores."""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from limpet_lab.bench.watch_crash import draw_levels

STREAMS, BATCH = 8, 1000
FIRST = np.datetime64("2026-01-01T00:00:00.000")
Request = Callable[[int], bytes]


class Connection:
    """A persistent connection with one request at a time."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()

    def send(self, request: bytes) -> None:
        """Send a request."""
        self._received.clear()
        self.socket.sendall(request)

    def receive(self) -> bytes | None:
        """Return the body of the response once it is complete; raise if the request failed."""
        piece = self.socket.recv(1 << 20)
        if not piece:
            raise ConnectionError("the server has closed the connection")
        self._received += piece
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._received[:end]).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(self._received) < end + 4 + length:
            return None
        body = bytes(self._received[end + 4 :])
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(f"unexpected response {head[:30]!r} {body[:300]!r}")
        return body

    def request(self, request: bytes) -> bytes:
        """Send a request and return the body of the response."""
        self.send(request)
        while (body := self.receive()) is None:
            pass
        return body


def post(path: str, body: str) -> bytes:
    """Return a request that posts JSON."""
    content = body.encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def get(path: str) -> bytes:
    """Return a GET request."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def warm_up(port: int) -> None:
    """Post batches and single points sequentially, so that all kernels are compiled."""
    connection, batches = Connection(port), _make_batch_requests()
    for index in range(2 * STREAMS):
        connection.request(batches(index))
    for value in draw_levels(200):
        connection.request(post("/streams/single%200/points", str(value)))
    connection.socket.close()


@dataclass(frozen=True)
class Flood:
    """Stored points, and the seconds it took."""

    points: int
    seconds: float


def flood(port: int, seconds: float, connections: int, timed: bool, first: int = 0) -> Flood:
    """Post batches to several streams over some connections, each the next one after the response to the last.

    With `timed`, points have times; `first` is the index of the first batch of each stream.
    """
    batches = _make_timed_batch_requests() if timed else _make_batch_requests()
    lines, batch_numbers = _connect(port, connections), [first * STREAMS + index for index in range(connections)]
    points, began = 0, time.perf_counter()
    with selectors.DefaultSelector() as ready:
        for index, line in enumerate(lines):  # each stream has one connection
            ready.register(line.socket, selectors.EVENT_READ, index)
            line.send(batches(batch_numbers[index]))
        n_open = len(lines)
        while n_open:
            for key, _ in ready.select():
                index = key.data
                if lines[index].receive() is None:
                    continue
                points += BATCH
                batch_numbers[index] += connections
                if time.perf_counter() - began < seconds:
                    lines[index].send(batches(batch_numbers[index]))
                else:
                    ready.unregister(lines[index].socket)
                    n_open -= 1
    durations = time.perf_counter() - began
    _close_all(lines)
    return Flood(points, durations)


def paced(port: int, rate: float, seconds: float, connections: int) -> list[float]:
    """Post single points, each at its due time; return the latency of each in ms from then."""
    lines = _connect(port, connections)
    idle, due_at = deque(range(connections)), [0.0] * connections
    waiting, delays = deque[int](), list[float]()
    n, sent, began = int(rate * seconds), 0, time.perf_counter()
    values = draw_levels(n)
    with selectors.SelectSelector() as ready:  # others round to milliseconds
        for index, line in enumerate(lines):
            ready.register(line.socket, selectors.EVENT_READ, index)
        while len(delays) < n:
            now = time.perf_counter() - began
            while sent < n and sent / rate <= now:
                waiting.append(sent)
                sent += 1
            while waiting and idle:
                nth, index = waiting.popleft(), idle.popleft()
                due_at[index] = began + nth / rate
                lines[index].send(post(f"/streams/single%20{nth % STREAMS}/points", str(values[nth])))
            pause = max(0.0, began + sent / rate - time.perf_counter()) if sent < n else None
            for key, _ in ready.select(pause):
                if lines[key.data].receive() is not None:
                    delays.append((time.perf_counter() - due_at[key.data]) * 1e3)
                    idle.append(key.data)
    _close_all(lines)
    return delays


def create(port: int, streams: int, points: int) -> None:
    """Post points of many streams, 10 points of 1,000 streams per request."""
    connection, values = Connection(port), draw_levels(1000)
    for nth in range(0, points, 10):
        for first in range(0, streams, 1000):
            connection.request(
                post(
                    "/points",
                    _many_streams_body(range(first, min(first + 1000, streams)), range(nth, nth + 10), values),
                )
            )
    connection.socket.close()


def time_rounds(port: int, streams: int, rounds: int) -> list[float]:
    """Return the seconds of each request with a point of every stream."""
    connection, values, durations = Connection(port), draw_levels(1000), []
    for nth in range(rounds):
        request = post("/points", _many_streams_body(range(streams), range(nth, nth + 1), values))
        began = time.perf_counter()
        connection.request(request)
        durations.append(time.perf_counter() - began)
    connection.socket.close()
    return durations


def time_list_requests(port: int, path: str, times: int, streams: int) -> list[float]:
    """Return the seconds of each request of the list of streams; raise if its length is unexpected."""
    connection, durations = Connection(port), []
    for _ in range(times):
        began = time.perf_counter()
        body = connection.request(get(path))
        durations.append(time.perf_counter() - began)
        if (n := len(json.loads(body)["streams"])) != streams:
            raise RuntimeError(f"expected {streams} streams in the list, got {n}")
    connection.socket.close()
    return durations


def _make_batch_requests() -> Request:
    """Return a function for batches of numbers."""
    strings = [str(value) for value in draw_levels(100_000)]
    bodies = [f"[{','.join(strings[first : first + BATCH])}]" for first in range(0, len(strings), BATCH)]

    def batch(batch_number: int) -> bytes:
        index, nth = batch_number % STREAMS, batch_number // STREAMS
        return post(_path(index), bodies[(nth + 5 * index) % len(bodies)])

    return batch


def _make_timed_batch_requests() -> Request:
    """Return a function for batches of points with times, a millisecond apart."""
    strings = [f'{{"value":{value},"time":"' for value in draw_levels(100_000)]

    def batch(batch_number: int) -> bytes:
        index, nth = batch_number % STREAMS, batch_number // STREAMS
        times = (FIRST + np.arange(nth * BATCH, (nth + 1) * BATCH)).astype(str).tolist()
        at = (nth + 5 * index) * BATCH % len(strings)
        points = zip(strings[at : at + BATCH], times, strict=True)
        return post(_path(index), "[" + ",".join(f'{text}{moment}Z"}}' for text, moment in points) + "]")

    return batch


def _many_streams_body(numbers: range, rows: range, values: list[float]) -> str:
    """Return a body with points of many streams."""
    points = [(number, values[(7 * number + row) % len(values)]) for row in rows for number in numbers]
    return json.dumps([{"stream": f"sensor {number:05}", "value": value} for number, value in points])


def _path(index: int) -> str:
    return f"/streams/stream%20{index}/points"


def _connect(port: int, connections: int) -> list[Connection]:
    return [Connection(port) for _ in range(connections)]


def _close_all(lines: list[Connection]) -> None:
    for line in lines:
        line.socket.close()
