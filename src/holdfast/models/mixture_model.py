"""What all mixtures have in common, seen from Python: settings, estimates, and what to tell the user."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from holdfast.checks import check_int, check_positive
from holdfast.errors import InvalidInputError
from holdfast.models.base import Model
from holdfast.models.mixture import MIN_WEIGHT, MixtureKernels
from holdfast.models.penalty import ConjugatePrior
from holdfast.scheme.state import Vector

DUPLICATE_DISTANCE_SD = 1e-3  # standard deviations between two means that are taken to be the same
DUPLICATE_CHECK_DISTANCE_SCALES = 0.01  # scales of the frame: means further apart than that need no closer look


@dataclass(frozen=True)
class Mixture(Model):
    """Base of the mixtures.

    n_components: K. penalty: a conjugate prior for the M-step. smoothing: SDEM's α, which keeps every responsibility
    at αρ/K at least.
    """

    n_components: int = 1
    penalty: ConjugatePrior | None = None
    smoothing: float = 0.0

    estimates: ClassVar[tuple[str, ...]] = ("weights", "means", "covariances")
    recordable: ClassVar[str] = "means"

    def __post_init__(self) -> None:
        check_int("n_components", self.n_components, 1)
        check_positive("smoothing", self.smoothing, allow_zero=True)
        if self.penalty is not None and not isinstance(self.penalty, ConjugatePrior):
            raise InvalidInputError(f"penalty must be a Penalty(…), got {self.penalty!r}")

    @property
    def min_init_points(self) -> int:  # type: ignore[override]
        """Two for each component."""
        return 2 * self.n_components

    @abstractmethod
    def kernels(self, width: int) -> MixtureKernels:
        """Compiled for this K and d."""

    @abstractmethod
    def component_covariance(self, parameters: Vector, width: int) -> Vector:
        """The covariance (d, d) of a component with these parameters, in the frame's coordinates."""

    def hyperparameters(self, width: int) -> Vector:
        """[ smoothing | penalty ]."""
        return np.concatenate([[self.smoothing], (self.penalty or ConjugatePrior()).to_vector(width)])

    def estimate(self, name: str, theta: Vector, width: int) -> Vector:
        """`weights` (K,), `means` (K, d) or `covariances` (K, d, d)."""
        kernels = self.kernels(width)
        view = kernels.layout.view
        parameters = theta.copy()
        if self.penalty is not None:
            kernels.m_step(theta, self.hyperparameters(width), parameters)
        reference, scale = view(theta, "reference"), view(theta, "scale")
        weights, components = view(parameters, "weights"), view(parameters, "components")
        if name == "weights":
            return weights / weights.sum()
        if name == "means":
            return reference + scale * components[:, :width]
        covariances = np.array([self.component_covariance(c, width) for c in components])
        return covariances * np.outer(scale, scale)

    def health_message(self, theta: Vector, width: int) -> str | None:
        """Says so when a component has lost its points, or is the copy of another."""
        view = self.kernels(width).layout.view
        starved = np.flatnonzero(view(theta, "weights") <= MIN_WEIGHT)
        if len(starved):
            return (
                f"component {', '.join(map(str, starved))} of {self.n_components} has lost its points: its weight is down "
                "to nothing. Fewer components, a Penalty(weight=…) or more first points (n_init=…) would keep it."
            )
        components = view(theta, "components")
        for k, component in enumerate(components[:-1]):
            distances = np.abs(components[k + 1 :, :width] - component[:width])
            if distances.max(axis=1).min() > DUPLICATE_CHECK_DISTANCE_SCALES:  # the usual case, at little cost
                continue
            sd = np.sqrt(np.diag(self.component_covariance(component, width)))
            if (distances < DUPLICATE_DISTANCE_SD * sd).all(axis=1).any():
                return (
                    f"component {k} of {self.n_components} has a copy: two of them describe the same points. "
                    "Fewer components or more first points (n_init=…) would help."
                )
        return None
