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

from limpet_lab.bench.watch_crash import stream

STREAMS, BATCH = 8, 1000
FIRST = np.datetime64("2026-01-01T00:00:00.000")
Request = Callable[[int], bytes]


class Line:
    """A persistent connection with one request at a time."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._got = bytearray()

    def send(self, request: bytes) -> None:
        """Send a request."""
        self._got.clear()
        self.socket.sendall(request)

    def received(self) -> bytes | None:
        """Return the body of the response once it is complete; raise if the request failed."""
        piece = self.socket.recv(1 << 20)
        if not piece:
            raise ConnectionError("the server has closed the connection")
        self._got += piece
        end = self._got.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._got[:end]).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(self._got) < end + 4 + length:
            return None
        body = bytes(self._got[end + 4 :])
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(f"unexpected response {head[:30]!r} {body[:300]!r}")
        return body

    def request(self, request: bytes) -> bytes:
        """Send a request and return the body of the response."""
        self.send(request)
        while (body := self.received()) is None:
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


def settle(port: int) -> None:
    """Post batches and single points sequentially, so that all kernels are compiled."""
    line, batches = Line(port), _plain()
    for index in range(2 * STREAMS):
        line.request(batches(index))
    for value in stream(200):
        line.request(post("/streams/single%200/points", str(value)))
    line.socket.close()


@dataclass(frozen=True)
class Flood:
    """Stored points, and the seconds it took."""

    points: int
    seconds: float


def flood(port: int, seconds: float, connections: int, timed: bool, first: int = 0) -> Flood:
    """Post batches to several streams over some connections, each the next one after the response to the last.

    With `timed`, points have times; `first` is the index of the first batch of each stream.
    """
    batches = _timed() if timed else _plain()
    lines, batch_numbers = _lines(port, connections), [first * STREAMS + index for index in range(connections)]
    points, began = 0, time.perf_counter()
    with selectors.DefaultSelector() as ready:
        for index, line in enumerate(lines):  # each stream has one connection
            ready.register(line.socket, selectors.EVENT_READ, index)
            line.send(batches(batch_numbers[index]))
        open_ones = len(lines)
        while open_ones:
            for key, _ in ready.select():
                index = key.data
                if lines[index].received() is None:
                    continue
                points += BATCH
                batch_numbers[index] += connections
                if time.perf_counter() - began < seconds:
                    lines[index].send(batches(batch_numbers[index]))
                else:
                    ready.unregister(lines[index].socket)
                    open_ones -= 1
    durations = time.perf_counter() - began
    _close(lines)
    return Flood(points, durations)


def paced(port: int, a_second: float, seconds: float, connections: int) -> list[float]:
    """Post single points, each at its due time; return the latency of each in ms from then."""
    lines = _lines(port, connections)
    idle, due_at = deque(range(connections)), [0.0] * connections
    waiting, delays = deque[int](), list[float]()
    n, sent, began = int(a_second * seconds), 0, time.perf_counter()
    values = stream(n)
    with selectors.SelectSelector() as ready:  # others round to milliseconds
        for index, line in enumerate(lines):
            ready.register(line.socket, selectors.EVENT_READ, index)
        while len(delays) < n:
            now = time.perf_counter() - began
            while sent < n and sent / a_second <= now:
                waiting.append(sent)
                sent += 1
            while waiting and idle:
                nth, index = waiting.popleft(), idle.popleft()
                due_at[index] = began + nth / a_second
                lines[index].send(post(f"/streams/single%20{nth % STREAMS}/points", str(values[nth])))
            pause = max(0.0, began + sent / a_second - time.perf_counter()) if sent < n else None
            for key, _ in ready.select(pause):
                if lines[key.data].received() is not None:
                    delays.append((time.perf_counter() - due_at[key.data]) * 1e3)
                    idle.append(key.data)
    _close(lines)
    return delays


def create(port: int, streams: int, points: int) -> None:
    """Post points of many streams, 10 points of 1,000 streams per request."""
    line, values = Line(port), stream(1000)
    for nth in range(0, points, 10):
        for first in range(0, streams, 1000):
            line.request(
                post(
                    "/points",
                    _many_streams_body(range(first, min(first + 1000, streams)), range(nth, nth + 10), values),
                )
            )
    line.socket.close()


def seconds_of_rounds(port: int, streams: int, rounds: int) -> list[float]:
    """Return the seconds of each request with a point of every stream."""
    line, values, durations = Line(port), stream(1000), []
    for nth in range(rounds):
        request = post("/points", _many_streams_body(range(streams), range(nth, nth + 1), values))
        began = time.perf_counter()
        line.request(request)
        durations.append(time.perf_counter() - began)
    line.socket.close()
    return durations


def seconds_of(port: int, path: str, times: int, streams: int) -> list[float]:
    """Return the seconds of each request of the list of streams; raise if its length is unexpected."""
    line, durations = Line(port), []
    for _ in range(times):
        began = time.perf_counter()
        body = line.request(get(path))
        durations.append(time.perf_counter() - began)
        if (n := len(json.loads(body)["streams"])) != streams:
            raise RuntimeError(f"expected {streams} streams in the list, got {n}")
    line.socket.close()
    return durations


def _plain() -> Request:
    """Return a function for batches of numbers."""
    strings = [str(value) for value in stream(100_000)]
    bodies = [f"[{','.join(strings[first : first + BATCH])}]" for first in range(0, len(strings), BATCH)]

    def batch(batch_number: int) -> bytes:
        index, nth = batch_number % STREAMS, batch_number // STREAMS
        return post(_path(index), bodies[(nth + 5 * index) % len(bodies)])

    return batch


def _timed() -> Request:
    """Return a function for batches of points with times, a millisecond apart."""
    strings = [f'{{"value":{value},"time":"' for value in stream(100_000)]

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


def _lines(port: int, connections: int) -> list[Line]:
    return [Line(port) for _ in range(connections)]


def _close(lines: list[Line]) -> None:
    for line in lines:
        line.socket.close()
