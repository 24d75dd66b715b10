"""SRA: the paper's algorithm."""

from __future__ import annotations

from typing import Any, ClassVar

from limpet._validation import Constraint, Interval, Optional, Options, check_param
from limpet.core.step_sizes import Constant
from limpet.exceptions import InvalidInputError
from limpet.learners.stochastic_approximation import StochasticApproximation
from limpet.models.base import Model
from limpet.models.mixture import GaussianMixture
from limpet.models.priors import ConjugatePrior

DEFAULT_RHO = 0.01


class SRA(StochasticApproximation):
    """Stochastic approximation [1]_ with a threshold: θ ← θ − ρ·H unless ‖H‖ > γ.

    The paper's Algorithm 1 with its letters. For a learner without settings, which also raises alarms, use `Detector`.

    Parameters
    ----------
    n_components : int
        K, the number of Gaussians.
    gamma : float, optional
        The threshold γ; ``math.inf`` switches it off. Default: from `reject_rate`.
    rho : float, optional
        The step size ρ. Default: 0.01.
    beta, M : float, optional
        ρ from γ by Corollary 1 of the paper instead of `rho`: ρ = β·exp(−γ²/M²)/(2γ).
    half_life : float, optional
        Points after which the weight of a point has halved, instead of `rho`.
    norm : {"whitened", "mean", "full"}
        "whitened": γ counts standard deviations, in any units; "mean" and "full": the paper's norms, in the
        units of the data and about their origin; they require `gamma`.
    covariance : {"full", "diagonal"}
        Form of the covariance matrices.
    penalty : ConjugatePrior, optional
        A prior for the M-step.
    model : Model, optional
        Another model, instead of `n_components`, `covariance` and `penalty`.
    reject_rate : float
        Share of clean points that the threshold may reject where `gamma` is not given.
    n_init : int
        Points that the model is initialized from.
    warmup : int
        Points before the threshold acts.
    patience : int
        Consecutive rejections after which the threshold is lifted for another `warmup` points; 0, as in the paper: the
        threshold always acts.
    seed : int
        Seed of the initialization.
    on_invalid : {"skip", "raise"}
        Whether invalid points are counted and not used, or raise an error.

    References
    ----------
    .. [1] Fukushima, S., Nitanda, A. and Yamanishi, K. (2020). Online robust and adaptive learning from data streams.
       arXiv:2007.12160.

    Examples
    --------
    >>> import numpy as np
    >>> stream = np.random.default_rng(1).normal(20.0, 0.5, 1000)
    >>> stream[700] = 35.0
    >>> sra = SRA(gamma=4.0, rho=0.01)
    >>> trace = sra.process(stream)
    >>> np.flatnonzero(trace.rejected)
    array([700])
    >>> sra.means.round(1)
    array([[20.]])
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        **StochasticApproximation.constraints,
        "n_components": Interval(int, 1, None),
        "rho": Optional(Interval(float, 0, 1, closed="right")),
        "beta": Optional(Interval(float, 0, None, closed="neither")),
        "M": Optional(Interval(float, 0, None, closed="neither")),
        "half_life": Optional(Interval(float, 0, None, closed="neither")),
        "norm": Options("whitened", "mean", "full"),  # of the mixture; another `model` has its own
        "covariance": Options("full", "diagonal"),
        "reject_rate": Interval(float, 0, 0.5, closed="right"),
    }
    mutable_params = (*StochasticApproximation.mutable_params, "rho", "beta", "M", "half_life", "reject_rate")

    def __init__(
        self,
        n_components: int = 1,
        gamma: float | None = None,
        rho: float | None = None,
        *,
        beta: float | None = None,
        M: float | None = None,
        half_life: float | None = None,
        norm: str = "whitened",
        covariance: str = "full",
        penalty: ConjugatePrior | None = None,
        model: Model | None = None,
        reject_rate: float = 1e-4,
        n_init: int = 10,
        warmup: int = 50,
        patience: int = 0,
        seed: int = 0,
        on_invalid: str = "skip",
    ) -> None:
        self.n_components, self.covariance, self.penalty = n_components, covariance, penalty
        self.rho, self.beta, self.M, self.half_life, self.reject_rate = rho, beta, M, half_life, reject_rate
        self._given_model = model
        if gamma is None and rho is None and half_life is None and beta is None and M is None:
            raise InvalidInputError(
                "gamma or rho: at least one is required, got neither. "
                "For a learner with nothing to set, use limpet.Detector()."
            )
        for name in ("n_components", "rho", "beta", "M", "half_life", "covariance", "reject_rate"):
            check_param(name, getattr(self, name), self.constraints[name])
        if model is not None and (n_components != 1 or covariance != "full" or penalty is not None):
            raise InvalidInputError("model: replaces n_components, covariance and penalty. Give one or the other.")
        if gamma is None and norm != "whitened":
            raise InvalidInputError(f"gamma: required with norm={norm!r}, whose units are those of the data, got None.")
        if model is None:
            check_param("norm", norm, self.constraints["norm"])
            model = GaussianMixture(n_components, penalty, covariance=covariance)
        super().__init__(
            model,
            self._make_step_size(gamma),
            gamma,
            norm,
            n_init=n_init,
            warmup=warmup,
            patience=patience,
            seed=seed,
            on_invalid=on_invalid,
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `model` is None where the others describe it."""
        return {name: self._given_model if name == "model" else v for name, v in super().get_params(deep).items()}

    def _make_step_size(self, gamma: float | None) -> Constant:
        methods = {
            "rho": self.rho is not None,
            "half_life": self.half_life is not None,
            "beta and M": self.beta is not None or self.M is not None,
        }
        given = [name for name, is_given in methods.items() if is_given]
        if len(given) > 1:
            raise InvalidInputError(f"{given[0]}: sets the step size, and so does {given[1]}. Give one of them.")
        if self.half_life is not None:
            return Constant.from_half_life(self.half_life)
        if methods["beta and M"]:
            if self.beta is None or self.M is None or gamma is None:
                raise InvalidInputError("beta: Corollary 1 gives ρ from gamma, beta and M. Give all three.")
            from limpet.tradeoff import step_size  # slow to import, and needed only here

            return Constant(float(step_size(gamma, self.beta, self.M)))
        return Constant(DEFAULT_RHO if self.rho is None else self.rho)

    def _effective_gamma(self, width: int) -> float:
        return self.model.gamma_for_rate(self.reject_rate, width) if self.gamma is None else float(self.gamma)
