"""What the adapters cost a point beside the learners that they hand their points to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from holdfast.benchmarks.errors import drifts_of_errors
from holdfast.benchmarks.figure import Figure
from holdfast.benchmarks.timing import Job, best_times
from holdfast.extras import optional_import
from holdfast.learners import SRA
from holdfast.models import LinearRegression, LogisticRegression

TITLE = "one core, after the warm-up; rows of three numbers, of one for drifts and for series; batches of 1,000 rows"
GOAL = 250_000  # points a second, learnt and scored by river's conventions
BATCH = 1_000

Pair = tuple[Job, Job]
"""The adapter's job and the core's."""


def measure(quick: bool) -> list[Figure]:
    """Each adapter and the core at the same work, in turn; what the adapter adds, in nanoseconds a point."""
    n, rounds = (4_000, 3) if quick else (50_000, 9)
    rows = np.random.default_rng(0).normal((5.0, 900.0, 60.0), (1.0, 40.0, 2.0), (n, 3))
    pairs = {**of_river(rows), **of_sklearn(rows), **of_sktime(rows[:, 0])}
    jobs = {
        f"{kind} {name}": job for name, pair in pairs.items() for kind, job in zip(("ours", "core"), pair, strict=True)
    }
    for job in jobs.values():  # compiled and warm
        job()
    times = best_times(jobs, rounds)
    figures = []
    for name in pairs:
        ours, core = (times[f"{kind} {name}"] / n * 1e9 for kind in ("ours", "core"))
        figures += [Figure(f"{name}", ours, "ns a point"), Figure(f"{name}: over the core", ours - core, "ns a point")]
    both = times["ours river AnomalyDetector, learn_one + score_one"]
    speed = Figure("river AnomalyDetector, d=3: learnt and scored", n / both, "points/s", at_least=GOAL)
    return [*figures, speed, *drifts_of_errors(quick)]


def of_river(rows: Any) -> dict[str, Pair]:
    """One dict after another, and one number after another."""
    with optional_import("this benchmark", "river"):
        from holdfast.adapters.river import AnomalyDetector, DriftDetector
    detector, drift, core, level = AnomalyDetector(), DriftDetector(), SRA(), SRA()
    points = [dict(zip(("load", "power", "heat"), row, strict=True)) for row in rows.tolist()]
    numbers = rows[:, 0].tolist()
    each(detector.learn_one, points[:BATCH])

    def both() -> None:
        learn, score = detector.learn_one, detector.score_one
        for x in points:
            score(x)
            learn(x)

    def core_both() -> None:
        core.process(rows)
        core.score(rows)

    return {
        "river AnomalyDetector, learn_one + score_one": (both, core_both),
        "river DriftDetector, update": (lambda: each(drift.update, numbers), lambda: level.process(rows[:, 0])),
    }


def of_sklearn(rows: Any) -> dict[str, Pair]:
    """One batch after another."""
    with optional_import("this benchmark", "sklearn"):
        from holdfast.adapters.sklearn import (
            OnlineGaussianMixture,
            OutlierDetector,
            RobustClassifier,
            RobustRegressor,
            StreamScores,
        )
    targets, batches = rows @ (1.0, 0.1, -2.0), cut(rows)
    labels = (targets > np.median(targets)).astype(float)
    pairs, labelled = (list(zip(batches, cut(each_row), strict=True)) for each_row in (targets, labels))
    detector, mixture, regressor, classifier = (
        OutlierDetector().fit(rows),
        OnlineGaussianMixture(),
        RobustRegressor(),
        RobustClassifier(),
    )
    scores, classes = StreamScores().fit(rows), np.array([0.0, 1.0])
    core, other = SRA(), SRA()
    linear, logistic = regressor._make_learner(LinearRegression), classifier._make_learner(LogisticRegression)
    return {
        "scikit-learn OutlierDetector, partial_fit": (
            lambda: each(detector.partial_fit, batches),
            lambda: each(core.process, batches),
        ),
        "scikit-learn OutlierDetector, predict": (
            lambda: each(detector.predict, batches),
            lambda: each(lambda batch: core.score_only(batch, independent=True), batches),
        ),
        "scikit-learn StreamScores, transform": (
            lambda: each(scores.transform, batches),
            lambda: each(lambda batch: core.score_only(batch, independent=True), batches),
        ),
        "scikit-learn OnlineGaussianMixture, partial_fit": (
            lambda: each(mixture.partial_fit, batches),
            lambda: each(other.process, batches),
        ),
        "scikit-learn RobustRegressor, partial_fit": (
            lambda: each(lambda pair: regressor.partial_fit(*pair), pairs),
            lambda: each(lambda pair: linear.process(*pair), pairs),
        ),
        "scikit-learn RobustClassifier, partial_fit": (
            lambda: each(lambda pair: classifier.partial_fit(pair[0], pair[1], classes), labelled),
            lambda: each(lambda pair: logistic.process(*pair), labelled),
        ),
    }


def of_sktime(values: Any) -> dict[str, Pair]:
    """One piece of a series after another; a detector that begins anew, for it keeps all that it was given."""
    with optional_import("this benchmark", "sktime"):
        import pandas as pd

        from holdfast.adapters.sktime import AnomalyDetector, ChangePointDetector
    pieces = cut(pd.DataFrame({"load": values}))
    arrays = [piece.to_numpy() for piece in pieces]

    def ours(kind: Callable[[], Any]) -> Job:
        return lambda: each(kind().fit(pieces[0]).update, pieces[1:])

    def core() -> None:
        each(SRA().process, arrays)

    return {
        "sktime ChangePointDetector, fit + update": (ours(ChangePointDetector), core),
        "sktime AnomalyDetector, fit + update": (ours(AnomalyDetector), core),
    }


def cut(rows: Any) -> list[Any]:
    """In batches."""
    return [rows[first : first + BATCH] for first in range(0, len(rows), BATCH)]


def each(call: Callable[[Any], object], points: Sequence[Any]) -> None:
    """One call for each."""
    for point in points:
        call(point)
