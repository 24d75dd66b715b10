"""Streams to look at: made up, live, with outliers and changes now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np

from holdfast.scheme.state import Vector
from holdfast.server.errors import Refused
from holdfast.server.live.posts import Part, Post
from holdfast.server.live.watching import Watching

PAST = 900  # points that are there in the beginning
APART = 0.5  # seconds between points
OUTLIERS = 0.0005  # share of points
SHIFTS = 1 / 3000  # share of points after which the level is another one
LEVELS = {
    "boiler/pressure": (6.2, 0.05),
    "boiler/temperature": (184.0, 0.8),
    "pump 1/flow": (41.0, 0.6),
    "pump 1/vibration": (0.32, 0.03),
    "pump 2/flow": (39.5, 0.6),
    "pump 2/vibration": (0.28, 0.03),
    "tank/level": (2.75, 0.02),
    "turbine/speed": (3000.0, 4.0),
    "web/latency ms": (120.0, 9.0),
    "web/requests": (850.0, 30.0),
}


class Demo:
    """A plant that does not exist: one point of every stream, again and again."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._levels = np.array([level for level, _ in LEVELS.values()])
        self._spreads = np.array([spread for _, spread in LEVELS.values()])

    def next(self) -> Vector:
        """The next value of each stream."""
        n = len(self._levels)
        shifts = self._rng.random(n) < SHIFTS
        self._levels = self._levels + shifts * self._spreads * self._rng.choice([-1, 1], n) * self._rng.uniform(2, 6, n)
        out = (self._rng.random(n) < OUTLIERS) * self._rng.choice([-1, 1], n) * self._rng.uniform(8, 20, n)
        values: Vector = self._levels + self._spreads * (self._rng.normal(size=n) + out)
        return values


@contextmanager
def demonstrating(watching: Watching, seed: int = 0) -> Iterator[None]:
    """Posts points of a demo as long as the monitor runs; some have come before."""
    stop, demo = threading.Event(), Demo(seed)

    def work() -> None:
        try:
            if watching.desk.board.get(next(iter(LEVELS))) is None:
                past = np.array([demo.next() for _ in range(PAST)])
                _post(watching, past, time.time() - APART * PAST)
            while not stop.wait(APART):
                _post(watching, demo.next()[None], time.time())
        except Refused:  # the server stops
            return

    thread = threading.Thread(target=work, name="holdfast demo", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(5.0)


def _post(watching: Watching, values: Vector, begin: float) -> None:
    """Rows of points of every stream, a moment apart, the last ones now."""
    moments = [int(1e9 * (begin + APART * i)) for i in range(len(values))]
    times: list[str | None] = [
        datetime.fromtimestamp(moment / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for moment in moments
    ]
    parts = [Part(key, values[:, [place]], None, list(times), list(moments)) for place, key in enumerate(LEVELS)]
    watching.keeper.submit(Post(parts)).result()
