"""The lean setting beside the full one: bytes, time per point, the promise, and how much later it notices a change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from limpet.auto.stream_kernel import make_auto_stream_kernels
from limpet.core.memory_profile import MEMORY_PROFILES
from limpet.core.state import HEADER_SIZE, n_float64_slots
from limpet.learners import Detector
from limpet_lab.bench._measurement import Figure
from limpet_lab.bench._timing import best_times
from limpet_lab.bench.auto_latency import N_WARMUP_ROWS, calm
from limpet_lab.bench.detection_delay import BEFORE, FAR, Kind, changed
from limpet_lab.bench.false_alarm_rate import alarms_of, observed

TITLE = "Detector(memory='compact') beside Detector(): bytes per stream, time per point, alarms, delays; one variable"

MEMORIES = ("full", "compact")
MOST_BYTES = {("full", 1): 3000.0, ("full", 2): 3000.0, ("compact", 1): 512.0}
MOST_TIME = 500.0  # ns per point
KINDS = (
    Kind(".5 sd", 0.5, 1.0),
    Kind("1 sd", 1.0, 1.0),
    Kind("2 sd", 2.0, 1.0),
    Kind("3 sd", 3.0, 1.0),
    Kind("spread × 2", 0.0, 2.0),
    Kind("spread ÷ 2", 0.0, 0.5),
)
STREAMS = ("Gaussian", "Student t(3)", "log-normal", "rounded to .5 sd", "AR(1) .5")


def bytes_of(memory: str, K: int, d: int = 1) -> int:
    """Of a stream that has started: header and theta."""
    watch = make_auto_stream_kernels("full", K, d, profile=MEMORY_PROFILES[memory])
    return 8 * (HEADER_SIZE + n_float64_slots(watch.layout.size, watch.profile.dtype))


class Noticed(NamedTuple):
    """Median delay over the streams without an alarm before the change, and the share of them that was noticed."""

    delay: float
    share: float


def noticed(kind: Kind, share: float, runs: int, **settings: Any) -> Noticed:
    """How SRA with these settings takes a change; AFTER points are waited for it."""
    alarms, delays = alarms_of(**settings), []
    for seed in range(runs):
        y = changed(np.random.default_rng(1000 + seed), kind, share)
        change = alarms(y[:, None], FAR).change
        if not change[:BEFORE].any():
            delays.append(int(change[BEFORE:].argmax()) + 1 if change[BEFORE:].any() else math.inf)
    return Noticed(float(np.median(delays)), float(np.isfinite(delays).mean()))


def delays(quick: bool) -> Iterator[Figure]:
    """Of both, on clean streams and with 5 % outliers."""
    runs = 40 if quick else 400
    for share in (0.0, 0.05):
        for kind in KINDS:
            delays = {memory: noticed(kind, share, runs, memory=memory) for memory in MEMORIES}
            label = f"{kind.name}, {share:.0%} outliers"
            for memory, each in delays.items():
                yield Figure(f"{label}: {memory}", each.delay, "points")
                yield Figure(f"{label}: {memory}, noticed", 100.0 * each.share, "%")
            yield Figure(f"{label}: compact over full", delays["compact"].delay / delays["full"].delay, "×")


def promise(quick: bool) -> Iterator[Figure]:
    """Of the lean one."""
    alarms, points = alarms_of(memory="compact"), 100_000 if quick else 5_000_000
    for name in STREAMS:
        for far in (1e-3, 1e-4):
            for share in (0.0, 0.05):
                rates = observed(name, share, 1, far, points, alarms)
                label = f"{name}, {share:.0%} outliers, far {far:g}"
                yield Figure(f"change, {label}", rates.change, "× promised", 1.1)
                yield Figure(f"anomaly, {label}", rates.anomaly, "× promised", 1.5)


def times(quick: bool) -> Iterator[Figure]:
    """Of `process` on a calm stream, on one core."""
    n, rounds = (5_000, 3) if quick else (10_000, 60)  # short rounds: some fall where the machine is calm
    learners = {}
    for memory in MEMORIES:
        for K in (1, 2):
            rows = calm(n, K, 1)
            learner = Detector(K, memory=memory)
            learner.process(rows[:N_WARMUP_ROWS])
            learners[memory, K] = lambda learner=learner, rows=rows: learner.process(rows)
    jobs = {f"process, {memory}, K={K}": job for (memory, K), job in learners.items()}
    for name, seconds in best_times(jobs, rounds).items():
        yield Figure(name, seconds / n * 1e9, "ns per point", MOST_TIME if "compact" in name else None)


def measure(quick: bool) -> list[Figure]:
    """Bytes, times, the promise, delays."""
    sizes = [
        Figure(f"bytes per stream, {memory}, K={K}", bytes_of(memory, K), "bytes", MOST_BYTES.get((memory, K)))
        for memory in MEMORIES
        for K in (1, 2)
    ]
    return [*sizes, *times(quick), *promise(quick), *delays(quick)]
