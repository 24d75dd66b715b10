"""Mixtures of Gaussians, and of Poisson distributions for counts."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np

from limpet._validation import check_int, check_positive
from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError
from limpet.models._mixture_kernels import MIN_WEIGHT, MixtureKernels, make_mixture_kernels
from limpet.models.base import Model
from limpet.models.components import poisson
from limpet.models.components.base import Component
from limpet.models.components.gaussian_diagonal import DIAGONAL_GAUSSIAN
from limpet.models.components.gaussian_full import FULL_GAUSSIAN, MIN_PIVOT_SHARE, MIN_VARIANCE
from limpet.models.priors import ConjugatePrior

DUPLICATE_DISTANCE_SD = 1e-3  # sd between two means that count as duplicates
DUPLICATE_CHECK_DISTANCE_SCALES = 0.01  # standardized units: means further apart need no exact check


@dataclass(frozen=True)
class Mixture(Model):
    """Base class of mixtures; `smoothing` is SDEM's α: responsibilities ≥ αρ/K."""

    n_components: int = 1
    penalty: ConjugatePrior | None = None
    smoothing: float = 0.0

    estimates: ClassVar[tuple[str, ...]] = ("weights", "means", "covariances")
    recordable: ClassVar[str] = "means"

    def __post_init__(self) -> None:
        check_int("n_components", self.n_components, 1)
        check_positive("smoothing", self.smoothing, allow_zero=True)
        if self.penalty is not None and not isinstance(self.penalty, ConjugatePrior):
            raise InvalidInputError(f"penalty: must be a ConjugatePrior, got {self.penalty!r}.")

    @property
    def min_init_points(self) -> int:  # type: ignore[override]
        """Two per component."""
        return 2 * self.n_components

    @abstractmethod
    def kernels(self, width: int) -> MixtureKernels:
        """Return the compiled functions for this K and d."""

    @abstractmethod
    def component_covariance(self, parameters: Vector, width: int) -> Vector:
        """Return the covariance (d, d) of a component, in standardized units."""

    def hyperparameters(self, width: int) -> Vector:
        """Return [ smoothing | penalty ]."""
        return np.concatenate([[self.smoothing], (self.penalty or ConjugatePrior()).to_vector(width)])

    def estimate(self, name: str, theta: Vector, width: int) -> Vector:
        """Return `weights` (K,), `means` (K, d) or `covariances` (K, d, d)."""
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
        """Return a message if a component has lost its points or duplicates another."""
        view = self.kernels(width).layout.view
        starved = np.flatnonzero(view(theta, "weights") <= MIN_WEIGHT)
        if len(starved):
            return (
                f"component {', '.join(map(str, starved))} of {self.n_components} has lost its points: its weight is "
                "about 0. Use fewer components, penalty=ConjugatePrior(weight=…), or a larger n_init."
            )
        components = view(theta, "components")
        for k, component in enumerate(components[:-1]):
            distances = np.abs(components[k + 1 :, :width] - component[:width])
            if distances.max(axis=1).min() > DUPLICATE_CHECK_DISTANCE_SCALES:  # the most common case, at little cost
                continue
            sd = np.sqrt(np.diag(self.component_covariance(component, width)))
            if (distances < DUPLICATE_DISTANCE_SD * sd).all(axis=1).any():
                return (
                    f"component {k} of {self.n_components} has a copy: both describe the same points. "
                    "Use fewer components or a larger n_init."
                )
        return None


HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
COMPONENT_BY_COVARIANCE: dict[str, Component] = {"full": FULL_GAUSSIAN, "diagonal": DIAGONAL_GAUSSIAN}


