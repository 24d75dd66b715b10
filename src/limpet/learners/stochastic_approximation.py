"""Algorithm 1 for any model, step size and norm."""

from __future__ import annotations

import math
from typing import ClassVar

from limpet._validation import Constraint, Interval, Optional, Options
from limpet.core.step_sizes import Constant, StepSize
from limpet.exceptions import InvalidInputError
from limpet.learners._engine import Engine, PlainEngine
from limpet.learners.base import Learner
from limpet.models.base import Model
from limpet.models.mixture import GaussianMixture


class StochasticApproximation(Learner):
    """Algorithm 1 for any model: θ ← θ − ρ_t·H(y), unless ‖H(y)‖ > γ.

    Parameters
    ----------
    model : Model, optional
        One of `limpet.models` or a subclass of `Model`. Default: one Gaussian.
    step_size : StepSize, optional
        ρ_t, one of `limpet.core`. Default: ``Constant(0.01)``.
    gamma : float
        The threshold γ; infinity switches it off.
    norm : {"whitened", "mean", "full"}
        How ‖H‖ is measured, one of the model's norms: "whitened" in standard deviations, "mean" and "full" as in the
        paper, in the units of the data.
    n_init : int
        Points that the model is initialized from.
    warmup : int
        Points before the threshold acts.
    patience : int
        Consecutive rejections after which the threshold is lifted for another `warmup` points, so that no shift locks
        the model out; 0, as in the paper: the threshold always acts.
    seed : int
        Seed of the initialization.
    on_invalid : {"skip", "raise"}
        Whether invalid points are counted and not used, or raise an error.

    Examples
    --------
    >>> import numpy as np
    >>> from limpet.core import Constant
    >>> from limpet.models import PoissonMixture
    >>> counts = np.random.default_rng(0).poisson(4.0, 500)
    >>> counts[300] = 90
    >>> learner = StochasticApproximation(PoissonMixture(), Constant(0.02), gamma=5.0)
    >>> trace = learner.process(counts)
    >>> np.flatnonzero(trace.rejected), learner.means.round(1)
    (array([300]), array([[4.]]))
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "gamma": Optional(Interval(float, 0, math.inf, closed="right")),
        "n_init": Interval(int, 1, None),
        "warmup": Interval(int, 0, None),
        "patience": Interval(int, 0, None),
        "seed": Interval(int, 0, None),
        "on_invalid": Options("skip", "raise"),
    }
    mutable_params: ClassVar[tuple[str, ...]] = ("gamma", "norm", "warmup", "patience", "on_invalid")

    def __init__(
        self,
        model: Model | None = None,
        step_size: StepSize | None = None,
        gamma: float | None = math.inf,
        norm: str = "whitened",
        *,
        n_init: int = 10,
        warmup: int = 50,
        patience: int = 0,
        seed: int = 0,
        on_invalid: str = "skip",
    ) -> None:
        if model is not None and not isinstance(model, Model):
            raise InvalidInputError(f"model: must be one of limpet.models or a subclass of Model, got {model!r}.")
        if step_size is not None and not isinstance(step_size, StepSize):
            raise InvalidInputError(f"step_size: must be one of limpet.core, got {step_size!r}.")
        self.step_size = Constant(0.01) if step_size is None else step_size
        self.gamma, self.norm, self.warmup, self.patience = gamma, norm, warmup, patience
        super().__init__(GaussianMixture() if model is None else model, n_init, seed, on_invalid)
        if patience and not warmup:
            raise InvalidInputError("warmup: must be at least 1 with patience, which lifts the threshold for as long.")
        if gamma is not None and gamma != math.inf and not 0.0 < gamma * gamma < math.inf:
            raise InvalidInputError(f"gamma: must have a finite square above 0, got {gamma!r}. Use norm='whitened'.")

    def _make_engine(self, width: int) -> Engine:
        settings = (self.norm, self.n_init, self.warmup, self.patience, self.seed)
        return PlainEngine(self.model, width, self.step_size, self._effective_gamma(width), *settings)

    def _effective_gamma(self, width: int) -> float:
        return math.inf if self.gamma is None else float(self.gamma)
