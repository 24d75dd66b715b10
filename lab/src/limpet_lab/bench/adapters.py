"""Overhead of the adapters per point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from limpet._optional import require_installed
from limpet.learners import Detector
from limpet.models import LinearRegression, LogisticRegression
from limpet_lab.bench._measurement import Figure
from limpet_lab.bench._timing import Job, measure_best_times

# Drifts of a classifier's error, zeros and ones: how soon a rise is detected, compared with river's own detectors.

ERROR_RATE_RISES = ((0.05, 0.2), (0.1, 0.2), (0.2, 0.35), (0.1, 0.9))
ROWS_BEFORE_RISE, ROWS_AFTER_RISE = 2_000, 2_000  # errors before the rise, and after it
FIRST_SEED = 1_000  # the first seed: the size of a block was chosen on streams of smaller ones


def measure_drift_detectors(quick: bool) -> list[Figure]:
    """Measure for each rise the share of streams in which it is found, the median delay, and false alarms before."""
    from river import drift

    from limpet.adapters.river import DriftDetector

    detectors: dict[str, Callable[[], Any]] = {
        "DriftDetector": lambda: DriftDetector(direction="up"),
        "ADWIN": drift.ADWIN,
        "DDM": drift.binary.DDM,
    }
    figures = []
    for before, after in ERROR_RATE_RISES:
        for name, make_detector in detectors.items():
            seeds = range(FIRST_SEED, FIRST_SEED + (5 if quick else 50))
            outcomes = [detect_rise(make_detector(), draw_errors(before, after, seed)) for seed in seeds]
            delays = [delay for _, delay in outcomes if delay is not None]
            title = f"errors from {before:.0%} to {after:.0%}, {name}"
            figures += [
                Figure(f"{title}: found", 100.0 * len(delays) / len(outcomes), "%"),
                Figure(f"{title}: delay", float(np.median(delays)) if delays else float("nan"), "predictions"),
                Figure(
                    f"{title}: false alarms",
                    1e4 * sum(n for n, _ in outcomes) / (ROWS_BEFORE_RISE * len(outcomes)),
                    "in 10^4",
                ),
            ]
    return figures


def draw_errors(before: float, after: float, seed: int) -> list[int]:
    """Draw zeros and ones, with these shares of ones before and after the rise."""
    rng = np.random.default_rng(seed)
    drawn = np.concatenate([rng.random(ROWS_BEFORE_RISE) < before, rng.random(ROWS_AFTER_RISE) < after])
    numbers: list[int] = drawn.astype(int).tolist()
    return numbers


def detect_rise(detector: Any, values: list[int]) -> tuple[int, int | None]:
    """Return how many drifts were reported before the rise, and the delay of the first after it, if any."""
    early = 0
    for row, value in enumerate(values):
        detector.update(value)
        if detector.drift_detected and row >= ROWS_BEFORE_RISE:
            return early, row - ROWS_BEFORE_RISE
        early += bool(detector.drift_detected)
    return early, None


TITLE = "one core, after the warm-up; rows of three numbers, of one for drifts and for series; batches of 1,000 rows"
GOAL_POINTS_PER_S = 250_000  # points per second, learned and scored by river's conventions
BATCH_ROWS = 1_000

JobPair = tuple[Job, Job]
"""The adapter's job and the core's."""


def measure(quick: bool) -> list[Figure]:
    """Time each adapter and the core at the same work; what the adapter adds, in nanoseconds per point."""
    require_installed("this benchmark", "limpet[river,sklearn,sktime]", "river", "sklearn", "sktime", "pandas")
    n, rounds = (4_000, 3) if quick else (50_000, 9)
    rows = np.random.default_rng(0).normal((5.0, 900.0, 60.0), (1.0, 40.0, 2.0), (n, 3))
    pairs = {**make_river_jobs(rows), **make_sklearn_jobs(rows), **make_sktime_jobs(rows[:, 0])}
    jobs = {
        f"{kind} {name}": job for name, pair in pairs.items() for kind, job in zip(("ours", "core"), pair, strict=True)
    }
    for job in jobs.values():  # compiled and warm
        job()
    times = measure_best_times(jobs, rounds)
    figures = []
    for name in pairs:
        ours, core = (times[f"{kind} {name}"] / n * 1e9 for kind in ("ours", "core"))
        figures += [
            Figure(f"{name}", ours, "ns per point"),
            Figure(f"{name}: over the core", ours - core, "ns per point"),
        ]
    both_seconds = times["ours river AnomalyDetector, learn_one + score_one"]
    speed = Figure(
        "river AnomalyDetector, d=3: learned and scored", n / both_seconds, "points/s", at_least=GOAL_POINTS_PER_S
    )
    return [*figures, speed, *measure_drift_detectors(quick)]


def make_river_jobs(rows: Any) -> dict[str, JobPair]:
    """Return the jobs of river: one dict after another, and one number after another."""
    from limpet.adapters.river import AnomalyDetector, DriftDetector

    detector, drift, core, level = AnomalyDetector(), DriftDetector(), Detector(), Detector()
    points = [dict(zip(("load", "power", "heat"), row, strict=True)) for row in rows.tolist()]
    numbers = rows[:, 0].tolist()
    call_each(detector.learn_one, points[:BATCH_ROWS])

    def run_adapter() -> None:
        learn, score = detector.learn_one, detector.score_one
        for x in points:
            score(x)
            learn(x)

    def run_core() -> None:
        core.process(rows)
        core.score(rows)

    return {
        "river AnomalyDetector, learn_one + score_one": (run_adapter, run_core),
        "river DriftDetector, update": (lambda: call_each(drift.update, numbers), lambda: level.process(rows[:, 0])),
    }


def make_sklearn_jobs(rows: Any) -> dict[str, JobPair]:
    """Return the jobs of scikit-learn: one batch after another."""
    from limpet.adapters.sklearn import (
        OnlineGaussianMixture,
        OutlierDetector,
        RobustClassifier,
        RobustRegressor,
        StreamScores,
    )

    targets, batches = rows @ (1.0, 0.1, -2.0), split_into_batches(rows)
    labels = (targets > np.median(targets)).astype(float)
    pairs, labelled = (list(zip(batches, split_into_batches(each_row), strict=True)) for each_row in (targets, labels))
    detector, mixture, regressor, classifier = (
        OutlierDetector().fit(rows),
        OnlineGaussianMixture(),
        RobustRegressor(),
        RobustClassifier(),
    )
    scores, classes = StreamScores().fit(rows), np.array([0.0, 1.0])
    outlier_core, mixture_core = Detector(), Detector()
    linear, logistic = regressor._new_learner(LinearRegression), classifier._new_learner(LogisticRegression)
    return {
        "scikit-learn OutlierDetector, partial_fit": (
            lambda: call_each(detector.partial_fit, batches),
            lambda: call_each(outlier_core.process, batches),
        ),
        "scikit-learn OutlierDetector, predict": (
            lambda: call_each(detector.predict, batches),
            lambda: call_each(lambda batch: outlier_core.score_only(batch, independent=True), batches),
        ),
        "scikit-learn StreamScores, transform": (
            lambda: call_each(scores.transform, batches),
            lambda: call_each(lambda batch: outlier_core.score_only(batch, independent=True), batches),
        ),
        "scikit-learn OnlineGaussianMixture, partial_fit": (
            lambda: call_each(mixture.partial_fit, batches),
            lambda: call_each(mixture_core.process, batches),
        ),
        "scikit-learn RobustRegressor, partial_fit": (
            lambda: call_each(lambda pair: regressor.partial_fit(*pair), pairs),
            lambda: call_each(lambda pair: linear.process(*pair), pairs),
        ),
        "scikit-learn RobustClassifier, partial_fit": (
            lambda: call_each(lambda pair: classifier.partial_fit(pair[0], pair[1], classes), labelled),
            lambda: call_each(lambda pair: logistic.process(*pair), labelled),
        ),
    }


def make_sktime_jobs(values: Any) -> dict[str, JobPair]:
    """Update with one piece of a series after another, on a new detector, since a detector keeps all its data."""
    import pandas as pd

    from limpet.adapters.sktime import AnomalyDetector, ChangePointDetector

    pieces = split_into_batches(pd.DataFrame({"load": values}))
    arrays = [piece.to_numpy() for piece in pieces]

    def make_adapter_job(kind: Callable[[], Any]) -> Job:
        return lambda: call_each(kind().fit(pieces[0]).update, pieces[1:])

    def run_core() -> None:
        call_each(Detector().process, arrays)

    return {
        "sktime ChangePointDetector, fit + update": (make_adapter_job(ChangePointDetector), run_core),
        "sktime AnomalyDetector, fit + update": (make_adapter_job(AnomalyDetector), run_core),
    }


def split_into_batches(rows: Any) -> list[Any]:
    """Split rows into batches."""
    return [rows[first : first + BATCH_ROWS] for first in range(0, len(rows), BATCH_ROWS)]


def call_each(call: Callable[[Any], object], points: Sequence[Any]) -> None:
    """Call a function with one point after the other."""
    for point in points:
        call(point)
