"""Baselines for timing: one detector, or a dict of detectors by stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limpet._optional import optional_import
from limpet_lab.baselines.online_em import OnlineEM
from limpet_lab.bench._scenarios import FloatArray
from limpet_lab.bench._timing import Job
from limpet_lab.bench._workloads import MAX_CALL_SHIFT_ROWS, SPARE_ROWS, draw_points, make_cycling_job, make_sra_kind

LearnFunction = Callable[[Any], object]
N_DICT_LEARNERS = 1000


@dataclass(frozen=True)
class Baseline:
    """A detector to be timed, for one stream or in a dict by stream.

    make: a new one, as the function that takes its points one at a time. form: rows (n, d) → its points.
    warmup: points of each before the clock starts. points: how many are timed at a turn, for one stream.
    in_a_dict: how many are in the dict.
    """

    name: str
    dim: int
    make: Callable[[], LearnFunction]
    to_points: Callable[[FloatArray], Sequence[Any]]
    n_warmup_points: int = 100
    n_timed_points: int = 5000
    n_in_dict: int = N_DICT_LEARNERS

    def make_single_job(self, divisor: int = 1) -> tuple[Job, int]:
        """Return the job of one stream, and its points; divisor: how many times fewer than usual."""
        n = max(self.n_timed_points // divisor, 20)
        points, learn = self.to_points(draw_points(self.n_warmup_points + n, 2, self.dim)), self.make()
        call_each(learn, points[: self.n_warmup_points])
        points = points[self.n_warmup_points :]
        return lambda: call_each(learn, points), n

    def make_dict_job(self, divisor: int = 1) -> tuple[Job, int]:
        """Return the job of a dict of detectors, a point each, and its points."""
        return self.make_dict_job_of(self.get_dict_size(divisor), 1000 // divisor)

    def get_dict_size(self, divisor: int = 1) -> int:
        """Return the number of detectors in the dict."""
        return max(self.n_in_dict // divisor, 10)

    def make_dict_job_of(self, n: int, min_points: int = 1000) -> tuple[Job, int]:
        """Return the job of a dict of n detectors, and its points, at least `min_points`."""
        learners = {f"sensor {i}": self.make() for i in range(n)}
        warmup_points = self.to_points(draw_points(10 * (self.n_warmup_points + 1), 2, self.dim))
        for i, learn in enumerate(learners.values()):
            call_each(learn, warmup_points[i % 10 :: 10][: self.n_warmup_points])

        def learn_each(points: Sequence[Any]) -> None:
            for key, x in zip(learners, points, strict=True):
                learners[key](x)

        return make_cycling_job(
            learn_each, self.to_points(draw_points(n + 10 * MAX_CALL_SHIFT_ROWS, 2, self.dim)), n, min_points
        )


def make_numpy_job(n_streams: int) -> tuple[Job, int]:
    """Return the job of online EM in numpy over all streams at once, and its points."""
    rows = draw_points(n_streams + SPARE_ROWS, 2, 1)[:, 0]
    first = np.stack([rows[MAX_CALL_SHIFT_ROWS * i : MAX_CALL_SHIFT_ROWS * i + n_streams] for i in range(10)])
    return make_cycling_job(OnlineEM(first).update, rows, n_streams)


def call_each(learn: LearnFunction, points: Sequence[Any]) -> None:
    """Learn one point after the other."""
    for x in points:
        learn(x)


def to_floats(rows: FloatArray) -> list[float]:
    """Return the first variable."""
    column: list[float] = rows[:, 0].tolist()
    return column


def to_dicts(rows: FloatArray) -> list[dict[str, float]]:
    """Return points as river has them, up to 4σ between 0 and 1, as its trees need them."""
    return [{f"x{i}": (x + 4.0) / 14.0 for i, x in enumerate(row)} for row in rows.tolist()]


def make_baselines() -> list[Baseline]:
    """Return River's detectors, trees and Gaussian; PySAD's LODA; online EM in numpy; and our own learner in a dict."""
    with optional_import("this benchmark", "limpet-lab[bench]"):
        from pysad.models import LODA
        from river import anomaly, drift, proba

    def make_trees() -> LearnFunction:
        model = anomaly.HalfSpaceTrees(seed=0)

        def learn(x: dict[str, float]) -> float:
            score: float = model.score_one(x)
            model.learn_one(x)
            return score

        return learn

    def make_gaussian() -> LearnFunction:
        model = proba.MultivariateGaussian(seed=0)
        call_each(model.update, to_dicts(draw_points(20, 2, 3)))  # before which it has no density

        def learn(x: dict[str, float]) -> float:
            density: float = model(x)
            model.update(x)
            return density

        return learn

    def make_online_em() -> LearnFunction:
        return OnlineEM(draw_points(20, 2, 1)[:, 0]).update

    def make_sra() -> LearnFunction:
        return make_sra_kind().make_learner().update

    return [
        Baseline("river ADWIN", 1, lambda: drift.ADWIN().update, to_floats, n_timed_points=20_000),
        Baseline("river PageHinkley", 1, lambda: drift.PageHinkley().update, to_floats, n_timed_points=20_000),
        Baseline("river KSWIN", 1, lambda: drift.KSWIN(seed=0).update, to_floats, n_timed_points=1000),
        Baseline(
            "river HalfSpaceTrees", 3, make_trees, to_dicts, n_warmup_points=250, n_timed_points=2000, n_in_dict=50
        ),
        Baseline(
            "river MultivariateGaussian, learns only", 3, lambda: proba.MultivariateGaussian().update, to_dicts, 20
        ),
        Baseline("river MultivariateGaussian", 3, make_gaussian, to_dicts, 0, n_timed_points=200),
        Baseline("PySAD LODA", 3, lambda: LODA(random_state=0).fit_score_partial, list, 20, n_timed_points=1000),
        Baseline("online EM in numpy, K=2", 1, make_online_em, to_floats, 20, 2000),
        Baseline("`update(x)` of SRA, K=2", 1, make_sra, to_floats, n_timed_points=20_000),
    ]
