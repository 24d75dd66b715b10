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
from limpet_lab.bench._workloads import MAX_CALL_SHIFT_ROWS, SPARE_ROWS, make_cycling_job, make_sra_kind, draw_points

LearnFunction = Callable[[Any], object]
N_DICT_LEARNERS = 1000


@dataclass(frozen=True)
class Baseline:
    """One of them.

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

    def make_single_job(self, short: int = 1) -> tuple[Job, int]:
        """The job of one stream, and its points; short: how many times fewer than usual."""
        n = max(self.n_timed_points // short, 20)
        points, learn = self.to_points(draw_points(self.n_warmup_points + n, 2, self.dim)), self.make()
        call_each(learn, points[: self.n_warmup_points])
        points = points[self.n_warmup_points :]
        return lambda: call_each(learn, points), n

    def make_dict_job(self, short: int = 1) -> tuple[Job, int]:
        """The job of a dict of them, a point each, and its points."""
        return self.make_dict_job_of(self.get_dict_size(short), 1000 // short)

    def get_dict_size(self, short: int = 1) -> int:
        """How many are in the dict."""
        return max(self.n_in_dict // short, 10)

    def make_dict_job_of(self, n: int, worth: int = 1000) -> tuple[Job, int]:
        """The same for n of them; worth: how many points at least."""
        learners = {f"sensor {i}": self.make() for i in range(n)}
        before = self.to_points(draw_points(10 * (self.n_warmup_points + 1), 2, self.dim))
        for i, learn in enumerate(learners.values()):
            call_each(learn, before[i % 10 :: 10][: self.n_warmup_points])

        def learn_each(points: Sequence[Any]) -> None:
            for key, x in zip(learners, points, strict=True):
                learners[key](x)

        return make_cycling_job(learn_each, self.to_points(draw_points(n + 10 * MAX_CALL_SHIFT_ROWS, 2, self.dim)), n, worth)


def make_numpy_job(n_streams: int) -> tuple[Job, int]:
    """The job of online EM in numpy over all streams at once, and its points."""
    rows = draw_points(n_streams + SPARE_ROWS, 2, 1)[:, 0]
    first = np.stack([rows[MAX_CALL_SHIFT_ROWS * i : MAX_CALL_SHIFT_ROWS * i + n_streams] for i in range(10)])
    return make_cycling_job(OnlineEM(first).update, rows, n_streams)


def call_each(learn: LearnFunction, points: Sequence[Any]) -> None:
    """One point after the other."""
    for x in points:
        learn(x)


def to_floats(rows: FloatArray) -> list[float]:
    """The first variable."""
    column: list[float] = rows[:, 0].tolist()
    return column


def to_dicts(rows: FloatArray) -> list[dict[str, float]]:
    """As river has points; between 0 and 1 up to 4σ, as its trees need them."""
    return [{f"x{i}": (x + 4.0) / 14.0 for i, x in enumerate(row)} for row in rows.tolist()]


def make_baselines() -> list[Baseline]:
    """River's detectors, trees and Gaussian; PySAD's LODA; online EM in numpy; and our own learner in a dict."""
    with optional_import("this benchmark", "limpet-lab[bench]"):
        from pysad.models import LODA
        from river import anomaly, drift, proba

    def trees() -> LearnFunction:
        model = anomaly.HalfSpaceTrees(seed=0)

        def learn(x: dict[str, float]) -> float:
            score: float = model.score_one(x)
            model.learn_one(x)
            return score

        return learn

    def gaussian() -> LearnFunction:
        model = proba.MultivariateGaussian(seed=0)
        call_each(model.update, to_dicts(draw_points(20, 2, 3)))  # before which it has no density

        def learn(x: dict[str, float]) -> float:
            density: float = model(x)
            model.update(x)
            return density

        return learn

    return [
        Baseline("river ADWIN", 1, lambda: drift.ADWIN().update, to_floats, n_timed_points=20_000),
        Baseline("river PageHinkley", 1, lambda: drift.PageHinkley().update, to_floats, n_timed_points=20_000),
        Baseline("river KSWIN", 1, lambda: drift.KSWIN(seed=0).update, to_floats, n_timed_points=1000),
        Baseline("river HalfSpaceTrees", 3, trees, to_dicts, n_warmup_points=250, n_timed_points=2000, n_in_dict=50),
        Baseline("river MultivariateGaussian, learns only", 3, lambda: proba.MultivariateGaussian().update, to_dicts, 20),
        Baseline("river MultivariateGaussian", 3, gaussian, to_dicts, 0, n_timed_points=200),
        Baseline("PySAD LODA", 3, lambda: LODA(random_state=0).fit_score_partial, list, 20, n_timed_points=1000),
        Baseline("online EM in numpy, K=2", 1, lambda: OnlineEM(draw_points(20, 2, 1)[:, 0]).update, to_floats, 20, 2000),
        Baseline("`update(x)` of SRA, K=2", 1, lambda: make_sra_kind().make_model().update, to_floats, n_timed_points=20_000),
    ]
