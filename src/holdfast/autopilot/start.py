"""The start of the autopilot from the first points, of which up to a fifth may be outliers.

One definition for a single stream and for many of them: what is computed is compiled, and loops over the streams; what
is left to numpy is to copy it to its place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from holdfast.autopilot import memory, rescue, view
from holdfast.autopilot.bank import USUAL_TAIL
from holdfast.autopilot.change_score import change_fields, start_change_score
from holdfast.autopilot.memory import lag_fields, start_lag
from holdfast.autopilot.pilot import Pilot
from holdfast.autopilot.regression import start_regression, start_season
from holdfast.autopilot.robust_fit import UNKNOWN, robust_fits
from holdfast.models.frame import frame_of, in_frame
from holdfast.models.mixture_start import AT_ONCE, fit_mixtures
from holdfast.models.trusting import framed
from holdfast.scheme.compiling import compiled, fingerprint
from holdfast.scheme.state import Vector

WIDE = 8.0  # spreads from the median within which a point shows what is normal: tails belong to it
PRIOR = 100.0  # variance of the companion that has seen nothing, in units of the core's
RARE, PRIOR_POINTS = 0.01, 100.0  # rejected points, before any was seen


def start_pilot(pilot: Pilot, points: Vector, theta: Vector, seed: int) -> None:
    """Fills theta from the first points (n, d), NaN where a coordinate is missing.

    A row without any number is there for the season's sake only.
    """
    if not pilot.lags:
        start_pilots(pilot, points[None], theta[None], seed)
        return
    layout = pilot.layout
    reference, scale = frame_of(points)
    theta[:] = 0.0
    put_frame(pilot, theta[None], reference, scale, np.sum(np.log(scale)))
    rows = in_frame(points, reference, scale)
    if pilot.season:
        rows = start_season(layout, theta, rows, pilot.season)
    there = ~np.isnan(rows).all(axis=1)
    rests = start_regression(layout, theta, rows, pilot.lags)[there]
    begin(pilot, theta[None], rows[there][None], seed, rests[None])


def start_pilots(pilot: Pilot, points: Vector, thetas: Vector, seed: int) -> None:
    """Fills each row of thetas (m, size) from its first points (m, n, d), NaN where a coordinate is missing."""
    m, n, d = points.shape
    if pilot.lags:
        for own, theta in zip(points, thetas, strict=True):
            start_pilot(pilot, own, theta, seed)
        return
    some = 1 + AT_ONCE // (n * d)
    for first in range(0, m, some):
        own, theta = framed(points[first : first + some]), thetas[first : first + some]
        theta[:] = 0.0
        put_frame(pilot, theta, own.reference, own.scale, own.log_scale)
        begin(pilot, theta, own.points, seed)


def part(pilot: Pilot, theta: Vector, name: str) -> Vector:
    """(m, …): the field `name` of each of m rows of theta, flat."""
    at = pilot.layout.at(name)
    return theta[:, at : at + int(np.prod(pilot.layout.fields[name]))]


def put_frame(pilot: Pilot, theta: Vector, reference: Vector, scale: Vector, log_scale: Any) -> None:
    """Writes the frame to its place."""
    for name, values in (("reference", reference), ("scale", scale), ("inverse_scale", 1.0 / scale)):
        part(pilot, theta, name).view(np.float64)[:] = values
    theta[:, pilot.layout.at("log_scale")] = log_scale


def begin(pilot: Pilot, theta: Vector, points: Vector, seed: int, rests: Vector | None = None) -> None:
    """Everything but the frame, in whose coordinates the points (m, n, d) come.

    rests: what the past does not tell of them, where there is a regression that knows; else that of a lag-1
    autoregression, which is started as well.
    """
    K, (m, n, d) = pilot.K, points.shape
    trusted = framed(points, K=K).n_trusted
    fits = robust_fits(pilot, points, seed)
    experts, _ = pilot.layout.fields["experts"]
    part(pilot, theta, "experts")[:] = np.tile(fits, experts)
    part(pilot, theta, "counts")[:] = trusted[:, None]
    part(pilot, theta, "trust")[:] = 1.0 / experts
    part(pilot, theta, "tail")[:] = USUAL_TAIL
    part(pilot, theta, "rescue")[:, rescue.CONTAMINATION] = 1.0 - trusted / n
    part(pilot, theta, "rescue")[:, rescue.LEARNT] = n
    normal = framed(points, WIDE, majority=False)
    core = fit_mixtures(pilot.component, points, normal.reference, normal.trusted, 1, 0.0, seed, UNKNOWN)
    start_view(pilot.view, part(pilot, theta, "value"), core if K == 1 else fits, core, normal.n_trusted, d)
    if not pilot.sizes.whole:
        return
    lately, lag = np.zeros((m, *change_fields(d)["lately"])), np.zeros((m, *lag_fields(d)["lag"]))
    residuals = np.empty((m, n, d))
    moments_of()(points, normal.trusted, lately, lag, residuals, np.empty(n))
    part(pilot, theta, "lately")[:] = lately
    if rests is None:
        rests = residuals
        part(pilot, theta, "lag")[:] = lag
    usual = framed(rests, WIDE, majority=False)
    core = fit_mixtures(pilot.component, rests, usual.reference, usual.trusted, 1, 0.0, seed, UNKNOWN)
    start_view(pilot.residual_view, part(pilot, theta, "residual"), core, core, normal.n_trusted, d)


def start_view(view_of: view.View, own: Vector, core: Vector, one: Vector, count: Vector, d: int) -> None:
    """The cores as fitted, and a wide companion about each (one: the fit of a single component)."""
    companion, tally = view_of.layout.at("companion"), view_of.layout.at("tally")
    own[:, :companion], own[:, companion:tally] = core, one
    own[:, companion + 1 + d : tally] *= PRIOR
    own[:, tally + view.IN_CORE], own[:, tally + view.IN_COMPANION] = count, 1.0
    own[:, tally + view.SHARE], own[:, tally + view.COUNTED] = RARE, PRIOR_POINTS


@cache
def moments_of() -> Callable[..., Any]:
    """(points (m, n, d), normal (m, n), lately (m, …), lag (m, …), rests (m, n, d), values (n,)): the starts of change
    score and lag-1 autoregression, and the residuals of the latter."""
    stamp = fingerprint([start_change_score, start_lag])

    def start(points, normal, lately, lag, rests, values):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        m, n, d = points.shape
        for s in range(m):
            for i in range(d):
                start_change_score(lately[s], points[s], i, values)
                start_lag(lag[s], points[s], normal[s], i, rests[s])
            for t in range(n):
                lag[s, memory.PER_VARIABLE * d] += normal[s, t]

    return compiled(start, releases_gil=True)
