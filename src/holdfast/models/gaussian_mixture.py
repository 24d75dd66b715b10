"""The Gaussian mixture."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from holdfast.errors import BadInputError
from holdfast.models.component import Component
from holdfast.models.gaussian_diagonal import DIAGONAL
from holdfast.models.gaussian_full import FULL, SMALLEST_PIVOT, SMALLEST_VARIANCE
from holdfast.models.mixture import MixtureFunctions, mixture_functions
from holdfast.models.mixture_model import Mixture
from holdfast.scheme.state import Vector

LOG_UNIT = 0.5 * math.log(2.0 * math.pi)
COMPONENTS: dict[str, Component] = {"full": FULL, "diagonal": DIAGONAL}


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
        if self.covariance not in COMPONENTS:
            raise BadInputError(f"covariance must be one of {', '.join(COMPONENTS)}, not {self.covariance!r}")

    def functions(self, width: int) -> MixtureFunctions:
        """Compiled for this K and d."""
        smoothed, penalised = self.smoothing > 0.0, self.penalty is not None
        return _functions(self.covariance, int(self.n_components), width, smoothed, penalised)

    def component_covariance(self, parameters: Vector, width: int) -> Vector:
        """As the kernel uses it: positive definite, whatever the data."""
        if self.covariance == "diagonal":
            return np.diag(np.maximum(parameters[width:], SMALLEST_VARIANCE))
        return positive_definite(parameters[width:], width)


@cache
def _functions(covariance: str, K: int, d: int, smoothed: bool, penalised: bool) -> MixtureFunctions:
    kind = (COMPONENTS[covariance], K, d, LOG_UNIT, True, smoothed, penalised)
    return replace(mixture_functions(*kind), whole=mixture_functions(*kind, gaps=False))


@cache
def bare_mixture(covariance: str, K: int, d: int) -> MixtureFunctions:
    """The functions of a mixture without a frame, whose points come in the coordinates of one that several share."""
    return mixture_functions(COMPONENTS[covariance], K, d, LOG_UNIT, True, False, False, bare=True)


def positive_definite(packed: Vector, d: int) -> Vector:
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
        smallest = max(SMALLEST_PIVOT * matrix[i, i], SMALLEST_VARIANCE)
        pivots[i] = max(matrix[i, i] - np.sum(lower[i, :i] ** 2 * pivots[:i]), smallest)
    result: Vector = (lower * pivots) @ lower.T
    return result
