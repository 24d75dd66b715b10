"""Start-up times: imports, help, first call, second process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from limpet_lab.bench._measurement import Figure
from limpet_lab.bench._timing import measure_best_times

TITLE = "each in fresh processes, best of several"

FIRST_CALL_SCRIPT = """
import sys, time
start = time.perf_counter()
import numba.core.event as event
with event.install_recorder("numba:compile") as recorder:
    import limpet as lp
    import numpy as np
    learner = lp.LEARNER
    learner.process(np.random.default_rng(0).normal(size=1000))
    learner.update(0.5)
print(time.perf_counter() - start, len(recorder.buffer) // 2)
"""


def make_command_job(*command: str) -> Callable[[], object]:
    """Return a job that runs this command."""
    return lambda: subprocess.run(command, check=True, capture_output=True)


SRA_CODE, DETECTOR_CODE = "SRA(2, gamma=6.0, rho=0.01)", "Detector()"


def time_first_call(learner: str, environment: dict[str, str]) -> tuple[float, int, str]:
    """Return the seconds until a learner has run in a new process, the compilations, and its messages."""
    command = [sys.executable, "-c", FIRST_CALL_SCRIPT.replace("LEARNER", learner)]
    result = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    seconds, compilations = result.stdout.split()
    return float(seconds), int(compilations), result.stderr


def measure(quick: bool) -> list[Figure]:
    """Time imports, help, first call on a new machine (an empty cache), second process."""
    program = shutil.which("limpet", path=str(Path(sys.executable).parent))
    command = [program] if program else [sys.executable, "-m", "limpet"]
    jobs = {
        "bare": make_command_job(sys.executable, "-c", "import numpy, numba"),
        "lazy": make_command_job(sys.executable, "-c", "import numpy, numba, limpet"),
        "used": make_command_job(sys.executable, "-c", "import numpy, numba, limpet; limpet.SRA"),
        "help": make_command_job(*command, "--help"),
    }
    times = measure_best_times(jobs, 3 if quick else 15)
    with tempfile.TemporaryDirectory() as cache:
        first, compiled, output = time_first_call(SRA_CODE, {"NUMBA_CACHE_DIR": cache, "LIMPET_QUIET": ""})
        second, compiled_again, _ = time_first_call(SRA_CODE, {"NUMBA_CACHE_DIR": cache})
    figures = [
        Figure("import numpy, numba", 1e3 * times["bare"], "ms"),
        Figure("import limpet adds", 1e3 * (times["lazy"] - times["bare"]), "ms", 50),
        Figure("import limpet; limpet.SRA adds", 1e3 * (times["used"] - times["bare"]), "ms", 50),
        Figure("limpet --help", times["help"], "s", 0.3),
        Figure("very first call on a new machine", first, "s", 20),
        Figure("compilations then", compiled),
        Figure("compiles without notice (0: announced)", float("compiling" not in output), "", 0),
        Figure("first call of a second process", second, "s"),
        Figure("compilations of a second process", compiled_again, "", 0),
    ]
    if not quick:  # it takes a while
        with tempfile.TemporaryDirectory() as cache:
            first, _, _ = time_first_call(DETECTOR_CODE, {"NUMBA_CACHE_DIR": cache})
            second, compiled_again, _ = time_first_call(DETECTOR_CODE, {"NUMBA_CACHE_DIR": cache})
        figures += [
            Figure("Detector: very first call on a new machine", first, "s"),
            Figure("Detector: first call of a second process", second, "s"),
            Figure("Detector: compilations of a second process", compiled_again, "", 0),
        ]
    return figures
