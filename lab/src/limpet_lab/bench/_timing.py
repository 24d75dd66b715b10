"""Timing: alternating rounds, the best of each."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from limpet_lab.bench._measurement import Figure

# Processes with the time they take and the memory they have at most.

# A small process starts the command, because Linux counts the memory of the starting process as the program's.
STARTER_SCRIPT = """
import os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - began, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True)
class CommandCost:
    """Seconds until the end, and megabytes of memory at the most."""

    seconds: float
    megabytes: float


def measure_command(command: Sequence[str], cwd: str | None = None) -> CommandCost:
    """Run a command to its end, and measure it."""
    starter = [sys.executable, "-c", STARTER_SCRIPT, *command]
    completed = subprocess.run(starter, cwd=cwd, capture_output=True, text=True, check=True)
    seconds, memory, code = completed.stdout.split()
    if code != "0":
        raise RuntimeError(f"{' '.join(command)} ended with {code}: {completed.stderr[-1000:]}")
    scale = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    return CommandCost(float(seconds), int(memory) / scale)


Job = Callable[[], object]


def measure_best_times(jobs: Mapping[str, Job], rounds: int, repeats: int = 1) -> dict[str, float]:
    """Return the shortest time of each job in seconds; jobs alternate, so that a slow spell hits all of them.

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


def measure_times_per_point(jobs: Mapping[str, tuple[Job, int]], rounds: int) -> list[Figure]:
    """Measure the shortest time of each job, per point; see `measure_best_times`."""
    times = measure_best_times({name: job for name, (job, _) in jobs.items()}, rounds)
    return [Figure(name, times[name] / points * 1e9, "ns per point") for name, (_, points) in jobs.items()]
