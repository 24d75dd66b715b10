"""What the past tells of the next point: a season, and the regression of each coordinate on its own last values.

theta has, for each coordinate: the profile of the season (one mean for each of its slots), the last p values less their
season, the linear regression of a value on them (`limpet.models.LinearRegression`: robust stochastic gradient
descent in standard units), and how many points in a row were far from what it expects. It judges for itself: a lone
point that is far out teaches nothing, and what was expected stands in the past in its place; after a few in a row the
past is what has come.
"""

from __future__ import annotations

import math

import numpy as np

from limpet._jit.compile import kernel
from limpet._jit.math import maximum
from limpet.auto.ar1 import ResidualModel, noop_deseason
from limpet.core.state import Layout, Vector
from limpet.models._standardization import column_medians, fit_location_scale, standardize
from limpet.models.regression import LinearRegression, make_regression_layout

MIN_REGRESSION_STEP = 0.001  # the least step of the regression …
STEP_NUMERATOR, STEP_OFFSET_POINTS = 5.0, 50.0  # … which begins with HASTE/(t + PATIENCE)
SMOOTHING_WINDOW_DIVISOR = 48  # the first profile is averaged over so small a part of the season to either side
DISTINCT_SLOT_THRESHOLD_SD = 4.0  # spreads from the smooth profile that a slot of its own keeps in every period
MIN_PROFILE_STEP = 0.02  # the least step of the profile
FAR_THRESHOLD_SD_SQUARED = 16.0  # standard deviations, squared, beyond which a point teaches nothing …
MIN_FAR_STREAK_POINTS = 4.0  # … unless so many came in a row


def seasonal_ar_fields(d: int, lags: int, season: int) -> dict[str, tuple[int, ...]]:
    """What is kept."""
    return {
        "seasonal_profile": (d, max(season, 1)),
        "lagged_values": (d, lags),
        "regression": (d, make_regression_layout(lags).size),
        "far_streak": (d,),
        "clock": (3,),  # slot | seasons seen | points seen
    }


def make_seasonal_ar(layout: Layout, d: int, lags: int, season: int) -> ResidualModel:
    """For a stream whose fields lie in theta as `layout` says."""
    functions = LinearRegression().kernels(lags + 1)
    evaluate, whitened, advance = functions.evaluate, functions.norms["whitened"], functions.advance
    work_per_variable = functions.work_size + lags + 1  # for each coordinate: scratch, then [ past | value ]
    slots, size = max(season, 1), functions.layout.size
    profile, past, regression = (layout.offset(name) for name in ("seasonal_profile", "lagged_values", "regression"))
    far_streak, clock = layout.offset("far_streak"), layout.offset("clock")
    target, target_scale = functions.layout.offset("reference") + lags, functions.layout.offset("scale") + lags
    unpenalized = np.zeros(1)

    @kernel
    def deseason(theta: Vector, point: Vector) -> None:
        for i in range(d):
            point[i] -= theta[profile + i * slots + int(theta[clock])]

    @kernel
    def compute_residual(theta: Vector, point: Vector, out: Vector, work: Vector) -> None:
        """In units of the spread that the values had at first."""
        for i in range(d):
            scratch, pair = work[i * work_per_variable :], work[i * work_per_variable + work_per_variable - lags - 1 :]
            for j in range(lags):
                pair[j] = theta[past + i * lags + j]
            pair[lags] = point[i]
            state = theta[regression + i * size : regression + (i + 1) * size]
            missing = pair[lags] != pair[lags]
            pair[lags] = state[target] if missing else pair[lags]
            evaluate(state, pair, unpenalized, scratch, False)
            out[i] = math.nan if missing else scratch[lags + 1]

    @kernel
    def process_point(theta: Vector, point: Vector, without_learning: bool, work: Vector) -> None:
        step = maximum(MIN_REGRESSION_STEP, STEP_NUMERATOR / (theta[clock + 2] + STEP_OFFSET_POINTS))
        profile_step = maximum(MIN_PROFILE_STEP, 1.0 / (theta[clock + 1] + 1.0))
        for i in range(d):
            scratch, pair = work[i * work_per_variable :], work[i * work_per_variable + work_per_variable - lags - 1 :]
            state = theta[regression + i * size : regression + (i + 1) * size]
            error = scratch[lags + 1] * state[target_scale]
            value = pair[lags] if point[i] == point[i] else pair[lags] - error  # missing: what is expected of it
            if point[i] == point[i] and not without_learning:
                is_far = whitened(state, pair, unpenalized, scratch, False) > FAR_THRESHOLD_SD_SQUARED
                theta[far_streak + i] = theta[far_streak + i] + 1.0 if is_far else 0.0
                if is_far and theta[far_streak + i] < MIN_FAR_STREAK_POINTS:
                    value -= error
                else:
                    if season > 0:
                        theta[profile + i * slots + int(theta[clock])] += profile_step * error
                    advance(state, pair, unpenalized, scratch, step, False)
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
        process_point(theta, point, False, work)

    @kernel
    def observe_only(theta: Vector, point: Vector, work: Vector) -> None:
        process_point(theta, point, True, work)

    @kernel
    def compute_isolated_residual(theta: Vector, point: Vector, out: Vector) -> None:
        """Never asked for: with lags or a season, a point without those before it tells nothing."""
        for i in range(d):
            out[i] = math.nan

    return ResidualModel(
        deseason if season else noop_deseason,
        compute_residual,
        compute_isolated_residual,
        learn,
        observe_only,
        tick,
        d * work_per_variable,
    )


