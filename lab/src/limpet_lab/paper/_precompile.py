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
from limpet_lab.paper.context import synthetic_methods
from limpet_lab.paper.methods import AUTO, Method
from limpet_lab.paper.table_auc_anomaly import anomaly_methods
from limpet_lab.paper.table_auc_skab import skab_methods
from limpet_lab.paper.table_auc_well_log import well_log_methods

Needed = Callable[[bool], list[tuple[list[Method], int]]]

# What a result runs, with or without --quick, and on how many variables. Two components on one variable, of SRA and of
# Detector, are not among them: these the first results compile meanwhile.
NEEDED: dict[str, Needed] = {
    "mse_univariate": lambda quick: [([m for m in synthetic_methods(1) if m.name in ("SDEM", "KSWIN")], 1)],
    "mse_multivariate": lambda quick: [(synthetic_methods(3, quick), 3)],
    "auc_multivariate": lambda quick: [(synthetic_methods(3, quick), 3)],
    "auc_well_log": lambda quick: [(well_log_methods(), 1)],
    "auc_skab": lambda quick: [(skab_methods(quick), 8)],
    "auc_anomaly": lambda quick: [(anomaly_methods("SMTP", quick), 3), (anomaly_methods("THYROID", quick), 6)],
}


@contextmanager
def compiling_ahead(names: Sequence[str], plan: Plan) -> Iterator[None]:
    """Within this block another process compiles, if several of the results need it and there is a core for it."""
    later = [name for name in names[1:] if name in NEEDED]
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
    """Runs what the results need on a few points: each method once for each number of components.

    The Detector, of which every kind takes long, comes last, and from the last result back: so the two processes
    seldom compile the same.
    """
    needed = [(m, width) for name in names for methods, width in NEEDED[name](quick) for m in methods]
    others, automatic = ([each for each in needed if (each[0].name == AUTO) is on] for on in (False, True))
    for method, width in [*others, *reversed(automatic)]:
        stream = Stream(np.random.default_rng(0).normal(size=(100, width)))
        for setting in {s.get("n_components"): s for s in method.settings}.values():
            method.run(setting, stream, 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    compile_methods([name for name in sys.argv[1:] if name in NEEDED], "--quick" in sys.argv)
