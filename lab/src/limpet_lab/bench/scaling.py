"""Cost and memory as the stream grows."""

from __future__ import annotations

import gc
import resource
import time

import numpy as np

from limpet.datasets import make_abrupt
from limpet.learners import SRA
from limpet_lab.bench._measurement import Figure

TITLE = "cost per point and memory do not grow with the length of the stream"
CHUNK_POINTS = 10_000
N_SHORT_STREAMS = 20  # short streams, for the cost of the first chunk


def measure(quick: bool) -> list[Figure]:
    """Measure one stream of 10⁷ points in chunks, after the warm-up: the median cost in each power of ten.

    The first 10⁴ points are a single chunk, so they are measured on several streams.
    """
    largest = 6 if quick else 7
    chunks = np.split(make_abrupt(n=100 * CHUNK_POINTS, seed=0).y.copy(), 100)
    gc.disable()
    try:
        first = [measure_chunk_costs(chunks[i : i + 2], 1)[0] for i in range(N_SHORT_STREAMS)]
        memory_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        costs = measure_chunk_costs(chunks, 10**largest // CHUNK_POINTS)
        growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_before
    finally:
        gc.enable()
    medians = [float(np.median(first))]
    medians += [float(np.median(costs[10 ** (e - 5) : 10 ** (e - 4)])) for e in range(5, largest + 1)]
    figures = [Figure(f"process, up to 10^{e} points", m, "ns per point") for e, m in enumerate(medians, start=4)]
    figures.append(Figure(f"cost at 10^{largest} against 10^4", medians[-1] / medians[0], "×", 1.1))
    figures.append(Figure("growth of the process's memory", growth / 1024, "MiB", 8.0))
    learner = SRA(2, gamma=6.0, rho=0.01)
    learner.process(chunks[0])
    n_numbers = len(learner.state) - learner.n_init  # the points of the start are dead weight by then
    figures.append(Figure("state after the start", n_numbers * 8, "bytes per stream", 128))
    return figures


def measure_chunk_costs(chunks: list[np.ndarray], n: int) -> list[float]:
    """Measure nanoseconds per point for each of n chunks of one stream, after a first one that starts the model."""
    learner = SRA(2, gamma=6.0, rho=0.01)
    learner.process(chunks[0])
    costs = []
    for i in range(n):
        start = time.perf_counter()
        learner.process(chunks[(i + 1) % len(chunks)])
        costs.append((time.perf_counter() - start) / CHUNK_POINTS * 1e9)
    assert np.isfinite(learner.state).all()
    return costs
