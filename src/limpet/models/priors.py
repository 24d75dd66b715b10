"""Penalty R(θ) of the M-step (Eq. 12 of the paper) as a conjugate prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from limpet._jit.compile import kernel
from limpet._validation import check_floats, check_positive
from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError

# Indices in the vector of a prior.
PRIOR_WEIGHT, PRIOR_MEAN, PRIOR_COVARIANCE, PRIOR_CENTER = 0, 1, 2, 3


@dataclass(frozen=True)
class ConjugatePrior:
    """Strengths of a conjugate prior, relative to the effective sample size 1/ρ.

    A strength of 1 weighs as much as all points that the model remembers.

    Parameters
    ----------
    weight
        Shrinks the weights towards equality, w = (s1 + weight)/(1 + K·weight).
    mean
        Shrinks every mean towards `center`.
    covariance
        Shrinks every covariance towards the diagonal matrix of `scale` squared (Gaussians only).
    center, scale
        One number per variable, or one for all. Default: the median and the spread of the first points.

    Examples
    --------
    >>> ConjugatePrior(weight=0.01, covariance=0.05)
    ConjugatePrior(weight=0.01, mean=0.0, covariance=0.05, center=None, scale=None)
    """

    weight: float = 0.0
    mean: float = 0.0
    covariance: float = 0.0
    center: float | Sequence[float] | None = None
    scale: float | Sequence[float] | None = None

    def __post_init__(self) -> None:
        for name in ("weight", "mean", "covariance"):
            check_positive(f"penalty.{name}", getattr(self, name), allow_zero=True)
        for value in () if self.scale is None else np.atleast_1d(check_floats("penalty.scale", self.scale)):
            check_positive("penalty.scale", value)
        if self.center is not None and not np.isfinite(check_floats("penalty.center", self.center)).all():
            raise InvalidInputError(f"penalty.center: must be finite, got {self.center!r}.")

    def to_vector(self, d: int) -> Vector:
        """Return [weight, mean, covariance, center (d), scale (d)], NaN for defaults."""
        center, scale = (_broadcast_to_variables(value, d) for value in (self.center, self.scale))
        return np.concatenate([[self.weight, self.mean, self.covariance], center, scale])


def _broadcast_to_variables(value: float | Sequence[float] | None, d: int) -> Vector:
    array = np.atleast_1d(np.asarray(np.nan if value is None else value, dtype=float))
    if array.shape not in ((1,), (d,)):
        raise InvalidInputError(f"penalty: center and scale must be one number or {d}, got shape {array.shape}.")
    return np.broadcast_to(array, (d,))


@kernel
def prior_center(penalty: Vector, units: Vector, d: int, i: int) -> float:
    """Return the prior center of variable i in standardized units, by default 0."""
    center = penalty[PRIOR_CENTER + i]
    return 0.0 if isnan(center) else (center - units[i]) / units[d + i]


@kernel
def prior_scale(penalty: Vector, units: Vector, d: int, i: int) -> float:
    """Return the prior scale of variable i in standardized units, by default 1."""
    scale = penalty[PRIOR_CENTER + d + i]
    return 1.0 if isnan(scale) else scale / units[d + i]
