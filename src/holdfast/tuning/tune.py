"""The best setting of a learner for some streams."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from holdfast.datasets import Stream
from holdfast.learners import StochasticApproximation
from holdfast.tuning.grid import Setting
from holdfast.tuning.objectives import Objective
from holdfast.tuning.selection import choose
from holdfast.tuning.sweep import Sweep, sweep


class Tuned(NamedTuple):
    """The best setting, what it reached on average, and all that was tried."""

    setting: Setting
    value: float
    sweep: Sweep


def tune(
    learner: Callable[..., StochasticApproximation],
    settings: Sequence[Setting],
    streams: Sequence[Stream],
    objective: Objective,
    *,
    restarts: int = 1,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Tuned:
    """Tries every setting on every stream and returns the best on average.

    Parameters
    ----------
    learner : class or function
        Makes a learner from a setting: `learner(**setting)`. With several restarts it is also given `seed`.
    settings : list of dict
        As `grid` makes them.
    streams : list of Stream
    objective : Objective
        `BenefitAUC(tolerance)`, `MeanError()`, `LabelAUC()`, or your own.
    restarts, workers, progress
        As in `sweep`.

    Examples
    --------
    >>> from holdfast import SRA
    >>> from holdfast.datasets import make_abrupt
    >>> from holdfast.tuning import MeanError, grid
    >>> settings = grid(n_components=[2], norm=["mean"], gamma=[1.0, 3.0, 15.0], beta=[0.1], M=[5.0])
    >>> best = tune(SRA, settings, [make_abrupt(n=4000, seed=seed) for seed in range(3)], MeanError())
    >>> best.setting["gamma"]
    3.0
    """
    if restarts > 1 and "seed" not in inspect.signature(learner).parameters:
        raise TypeError(f"{learner!r} takes no seed: restarts would all be the same")

    def evaluate(setting: Any, stream: Stream, restart: int) -> float:
        seed = {"seed": restart} if restarts > 1 else {}
        return objective(learner(**setting, **seed), stream)

    result = sweep(settings, streams, evaluate, restarts=restarts, workers=workers, progress=progress)
    best = choose(result.values, objective.largest)
    return Tuned(settings[best], float(result.values[best].mean()), result)
