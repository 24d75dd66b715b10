"""What is left in the residuals: do they still remember, or does their spread come in clusters?

The promise of a false-alarm rate is for residuals that are exchangeable. Three autocorrelations of each coordinate are
followed, of values cut at three standard deviations: at lag 1 and at lag `LONG` of the residual, at lag 1 of its size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import step_of
from holdfast.scheme.state import Layout, Vector

LONG = 8
SLOWLY = 0.0005
CUT = 3.0  # standard deviations
SURE = 1000.0  # points before anything is said
UNSETTLED = 200.0  # points after a change that are not looked at
MUCH = 0.1  # an autocorrelation that breaks the promise

# for each coordinate: variance, covariances at lag 1 and at LONG, then of sizes: mean, variance, covariance at lag 1;
# then the last residuals, the latest first. Last of all the points to be passed over, and the points counted.
VARIANCE, NEXT, LATER, SIZE, SIZES_VARIANCE, SIZES_NEXT, LAST = range(7)
PER_VARIABLE = LAST + LONG
PAUSE, COUNT = -2, -1


def whiteness_fields(d: int) -> dict[str, tuple[int, ...]]:
    """What is kept."""
    return {"whiteness": (PER_VARIABLE * d + 2,)}


@dataclass(frozen=True, eq=False)
class Whiteness:
    """The compiled function."""

    learn: Callable[..., Any]
    """(theta, residual): one more residual, NaN where a coordinate is missing."""


def whiteness_functions(layout: Layout, d: int) -> Whiteness:
    """For a stream whose fields lie in theta as `layout` says."""
    at = layout.at("whiteness")
    pause, count = at + PER_VARIABLE * d, at + PER_VARIABLE * d + 1

    @kernel
    def learn(theta: Vector, residual: Vector) -> None:
        if theta[pause] > 0.0:
            theta[pause] -= 1.0
            return
        theta[count] += 1.0
        step = step_of(theta[count] + 1.0, SLOWLY)
        for i in range(d):
            own, x = at + PER_VARIABLE * i, residual[i]
            if x == x:
                square = theta[own + VARIANCE]
                if x * x > CUT * CUT * square and theta[count] > 10.0:
                    x = CUT * square**0.5 * (1.0 if x > 0.0 else -1.0)
                size, before = abs(x) - theta[own + SIZE], abs(theta[own + LAST]) - theta[own + SIZE]
                theta[own + VARIANCE] += step * (x * x - square)
                theta[own + NEXT] += step * (x * theta[own + LAST] - theta[own + NEXT])
                theta[own + LATER] += step * (x * theta[own + LAST + LONG - 1] - theta[own + LATER])
                theta[own + SIZE] += step * size
                theta[own + SIZES_VARIANCE] += step * (size * size - theta[own + SIZES_VARIANCE])
                theta[own + SIZES_NEXT] += step * (size * before - theta[own + SIZES_NEXT])
            for j in range(LONG - 1, 0, -1):
                theta[own + LAST + j] = theta[own + LAST + j - 1]
            theta[own + LAST] = x if x == x else 0.0

    return Whiteness(learn)


def pause_whiteness(whiteness: Vector, variable: int, ratio: float) -> None:
    """After a change: residuals are not looked at until everything has settled.

    ratio: of the new spread of a variable to the old one, by which what is known of it is told anew.
    """
    whiteness[PAUSE] = UNSETTLED
    own = whiteness[:PAUSE].reshape(-1, PER_VARIABLE)[variable]
    own[[VARIANCE, NEXT, LATER, SIZES_VARIANCE, SIZES_NEXT]] *= ratio * ratio
    own[SIZE] *= ratio
    own[LAST:] *= ratio


@dataclass(frozen=True)
class Remembers:
    """The autocorrelations of one coordinate's residuals: at lag 1, at lag `LONG`, and of their sizes at lag 1."""

    next: float
    later: float
    size: float

    def advice(self, lags: int = 0, season: int = 0) -> str | None:
        """What to do about it, in words; None if nothing has to be done. lags, season: what it has been told.

        >>> Remembers(0.01, 0.02, 0.03).advice() is None
        True
        >>> print(Remembers(-0.2, 0.02, 0.03).advice())
        depends on more than the last value (autocorrelation -0.20 is left at lag 1): give lags=2 or more, or its season
        """
        more = f"lags={max(lags + 1, 2)} or more"
        if abs(self.later) > MUCH:
            lag = f"autocorrelation {self.later:.2f} is left at lag {LONG}"
            if season:
                return f"has a memory beyond its season ({lag}): give {more}, or watch differences"
            return f"has a season or a long memory ({lag}): give season=…, or {more}"
        if abs(self.next) > MUCH:
            lag = f"autocorrelation {self.next:.2f} is left at lag 1"
            past = f"the last {lags} values" if lags > 1 else "the last value"
            return f"depends on more than {past} ({lag}): give {more}" + (", or its season" if not season else "")
        if self.size > MUCH:
            sizes = f"autocorrelation {self.size:.2f} of sizes"
            return f"has a spread that comes in clusters ({sizes}): expect more alarms than promised"
        return None


def remembers(whiteness: Vector) -> list[Remembers] | None:
    """For each coordinate; None while too few points have come."""
    if whiteness[COUNT] < SURE:
        return None
    parts = whiteness[:PAUSE].reshape(-1, PER_VARIABLE)
    variance = np.maximum(parts[:, VARIANCE], 1e-300)
    sizes = np.maximum(parts[:, SIZES_VARIANCE], 1e-300)
    ratios = (parts[:, NEXT] / variance, parts[:, LATER] / variance, parts[:, SIZES_NEXT] / sizes)
    return [Remembers(*map(float, three)) for three in zip(*ratios, strict=True)]
