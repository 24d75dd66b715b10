"""The methods compared: each with its grid, each run in the same way, each giving a score for every row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from limpet.datasets import Stream
from limpet.drift import ADWIN, KSWIN, PageHinkley, RiverPageHinkley
from limpet.exceptions import InvalidInputError
from limpet.learners import IEM, SDEM, SRA, Detector, StochasticApproximation
from limpet.tuning import CannotRunError, Setting
from limpet_lab.paper.grids import RIVER_PH_THRESHOLDS

# How a learner is started: on the stream's first points, or on points drawn in their range, as on the real data.

FloatArray = npt.NDArray[np.float64]

N_FIRST_POINTS = 10
N_DRAWN_POINTS = 20
START_RANGE_ROWS = slice(19, 40)  # the paper's y_20 … y_40


def draw_start_points(y: FloatArray, restart: int) -> FloatArray:
    """Draw points uniformly between the least and the largest value of y_20 … y_40, each variable separately.

    >>> points = draw_start_points(np.arange(100.0).reshape(-1, 1), restart=0)
    >>> points.shape, bool(points.min() >= 19.0), bool(points.max() <= 39.0)
    ((20, 1), True, True)
    """
    low, high = y[START_RANGE_ROWS].min(axis=0), y[START_RANGE_ROWS].max(axis=0)
    return np.random.default_rng(restart).uniform(low, high, (N_DRAWN_POINTS, y.shape[1]))


DETECTOR_NAME = "Detector"


class MethodRun(NamedTuple):
    """scores (T, V): one column for a learner, one for each variable for a detector; means (T, K, d) if recorded."""

    scores: FloatArray
    means: FloatArray | None = None


class Method(Protocol):
    """A name, a grid, and a way to run one setting on one stream."""

    @property
    def name(self) -> str:
        """What it is called in the tables."""

    @property
    def settings(self) -> Sequence[Setting]:
        """Its grid."""

    @property
    def has_restarts(self) -> bool:
        """Whether a restart makes a difference."""

    def run(self, setting: Setting, stream: Stream, restart: int, record: bool = False) -> MethodRun:
        """Score every row before it is learned."""


@dataclass(frozen=True)
class LearnerMethod:
    """A learner: SRA, SDEM, iEM, sEM.

    drawn: started on points drawn in the range of the first ones (real data) instead of on the first ten (synthetic).
    by_itself: started on the stream's own first points, as many as it needs.
    anomalies: a rejected point keeps its score; for changes it has none and can raise no alarm.
    """

    name: str
    settings: Sequence[Setting]
    make: Callable[..., StochasticApproximation | Detector]
    starts_on_drawn_points: bool = False
    scores_rejected_points: bool = False
    uses_default_start: bool = False

    @property
    def has_restarts(self) -> bool:
        """Drawn points differ."""
        return self.starts_on_drawn_points

    def run(self, setting: Setting, stream: Stream, restart: int, record: bool = False) -> MethodRun:
        """Score every row before it is learned."""
        start_points = draw_start_points(stream.y, restart) if self.starts_on_drawn_points else stream.y[:0]
        start_settings = (
            {}
            if self.uses_default_start
            else {"n_init": N_DRAWN_POINTS if self.starts_on_drawn_points else N_FIRST_POINTS}
        )
        learner = self.make(**setting, **start_settings)
        trace = learner.process(np.vstack([start_points, stream.y]), record="means" if record else None)
        scores = (trace.score if self.scores_rejected_points else trace.change_score)[len(start_points) :, None]
        return MethodRun(scores, trace.means[len(start_points) :] if record else None)


@dataclass(frozen=True)
class DriftMethod:
    """A detector of changes, one for each variable."""

    name: str
    settings: Sequence[Setting]
    make: Callable[..., Any]
    has_restarts: bool = False

    def run(self, setting: Setting, stream: Stream, restart: int, record: bool = False) -> MethodRun:
        """Scores every row."""
        try:
            detector = self.make(**setting)
        except InvalidInputError as error:
            raise CannotRunError(str(error)) from None
        return MethodRun(detector.process(stream.y).reshape(stream.y.shape))


@dataclass(frozen=True)
class DummyMethod:
    """A score that ignores the values: constant, random, or the time."""

    name: str
    settings: Sequence[Setting] = ({},)

    @property
    def has_restarts(self) -> bool:
        """The random one differs."""
        return self.name == "random"

    def run(self, setting: Setting, stream: Stream, restart: int, record: bool = False) -> MethodRun:
        """Scores every row."""
        if self.name == "constant":
            return MethodRun(np.zeros((len(stream), 1)))
        if self.name == "time":
            return MethodRun(np.arange(float(len(stream)))[:, None])
        first = int(np.abs(stream.y[0]).sum() * 1e6) % 2**32  # another stream, another seed
        return MethodRun(np.random.default_rng([restart, first]).random((len(stream), 1)))


def make_sra(**setting: Any) -> StochasticApproximation:
    """Return SRA as the paper's notebooks run it: ‖H‖ over the mean statistics, ρ by Corollary 1."""
    return SRA(**{"n_components": 2, "norm": "mean", **setting})


def make_sra_full_norm(**setting: Any) -> StochasticApproximation:
    """Return SRA as the paper's equations have it: ‖H‖ over all statistics."""
    return make_sra(norm="full", **setting)


def filter_detector(methods: Sequence[Method], dim: int, quick: bool) -> list[Method]:
    """Leave out Detector in quick runs with several variables: it takes long to compile."""
    return [method for method in methods if method.name != DETECTOR_NAME or dim == 1 or not quick]


def make_detector_method(n_components: int | None = None, scores_rejected_points: bool = False) -> LearnerMethod:
    """Return the Detector with its defaults: one setting, not tuned, not started by us.

    n_components: where all learners are given it, as on the synthetic streams.
    """
    setting = {} if n_components is None else {"n_components": n_components}
    return LearnerMethod(
        DETECTOR_NAME, [setting], Detector, scores_rejected_points=scores_rejected_points, uses_default_start=True
    )


def make_sem(**setting: Any) -> StochasticApproximation:
    """Return online EM: SRA without the threshold. It is `SEM` to the last bit, and compiled already."""
    return make_sra(gamma=math.inf, **setting)


def make_sdem(**setting: Any) -> StochasticApproximation:
    """Return SDEM with smoothing α = 1, two components by default."""
    return SDEM(**{"n_components": 2, **setting})


def make_iem(**setting: Any) -> StochasticApproximation:
    """Return iEM, which has no rate to choose; two components by default."""
    return IEM(**{"n_components": 2, **setting})


def make_drift_methods(kswin: Sequence[Setting], ph: Sequence[Setting], adwin: Sequence[Setting]) -> list[Method]:
    """Return the detectors of changes, river's own Page–Hinkley next to the paper's, and the dummies."""
    return [
        DriftMethod("ADWIN", adwin, ADWIN),
        DriftMethod("KSWIN", kswin, KSWIN),
        DriftMethod("PH", ph, PageHinkley),
        DriftMethod("PH-river", [{**s, "threshold": t} for s in ph for t in RIVER_PH_THRESHOLDS], RiverPageHinkley),
        DummyMethod("constant"),
        DummyMethod("random"),
        DummyMethod("time"),
    ]
