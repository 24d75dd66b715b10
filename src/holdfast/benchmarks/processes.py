"""Processes with the time they take and the memory they have at most."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

# A process of its own starts the command, because Linux counts the memory of whoever starts a program as the program's.
STARTER = """
import os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - began, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True)
class Cost:
    """Seconds until the end, and megabytes of memory at the most."""

    seconds: float
    megabytes: float


def cost_of(command: Sequence[str], cwd: str | None = None) -> Cost:
    """Runs a command to its end."""
    starter = [sys.executable, "-c", STARTER, *command]
    found = subprocess.run(starter, cwd=cwd, capture_output=True, text=True, check=True)
    seconds, memory, code = found.stdout.split()
    if code != "0":
        raise RuntimeError(f"{' '.join(command)} ended with {code}: {found.stderr[-1000:]}")
    scale = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    return Cost(float(seconds), int(memory) / scale)
