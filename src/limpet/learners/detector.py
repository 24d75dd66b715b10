"""The automatic learner: nothing to set, alarms at a promised false-alarm rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from limpet._validation import (
    FALSE_ALARM_RATE,
    Constraint,
    Interval,
    Optional,
    Options,
    check_param,
    invalid_param_error,
)
from limpet.learners._engine import Engine
from limpet.learners.base import Learner
from limpet.models.mixture import GaussianMixture

if TYPE_CHECKING:
    from limpet.learners._auto_engine import AutoEngine

N_INIT = 50


class Detector(Learner):
    """Automatic learner without settings; raises alarms for anomalies and changes.

    It learns with several step sizes at once and follows the one that predicts best, rejects outliers, re-initializes
    when the stream has moved beyond the threshold, and raises alarms at a promised rate: on a stream that does not
    change, on average at most one in 1/far points, for anomalies and for changes each.

    Parameters
    ----------
    n_components : int or "auto"
        Number of Gaussians; "auto": one to three, whichever explains the first points best.
    far : float
        The promised false-alarm rate per point, from 1e-12 to 0.1.
    covariance : {"full", "diagonal"}
        Form of the covariance matrices.
    lags : int
        Number of previous points to regress on; lag-1 autocorrelation is always estimated.
    season : int
        Rows per period; 0: no season.
    memory : {"full", "compact"}
        State per stream: "full" keeps 2.9 KB for one variable and one component; "compact" 512 bytes, with slightly
        later alarms, no residual scorer, and hence no `lags` and no `season`.
    beta : float, optional
        Tie the step size to the threshold by the paper's Corollary 1, with the M that the stream shows.
    n_init : int, optional
        Points that the model is initialized from. Default: 50; 100 to choose the number of components; two seasons.
    seed : int
        Seed of the initialization.
    on_invalid : {"skip", "raise"}
        Whether invalid points are counted and not used, or raise an error.

    Examples
    --------
    >>> import numpy as np
    >>> stream = np.random.default_rng(1).normal(20.0, 0.5, 1000)
    >>> stream[700] = 35.0
    >>> detector = Detector()
    >>> trace = detector.process(stream)
    >>> for alarm in trace.alarms:
    ...     print(alarm)
    row 700: anomaly, variable 0 up by 28.8 standard deviations
    >>> detector.means.round(1)
    array([[20.]])
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "n_components": Interval(int, 1, None) | Options("auto"),
        "far": FALSE_ALARM_RATE,
        "covariance": Options("full", "diagonal"),
        "lags": Interval(int, 0, None),
        "season": Interval(int, 2, None) | Options(0),
        "memory": Options("full", "compact"),
        "beta": Optional(Interval(float, 0, None, closed="neither")),
        "n_init": Interval(int, 1, None),
        "seed": Interval(int, 0, None),
        "on_invalid": Options("skip", "raise"),
    }
    mutable_params = ("far", "on_invalid")
    is_auto = True

    def __init__(
        self,
        n_components: int | str = 1,
        *,
        far: float = 1e-4,
        covariance: str = "full",
        lags: int = 0,
        season: int = 0,
        memory: str = "full",
        beta: float | None = None,
        n_init: int | None = None,
        seed: int = 0,
        on_invalid: str = "skip",
    ) -> None:
        self.n_components, self.far, self.covariance = n_components, far, covariance
        self.lags, self.season, self.memory, self.beta = lags, season, memory, beta
        for name in ("n_components", "covariance", "season"):  # the model and `n_init` are made from them
            check_param(name, getattr(self, name), self.constraints[name])
        if memory == "compact" and (lags or season):
            raise invalid_param_error("memory", "must be 'full' with lags or season", memory)
        self._given_n_init = n_init
        self._selects_components = n_components == "auto"
        n_init = max(N_INIT * (1 + self._selects_components), 2 * season) if n_init is None else n_init
        first_components = 1 if isinstance(n_components, str) else n_components
        super().__init__(GaussianMixture(first_components, covariance=covariance), n_init, seed, on_invalid)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as they were given."""
        return {name: self._given_n_init if name == "n_init" else v for name, v in super().get_params(deep).items()}

    def summary(self) -> str:
        """Summarize estimates, alarms, and whether the false-alarm rate should hold.

        Examples
        --------
        >>> import numpy as np
        >>> detector = Detector()
        >>> _ = detector.process(np.random.default_rng(2).normal(7.0, 2.0, 5000))
        >>> print(detector.summary())  # doctest: +ELLIPSIS
        5,000 points, ... rejected as outliers, 0 invalid
        level ... ± ...
        threshold 3.89 standard deviations; contamination ... %; tail scale M = 1.4...; effective memory ... points
        promise: at most one false alarm per 10,000 points, for changes and for anomalies each
        raised: 0 change alarms, 0 anomalous rows
        residuals are uncorrelated: the false-alarm rate should hold
        """
        from limpet.learners._summary import format_summary

        return format_summary(self._auto_engine)

    def residual_advice(self) -> list[str]:
        """Return a sentence for each variable whose residuals are autocorrelated."""
        from limpet.learners._summary import residual_advice

        return residual_advice(self._auto_engine) or []

    def change_evidence(self) -> float:
        """Return the log-evidence for a change, minus the log-threshold of an alarm.

        Below 0; at least log(far/q) where an alarm would have been raised at a promised rate of q instead of `far`.
        """
        return self._auto_engine.log_evidence_margin() if self._engine is not None else -math.inf

    def fitted_params(self) -> dict[str, float]:
        """Return γ in standard deviations, contamination, tail scale M, and ρ in use."""
        from limpet.learners._summary import fitted_params

        return fitted_params(self._auto_engine)

    @property
    def _auto_engine(self) -> AutoEngine:
        return self._require_engine  # type: ignore[return-value]

    def _make_engine(self, width: int) -> Engine:
        from limpet.learners._auto_engine import AutoEngine  # compiles; not needed to make a learner

        assert isinstance(self.model, GaussianMixture)
        dependence = (self.lags, self.season, self.beta or 0.0)
        return AutoEngine(
            self.model, width, self.far, self.n_init, self.seed, *dependence, self._selects_components, self.memory
        )

    def _effective_gamma(self, width: int) -> float:
        return float(np.sqrt(self._require_engine.buffer.settings[0]))

    def _extra_header(self) -> dict[str, Any]:
        engine = self._engine
        if not self._selects_components or engine is None or engine.needs_model_selection:
            return {}
        selection = self._auto_engine.selection
        assert selection is not None
        return {"choice": [cost if math.isfinite(cost) else None for cost in selection.costs]}

    def _rebuild_engine(self, header: dict[str, Any]) -> Engine:
        engine = super()._rebuild_engine(header)
        if "choice" in header:
            from limpet.auto.model_selection import ComponentSelection
            from limpet.learners._auto_engine import AutoEngine

            assert isinstance(engine, AutoEngine)
            costs = (math.inf if cost is None else cost for cost in header["choice"])
            engine.set_n_components(ComponentSelection.from_costs(costs))
        return engine
