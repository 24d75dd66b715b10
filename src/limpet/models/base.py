"""What a model is: a family of distributions, described by a few settings, that Algorithm 1 can learn."""

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
    """Base of every model. A subclass is a frozen dataclass whose fields are its settings.

    Subclasses are known by name (`limpet._registry`), so that a checkpoint can say what it was made with.
    """

    estimates: ClassVar[tuple[str, ...]] = ()
    """Names of what `estimate` can be asked for."""

    recordable: ClassVar[str] = ""
    """The estimate that `process(record=…)` can keep after each row."""

    supervised: ClassVar[bool] = False
    """Whether a point is a pair (x, y): its last number is then the target."""

    support_description: ClassVar[str] = "finite numbers, not all of a point missing"
    """What a point must be, for the message about one that cannot be used."""

    min_init_points: ClassVar[int] = 1
    """How many first points it takes to start from at the least."""

    registry: ClassVar[Registry[Model]] = Registry("model")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Model.registry.add(cls)

    @abstractmethod
    def kernels(self, width: int) -> ModelKernels:
        """The compiled functions for points of `width` numbers."""

    def hyperparameters(self, width: int) -> Vector:
        """The fixed numbers that the functions are given."""
        return np.zeros(0)

    @abstractmethod
    def estimate(self, name: str, theta: Vector, width: int) -> Any:
        """The estimate `name`, in the units of the data."""

    def predict(self, theta: Vector, features: Vector) -> Vector:
        """The target expected for each row of features (n, p); for models that learn from pairs."""
        raise AttributeError(f"{type(self).__name__} does not predict; regressions do")

    def gamma_for_rate(self, rate: float, width: int) -> float:
        """The γ of the whitened norm that a clean point exceeds with this probability; here as for a Gaussian."""
        return gamma_for_rate(rate, width - self.supervised)

    def health_message(self, theta: Vector, width: int) -> str | None:
        """Something about the state that its user should be told, in words; None if all is well."""
        return None

    def to_config(self) -> dict[str, Any]:
        """The fields by name: `type(model)(**model.settings())` equals the model."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]


def model_from_config(name: str, config: dict[str, Any]) -> Model:
    """The model called `name`; an error that says what to do where it is not known."""
    models = import_module("limpet.models")
    if name in models.__all__:  # one of ours, perhaps not imported yet
        getattr(models, name)
    return Model.registry[name](**config)
