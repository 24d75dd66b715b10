"""How times are taken: in turn, several rounds, the best of each."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping


def best_times(jobs: Mapping[str, Callable[[], object]], rounds: int, repeats: int = 1) -> dict[str, float]:
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
