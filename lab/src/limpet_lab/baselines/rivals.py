"""What people use in place of limpet, ready to be timed: one of them, or a dict of many, one for each stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limpet._optional import optional_import
from limpet_lab.baselines.online_em import OnlineEM
from limpet_lab.bench._scenarios import FloatArray
from limpet_lab.bench._timing import Job
from limpet_lab.bench._workloads import SHIFT, SPARE, cycling_job, plain, points_of

Learn = Callable[[Any], object]
IN_A_DICT = 1000


@dataclass(frozen=True)
class Rival:
    """One of them.

    make: a new one, as the function that takes its points one at a time. form: rows (n, d) → its points.
    warmup: points of each before the clock starts. points: how many are timed at a turn, for one stream.
    in_a_dict: how many are in the dict.
    """

    name: str
    dim: int
    make: Callable[[], Learn]
    form: Callable[[FloatArray], Sequence[Any]]
    warmup: int = 100
    points: int = 5000
    in_a_dict: int = IN_A_DICT

    def one_stream(self, short: int = 1) -> tuple[Job, int]:
        """The job of one stream, and its points; short: how many times fewer than usual."""
        n = max(self.points // short, 20)
        points, learn = self.form(points_of(self.warmup + n, 2, self.dim)), self.make()
        loop(learn, points[: self.warmup])
        points = points[self.warmup :]
        return lambda: loop(learn, points), n

    def many(self, short: int = 1) -> tuple[Job, int]:
        """The job of a dict of them, a point each, and its points."""
        return self.dict_of(self.size(short), 1000 // short)

    def size(self, short: int = 1) -> int:
        """How many are in the dict."""
        return max(self.in_a_dict // short, 10)

    def dict_of(self, n: int, worth: int = 1000) -> tuple[Job, int]:
        """The same for n of them; worth: how many points at least."""
        learners = {f"sensor {i}": self.make() for i in range(n)}
        before = self.form(points_of(10 * (self.warmup + 1), 2, self.dim))
        for i, learn in enumerate(learners.values()):
            loop(learn, before[i % 10 :: 10][: self.warmup])

        def learn_each(points: Sequence[Any]) -> None:
            for key, x in zip(learners, points, strict=True):
                learners[key](x)

        return cycling_job(learn_each, self.form(points_of(n + 10 * SHIFT, 2, self.dim)), n, worth)


def numpy_ticks(n_streams: int) -> tuple[Job, int]:
    """The job of online EM in numpy over all streams at once, and its points."""
    rows = points_of(n_streams + SPARE, 2, 1)[:, 0]
    first = np.stack([rows[SHIFT * i : SHIFT * i + n_streams] for i in range(10)])
    return cycling_job(OnlineEM(first).update, rows, n_streams)


def loop(learn: Learn, points: Sequence[Any]) -> None:
    """One point after the other."""
    for x in points:
        learn(x)


def numbers(rows: FloatArray) -> list[float]:
    """The first variable."""
    column: list[float] = rows[:, 0].tolist()
    return column


def dicts(rows: FloatArray) -> list[dict[str, float]]:
    """As river has points; between 0 and 1 up to 4σ, as its trees need them."""
    return [{f"x{i}": (x + 4.0) / 14.0 for i, x in enumerate(row)} for row in rows.tolist()]


def all_rivals() -> list[Rival]:
    """River's detectors, trees and Gaussian; PySAD's LODA; online EM in numpy; and our own learner in a dict."""
    with optional_import("this benchmark", "limpet-lab[bench]"):
        from pysad.models import LODA
        from river import anomaly, drift, proba

    def trees() -> Learn:
        model = anomaly.HalfSpaceTrees(seed=0)

        def learn(x: dict[str, float]) -> float:
            score: float = model.score_one(x)
            model.learn_one(x)
            return score

        return learn

    def gaussian() -> Learn:
        model = proba.MultivariateGaussian(seed=0)
        loop(model.update, dicts(points_of(20, 2, 3)))  # before which it has no density

        def learn(x: dict[str, float]) -> float:
            density: float = model(x)
            model.update(x)
            return density

        return learn

    return [
        Rival("river ADWIN", 1, lambda: drift.ADWIN().update, numbers, points=20_000),
        Rival("river PageHinkley", 1, lambda: drift.PageHinkley().update, numbers, points=20_000),
        Rival("river KSWIN", 1, lambda: drift.KSWIN(seed=0).update, numbers, points=1000),
        Rival("river HalfSpaceTrees", 3, trees, dicts, warmup=250, points=2000, in_a_dict=50),
        Rival("river MultivariateGaussian, learns only", 3, lambda: proba.MultivariateGaussian().update, dicts, 20),
        Rival("river MultivariateGaussian", 3, gaussian, dicts, 0, points=200),
        Rival("PySAD LODA", 3, lambda: LODA(random_state=0).fit_score_partial, list, 20, points=1000),
        Rival("online EM in numpy, K=2", 1, lambda: OnlineEM(points_of(20, 2, 1)[:, 0]).update, numbers, 20, 2000),
        Rival("`update(x)` of SRA, K=2", 1, lambda: plain().model().update, numbers, points=20_000),
    ]
