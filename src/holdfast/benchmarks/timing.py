"""How times are taken: in turn, several rounds, the best of each."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping

from holdfast.benchmarks.figure import Figure

Job = Callable[[], object]


def best_times(jobs: Mapping[str, Job], rounds: int, repeats: int = 1) -> dict[str, float]:
    """The shortest time of each job in seconds, the jobs taken in turn so that a slow spell hits all of them.

    repeats: how often a job is run at its turn, so that it does not pay for caches that another one has filled.
    """
    best = dict.fromkeys(jobs, float("inf"))
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, job in jobs.items():
                for _ in range(repeats):
                    start = time.perf_counter()
                    job()
                    best[name] = min(best[name], time.perf_counter() - start)
    finally:
        if collecting:
            gc.enable()
    return best


def times_a_point(jobs: Mapping[str, tuple[Job, int]], rounds: int) -> list[Figure]:
    """The shortest time of each job, by its points; see `best_times`."""
    times = best_times({name: job for name, (job, _) in jobs.items()}, rounds)
    return [Figure(name, times[name] / points * 1e9, "ns a point") for name, (_, points) in jobs.items()]
