"""Processes with the time they take and the memory they have at most."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Seconds until the end, and megabytes of memory at the most."""

    seconds: float
    megabytes: float


def cost_of(command: Sequence[str], cwd: str | None = None) -> Cost:
    """Runs a command to its end."""
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {said.decode()[-1000:]}")
    scale = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    return Cost(time.perf_counter() - began, usage.ru_maxrss / scale)
