"""The Gaussian mixture."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from holdfast.errors import InvalidInputError
from holdfast.models.component import Component
from holdfast.models.gaussian_diagonal import DIAGONAL_GAUSSIAN
from holdfast.models.gaussian_full import FULL_GAUSSIAN, MIN_PIVOT_SHARE, MIN_VARIANCE
from holdfast.models.mixture import MixtureKernels, make_mixture_kernels
from holdfast.models.mixture_model import Mixture
from holdfast.scheme.state import Vector

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
COMPONENT_BY_COVARIANCE: dict[str, Component] = {"full": FULL_GAUSSIAN, "diagonal": DIAGONAL_GAUSSIAN}


@dataclass(frozen=True)
class GaussianMixture(Mixture):
    """K Gaussians in d dimensions, learnt by the online EM algorithm [1]_.

    The statistics are ŝ = (s1, s2, s3): running responsibility, responsibility·y and responsibility·yyᵀ of each
    component; weights = s1, means = s2/s1, covariances = s3/s1 − μμᵀ. A NaN in a point of several variables means that
    it is missing: density and expected statistics are those of the observed coordinates.

    n_components: K. penalty: a conjugate prior for the M-step. smoothing: SDEM's α.
    covariance: "full" or "diagonal".

    >>> GaussianMixture(n_components=2, covariance="diagonal")
    GaussianMixture(n_components=2, penalty=None, smoothing=0.0, covariance='diagonal')

    .. [1] Cappé, O. and Moulines, E. (2009). On-line expectation-maximization algorithm for latent data models.
       Journal of the Royal Statistical Society B 71(3).
    """

    covariance: str = "full"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.covariance not in COMPONENT_BY_COVARIANCE:
            raise InvalidInputError(
                f"covariance must be one of {', '.join(COMPONENT_BY_COVARIANCE)}, not {self.covariance!r}"
            )

    def kernels(self, width: int) -> MixtureKernels:
        """Compiled for this K and d."""
        smoothed, penalized = self.smoothing > 0.0, self.penalty is not None
        return _gaussian_mixture_kernels(self.covariance, int(self.n_components), width, smoothed, penalized)

    def component_covariance(self, parameters: Vector, width: int) -> Vector:
        """As the kernel uses it: positive definite, whatever the data."""
        if self.covariance == "diagonal":
            return np.diag(np.maximum(parameters[width:], MIN_VARIANCE))
        return unpack_positive_definite(parameters[width:], width)


@cache
def _gaussian_mixture_kernels(covariance: str, K: int, d: int, smoothed: bool, penalized: bool) -> MixtureKernels:
    arguments = (COMPONENT_BY_COVARIANCE[covariance], K, d, HALF_LOG_2PI, True, smoothed, penalized)
    return replace(
        make_mixture_kernels(*arguments), lane_kernels=make_mixture_kernels(*arguments, handles_missing=False)
    )


@cache
def standardized_mixture_kernels(covariance: str, K: int, d: int) -> MixtureKernels:
    """The functions of a mixture without a frame, whose points come in the coordinates of one that several share."""
    return make_mixture_kernels(
        COMPONENT_BY_COVARIANCE[covariance], K, d, HALF_LOG_2PI, True, False, False, is_prestandardized=True
    )


def unpack_positive_definite(packed: Vector, d: int) -> Vector:
    """The covariance L·D·Lᵀ of a packed lower triangle, its pivots D held at their smallest value.

    >>> float(np.linalg.det(positive_definite(np.array([1.0, 1.0, 1.0]), 2))) > 0  # two collinear variables
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
    result: Vector = (lower * pivots) @ lower.T
    return result
