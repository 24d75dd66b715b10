"""Settings that the page sends, and the learner or detector of each."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field

from limpet._validation import Interval
from limpet.drift import ADWIN, KSWIN, PageHinkley, RiverPageHinkley
from limpet.drift.base import DriftDetector
from limpet.learners import IEM, SDEM, SEM, SRA, Detector
from limpet.learners.base import Learner
from limpet.server.schemas import StrictModel

MAX_NUMBER = 1e12


def _limits(learner_class: type[Learner], name: str, maximum: float | None = None) -> Any:
    """Return a parameter's limits for pydantic; `maximum` is that of the explorer."""
    constraint = learner_class.constraints[name]
    interval = next(c for c in getattr(constraint, "constraints", [constraint]) if isinstance(c, Interval))
    low = "ge" if interval.accepts(interval.low) else "gt"
    limits: Any = {low: interval.low, "le": interval.high if maximum is None else maximum}
    return Field(**limits)


Far = Annotated[float, _limits(Detector, "far"), Field(description="False alarms per point, at most.")]
Rho = Annotated[float, _limits(SRA, "rho")]
Components = Annotated[int, _limits(SRA, "n_components", 5)]


class AutoSettings(StrictModel):
    """The automatic learner."""

    mode: Literal["auto"] = "auto"
    far: Far = 1e-4
    n_components: Components | Literal["auto"] = 1
    season: Annotated[int, _limits(Detector, "season", 20_000)] | Literal[0] = 0
    lags: Annotated[int, _limits(Detector, "lags", 24)] = 0

    def learner(self) -> Detector:
        """Return a new learner."""
        return Detector(**self.to_params())

    def to_params(self) -> dict[str, Any]:
        """Return the parameters that differ from the defaults."""
        return self.model_dump(exclude={"mode"}, exclude_defaults=True)


class ManualSettings(StrictModel):
    """The paper's algorithm: γ (None: ∞), ρ or β and M; `far` of its alarm Detector."""

    mode: Literal["manual"]
    gamma: Annotated[float, _limits(SRA, "gamma", MAX_NUMBER)] | None = None
    rho: Rho | None = None
    beta: Annotated[float, _limits(SRA, "beta", MAX_NUMBER)] | None = None
    M: Annotated[float, _limits(SRA, "M", MAX_NUMBER)] | None = None
    n_components: Components = 1
    norm: Literal["whitened", "mean", "full"] = "whitened"
    far: Far = 1e-4

    def learner(self) -> SRA:
        """Return a new learner."""
        return SRA(**self.to_params())

    def to_params(self) -> dict[str, Any]:
        """Return γ, and the parameters that differ from the defaults."""
        return {"gamma": math.inf} | self.model_dump(exclude={"mode", "far"}, exclude_defaults=True)

    def to_auto_settings(self) -> AutoSettings:
        """Return the settings of the automatic learner that raises the alarms."""
        return AutoSettings(far=self.far, n_components=self.n_components)


class BaselineSettings(StrictModel):
    """Another method, with those of these parameters that it has."""

    mode: Literal["baseline"]
    name: Literal["SEM", "IEM", "SDEM", "ADWIN", "KSWIN", "PageHinkley", "RiverPageHinkley"]
    n_components: Components | None = None
    rho: Rho | None = None
    r: Rho | None = None
    alpha: Annotated[float, Field(ge=0.0, le=100.0)] | None = None
    delta: Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER)] | None = None
    window: Annotated[int, Field(ge=2, le=5000)] | None = None
    stat: Annotated[int, Field(ge=1, le=1000)] | None = None
    threshold: Annotated[float, Field(gt=0.0, le=MAX_NUMBER)] | None = None

    def learner(self) -> Learner | DriftDetector:
        """Return a new learner or detector."""
        return BASELINES[self.name][0](**self.to_params())  # type: ignore[no-any-return]

    def to_params(self) -> dict[str, Any]:
        """Return the given parameters that the method has."""
        return self.model_dump(include=set(BASELINES[self.name][1]), exclude_none=True)


BASELINES: dict[str, tuple[Any, tuple[str, ...]]] = {  # classes, and the names of their parameters
    "SEM": (SEM, ("n_components", "rho")),
    "IEM": (IEM, ("n_components",)),
    "SDEM": (SDEM, ("n_components", "r", "alpha")),
    "ADWIN": (ADWIN, ("delta",)),
    "KSWIN": (KSWIN, ("alpha", "window", "stat")),
    "PageHinkley": (PageHinkley, ("delta",)),
    "RiverPageHinkley": (RiverPageHinkley, ("delta", "threshold")),
}
AnySettings = Annotated[AutoSettings | ManualSettings | BaselineSettings, Field(discriminator="mode")]
