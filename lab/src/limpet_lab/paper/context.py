"""What the experiments share: the plan, the streams, and sweeps that several results are read from."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from limpet.datasets import Stream, make_abrupt, make_gradual
from limpet.metrics import benefit_auc, segment_mse
from limpet.tuning import Setting, SweepResult, sweep
from limpet_lab.paper import grids
from limpet_lab.paper.config import Plan
from limpet_lab.paper.methods import (
    FloatArray,
    Learner,
    Method,
    detectors,
    iem,
    limpet_detector,
    sdem,
    sem,
    shown_auto,
    sra,
)

KINDS = ("abrupt", "gradual")
TOLERANCE = 100  # T_b of the synthetic streams and of Well-log
AUC, S_EVAL, S_BC, S_AC, S_TOT = range(5)  # what is measured of a learner; of a detector only the first

Progress = Callable[[int, int], None]


class Lab:
    """The plan, and what has been computed under it: streams and sweeps are made once and kept."""

    def __init__(self, plan: Plan, progress: Progress | None = None) -> None:
        self.plan, self.progress = plan, progress
        self._kept: dict[tuple[object, ...], SweepResult] = {}

    def sweep(
        self,
        method: Method,
        streams: list[Stream],
        evaluate: Callable[[Setting, Stream, int], FloatArray],
        restarts: int = 1,
    ) -> SweepResult:
        """All settings of a method on some streams."""
        return sweep(
            method.settings,
            streams,
            evaluate,
            restarts=restarts if method.restarts else 1,
            workers=self.plan.workers,
            progress=self.progress,
        )

    def synthetic(self, method: Method, kind: str, dim: int, variant: str, held_out: bool = False) -> SweepResult:
        """All settings of a method on the synthetic streams: values (settings, streams, 1, variables, measures)."""
        key = (method.name, repr(method.settings), kind, dim, variant, held_out)
        if key not in self._kept:
            streams = self.streams(kind, dim, variant, held_out)

            def evaluate(setting: Setting, stream: Stream, restart: int) -> FloatArray:
                return measure(method, setting, stream, errors=not held_out)

            self._kept[key] = self.sweep(method, streams, evaluate)
        return self._kept[key]

    def streams(self, kind: str, dim: int, variant: str, held_out: bool = False) -> list[Stream]:
        """The synthetic streams of one kind, scored or held out."""
        seeds = self.plan.held_out_seeds if held_out else self.plan.seeds
        return [synthetic_stream(kind, dim, variant, seed) for seed in seeds]


@lru_cache(maxsize=64)
def synthetic_stream(kind: str, dim: int = 1, variant: str = "printed", seed: int = 0, alpha: float = 0.99) -> Stream:
    """One of the paper's synthetic streams."""
    make = make_abrupt if kind == "abrupt" else make_gradual
    return make(dim=dim, variant=variant, seed=seed, alpha=alpha)


def change_of(stream: Stream) -> int:
    """The first row of the new regime of a synthetic stream."""
    assert isinstance(stream.change_points, list)
    return stream.change_points[0]


def measure(method: Method, setting: Setting, stream: Stream, errors: bool = True) -> FloatArray:
    """(variables, measures): the AUC of each column of scores and, of a learner, the mean squared errors."""
    run = method.run(setting, stream, 0, record=errors and isinstance(method, Learner))
    areas = [[benefit_auc(column, change_of(stream), TOLERANCE)] for column in run.scores.T]
    if run.means is None or stream.means is None:
        return np.array(areas)
    return np.array([areas[0] + list(segment_mse(run.means, stream.means, change_of(stream)))])


def synthetic_learners(dim: int, quick: bool = False) -> list[Method]:
    """SRA and the paper's baselines, with the paper's grids; Detector has none."""
    settings = grids.SRA_UNIVARIATE if dim == 1 else grids.SRA_MULTIVARIATE
    learners: list[Method] = [
        Learner("SRA", settings, sra),
        limpet_detector(n_components=2),
        Learner("SDEM", grids.SDEM_SYNTHETIC, sdem),
        Learner("iEM", [{}], iem),
        Learner("sEM", grids.SEM_SYNTHETIC, sem),
    ]
    return shown_auto(learners, dim, quick)


def synthetic_methods(dim: int, quick: bool = False) -> list[Method]:
    """All of them."""
    return synthetic_learners(dim, quick) + detectors(grids.KSWIN_SYNTHETIC, grids.PH_SYNTHETIC, grids.ADWIN)
