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
from limpet_lab.paper.grids import THRESHOLDS_OF_RIVERS_PH

# How a learner is started: on the stream's first points, or on points drawn in their range, as on the real data.

FloatArray = npt.NDArray[np.float64]

FIRST_POINTS = 10
DRAWN_POINTS = 20
RANGE = slice(19, 40)  # the paper's y_20 … y_40


def drawn_start(y: FloatArray, restart: int) -> FloatArray:
    """Points drawn uniformly between the least and the largest value of y_20 … y_40, each variable separately.

    >>> points = drawn_start(np.arange(100.0).reshape(-1, 1), restart=0)
    >>> points.shape, bool(points.min() >= 19.0), bool(points.max() <= 39.0)
    ((20, 1), True, True)
    """
    low, high = y[RANGE].min(axis=0), y[RANGE].max(axis=0)
    return np.random.default_rng(restart).uniform(low, high, (DRAWN_POINTS, y.shape[1]))


AUTO = "Detector"


class Run(NamedTuple):
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
    def restarts(self) -> bool:
        """Whether a restart makes a difference."""

    def run(self, setting: Setting, stream: Stream, restart: int, record: bool = False) -> Run:
        """Score every row before it is learned."""


@dataclass(frozen=True)
class Learner:
    """A learner: SRA, SDEM, iEM, sEM.

    drawn: started on points drawn in the range of the first ones (real data) instead of on the first ten (synthetic).
    by_itself: started on the stream's own first points, as many as it needs.
    anomalies: a rejected point keeps its score; for changes it has none and can raise no alarm.
    """

    name: str
    settings: Sequence[Setting]
    make: Callable[..., StochasticApproximation | Detector]
    drawn: bool = False
    anomalies: bool = False
    by_itself: bool = False

    @property
    def restarts(self) -> bool:
        """Drawn points differ."""
        return self.drawn

    def run(self, setting: Setting, stream: Stream, restart: int, record: bool = False) -> Run:
        """Score every row before it is learned."""
        before = drawn_start(stream.y, restart) if self.drawn else stream.y[:0]
        start = {} if self.by_itself else {"n_init": DRAWN_POINTS if self.drawn else FIRST_POINTS}
        learner = self.make(**setting, **start)
        trace = learner.process(np.vstack([before, stream.y]), record="means" if record else None)
        scores = (trace.score if self.anomalies else trace.change_score)[len(before) :, None]
        return Run(scores, trace.means[len(before) :] if record else None)


@dataclass(frozen=True)
class Drift:
    """A detector of changes, one for each variable."""

    name: str
    settings: Sequence[Setting]
    make: Callable[..., Any]
    restarts: bool = False

    def run(self, setting: Setting, stream: Stream, restart: int, record: bool = False) -> Run:
        """Scores every row."""
        try:
            detector = self.make(**setting)
        except InvalidInputError as error:
            raise CannotRunError(str(error)) from None
        return Run(detector.process(stream.y).reshape(stream.y.shape))


@dataclass(frozen=True)
class Dummy:
    """A score that knows nothing of the values: constant, random, or the time. What does not beat it found nothing."""

    name: str
    settings: Sequence[Setting] = ({},)

    @property
    def restarts(self) -> bool:
        """The random one differs."""
        return self.name == "random"

    def run(self, setting: Setting, stream: Stream, restart: int, record: bool = False) -> Run:
        """Scores every row."""
        if self.name == "constant":
            return Run(np.zeros((len(stream), 1)))
        if self.name == "time":
            return Run(np.arange(float(len(stream)))[:, None])
        first = int(np.abs(stream.y[0]).sum() * 1e6) % 2**32  # another stream, another seed
        return Run(np.random.default_rng([restart, first]).random((len(stream), 1)))


def sra(**setting: Any) -> StochasticApproximation:
    """SRA as the paper's notebooks run it: ‖H‖ over the mean statistics, ρ by Corollary 1."""
    return SRA(**{"n_components": 2, "norm": "mean", **setting})


def sra_full_norm(**setting: Any) -> StochasticApproximation:
    """SRA as the paper's equations have it: ‖H‖ over all statistics."""
    return sra(norm="full", **setting)


def shown_auto(methods: Sequence[Method], dim: int, quick: bool) -> list[Method]:
    """Without Detector where there are several variables and no time: it takes long to compile."""
    return [method for method in methods if method.name != AUTO or dim == 1 or not quick]


def limpet_detector(n_components: int | None = None, anomalies: bool = False) -> Learner:
    """Return the Detector with its defaults: one setting, not tuned, not started by us.

    n_components: where all learners are given it, as on the synthetic streams.
    """
    setting = {} if n_components is None else {"n_components": n_components}
    return Learner(AUTO, [setting], Detector, anomalies=anomalies, by_itself=True)


def sem(**setting: Any) -> StochasticApproximation:
    """The online EM algorithm: SRA without the threshold. It is `SEM` to the last bit, and compiled already."""
    return sra(gamma=math.inf, **setting)


def sdem(**setting: Any) -> StochasticApproximation:
    """SDEM with smoothing α = 1, two components by default."""
    return SDEM(**{"n_components": 2, **setting})


def iem(**setting: Any) -> StochasticApproximation:
    """iEM, which has no rate to choose; two components by default."""
    return IEM(**{"n_components": 2, **setting})


def detectors(kswin: Sequence[Setting], ph: Sequence[Setting], adwin: Sequence[Setting]) -> list[Method]:
    """The detectors of changes, river's own Page–Hinkley next to the paper's, and the dummies."""
    return [
        Drift("ADWIN", adwin, ADWIN),
        Drift("KSWIN", kswin, KSWIN),
        Drift("PH", ph, PageHinkley),
        Drift("PH-river", [{**s, "threshold": t} for s in ph for t in THRESHOLDS_OF_RIVERS_PH], RiverPageHinkley),
        Dummy("constant"),
        Dummy("random"),
        Dummy("time"),
    ]
