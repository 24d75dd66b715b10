"""The start of a mixture from a handful of points, some of which may be outliers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holdfast.models.component import Component
from holdfast.models.frame import frame_of, in_frame, medians
from holdfast.models.trimmed_em import fits_of
from holdfast.scheme.state import Layout, Vector

SEEDINGS = 20
TRIMMED = 0.1  # share of the points that may be outliers
FAR = 5.0  # spreads from the median beyond which a first point has to have company
SMALLEST_VARIANCE = 1e-4  # of the spread of all points: to begin too wide is safe, to begin too narrow is not
FEW_POINTS = 10  # for each component: with so few, some coordinate always seems to tell groups apart
MOST_POINTS = 500  # that a mixture is fitted to: with more it takes longer and is no better
COMPANY = 0.25  # of its distance from the median: whoever is as near to it as this keeps it company


def trustworthy(points: Vector, K: int, far: float = FAR) -> npt.NDArray[np.bool_]:
    """Which points to start from: not those far from the median, unless they have company enough to be a component.

    >>> trustworthy(np.array([[0.1], [0.2], [0.3], [0.4], [90.0]]), 2)
    array([ True,  True,  True,  True, False])
    >>> trustworthy(np.array([[0.1], [0.2], [0.3], [0.4], [90.0], [91.0]]), 2).all()
    np.True_
    """
    scaled = np.nan_to_num(in_frame(points, *frame_of(points)), nan=0.0)  # what is missing is no reason to doubt
    near = np.abs(scaled).max(axis=1) <= far
    if K > 1:
        others = scaled[:: 1 + len(scaled) // MOST_POINTS]
        gaps = np.linalg.norm(scaled[:, None] - others[None], axis=2)
        close = gaps <= COMPANY * np.linalg.norm(scaled, axis=1)[:, None]
        near |= close.sum(axis=1) - 1 >= max(1.0, TRIMMED * len(others))
    enough = 2 * near.sum() > len(points)  # if not, there is no majority to speak of: every point counts
    return near if enough else np.ones(len(points), bool)


def start_mixture(
    component: Component, layout: Layout, points: Vector, theta: Vector, log_unit: float, framed: bool, seed: int
) -> None:
    """Fills theta from the first points, NaN where a coordinate is missing.

    The frame is taken from them (if `framed`); points that lie far out and alone are put aside; the rest is fitted by
    trimmed EM.
    """
    d = points.shape[1]
    K, _ = layout.fields["components"]
    reference, scale = frame_of(points) if framed else (np.zeros(d), np.ones(d))
    theta[:] = 0.0
    layout.view(theta, "reference")[:] = reference
    layout.view(theta, "scale")[:] = scale
    layout.view(theta, "inverse_scale")[:] = 1.0 / scale
    layout.view(theta, "log_unit")[:] = np.sum(np.log(scale)) + d * log_unit
    fit = theta[layout.at("weights") :]  # weights and components, the last fields
    fit[:] = fit_mixture(component, in_frame(points, reference, scale), trustworthy(points, K), K, TRIMMED, seed)


def side_by_side(points: Vector, K: int) -> Vector:
    """(d, K, d): for each coordinate K points at its quantiles, in the middle of the other coordinates."""
    d = points.shape[1]
    levels = np.tile(medians(points), (d, K, 1))
    for i in range(d):
        levels[i, :, i] = np.quantile(points[:, i], (np.arange(K) + 0.5) / K)
    return levels


def fit_mixture(
    component: Component,
    points: Vector,
    trusted: npt.NDArray[np.bool_],
    K: int,
    trimmed: float,
    seed: int,
    unknown: float = 1.0,
) -> Vector:
    """[ weights | components ] of a trimmed fit to the trusted points, which come in the coordinates of a frame.

    unknown: the variance of a variable that has shown one value only, in units of that value.
    """
    if K > 1 and len(points) > MOST_POINTS:
        some = slice(None, None, 1 + len(points) // MOST_POINTS)
        points, trusted = points[some], trusted[some]
    d = points.shape[1]
    size = component.size(d)
    fit = np.zeros(K + K * size)
    filled = np.where(np.isnan(points), medians(points), points)
    seeds = np.random.default_rng(seed).random((SEEDINGS if K > 1 else 1, K, 2))
    flat = np.nanmax(points, axis=0) == np.nanmin(points, axis=0)
    floors = np.where(flat, unknown, SMALLEST_VARIANCE)
    scaled, guessed = np.ascontiguousarray(points), np.ascontiguousarray(filled)
    observed = np.sum(~np.isnan(points), axis=1)
    several = K > 1 and d > 1 and len(points) > FEW_POINTS * K
    levels = side_by_side(filled[trusted], K) if several else np.zeros((0, K, d))
    fits, work = fits_of(component), component.work(d)
    if K == 1 and trimmed == 0.0 and observed.min() == d:
        fits.moments(scaled, observed, trusted, fit, floors, size)
    else:
        fits.trimmed(scaled, guessed, observed, trusted, fit, seeds, levels, floors, trimmed, K, size, work)
    return fit
