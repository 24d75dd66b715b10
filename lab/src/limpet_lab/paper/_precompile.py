"""Compiles in a second process what later results need, while the first ones run; the cache brings it here.

It saves a minute or more the first time that a machine runs `limpet reproduce`. Where nothing can be cached, or
all of it is already, it does no harm.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from limpet._parallel import n_threads
from limpet.datasets import Stream
from limpet_lab.paper.config import Plan
from limpet_lab.paper.context import make_synthetic_methods
from limpet_lab.paper.methods import DETECTOR_NAME, Method
from limpet_lab.paper.table_auc_anomaly import make_anomaly_methods
from limpet_lab.paper.table_auc_skab import make_skab_methods
from limpet_lab.paper.table_auc_well_log import make_well_log_methods

MethodsFunction = Callable[[bool], list[tuple[list[Method], int]]]

# What a result runs, with or without --quick, and on how many variables. Two components on one variable, of SRA and of
# Detector, are not among them: these the first results compile meanwhile.
METHODS_BY_RESULT: dict[str, MethodsFunction] = {
    "mse_univariate": lambda quick: [([m for m in make_synthetic_methods(1) if m.name in ("SDEM", "KSWIN")], 1)],
    "mse_multivariate": lambda quick: [(make_synthetic_methods(3, quick), 3)],
    "auc_multivariate": lambda quick: [(make_synthetic_methods(3, quick), 3)],
    "auc_well_log": lambda quick: [(make_well_log_methods(), 1)],
    "auc_skab": lambda quick: [(make_skab_methods(quick), 8)],
    "auc_anomaly": lambda quick: [
        (make_anomaly_methods("SMTP", quick), 3),
        (make_anomaly_methods("THYROID", quick), 6),
    ],
}


@contextmanager
def compile_ahead(names: Sequence[str], plan: Plan) -> Iterator[None]:
    """Compile in another process within this block, if several results need it and there is a core for it."""
    later = [name for name in names[1:] if name in METHODS_BY_RESULT]
    if not later or n_threads() < 2 or not sys.executable:
        yield
        return
    command = [sys.executable, "-m", __name__, *later, *(["--quick"] if plan.quick else [])]
    environment = {**os.environ, "LIMPET_QUIET": "1"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            yield
        finally:
            process.terminate()


def compile_methods(names: Sequence[str], quick: bool) -> None:
    """Run the methods of results on a few points: each once for each number of components.

    The Detector, of which every kind takes long, comes last, and from the last result back: so the two processes
    seldom compile the same.
    """
    runs = [(m, width) for name in names for methods, width in METHODS_BY_RESULT[name](quick) for m in methods]
    learner_runs, detector_runs = (
        [run for run in runs if (run[0].name == DETECTOR_NAME) is on] for on in (False, True)
    )
    for method, width in [*learner_runs, *reversed(detector_runs)]:
        stream = Stream(np.random.default_rng(0).normal(size=(100, width)))
        for setting in {s.get("n_components"): s for s in method.settings}.values():
            method.run(setting, stream, 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    compile_methods([name for name in sys.argv[1:] if name in METHODS_BY_RESULT], "--quick" in sys.argv)
