"""Lean clients of a server on this machine: they share its cores, so they must cost little."""

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
    """A connection that is kept, for one request at a time."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._got = bytearray()

    def send(self, request: bytes) -> None:
        """The next request."""
        self._got.clear()
        self.socket.sendall(request)

    def received(self) -> bytes | None:
        """The body of the answer, once all of it is there; an error if it is not a success."""
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
            raise RuntimeError(f"the server answers {head[:30]!r} {body[:300]!r}")
        return body

    def ask(self, request: bytes) -> bytes:
        """Sends a request and waits for its answer."""
        self.send(request)
        while (body := self.received()) is None:
            pass
        return body


def post(path: str, body: str) -> bytes:
    """A request that posts JSON."""
    content = body.encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def get(path: str) -> bytes:
    """A request for something."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def settle(port: int) -> None:
    """Posts batches and single points one after another, so that all kernels are compiled when the last is answered."""
    line, batches = Line(port), _plain()
    for turn in range(2 * STREAMS):
        line.ask(batches(turn))
    for value in stream(200):
        line.ask(post("/streams/single%200/points", str(value)))
    line.socket.close()


@dataclass(frozen=True)
class Flood:
    """points that were answered with success, and seconds it took."""

    points: int
    seconds: float


def flood(port: int, seconds: float, connections: int, timed: bool, first: int = 0) -> Flood:
    """Posts batches to several streams, each connection the next one as soon as the last is answered.

    timed: each point with its time. first: of the batches of each stream, of which earlier ones were posted before.
    """
    batches = _timed() if timed else _plain()
    lines, turns = _lines(port, connections), [first * STREAMS + own for own in range(connections)]
    points, began = 0, time.perf_counter()
    with selectors.DefaultSelector() as ready:
        for own, line in enumerate(lines):  # connections take streams in turn, so that each stream has but one of them
            ready.register(line.socket, selectors.EVENT_READ, own)
            line.send(batches(turns[own]))
        open_ones = len(lines)
        while open_ones:
            for key, _ in ready.select():
                own = key.data
                if lines[own].received() is None:
                    continue
                points += BATCH
                turns[own] += connections
                if time.perf_counter() - began < seconds:
                    lines[own].send(batches(turns[own]))
                else:
                    ready.unregister(lines[own].socket)
                    open_ones -= 1
    taken = time.perf_counter() - began
    _close(lines)
    return Flood(points, taken)


def paced(port: int, a_second: float, seconds: float, connections: int) -> list[float]:
    """Posts single points, each at its due time; how many ms after that each was answered."""
    lines = _lines(port, connections)
    idle, due_at = deque(range(connections)), [0.0] * connections
    waiting, delays = deque[int](), list[float]()
    n, sent, began = int(a_second * seconds), 0, time.perf_counter()
    values = stream(n)
    with selectors.SelectSelector() as ready:  # which wakes up on time; others round to milliseconds
        for own, line in enumerate(lines):
            ready.register(line.socket, selectors.EVENT_READ, own)
        while len(delays) < n:
            now = time.perf_counter() - began
            while sent < n and sent / a_second <= now:
                waiting.append(sent)
                sent += 1
            while waiting and idle:
                nth, own = waiting.popleft(), idle.popleft()
                due_at[own] = began + nth / a_second
                lines[own].send(post(f"/streams/single%20{nth % STREAMS}/points", str(values[nth])))
            pause = max(0.0, began + sent / a_second - time.perf_counter()) if sent < n else None
            for key, _ in ready.select(pause):
                if lines[key.data].received() is not None:
                    delays.append((time.perf_counter() - due_at[key.data]) * 1e3)
                    idle.append(key.data)
    _close(lines)
    return delays


def create(port: int, streams: int, points: int) -> None:
    """Posts so many points to each of so many streams, 1,000 streams at once, and 10 points of each."""
    line, values = Line(port), stream(1000)
    for nth in range(0, points, 10):
        for first in range(0, streams, 1000):
            line.ask(post("/points", _of_many(range(first, min(first + 1000, streams)), range(nth, nth + 10), values)))
    line.socket.close()


def seconds_of_rounds(port: int, streams: int, rounds: int) -> list[float]:
    """Seconds until a post with a point of each of so many streams is answered, each time."""
    line, values, taken = Line(port), stream(1000), []
    for nth in range(rounds):
        request = post("/points", _of_many(range(streams), range(nth, nth + 1), values))
        began = time.perf_counter()
        line.ask(request)
        taken.append(time.perf_counter() - began)
    line.socket.close()
    return taken


def seconds_of(port: int, path: str, times: int, streams: int) -> list[float]:
    """Seconds until a list of streams is there, each time; an error if it has not that many."""
    line, taken = Line(port), []
    for _ in range(times):
        began = time.perf_counter()
        body = line.ask(get(path))
        taken.append(time.perf_counter() - began)
        if (found := len(json.loads(body)["streams"])) != streams:
            raise RuntimeError(f"the list has {found} streams, not {streams}")
    line.socket.close()
    return taken


def _plain() -> Request:
    """Batches of numbers, made beforehand."""
    texts = [str(value) for value in stream(100_000)]
    bodies = [f"[{','.join(texts[first : first + BATCH])}]" for first in range(0, len(texts), BATCH)]

    def batch(turn: int) -> bytes:
        own, nth = turn % STREAMS, turn // STREAMS
        return post(_path(own), bodies[(nth + 5 * own) % len(bodies)])

    return batch


def _timed() -> Request:
    """Batches of points with times, a millisecond apart."""
    texts = [f'{{"value":{value},"time":"' for value in stream(100_000)]

    def batch(turn: int) -> bytes:
        own, nth = turn % STREAMS, turn // STREAMS
        times = (FIRST + np.arange(nth * BATCH, (nth + 1) * BATCH)).astype(str).tolist()
        at = (nth + 5 * own) * BATCH % len(texts)
        points = zip(texts[at : at + BATCH], times, strict=True)
        return post(_path(own), "[" + ",".join(f'{text}{moment}Z"}}' for text, moment in points) + "]")

    return batch


def _of_many(numbers: range, places: range, values: list[float]) -> str:
    """Points of many streams, each with the name of its own."""
    points = [(number, values[(7 * number + place) % len(values)]) for place in places for number in numbers]
    return json.dumps([{"stream": f"sensor {number:05}", "value": value} for number, value in points])


def _path(own: int) -> str:
    return f"/streams/stream%20{own}/points"


def _lines(port: int, connections: int) -> list[Line]:
    return [Line(port) for _ in range(connections)]


def _close(lines: list[Line]) -> None:
    for line in lines:
        line.socket.close()