def init_seasonal(layout: Layout, theta: Vector, scaled: Vector, season: int) -> Vector:
    """The profile, by medians of the first points; returns them without it.

    Medians of neighbours smooth it and leave steps alone; a slot that clearly keeps apart from its neighbours in every
    period is left alone, too. What is left of the first points is narrower than what is left of later ones, which
    the profile does not know: it is widened.
    """
    profile, overall_median, slots = (
        layout.view(theta, "seasonal_profile"),
        column_medians(scaled),
        np.arange(len(scaled)) % season,
    )
    for slot in range(season):
        seen = scaled[slots == slot].T
        slot_medians = [
            np.median(column[~np.isnan(column)]) if (~np.isnan(column)).any() else np.nan for column in seen
        ]
        profile[:, slot] = np.where(np.isnan(slot_medians), overall_median, slot_medians) - overall_median
    neighbor_shifts = range(-(season // SMOOTHING_WINDOW_DIVISOR), season // SMOOTHING_WINDOW_DIVISOR + 1)
    smooth = np.median([np.roll(profile, shift, axis=1) for shift in neighbor_shifts], axis=0)
    off = scaled - smooth[:, slots].T
    threshold = DISTINCT_SLOT_THRESHOLD_SD * 1.4826 * column_medians(np.abs(off - column_medians(off)))
    for slot in range(season):
        seen = off[slots == slot]
        is_distinct = (np.isnan(seen) | (seen > threshold)).all(axis=0) | (np.isnan(seen) | (seen < -threshold)).all(
            axis=0
        )
        profile[:, slot] = np.where(is_distinct, profile[:, slot], smooth[:, slot])
    off = scaled - profile[:, slots].T
    points_per_slot = max(2, len(neighbor_shifts) * len(scaled) // season)  # points, each slot
    widening = np.sqrt((points_per_slot + 1.0) / (points_per_slot - 1.0))
    center = column_medians(off)
    return np.asarray(center + widening * (off - center))


def init_regression(layout: Layout, theta: Vector, points: Vector, lags: int) -> Vector:
    """The coefficients by least squares on the first points, without their season; returns their residuals."""
    n, d = points.shape
    residuals = np.full_like(points, np.nan)
    parts = make_regression_layout(lags)
    for i in range(d):
        state, values = layout.view(theta, "regression")[i], np.nan_to_num(points[:, i])
        padded = np.concatenate([np.zeros(lags), values])
        pairs = np.column_stack([*(padded[lags - 1 - j : lags - 1 - j + n] for j in range(lags)), values])
        reference, scale = fit_location_scale(pairs)
        standard = np.clip(standardize(pairs, reference, scale), -4.0, 4.0)  # an outlier is no more than that
        design = np.column_stack([standard[:, :lags], np.ones(n)])
        coef = np.linalg.solve(design.T @ design + np.eye(lags + 1), design.T @ standard[:, lags])
        parts.view(state, "reference")[:], parts.view(state, "scale")[:] = reference, scale
        parts.view(state, "coef")[:], parts.view(state, "intercept")[:] = coef[:lags], coef[lags]
        unclipped = standardize(pairs, reference, scale)
        residual = unclipped[:, lags] - np.column_stack([unclipped[:, :lags], np.ones(n)]) @ coef
        parts.view(state, "variance")[:] = max((1.4826 * np.median(np.abs(residual))) ** 2, 1e-12)
        residuals[:, i] = np.where(np.isnan(points[:, i]), np.nan, residual)
    # The points of the start are told again once it is done: the clock begins with them.
    return residuals
