"""What all mixtures have in common, seen from Python: settings, estimates, and what to tell the user."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from holdfast.checks import require, require_whole
from holdfast.errors import BadInputError
from holdfast.models.base import Model
from holdfast.models.mixture import SMALLEST_WEIGHT, MixtureFunctions
from holdfast.models.penalty import Penalty
from holdfast.scheme.state import Vector

COPY = 1e-3  # standard deviations between two means that are taken to be the same
NEAR = 0.01  # scales of the frame: means further apart than that need no closer look


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
        require_whole("n_components", self.n_components, 1)
        require("smoothing", self.smoothing, zero=True)
        if self.penalty is not None and not isinstance(self.penalty, Penalty):
            raise BadInputError(f"penalty must be a Penalty(…), got {self.penalty!r}")

    @property
    def least_points(self) -> int:  # type: ignore[override]
        """Two for each component."""
        return 2 * self.n_components

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
        """Says so when a component has lost its points, or is the copy of another."""
        view = self.functions(width).layout.view
        lost = np.flatnonzero(view(theta, "weights") <= SMALLEST_WEIGHT)
        if len(lost):
            return (
                f"component {', '.join(map(str, lost))} of {self.n_components} has lost its points: its weight is down "
                "to nothing. Fewer components, a Penalty(weight=…) or more first points (n_init=…) would keep it."
            )
        components = view(theta, "components")
        for k, component in enumerate(components[:-1]):
            gaps = np.abs(components[k + 1 :, :width] - component[:width])
            if gaps.max(axis=1).min() > NEAR:  # the usual case, at little cost
                continue
            spread = np.sqrt(np.diag(self.component_covariance(component, width)))
            if (gaps < COPY * spread).all(axis=1).any():
                return (
                    f"component {k} of {self.n_components} has a copy: two of them describe the same points. "
                    "Fewer components or more first points (n_init=…) would help."
                )
        return None
