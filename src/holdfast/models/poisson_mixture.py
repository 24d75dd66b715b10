"""The Poisson mixture, for counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from holdfast.errors import InvalidInputError
from holdfast.models import poisson
from holdfast.models.mixture import MixtureKernels, make_mixture_kernels
from holdfast.models.mixture_model import Mixture
from holdfast.scheme.state import Vector


@dataclass(frozen=True)
class PoissonMixture(Mixture):
    """K products of d Poisson distributions, for counts: calls, clicks, errors an hour.

    A point that is not made of whole numbers from 0 on is a bad one; NaN marks a missing count among several.
    `means` are the rates, and `whitened` counts standard deviations (by Anscombe's transform). The penalty acts on
    weights and means, the latter with a centre given.

    >>> PoissonMixture(2).n_components
    2
    """

    support_description: ClassVar[str] = "counts are whole numbers from 0 on, not all of a point missing"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.penalty is not None and self.penalty.mean > 0.0 and self.penalty.center is None:
            raise InvalidInputError("a penalty on the rates needs a centre to draw them to: Penalty(mean=…, centre=…)")

    def kernels(self, width: int) -> MixtureKernels:
        """Compiled for this K and d."""
        return _poisson_mixture_kernels(int(self.n_components), width, self.smoothing > 0.0, self.penalty is not None)

    def component_covariance(self, parameters: Vector, width: int) -> Vector:
        """The rates, on the diagonal."""
        return np.diag(np.maximum(parameters, poisson.MIN_RATE))


@cache
def _poisson_mixture_kernels(K: int, d: int, smoothed: bool, penalized: bool) -> MixtureKernels:
    return make_mixture_kernels(poisson.POISSON_PRODUCT, K, d, 0.0, False, smoothed, penalized, poisson.is_count_vector)
