"""Time per point of the Detector, against river's ADWIN."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from limpet._optional import optional_import
from limpet.exceptions import LimpetWarning
from limpet.learners import Detector, Learner
from limpet_lab.bench._measurement import Figure
from limpet_lab.bench._scenarios import FloatArray, make_component_means
from limpet_lab.bench._timing import measure_best_times

TITLE = "one core, no settings, a stable Gaussian stream; best of several; river's ADWIN.update in the same run"
CASES = ((1, 1), (2, 1), (1, 3), (2, 3), (1, 8), (2, 8))  # components, coordinates
PROCESS_GOALS_NS = {(1, 1): 600.0, (2, 1): 1000.0}  # ns per point, of process
SCORE_GOAL_NS = 200.0  # ns per point, of score, for the first of the cases
N_WARMUP_ROWS = 2000  # rows learned before the clock starts


def measure(quick: bool, make_learner: Callable[..., Learner] = Detector) -> list[Figure]:
    """Time `process`, `score` and `update`, for one and two components in 1, 3 and 8 dimensions."""
    with optional_import("this benchmark", "limpet-lab[bench]"):
        from river.drift import ADWIN
    n, rounds = (5_000, 3) if quick else (100_000, 5)
    numbers = draw_stable_points(n, 1, 1)[:, 0].tolist()
    jobs: dict[str, Callable[[], object]] = {"ADWIN.update": lambda: call_each(ADWIN().update, numbers)}
    goals: dict[str, float] = {"score, K=1, d=1": SCORE_GOAL_NS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        for components, dim in CASES[:4] if quick else CASES:  # eight dimensions compile for long
            rows, title = draw_stable_points(n, components, dim), f"K={components}, d={dim}"
            points: Sequence[Any] = rows[:, 0].tolist() if dim == 1 else list(rows)
            batch, single = (make_started_learner(make_learner, components, rows, points) for _ in range(2))
            jobs[f"process, {title}"] = lambda batch=batch, rows=rows: batch.process(rows)  # type: ignore[misc]
            jobs[f"score, {title}"] = lambda batch=batch, rows=rows: batch.score(rows)  # type: ignore[misc]
            jobs[f"update, {title}"] = lambda single=single, points=points: call_each(single.update, points)  # type: ignore[misc]
            if (components, dim) in PROCESS_GOALS_NS:
                goals[f"process, {title}"] = PROCESS_GOALS_NS[components, dim]
        times = measure_best_times(jobs, rounds)
    return [Figure(name, times[name] / n * 1e9, "ns per point", goals.get(name)) for name in jobs]


def draw_stable_points(n: int, components: int, dim: int) -> FloatArray:
    """Draw rows of components of equal weight, σ = 1, 6σ apart along the first coordinate: (n, d)."""
    rng = np.random.default_rng([components, dim])
    rows: FloatArray = make_component_means(components, dim)[rng.integers(components, size=n)] + rng.standard_normal(
        (n, dim)
    )
    return rows


def make_started_learner(
    make_learner: Callable[..., Learner], components: int, rows: FloatArray, points: Sequence[Any]
) -> Learner:
    """Return a learner that has started, with `process` and `update` compiled."""
    learner = make_learner() if components == 1 else make_learner(components)
    learner.process(rows[:N_WARMUP_ROWS])
    call_each(learner.update, points[:10])
    return learner


def call_each(update: Callable[[Any], object], points: Sequence[Any]) -> None:
    """Learn one point after the other."""
    for x in points:
        update(x)
