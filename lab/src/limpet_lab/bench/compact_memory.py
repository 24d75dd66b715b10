"""Compact and full memory profiles: bytes, time per point, false-alarm rate and detection delay."""

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
from limpet_lab.bench._timing import measure_best_times
from limpet_lab.bench.auto_latency import N_WARMUP_ROWS, draw_stable_points
from limpet_lab.bench.detection_delay import FALSE_ALARM_RATE, ROWS_BEFORE_CHANGE, ChangeKind, draw_changed
from limpet_lab.bench.false_alarm_rate import make_alarm_function, measure_rates

TITLE = "Detector(memory='compact') against Detector(): bytes per stream, time per point, alarms, delays; one variable"

MEMORIES = ("full", "compact")
MAX_STATE_BYTES = {("full", 1): 3000.0, ("full", 2): 3000.0, ("compact", 1): 512.0}
MAX_PROCESS_NS = 500.0  # ns per point
CHANGE_KINDS = (
    ChangeKind(".5 sd", 0.5, 1.0),
    ChangeKind("1 sd", 1.0, 1.0),
    ChangeKind("2 sd", 2.0, 1.0),
    ChangeKind("3 sd", 3.0, 1.0),
    ChangeKind("spread × 2", 0.0, 2.0),
    ChangeKind("spread ÷ 2", 0.0, 0.5),
)
STREAM_FAMILIES = ("Gaussian", "Student t(3)", "log-normal", "rounded to .5 sd", "AR(1) .5")


def compute_state_bytes(memory: str, K: int, d: int = 1) -> int:
    """Compute the bytes of a stream that has started: header and theta."""
    watch = make_auto_stream_kernels("full", K, d, profile=MEMORY_PROFILES[memory])
    return 8 * (HEADER_SIZE + n_float64_slots(watch.layout.size, watch.profile.dtype))


class DelaySummary(NamedTuple):
    """Median delay over the streams without an alarm before the change, and the share of them with one after it."""

    median_delay: float
    detected_share: float


def measure_delay(kind: ChangeKind, share: float, runs: int, **settings: Any) -> DelaySummary:
    """Measure the delays of a Detector with these settings, within ROWS_AFTER_CHANGE."""
    alarms, delays = make_alarm_function(**settings), []
    for seed in range(runs):
        y = draw_changed(np.random.default_rng(1000 + seed), kind, share)
        change = alarms(y[:, None], FALSE_ALARM_RATE).change
        if not change[:ROWS_BEFORE_CHANGE].any():
            delays.append(
                int(change[ROWS_BEFORE_CHANGE:].argmax()) + 1 if change[ROWS_BEFORE_CHANGE:].any() else math.inf
            )
    return DelaySummary(float(np.median(delays)), float(np.isfinite(delays).mean()))


def measure_delays(quick: bool) -> Iterator[Figure]:
    """Measure the delays of both, on clean streams and with 5 % outliers."""
    runs = 40 if quick else 400
    for share in (0.0, 0.05):
        for kind in CHANGE_KINDS:
            summaries = {memory: measure_delay(kind, share, runs, memory=memory) for memory in MEMORIES}
            label = f"{kind.name}, {share:.0%} outliers"
            for memory, summary in summaries.items():
                yield Figure(f"{label}: {memory}", summary.median_delay, "points")
                yield Figure(f"{label}: {memory}, noticed", 100.0 * summary.detected_share, "%")
            yield Figure(
                f"{label}: compact over full", summaries["compact"].median_delay / summaries["full"].median_delay, "×"
            )


def measure_false_alarm_rates(quick: bool) -> Iterator[Figure]:
    """Measure false-alarm rates of the compact profile, over the promised ones."""
    alarms, points = make_alarm_function(memory="compact"), 100_000 if quick else 5_000_000
    for name in STREAM_FAMILIES:
        for far in (1e-3, 1e-4):
            for share in (0.0, 0.05):
                rates = measure_rates(name, share, 1, far, points, alarms)
                label = f"{name}, {share:.0%} outliers, far {far:g}"
                yield Figure(f"change, {label}", rates.change, "× promised", 1.1)
                yield Figure(f"anomaly, {label}", rates.anomaly, "× promised", 1.5)


def measure_times(quick: bool) -> Iterator[Figure]:
    """Time `process` on a stable stream, on one core."""
    n, rounds = (5_000, 3) if quick else (10_000, 60)  # short rounds: some fall where the machine is idle
    learners = {}
    for memory in MEMORIES:
        for K in (1, 2):
            rows = draw_stable_points(n, K, 1)
            learner = Detector(K, memory=memory)
            learner.process(rows[:N_WARMUP_ROWS])
            learners[memory, K] = lambda learner=learner, rows=rows: learner.process(rows)
    jobs = {f"process, {memory}, K={K}": job for (memory, K), job in learners.items()}
    for name, seconds in measure_best_times(jobs, rounds).items():
        yield Figure(name, seconds / n * 1e9, "ns per point", MAX_PROCESS_NS if "compact" in name else None)


def measure(quick: bool) -> list[Figure]:
    """Measure bytes, times, false-alarm rates and delays."""
    sizes = [
        Figure(
            f"bytes per stream, {memory}, K={K}",
            compute_state_bytes(memory, K),
            "bytes",
            MAX_STATE_BYTES.get((memory, K)),
        )
        for memory in MEMORIES
        for K in (1, 2)
    ]
    return [*sizes, *measure_times(quick), *measure_false_alarm_rates(quick), *measure_delays(quick)]
