"""What the past tells of the next point: a season, and the regression of each coordinate on its own last values.

theta has, for each coordinate: the profile of the season (one mean for each of its slots), the last p values less their
season, the linear regression of a value on them (`holdfast.models.LinearRegression`: robust stochastic gradient
descent in standard units), and how many points in a row were far from what it expects. It judges for itself: a lone
point that is far out teaches nothing, and what was expected stands in the past in its place; after a few in a row the
past is what has come.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.autopilot.memory import Memory, no_season
from holdfast.models.frame import frame_of, in_frame, medians
from holdfast.models.linear_regression import LinearRegression
from holdfast.models.regression import regression_layout
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import at_least
from holdfast.scheme.state import Layout, Vector

SLOWLY = 0.001  # the least step of the regression …
HASTE, PATIENCE = 5.0, 50.0  # … which begins with HASTE/(t + PATIENCE)
SMOOTH = 48  # the first profile is averaged over so small a part of the season to either side
APART = 4.0  # spreads from the smooth profile that a slot of its own keeps in every period
SEASONS_STEP = 0.02  # the least step of the profile
FAR_SQUARED = 16.0  # standard deviations, squared, beyond which a point teaches nothing …
ASTRAY = 4.0  # … unless so many came in a row


def regression_fields(d: int, lags: int, season: int) -> dict[str, tuple[int, ...]]:
    """What is kept."""
    return {
        "profile": (d, max(season, 1)),
        "past": (d, lags),
        "regression": (d, regression_layout(lags).size),
        "astray": (d,),
        "clock": (3,),  # slot | seasons seen | points seen
    }


def regression_memory(layout: Layout, d: int, lags: int, season: int) -> Memory:
    """For a stream whose fields lie in theta as `layout` says."""
    functions = LinearRegression().functions(lags + 1)
    evaluate, whitened, advance = functions.evaluate, functions.norms["whitened"], functions.advance
    area = functions.work_size + lags + 1  # for each coordinate: scratch, then [ past | value ]
    slots, size = max(season, 1), functions.layout.size
    profile, past, regression = (layout.at(name) for name in ("profile", "past", "regression"))
    astray, clock = layout.at("astray"), layout.at("clock")
    target, target_scale = functions.layout.at("reference") + lags, functions.layout.at("scale") + lags
    unpenalised = np.zeros(1)

    @kernel
    def deseason(theta: Vector, point: Vector) -> None:
        for i in range(d):
            point[i] -= theta[profile + i * slots + int(theta[clock])]

    @kernel
    def residual(theta: Vector, point: Vector, out: Vector, work: Vector) -> None:
        """In units of the spread that the values had at first."""
        for i in range(d):
            scratch, pair = work[i * area :], work[i * area + area - lags - 1 :]
            for j in range(lags):
                pair[j] = theta[past + i * lags + j]
            pair[lags] = point[i]
            own = theta[regression + i * size : regression + (i + 1) * size]
            missing = pair[lags] != pair[lags]
            pair[lags] = own[target] if missing else pair[lags]
            evaluate(own, pair, unpenalised, scratch, False)
            out[i] = math.nan if missing else scratch[lags + 1]

    @kernel
    def go_on(theta: Vector, point: Vector, passing: bool, work: Vector) -> None:
        step = at_least(SLOWLY, HASTE / (theta[clock + 2] + PATIENCE))
        slot_step = at_least(SEASONS_STEP, 1.0 / (theta[clock + 1] + 1.0))
        for i in range(d):
            scratch, pair = work[i * area :], work[i * area + area - lags - 1 :]
            own = theta[regression + i * size : regression + (i + 1) * size]
            off = scratch[lags + 1] * own[target_scale]
            value = pair[lags] if point[i] == point[i] else pair[lags] - off  # missing: what is expected of it
            if point[i] == point[i] and not passing:
                far = whitened(own, pair, unpenalised, scratch, False) > FAR_SQUARED
                theta[astray + i] = theta[astray + i] + 1.0 if far else 0.0
                if far and theta[astray + i] < ASTRAY:
                    value -= off
                else:
                    if season > 0:
                        theta[profile + i * slots + int(theta[clock])] += slot_step * off
                    advance(own, pair, unpenalised, scratch, step, False)
            for j in range(lags - 1, 0, -1):
                theta[past + i * lags + j] = theta[past + i * lags + j - 1]
            theta[past + i * lags] = value
        tick(theta)

    @kernel
    def tick(theta: Vector) -> None:
        """Time goes on, also where a point could not be used."""
        theta[clock + 2] += 1.0
        theta[clock] += 1.0
        if theta[clock] >= slots:
            theta[clock] = 0.0
            theta[clock + 1] += 1.0

    @kernel
    def learn(theta: Vector, point: Vector, rejected: bool, work: Vector) -> None:
        go_on(theta, point, False, work)

    @kernel
    def pass_by(theta: Vector, point: Vector, work: Vector) -> None:
        go_on(theta, point, True, work)

    @kernel
    def residual_alone(theta: Vector, point: Vector, out: Vector) -> None:
        """Never asked for: with lags or a season, a point without those before it tells nothing."""
        for i in range(d):
            out[i] = math.nan

    return Memory(deseason if season else no_season, residual, residual_alone, learn, pass_by, tick, d * area)


def start_season(layout: Layout, theta: Vector, scaled: Vector, season: int) -> Vector:
    """The profile, by medians of the first points; returns them without it.

    Medians of neighbours smooth it and leave steps alone; a slot that clearly keeps apart from its neighbours in every
    period is left alone, too. What is left of the first points is narrower than what is left of later ones, which
    the profile does not know: it is widened.
    """
    profile, middle, slots = layout.view(theta, "profile"), medians(scaled), np.arange(len(scaled)) % season
    for slot in range(season):
        seen = scaled[slots == slot].T
        here = [np.median(column[~np.isnan(column)]) if (~np.isnan(column)).any() else np.nan for column in seen]
        profile[:, slot] = np.where(np.isnan(here), middle, here) - middle
    near = range(-(season // SMOOTH), season // SMOOTH + 1)
    smooth = np.median([np.roll(profile, shift, axis=1) for shift in near], axis=0)
    off = scaled - smooth[:, slots].T
    apart = APART * 1.4826 * medians(np.abs(off - medians(off)))
    for slot in range(season):
        seen = off[slots == slot]
        alone = (np.isnan(seen) | (seen > apart)).all(axis=0) | (np.isnan(seen) | (seen < -apart)).all(axis=0)
        profile[:, slot] = np.where(alone, profile[:, slot], smooth[:, slot])
    off = scaled - profile[:, slots].T
    known_from = max(2, len(near) * len(scaled) // season)  # points, each slot
    widened = np.sqrt((known_from + 1.0) / (known_from - 1.0))
    centre = medians(off)
    return np.asarray(centre + widened * (off - centre))


def start_regression(layout: Layout, theta: Vector, points: Vector, lags: int) -> Vector:
    """The coefficients by least squares on the first points, without their season; returns their residuals."""
    n, d = points.shape
    residuals = np.full_like(points, np.nan)
    parts = regression_layout(lags)
    for i in range(d):
        own, values = layout.view(theta, "regression")[i], np.nan_to_num(points[:, i])
        padded = np.concatenate([np.zeros(lags), values])
        pairs = np.column_stack([*(padded[lags - 1 - j : lags - 1 - j + n] for j in range(lags)), values])
        reference, scale = frame_of(pairs)
        standard = np.clip(in_frame(pairs, reference, scale), -4.0, 4.0)  # an outlier is no more than that
        design = np.column_stack([standard[:, :lags], np.ones(n)])
        coef = np.linalg.solve(design.T @ design + np.eye(lags + 1), design.T @ standard[:, lags])
        parts.view(own, "reference")[:], parts.view(own, "scale")[:] = reference, scale
        parts.view(own, "coef")[:], parts.view(own, "intercept")[:] = coef[:lags], coef[lags]
        exact = in_frame(pairs, reference, scale)
        rest = exact[:, lags] - np.column_stack([exact[:, :lags], np.ones(n)]) @ coef
        parts.view(own, "variance")[:] = max((1.4826 * np.median(np.abs(rest))) ** 2, 1e-12)
        residuals[:, i] = np.where(np.isnan(points[:, i]), np.nan, rest)
    # The points of the start are told again once it is done: the clock begins with them.
    return residuals
