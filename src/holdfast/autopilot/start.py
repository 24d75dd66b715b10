"""The start of the autopilot from the first points, of which up to a fifth may be outliers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holdfast.autopilot import memory, rescue, view
from holdfast.autopilot.bank import USUAL_TAIL
from holdfast.autopilot.change_score import start_change_score
from holdfast.autopilot.pilot import Pilot
from holdfast.autopilot.regression import start_regression, start_season
from holdfast.autopilot.robust_fit import UNKNOWN, robust_fit
from holdfast.models.component import Component
from holdfast.models.frame import frame_of, in_frame
from holdfast.models.mixture_start import fit_mixture, trustworthy
from holdfast.scheme.state import Vector

WIDE = 8.0  # spreads from the median within which a point shows what is normal: tails belong to it
PRIOR = 100.0  # variance of the companion that has seen nothing, in units of the core's
RARE, PRIOR_POINTS = 0.01, 100.0  # rejected points, before any was seen


def start_pilot(pilot: Pilot, points: Vector, theta: Vector, seed: int) -> None:
    """Fills theta from the first points (n, d), NaN where a coordinate is missing.

    A row without any number is there for the season's sake only.
    """
    d, layout = points.shape[1], pilot.layout
    K = pilot.K
    reference, scale = frame_of(points)
    theta[:] = 0.0
    field = {name: layout.view(theta, name) for name in layout.fields}
    field["reference"].view(np.float64)[:], field["scale"].view(np.float64)[:] = reference, scale
    if pilot.sizes.whole:
        field["inverse_scale"][:] = 1.0 / scale
    field["log_scale"][:] = np.sum(np.log(scale))
    rows = in_frame(points, reference, scale)
    if pilot.season:
        rows = start_season(layout, theta, rows, pilot.season)
    there = ~np.isnan(rows).all(axis=1)
    scaled = rows[there]
    trusted = trustworthy(scaled, K)
    fit = robust_fit(pilot, scaled, seed)
    field["experts"][:] = fit
    field["counts"][:] = trusted.sum()
    field["trust"][:] = 1.0 / len(field["trust"])
    field["tail"][:] = USUAL_TAIL
    field["rescue"][rescue.CONTAMINATION] = 1.0 - trusted.mean()
    field["rescue"][rescue.LEARNT] = len(scaled)
    normal = within(scaled)
    core = fit_mixture(pilot.component, scaled, normal, 1, 0.0, seed, UNKNOWN)
    start_view(pilot.view, field["value"], core if K == 1 else fit, core, normal.sum(), pilot.component, d)
    if not pilot.sizes.whole:
        return
    start_change_score(field["lately"], scaled)
    if pilot.lags:
        rests = start_regression(layout, theta, rows, pilot.lags)[there]
    else:
        rests = start_lag(field["lag"], scaled, normal)
    core = fit_mixture(pilot.component, rests, within(rests), 1, 0.0, seed, UNKNOWN)
    start_view(pilot.residual_view, field["residual"], core, core, normal.sum(), pilot.component, d)


def within(points: Vector) -> npt.NDArray[np.bool_]:
    """Which points lie within `WIDE` spreads of the median in every coordinate."""
    scaled = np.nan_to_num(in_frame(points, *frame_of(points)), nan=0.0)
    return np.asarray(np.abs(scaled).max(axis=1) <= WIDE)


def start_view(
    view_of: view.View, own: Vector, core: Vector, one: Vector, count: float, component: Component, d: int
) -> None:
    """The core as fitted, and a wide companion about it (one: the fit of a single component)."""
    part = view_of.layout.view
    part(own, "core")[:] = core
    companion = part(own, "companion")
    companion[:] = one
    companion[1 + d :] *= PRIOR
    tally = part(own, "tally")
    tally[view.IN_CORE], tally[view.IN_COMPANION] = count, 1.0
    tally[view.SHARE], tally[view.COUNTED] = RARE, PRIOR_POINTS


def start_lag(lag: Vector, scaled: Vector, normal: npt.NDArray[np.bool_]) -> Vector:
    """The moments of the normal points and their predecessors; returns the residuals of all."""
    n, d = scaled.shape
    own = lag[:-1].reshape(d, memory.PER_VARIABLE)
    lag[-1] = normal.sum()
    kept = np.where(normal[:, None], scaled, np.nan)
    mean = np.nanmean(kept, axis=0)
    centred = kept - mean
    own[:, memory.MEAN] = own[:, memory.LAST] = mean
    own[:, memory.VARIANCE] = np.maximum(np.nanmean(centred**2, axis=0), memory.SMALLEST)
    pairs = np.nan_to_num(centred[1:] * centred[:-1])
    own[:, memory.COVARIANCE] = pairs.sum(axis=0) / max(n - 1, 1)
    phi = np.clip(own[:, memory.COVARIANCE] / own[:, memory.VARIANCE], -1.0, 1.0)
    before = np.vstack([np.zeros((1, d)), np.nan_to_num(scaled[:-1] - mean)])
    return np.asarray(scaled - mean - phi * before)
