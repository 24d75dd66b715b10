"""Settings that the page sends, and the learner or detector of each."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field

from limpet._validation import FALSE_ALARM_RATE
from limpet.drift import ADWIN, KSWIN, PageHinkley, RiverPageHinkley
from limpet.drift.base import DriftDetector
from limpet.learners import IEM, SDEM, SEM, SRA, Detector
from limpet.learners.base import Learner
from limpet.server.schemas import StrictModel

FAR_FIELD = Field(ge=FALSE_ALARM_RATE.low, le=FALSE_ALARM_RATE.high, description="False alarms per point, at most.")
Far = Annotated[float, FAR_FIELD]
Positive = Annotated[float, Field(gt=0.0, le=1e12, allow_inf_nan=False)]
Components = Annotated[int, Field(ge=1, le=5)]


class AutoSettings(StrictModel):
    """The automatic learner."""

    mode: Literal["auto"] = "auto"
    far: Far = 1e-4
    n_components: Components | Literal["auto"] = 1
    season: Annotated[int, Field(ge=0, le=20_000)] = 0
    lags: Annotated[int, Field(ge=0, le=24)] = 0

    def learner(self) -> Detector:
        """Return a new learner."""
        return Detector(**self.to_params())

    def to_params(self) -> dict[str, Any]:
        """Return the parameters that differ from the defaults."""
        return self.model_dump(exclude={"mode"}, exclude_defaults=True)


class ManualSettings(StrictModel):
    """The paper's algorithm: γ (None is ∞), and ρ or β and M; `far` is of the automatic learner that raises alarms."""

    mode: Literal["manual"]
    gamma: Positive | None = None
    rho: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    beta: Positive | None = None
    M: Positive | None = None
    n_components: Components = 1
    norm: Literal["whitened", "mean", "full"] = "whitened"
    far: Far = 1e-4

    def learner(self) -> SRA:
        """Return a new learner."""
        return SRA(**self.to_params())

    def to_params(self) -> dict[str, Any]:
        """Return γ, and the parameters that differ from the defaults."""
        params: dict[str, Any] = {} if self.n_components == 1 else {"n_components": self.n_components}
        params["gamma"] = math.inf if self.gamma is None else self.gamma
        steps = {"rho": self.rho, "beta": self.beta, "M": self.M}
        params |= {name: value for name, value in steps.items() if value is not None}
        return params if self.norm == "whitened" else params | {"norm": self.norm}

    def to_auto_settings(self) -> AutoSettings:
        """Return the settings of the automatic learner that raises the alarms."""
        return AutoSettings(far=self.far, n_components=self.n_components)


class BaselineSettings(StrictModel):
    """Another method, with those of these parameters that it has."""

    mode: Literal["baseline"]
    name: Literal["SEM", "IEM", "SDEM", "ADWIN", "KSWIN", "PageHinkley", "RiverPageHinkley"]
    n_components: Components | None = None
    rho: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    r: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    alpha: Annotated[float, Field(ge=0.0, le=100.0)] | None = None
    delta: Annotated[float, Field(ge=-1e12, le=1e12)] | None = None
    window: Annotated[int, Field(ge=2, le=5000)] | None = None
    stat: Annotated[int, Field(ge=1, le=1000)] | None = None
    threshold: Positive | None = None

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
