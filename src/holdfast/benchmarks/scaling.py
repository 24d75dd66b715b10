"""Cost and memory as the stream grows."""

from __future__ import annotations

import resource

import numpy as np

from holdfast.benchmarks.figure import Figure
from holdfast.benchmarks.timing import best_times
from holdfast.datasets import make_abrupt
from holdfast.learners import SRA

TITLE = "cost a point and memory do not grow with the length of the stream"
CHUNK = 10_000


def measure(quick: bool) -> list[Figure]:
    """10⁴ to 10⁷ points after the warm-up, fed in chunks; the growth of cost and of the process's memory."""
    largest = 6 if quick else 7
    y = make_abrupt(n=100 * CHUNK, seed=0).y
    chunks = np.split(y, 100)
    figures = []
    costs: list[float] = []
    learner = SRA(2, gamma=6.0, rho=0.01)
    learner.process(chunks[0])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for exponent in range(4, largest + 1):
        n = 10**exponent

        def run(n: int = n) -> None:
            for i in range(n // CHUNK):
                learner.process(chunks[i % 100])

        rounds = max(3, 10 ** (largest - exponent) // 10)
        costs.append(best_times({"run": run}, rounds)["run"] / n * 1e9)
        figures.append(Figure(f"process, 10^{exponent} points", costs[-1], "ns a point"))
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert np.isfinite(learner.state).all()
    figures.append(Figure(f"cost at 10^{largest} against 10^4", costs[-1] / costs[0], "×", 1.1))
    figures.append(Figure("growth of the process's memory", growth / 1024, "MiB", 8.0))
    kept = len(learner.state) - learner.n_init  # the points of the start are dead weight by then
    figures.append(Figure("state after the start", kept * 8, "bytes a stream", 128))
    return figures
