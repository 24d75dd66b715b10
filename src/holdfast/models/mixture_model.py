"""What all mixtures have in common, seen from Python: settings, estimates, and what to tell the user."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from holdfast.errors import BadInputError
from holdfast.models.base import Model
from holdfast.models.mixture import SMALLEST_WEIGHT, MixtureFunctions
from holdfast.models.penalty import Penalty
from holdfast.scheme.state import Vector


@dataclass(frozen=True)
class Mixture(Model):
    """Base of the mixtures.

    n_components: K. penalty: a conjugate prior for the M-step. smoothing: SDEM's α, which keeps every responsibility
    at αρ/K at least.
    """

    n_components: int = 1
    penalty: Penalty | None = None
    smoothing: float = 0.0

    estimates: ClassVar[tuple[str, ...]] = ("weights", "means", "covariances")
    recorded: ClassVar[str] = "means"

    def __post_init__(self) -> None:
        K = self.n_components
        if isinstance(K, bool) or not isinstance(K, int | np.integer) or K < 1:
            raise BadInputError(f"n_components must be a whole number of at least 1, not {K!r}")
        if not 0.0 <= self.smoothing < math.inf:
            raise BadInputError(f"smoothing must be a number of at least 0, not {self.smoothing!r}")

    @abstractmethod
    def functions(self, width: int) -> MixtureFunctions:
        """Compiled for this K and d."""

    @abstractmethod
    def component_covariance(self, parameters: Vector, width: int) -> Vector:
        """The covariance (d, d) of a component with these parameters, in the frame's coordinates."""

    def hyper(self, width: int) -> Vector:
        """[ smoothing | penalty ]."""
        return np.concatenate([[self.smoothing], (self.penalty or Penalty()).vector(width)])

    def estimate(self, name: str, theta: Vector, width: int) -> Vector:
        """`weights` (K,), `means` (K, d) or `covariances` (K, d, d)."""
        functions = self.functions(width)
        view = functions.layout.view
        parameters = theta.copy()
        if self.penalty is not None:
            functions.maximise(theta, self.hyper(width), parameters)
        reference, scale = view(theta, "reference"), view(theta, "scale")
        weights, components = view(parameters, "weights"), view(parameters, "components")
        if name == "weights":
            return weights / weights.sum()
        if name == "means":
            return reference + scale * components[:, :width]
        covariances = np.array([self.component_covariance(c, width) for c in components])
        return covariances * np.outer(scale, scale)

    def trouble(self, theta: Vector, width: int) -> str | None:
        """Says so when a component has lost its points."""
        lost = np.flatnonzero(self.functions(width).layout.view(theta, "weights") <= SMALLEST_WEIGHT)
        if not len(lost):
            return None
        return (
            f"component {', '.join(map(str, lost))} of {self.n_components} has lost its points: its weight is down to "
            "nothing. Fewer components, a Penalty(weight=…) or more first points (n_init=…) would keep it."
        )
