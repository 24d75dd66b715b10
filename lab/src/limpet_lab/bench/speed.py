"""Time per point, against river's ADWIN in the same run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from limpet._optional import optional_import
from limpet.datasets import make_abrupt
from limpet.exceptions import LimpetWarning
from limpet.learners import SRA
from limpet_lab.bench._measurement import Figure
from limpet_lab.bench._timing import measure_best_times

TITLE = "one core, two components, after the warm-up; a loop of river's ADWIN.update over the same numbers is 1"
PROCESS_GOAL_NS = 45.0  # a point, of `process` for one variable


def measure(quick: bool) -> list[Figure]:
    """Time `process` and `update` for one variable, `process` for three."""
    with optional_import("this benchmark", "limpet-lab[bench]"):
        from river.drift import ADWIN
    n, rounds = (20_000, 3) if quick else (100_000, 7)
    y = make_abrupt(n=n, seed=0).y.copy()  # an array like a user's own; a stream's is read-only
    numbers = y[:, 0].tolist()
    # Up to the change, after which the plain algorithm is locked out.
    rows_3d = make_abrupt(n=2 * n, dim=3, seed=0).y[:n].copy()
    paper = SRA(2, gamma=3.0, beta=0.1, M=5.0, norm="mean")
    whitened = SRA(2, gamma=6.0, rho=0.01)
    paper_three = SRA(2, gamma=7.0, beta=0.5, M=5.0, norm="mean")
    whitened_three = SRA(2, gamma=6.0, rho=0.01)

    def run_adwin() -> None:
        update = ADWIN().update
        for x in numbers:
            update(x)

    def make_loop(learner: SRA, points: Sequence[Any]) -> Callable[[], None]:
        update = learner.update

        def run() -> None:
            for x in points:
                update(x)

        return run

    jobs: dict[str, Callable[[], object]] = {
        "ADWIN.update": run_adwin,
        "process, d=1, whitened": lambda: whitened.process(y),
        "process, d=1, the paper's norm": lambda: paper.process(y),
        "update(x), whitened": make_loop(whitened, numbers),
        "update(x), the paper's norm": make_loop(paper, numbers),
        "process, d=3, whitened": lambda: whitened_three.process(rows_3d),
        "process, d=3, the paper's norm": lambda: paper_three.process(rows_3d),
    }
    integer_points = [int(1000 * x) for x in numbers]
    dicts = [{"x": x} for x in numbers]
    sra_of_integers, sra_of_dicts = SRA(2, gamma=6.0, rho=0.01), SRA(2, gamma=6.0, rho=0.01)
    rows = list(rows_3d)
    jobs |= {
        "update(int), whitened": make_loop(sra_of_integers, integer_points),
        "update(dict), whitened": make_loop(sra_of_dicts, dicts),
        "update(vector), d=3, whitened": make_loop(SRA(2, gamma=6.0, rho=0.01), rows),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        for job in jobs.values():  # compiled and warm
            job()
        times = measure_best_times(jobs, rounds, repeats=3)
    goals = {"process, d=1": 0.30, "update(x)": 1.3, "process, d=3": 0.60}
    figures = [Figure("ADWIN.update", times["ADWIN.update"] / n * 1e9, "ns per point")]
    for name in list(jobs)[1:]:
        goal = next((goal for start, goal in goals.items() if name.startswith(start)), None)
        max_ns = PROCESS_GOAL_NS if name.startswith("process, d=1") else None
        figures.append(Figure(name, times[name] / n * 1e9, "ns per point", max_ns))
        figures.append(Figure(f"{name}: ratio", times[name] / times["ADWIN.update"], "× ADWIN", goal))
    return figures
