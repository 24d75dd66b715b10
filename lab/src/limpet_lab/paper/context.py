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
    LearnerMethod,
    Method,
    filter_detector,
    make_detector_method,
    make_drift_methods,
    make_iem,
    make_sdem,
    make_sem,
    make_sra,
)

CHANGE_KINDS = ("abrupt", "gradual")
TOLERANCE_ROWS = 100  # T_b of the synthetic streams and of Well-log
AUC, S_EVAL, S_BC, S_AC, S_TOT = range(5)  # what is measured of a learner; of a detector only the first

Progress = Callable[[int, int], None]


class ExperimentContext:
    """The plan, and a cache of its streams and sweeps."""

    def __init__(self, plan: Plan, progress: Progress | None = None) -> None:
        self.plan, self.progress = plan, progress
        self._kept: dict[tuple[object, ...], SweepResult] = {}

    def run_sweep(
        self,
        method: Method,
        streams: list[Stream],
        evaluate: Callable[[Setting, Stream, int], FloatArray],
        restarts: int = 1,
    ) -> SweepResult:
        """Run all settings of a method on streams."""
        return sweep(
            method.settings,
            streams,
            evaluate,
            restarts=restarts if method.has_restarts else 1,
            workers=self.plan.workers,
            progress=self.progress,
        )

    def sweep_synthetic(self, method: Method, kind: str, dim: int, variant: str, held_out: bool = False) -> SweepResult:
        """Run all settings on the synthetic streams: values (settings, streams, 1, variables, measures)."""
        key = (method.name, repr(method.settings), kind, dim, variant, held_out)
        if key not in self._kept:
            streams = self.get_streams(kind, dim, variant, held_out)

            def evaluate(setting: Setting, stream: Stream, restart: int) -> FloatArray:
                return measure(method, setting, stream, errors=not held_out)

            self._kept[key] = self.run_sweep(method, streams, evaluate)
        return self._kept[key]

    def get_streams(self, kind: str, dim: int, variant: str, held_out: bool = False) -> list[Stream]:
        """Return the synthetic streams of one kind, scored or held out."""
        seeds = self.plan.held_out_seeds if held_out else self.plan.seeds
        return [make_synthetic_stream(kind, dim, variant, seed) for seed in seeds]


@lru_cache(maxsize=64)
def make_synthetic_stream(
    kind: str, dim: int = 1, variant: str = "printed", seed: int = 0, alpha: float = 0.99
) -> Stream:
    """Return one of the paper's synthetic streams."""
    make = make_abrupt if kind == "abrupt" else make_gradual
    return make(dim=dim, variant=variant, seed=seed, alpha=alpha)


def get_change_row(stream: Stream) -> int:
    """Return the first row of the new regime of a synthetic stream."""
    assert isinstance(stream.change_points, list)
    return stream.change_points[0]


def measure(method: Method, setting: Setting, stream: Stream, errors: bool = True) -> FloatArray:
    """Return (variables, measures): the AUC of each column of scores and, of a learner, the mean squared errors."""
    run = method.run(setting, stream, 0, record=errors and isinstance(method, LearnerMethod))
    areas = [[benefit_auc(column, get_change_row(stream), TOLERANCE_ROWS)] for column in run.scores.T]
    if run.means is None or stream.means is None:
        return np.array(areas)
    return np.array([areas[0] + list(segment_mse(run.means, stream.means, get_change_row(stream)))])


def make_synthetic_learners(dim: int, quick: bool = False) -> list[Method]:
    """Return SRA and the paper's baselines, with the paper's grids; Detector has none."""
    settings = grids.SRA_UNIVARIATE if dim == 1 else grids.SRA_MULTIVARIATE
    learners: list[Method] = [
        LearnerMethod("SRA", settings, make_sra),
        make_detector_method(n_components=2),
        LearnerMethod("SDEM", grids.SDEM_SYNTHETIC, make_sdem),
        LearnerMethod("iEM", [{}], make_iem),
        LearnerMethod("sEM", grids.SEM_SYNTHETIC, make_sem),
    ]
    return filter_detector(learners, dim, quick)


def make_synthetic_methods(dim: int, quick: bool = False) -> list[Method]:
    """Return all methods for synthetic streams."""
    return make_synthetic_learners(dim, quick) + make_drift_methods(
        grids.KSWIN_SYNTHETIC, grids.PH_SYNTHETIC, grids.ADWIN
    )
