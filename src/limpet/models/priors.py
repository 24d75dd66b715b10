"""The penalty R(θ) of the M-step (Eq. 12 of the paper) as a conjugate prior: points imagined before the first one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from limpet._jit.compile import kernel
from limpet._validation import check_floats, check_positive
from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError

# Where each number stands in the penalty's vector.
PRIOR_WEIGHT, PRIOR_MEAN, PRIOR_COVARIANCE, PRIOR_CENTER = 0, 1, 2, 3


@dataclass(frozen=True)
class ConjugatePrior:
    """Strengths of a conjugate prior, in units of the stream's own memory: 1 weighs as much as all that is remembered.

    weight: draws the weights towards equality, w = (s1 + weight)/(1 + K·weight).
    mean: draws every mean towards `centre`.
    covariance: draws every covariance towards the diagonal matrix of `scale` squared (Gaussians only).
    centre, scale: one number a variable, or one for all; by default the median and the spread of the first points.

    >>> Penalty(weight=0.01, covariance=0.05)
    Penalty(weight=0.01, mean=0.0, covariance=0.05, centre=None, scale=None)
    """

    weight: float = 0.0
    mean: float = 0.0
    covariance: float = 0.0
    center: float | Sequence[float] | None = None
    scale: float | Sequence[float] | None = None

    def __post_init__(self) -> None:
        for name in ("weight", "mean", "covariance"):
            check_positive(f"a penalty's {name}", getattr(self, name), allow_zero=True)
        for value in () if self.scale is None else np.atleast_1d(check_floats("a penalty's scale", self.scale)):
            check_positive("a penalty's scale", value)
        if self.center is not None and not np.isfinite(check_floats("a penalty's centre", self.center)).all():
            raise InvalidInputError(f"a penalty's centre must be finite, got {self.center!r}")

    def to_vector(self, d: int) -> Vector:
        """[weight, mean, covariance, centre (d), scale (d)]; NaN where the first points decide."""
        return np.concatenate(
            [
                [self.weight, self.mean, self.covariance],
                _broadcast_to_variables(self.center, d),
                _broadcast_to_variables(self.scale, d),
            ]
        )


def _broadcast_to_variables(value: float | Sequence[float] | None, d: int) -> Vector:
    array = np.atleast_1d(np.asarray(np.nan if value is None else value, dtype=float))
    if array.shape not in ((1,), (d,)):
        raise InvalidInputError(f"a penalty needs one number or {d} (one a variable), not shape {array.shape}")
    return np.broadcast_to(array, (d,))


@kernel
def prior_center(penalty: Vector, standardization: Vector, d: int, i: int) -> float:
    """The centre of variable i in the frame's coordinates: by default the frame's own centre."""
    center = penalty[PRIOR_CENTER + i]
    return 0.0 if isnan(center) else (center - standardization[i]) / standardization[d + i]


@kernel
def prior_scale(penalty: Vector, standardization: Vector, d: int, i: int) -> float:
    """The scale of variable i in the frame's coordinates: by default the frame's own scale."""
    scale = penalty[PRIOR_CENTER + d + i]
    return 1.0 if isnan(scale) else scale / standardization[d + i]
