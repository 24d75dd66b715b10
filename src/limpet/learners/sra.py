"""SRA: the paper's algorithm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from limpet._validation import check_int, check_positive
from limpet.core.step_sizes import Constant
from limpet.exceptions import InvalidInputError
from limpet.learners._engine import Engine
from limpet.learners.base import StochasticApproximation
from limpet.models.base import Model
from limpet.models.mixture import GaussianMixture
from limpet.models.priors import ConjugatePrior

if TYPE_CHECKING:
    from limpet.learners._auto_engine import AutoEngine


DEFAULT_RHO = 0.01
AUTO_N_INIT = 50
AUTO_COMPONENTS = "auto"
MIN_FAR = 1e-12
MEMORY_PROFILE_NAMES = ("full", "compact")
NORMS = ("whitened", "mean", "full")


class SRA(StochasticApproximation):
    """Learns from a stream, drops outliers, follows changes: step ρ, threshold γ [1]_.

    Without γ and ρ it runs on autopilot: nothing to tune. It learns with several step sizes at once and goes by the
    one that predicts best, begins anew when the stream has moved beyond the threshold, and raises alarms at a
    promised rate: on a stream that does not change, at most one in 1/far points, for anomalies and for changes each.
    With γ or ρ (or beta and M, half_life, a penalty or a model) it is the paper's algorithm, and raises none.

    n_components: K, the number of Gaussians, or on autopilot "auto": one to three, whichever explains the first
        points best. covariance: "full" or "diagonal". penalty: a prior for the M-step.
    model: another model altogether, instead of these three.
    gamma: the threshold; by default from `far` if ρ is given; the autopilot has its own (see `threshold`).
    norm: "whitened" (γ counts standard deviations, whatever the units), "mean" or "full" (the paper's, in the units of
        the data and about their origin).
    rho: the step size, or half_life: points after which a point's weight has halved, or beta and M: ρ from γ by
        Corollary 1 of the paper, ρ = β·exp(−γ²/M²)/(2γ). beta alone: the autopilot, its step tied to its γ by the same
        relation, with the M that the stream shows.
    far: the false-alarm rate; with ρ alone, the share of clean points that the threshold may drop.
    lags, season: on autopilot, how far back a point depends on those before it, and after how many points things
        repeat themselves. Lag 1 is always looked at; a stream with a longer memory keeps the promise if it is told.
    memory: on autopilot, how much is kept of a stream: "full" (2.9 KB for one variable and one component) or "compact"
        (512 bytes): somewhat later alarms, and no look at what the past tells of the next point.
    n_init: points the start is made from: 10, on autopilot 50 (100 to choose the number of components, or two seasons).
    warmup: points before the threshold acts; on autopilot it always does. seed: of the start.
    patience: points dropped in a row after which the threshold does not act for another `warmup` points; 0, as in the
        paper: it always acts. The autopilot has a rescue of its own.
    on_invalid: "skip" passes over points that cannot be used and counts them, "raise" raises.

    >>> import numpy as np
    >>> stream = np.random.default_rng(1).normal(20.0, 0.5, 1000)
    >>> stream[700] = 35.0
    >>> model = SRA()
    >>> trace = model.process(stream)
    >>> np.flatnonzero(trace.dropped)
    array([700])
    >>> model.means.round(1)
    array([[20.]])

    .. [1] Fukushima, S., Nitanda, A. and Yamanishi, K. (2020). Online robust and adaptive learning from data streams.
       arXiv:2007.12160.
    """

    def __init__(
        self,
        n_components: int | str = 1,
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
        far: float = 1e-4,
        lags: int = 0,
        season: int = 0,
        memory: str = "full",
        n_init: int | None = None,
        warmup: int = 50,
        patience: int = 0,
        seed: int = 0,
        on_invalid: str = "skip",
    ) -> None:
        self.n_components, self.covariance, self.penalty, self.far = n_components, covariance, penalty, far
        self.rho, self.beta, self.M, self.half_life = rho, beta, M, half_life
        if model is not None and (n_components != 1 or covariance != "full" or penalty is not None):
            raise InvalidInputError("give either a model or n_components, covariance and penalty, not both")
        if norm not in NORMS and model is None:
            raise InvalidInputError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
        if gamma is None and norm != "whitened":
            raise InvalidInputError(f"only the whitened norm has a threshold of its own: norm={norm!r} needs a gamma")
        settings = {"model": model, "penalty": penalty, "gamma": gamma, "rho": rho, "M": M, "half_life": half_life}
        manual_params = [name for name, setting in settings.items() if setting is not None]
        self._is_auto = not manual_params
        self._selects_components = n_components == AUTO_COMPONENTS
        if isinstance(n_components, str) and not (self._selects_components and self._is_auto):
            raise InvalidInputError(
                f"n_components is a whole number, or {AUTO_COMPONENTS!r} on autopilot, got {n_components!r}"
            )
        self.lags, self.season = check_int("lags", lags, 0), check_int("season", season, 0)
        if (lags or season) and manual_params:
            raise InvalidInputError(
                f"lags and season are the autopilot's, which runs without {', '.join(manual_params)}"
            )
        self.memory = memory
        if memory not in MEMORY_PROFILE_NAMES:
            raise InvalidInputError(f"memory must be one of {', '.join(MEMORY_PROFILE_NAMES)}, got {memory!r}")
        if memory != "full" and manual_params:
            raise InvalidInputError(
                f"memory={memory!r} is the autopilot's, which runs without {', '.join(manual_params)}"
            )
        if memory != "full" and (lags or season):
            raise InvalidInputError(f"memory={memory!r} has no room for lags and season")
        if patience and self._is_auto:
            raise InvalidInputError("patience is for a threshold of your own (gamma or rho): the autopilot needs none")
        self._given_model, self._given_n_init = model, n_init
        super().__init__(
            model
            or GaussianMixture(1 if isinstance(n_components, str) else n_components, penalty, covariance=covariance),
            self._make_step_size(gamma),
            gamma,
            norm,
            n_init=self._default_n_init() if n_init is None else n_init,
            warmup=warmup,
            patience=patience,
            seed=seed,
            on_invalid=on_invalid,
        )
        check_positive("far", far, maximum=0.1 if self._is_auto else 0.5)
        if self._is_auto:
            self._check_auto_params()

    @property
    def mutable_params(self) -> tuple[str, ...]:
        """The autopilot keeps all but its promise in its state."""
        if self._is_auto:
            return ("far", "on_invalid")
        return (*super().mutable_params, "rho", "beta", "M", "half_life", "far")

    def _check_auto_params(self) -> None:
        """The autopilot's few settings."""
        if self.far < MIN_FAR:
            raise InvalidInputError(f"far must be at least {MIN_FAR:g}, got {self.far!r}")
        if self.beta is not None:
            check_positive("beta", self.beta)
        if self.season == 1:
            raise InvalidInputError("season counts the rows of a period: at least 2, or 0 for none; got 1")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings it was made with, by name; `model` is None where the others describe it."""
        given = {"model": self._given_model, "n_init": self._given_n_init}
        return {name: given.get(name, value) for name, value in super().get_params(deep).items()}

    def _make_engine(self, width: int) -> Engine:
        if not self._is_auto:
            return super()._make_engine(width)
        from limpet.learners._auto_engine import AutoEngine

        settings = (
            self.far,
            self.n_init,
            self.seed,
            self.lags,
            self.season,
            self.beta or 0.0,
            self._selects_components,
        )
        return AutoEngine(self.model, width, *settings, self.memory)  # type: ignore[arg-type]

    def _extra_header(self) -> dict[str, Any]:
        engine = self._engine
        if not self._selects_components or engine is None or engine.needs_model_selection:
            return {}
        selection = self._auto_engine().selection
        assert selection is not None
        return {"choice": [cost if math.isfinite(cost) else None for cost in selection.costs]}

    def _rebuild_engine(self, header: dict[str, Any]) -> Engine:
        engine = super()._rebuild_engine(header)
        if "choice" in header:
            from limpet.auto.model_selection import ComponentSelection
            from limpet.learners._auto_engine import AutoEngine

            assert isinstance(engine, AutoEngine)
            engine.set_n_components(
                ComponentSelection.from_costs(math.inf if cost is None else cost for cost in header["choice"])
            )
        return engine

    def summary(self) -> str:
        """On autopilot: what it has found out about the stream, in words, and whether its promise can be kept.

        >>> import numpy as np
        >>> model = SRA()
        >>> _ = model.process(np.random.default_rng(2).normal(7.0, 2.0, 5000))
        >>> print(model.summary())  # doctest: +ELLIPSIS
        5000 points, ... dropped as outliers, 0 not usable
        level ... ± ...
        threshold 3.89 standard deviations; contamination ... %; scale of the tail M = 1.4...
        promise: at most one false alarm in 10,000 points, for changes and for anomalies each
        raised so far: 0 change alarms, 0 anomalous rows
        the residuals are white: nothing speaks against the promise
        """
        from limpet.learners._summary import format_summary

        return format_summary(self._auto_engine())

    def change_evidence(self) -> float:
        """On autopilot: the logarithm of the evidence for a change, less that at which an alarm is raised.

        Below 0; log(far/q) or more where an alarm would have been raised at a promise of q instead of `far`.
        """
        return self._auto_engine().log_evidence_margin() if self._engine is not None else -math.inf

    def fitted_params(self) -> dict[str, float]:
        """On autopilot: γ in standard deviations, contamination and tail scale M of the stream, the step ρ in use."""
        from limpet.learners._summary import fitted_params

        return fitted_params(self._auto_engine())

    def _auto_engine(self) -> AutoEngine:
        if not self._is_auto:
            raise InvalidInputError(
                "only the autopilot finds anything out: SRA() without gamma, rho, M, penalty and model"
            )
        return self._require_engine  # type: ignore[return-value]

    def _default_n_init(self) -> int:
        """Points to start from."""
        if not self._is_auto:
            return 10
        return max(AUTO_N_INIT * (1 + self._selects_components), 2 * self.season)

    def _make_step_size(self, gamma: float | None) -> Constant:
        methods = {
            "rho": self.rho is not None,
            "half_life": self.half_life is not None,
            "beta and M": self.beta is not None or self.M is not None,
        }
        if sum(methods.values()) > 1:
            given = ", ".join(name for name, is_given in methods.items() if is_given)
            raise InvalidInputError(f"the step size is given twice: {given}; give one of them")
        if self.half_life is not None:
            return Constant.from_half_life(self.half_life)
        if self._is_auto:
            return Constant(DEFAULT_RHO)  # not used
        if methods["beta and M"]:
            if self.beta is None or self.M is None or gamma is None:
                raise InvalidInputError("Corollary 1 gives the step size from gamma, beta and M: all three are needed")
            from limpet.tradeoff import step_size  # not needed otherwise, and not quick to import

            return Constant(float(step_size(gamma, self.beta, self.M)))
        return Constant(DEFAULT_RHO if self.rho is None else self.rho)

    def _effective_gamma(self, width: int) -> float:
        if self._is_auto and self._engine is not None:
            return float(np.sqrt(self._engine.buffer.settings[0]))
        return self.model.gamma_for_rate(self.far, width) if self.gamma is None else float(self.gamma)
