"""The penalty R(θ) of the M-step (Eq. 12 of the paper) as a conjugate prior: points imagined before the first one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from holdfast.checks import as_floats, require
from holdfast.errors import BadInputError
from holdfast.scheme.compiling import kernel
from holdfast.scheme.state import Vector

# Where each number stands in the penalty's vector.
WEIGHT, MEAN, COVARIANCE, CENTRE = 0, 1, 2, 3


@dataclass(frozen=True)
class Penalty:
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
    centre: float | Sequence[float] | None = None
    scale: float | Sequence[float] | None = None

    def __post_init__(self) -> None:
        for name in ("weight", "mean", "covariance"):
            require(f"a penalty's {name}", getattr(self, name), zero=True)
        for value in () if self.scale is None else np.atleast_1d(as_floats("a penalty's scale", self.scale)):
            require("a penalty's scale", value)
        if self.centre is not None and not np.isfinite(as_floats("a penalty's centre", self.centre)).all():
            raise BadInputError(f"a penalty's centre must be finite, got {self.centre!r}")

    def vector(self, d: int) -> Vector:
        """[weight, mean, covariance, centre (d), scale (d)]; NaN where the first points decide."""
        return np.concatenate(
            [[self.weight, self.mean, self.covariance], _spread(self.centre, d), _spread(self.scale, d)]
        )


def _spread(value: float | Sequence[float] | None, d: int) -> Vector:
    array = np.atleast_1d(np.asarray(np.nan if value is None else value, dtype=float))
    if array.shape not in ((1,), (d,)):
        raise BadInputError(f"a penalty needs one number or {d} (one a variable), not shape {array.shape}")
    return np.broadcast_to(array, (d,))


@kernel
def centre_of(penalty: Vector, frame: Vector, d: int, i: int) -> float:
    """The centre of variable i in the frame's coordinates: by default the frame's own centre."""
    centre = penalty[CENTRE + i]
    return 0.0 if isnan(centre) else (centre - frame[i]) / frame[d + i]


@kernel
def scale_of(penalty: Vector, frame: Vector, d: int, i: int) -> float:
    """The scale of variable i in the frame's coordinates: by default the frame's own scale."""
    scale = penalty[CENTRE + d + i]
    return 1.0 if isnan(scale) else scale / frame[d + i]