@dataclass(frozen=True)
class GaussianMixture(Mixture):
    """Mixture of K Gaussians in d dimensions, learned by online EM [1]_.

    The statistics are ŝ = (s1, s2, s3): running responsibility, responsibility·y and responsibility·yyᵀ of each
    component; weights = s1, means = s2/s1, covariances = s3/s1 − μμᵀ. A NaN in a point of several variables is a
    missing value: density and expected statistics are those of the observed coordinates.

    Parameters
    ----------
    n_components
        K.
    penalty
        A conjugate prior for the M-step.
    smoothing
        SDEM's α.
    covariance
        "full" or "diagonal".

    Examples
    --------
    >>> GaussianMixture(n_components=2, covariance="diagonal")
    GaussianMixture(n_components=2, penalty=None, smoothing=0.0, covariance='diagonal')

    References
    ----------
    .. [1] Cappé, O. and Moulines, E. (2009). On-line expectation-maximization algorithm for latent data models.
       Journal of the Royal Statistical Society B 71(3).
    """

    covariance: str = "full"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.covariance not in COMPONENT_BY_COVARIANCE:
            raise InvalidInputError(
                f"covariance: must be one of {', '.join(COMPONENT_BY_COVARIANCE)}, got {self.covariance!r}."
            )

    def kernels(self, width: int) -> MixtureKernels:
        """Return the compiled functions for this K and d."""
        smoothed, penalized = self.smoothing > 0.0, self.penalty is not None
        return _gaussian_mixture_kernels(self.covariance, int(self.n_components), width, smoothed, penalized)

    def component_covariance(self, parameters: Vector, width: int) -> Vector:
        """Return the covariance as the kernel uses it: positive definite for all data."""
        if self.covariance == "diagonal":
            return np.diag(np.maximum(parameters[width:], MIN_VARIANCE))
        return unpack_positive_definite(parameters[width:], width)


@cache
def _gaussian_mixture_kernels(covariance: str, K: int, d: int, smoothed: bool, penalized: bool) -> MixtureKernels:
    arguments = (COMPONENT_BY_COVARIANCE[covariance], K, d, HALF_LOG_2PI, True, smoothed, penalized)
    lane_kernels = make_mixture_kernels(*arguments, handles_missing=False)
    return replace(make_mixture_kernels(*arguments), lane_kernels=lane_kernels)


@cache
def standardized_mixture_kernels(covariance: str, K: int, d: int) -> MixtureKernels:
    """Return the functions of a mixture whose points are standardized by the caller."""
    component = COMPONENT_BY_COVARIANCE[covariance]
    return make_mixture_kernels(component, K, d, HALF_LOG_2PI, True, False, False, is_prestandardized=True)


def unpack_positive_definite(packed: Vector, d: int) -> Vector:
    """Return the covariance L·D·Lᵀ of a packed triangle, with bounded pivots D.

    >>> float(np.linalg.det(unpack_positive_definite(np.array([1.0, 1.0, 1.0]), 2))) > 0  # two collinear variables
    True
    """
    matrix = np.zeros((d, d))
    matrix[np.tril_indices(d)] = packed
    lower, pivots = np.eye(d), np.empty(d)
    for i in range(d):
        for j in range(i):
            lower[i, j] = (matrix[i, j] - np.sum(lower[i, :j] * pivots[:j] * lower[j, :j])) / pivots[j]
        min_pivot = max(MIN_PIVOT_SHARE * matrix[i, i], MIN_VARIANCE)
        pivots[i] = max(matrix[i, i] - np.sum(lower[i, :i] ** 2 * pivots[:i]), min_pivot)
    return (lower * pivots) @ lower.T


@dataclass(frozen=True)
class PoissonMixture(Mixture):
    """Mixture of K products of d Poisson distributions, for counts.

    A point with values other than non-negative integers is invalid; NaN marks a missing count among several. `means`
    are the rates, and the norm `whitened` is in standard deviations (by Anscombe's transform). The penalty acts on
    weights and means; for means it needs a center.

    Parameters
    ----------
    n_components
        K.
    penalty
        A conjugate prior for the M-step.
    smoothing
        SDEM's α.

    Examples
    --------
    >>> PoissonMixture(2).n_components
    2
    """

    support_description: ClassVar[str] = "non-negative integers, not all of a point missing"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.penalty is not None and self.penalty.mean > 0.0 and self.penalty.center is None:
            raise InvalidInputError("penalty: needs a center for the rates: ConjugatePrior(mean=…, center=…).")

    def kernels(self, width: int) -> MixtureKernels:
        """Return the compiled functions for this K and d."""
        return _poisson_mixture_kernels(int(self.n_components), width, self.smoothing > 0.0, self.penalty is not None)

    def component_covariance(self, parameters: Vector, width: int) -> Vector:
        """Return the rates, on the diagonal."""
        return np.diag(np.maximum(parameters, poisson.MIN_RATE))


@cache
def _poisson_mixture_kernels(K: int, d: int, smoothed: bool, penalized: bool) -> MixtureKernels:
    return make_mixture_kernels(poisson.POISSON_PRODUCT, K, d, 0.0, False, smoothed, penalized, poisson.is_count_vector)
