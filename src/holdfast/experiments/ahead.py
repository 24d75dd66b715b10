"""Compiles in a second process what later results need, while the first ones run; the cache brings it here.

It saves some twenty seconds the first time that a machine runs `holdfast reproduce`. Where nothing can be cached, or
all of it is already, it does no harm.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import numpy as np

from holdfast.datasets import Stream
from holdfast.experiments.auc_anomaly import anomaly_methods
from holdfast.experiments.auc_skab import skab_methods
from holdfast.experiments.auc_well_log import well_log_methods
from holdfast.experiments.lab import synthetic_methods
from holdfast.experiments.methods import Method
from holdfast.experiments.plan import Plan

HEAVY = {"mse_multivariate", "auc_multivariate", "auc_skab", "auc_anomaly"}  # results with kernels of several variables


@contextmanager
def compiling_ahead(names: Sequence[str], plan: Plan) -> Iterator[None]:
    """Within this block another process compiles, if some of the results need it and there is a core for it."""
    if not HEAVY & set(names) or (os.cpu_count() or 1) < 2:
        yield
        return
    command = [sys.executable, "-m", "holdfast.experiments.ahead", *(["--quick"] if plan.quick else [])]
    environment = {**os.environ, "HOLDFAST_QUIET": "1"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                process.terminate()


def compile_methods(quick: bool) -> None:
    """Runs methods on a few points, in the order in which the results need them; the first result compiles SRA."""
    needed: list[tuple[Sequence[Method], int]] = [
        ([method for method in synthetic_methods(1) if method.name in ("SDEM", "KSWIN")], 1),
        (synthetic_methods(3), 3),
        (well_log_methods(), 1),
        (skab_methods(), 8),
        (anomaly_methods("SMTP", quick), 3),
        (anomaly_methods("THYROID", quick), 6),
    ]
    for methods, width in needed:
        stream = Stream(np.random.default_rng(0).normal(size=(100, width)))
        for method in methods:
            kinds = {setting.get("n_components"): setting for setting in method.settings}
            for setting in kinds.values():
                method.run(setting, stream, 0)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    compile_methods("--quick" in sys.argv)
