"""Model interface: a family of distributions, for Algorithm 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from limpet._registry import Registry
from limpet.core.model_kernels import ModelKernels
from limpet.core.state import Vector
from limpet.core.threshold import gamma_for_rate


class Model(ABC):
    """Base class of models: frozen dataclasses whose fields are their settings.

    Subclasses are registered by name (`limpet._registry`), so that a checkpoint can name its model.
    """

    estimates: ClassVar[tuple[str, ...]] = ()
    """Names of the estimates that `estimate` returns."""

    recordable: ClassVar[str] = ""
    """Name of the estimate that `process(record=…)` can store after each row."""

    supervised: ClassVar[bool] = False
    """Whether a point is a pair (x, y): its last number is then the target."""

    support_description: ClassVar[str] = "finite numbers, not all of a point missing"
    """Condition of a valid point, for messages about invalid ones."""

    min_init_points: ClassVar[int] = 1
    """Minimum number of points for the initialization."""

    registry: ClassVar[Registry[Model]] = Registry("model")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Model.registry.add(cls)

    @abstractmethod
    def kernels(self, width: int) -> ModelKernels:
        """Return the compiled functions for points of `width` numbers."""

    def hyperparameters(self, width: int) -> Vector:
        """Return the hyperparameters that the functions take."""
        return np.zeros(0)

    @abstractmethod
    def estimate(self, name: str, theta: Vector, width: int) -> Any:
        """Return the estimate `name`, in the units of the data."""

    def predict(self, theta: Vector, features: Vector) -> Vector:
        """Return the expected target of each row of features (n, p)."""
        raise AttributeError(f"{type(self).__name__} does not predict; regressions do.")

    def gamma_for_rate(self, rate: float, width: int) -> float:
        """Return the γ of the whitened norm that a clean point exceeds at a rate."""
        return gamma_for_rate(rate, width - self.supervised)

    def health_message(self, theta: Vector, width: int) -> str | None:
        """Return a message about a problem of the state, or None."""
        return None

    def to_config(self) -> dict[str, Any]:
        """Return the fields by name: `type(model)(**model.to_config())` equals the model."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]


def model_from_config(name: str, config: dict[str, Any]) -> Model:
    """Return the model called `name` with this configuration."""
    models = import_module("limpet.models")
    if name in models.__all__:  # part of limpet, possibly not imported yet
        getattr(models, name)
    return Model.registry[name](**config)
