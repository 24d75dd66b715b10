"""Demo: simulated live streams with outliers and changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import numpy as np

from limpet.core.state import Vector
from limpet.server.db.points import format_unix_time
from limpet.server.ingest.processor import IngestRequest, StreamPoints
from limpet.server.monitor import Monitor
from limpet.server.responses import ApiError

N_PAST_POINTS = 900  # per stream at the start
POINT_INTERVAL_S = 0.5
OUTLIER_SHARE = 0.0005
SHIFT_SHARE = 1 / 3000  # of points at which the level changes
LEVEL_AND_SPREAD = {
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


def simulate_plant() -> Iterator[Vector]:
    """Yield the next value of each stream, without end."""
    rng = np.random.default_rng(0)
    levels, spreads = np.array(list(LEVEL_AND_SPREAD.values())).T
    n = len(levels)
    while True:
        shifts = rng.random(n) < SHIFT_SHARE
        levels = levels + shifts * spreads * rng.choice([-1, 1], n) * rng.uniform(2, 6, n)
        outliers = (rng.random(n) < OUTLIER_SHARE) * rng.choice([-1, 1], n) * rng.uniform(8, 20, n)
        yield levels + spreads * (rng.normal(size=n) + outliers)


@contextmanager
def run_demo(monitor: Monitor) -> Iterator[None]:
    """Post simulated points in the context, after a history for an empty database."""
    stop, plant = threading.Event(), simulate_plant()

    def post_points() -> None:
        try:
            if monitor.processor.registry.by_key.get(next(iter(LEVEL_AND_SPREAD))) is None:
                past = np.array(list(islice(plant, N_PAST_POINTS)))
                _post(monitor, past, time.time() - POINT_INTERVAL_S * N_PAST_POINTS)
            while not stop.wait(POINT_INTERVAL_S):
                _post(monitor, next(plant)[None], time.time())
        except ApiError:  # the server stops
            return

    thread = threading.Thread(target=post_points, name="limpet demo", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(5.0)


def _post(monitor: Monitor, values: Vector, start: float) -> None:
    """Post rows of values of all streams, at regular times from `start` on."""
    times_ns = [int(1e9 * (start + POINT_INTERVAL_S * i)) for i in range(len(values))]
    times: list[str | None] = [format_unix_time(time_ns / 1e9) for time_ns in times_ns]
    parts = [
        StreamPoints(key, values[:, [column]], None, list(times), list(times_ns))
        for column, key in enumerate(LEVEL_AND_SPREAD)
    ]
    monitor.writer.submit(IngestRequest(parts)).result()
