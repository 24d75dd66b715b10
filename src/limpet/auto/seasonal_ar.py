"""Season and autoregression: predict each coordinate from its past.

theta has, for each coordinate: the seasonal profile (one mean per slot), the last p values without their season, the
linear regression of a value on them (`limpet.models.LinearRegression`: robust stochastic gradient descent in
standardized units), and the number of consecutive points far from the prediction. A single far point is not learned
from, and its prediction replaces it among the last values; after a few consecutive ones the values themselves are used.
"""

from __future__ import annotations

import math

import numpy as np

from limpet._jit.compile import kernel
from limpet._jit.math import maximum
from limpet.auto.ar1 import ResidualModel, noop_deseason
from limpet.core.state import Layout, Vector
from limpet.models._standardization import MAD_TO_SD, column_medians, fit_location_scale, standardize
from limpet.models.regression import LinearRegression, make_regression_layout

MIN_REGRESSION_STEP = 0.001  # of the regression …
STEP_NUMERATOR, STEP_OFFSET_POINTS = 5.0, 50.0  # … which starts as STEP_NUMERATOR/(t + STEP_OFFSET_POINTS)
SMOOTHING_WINDOW_DIVISOR = 48  # the first profile is smoothed over this part of the season to either side
DISTINCT_SLOT_THRESHOLD_SD = 4.0  # from the smooth profile in every period: the slot is not smoothed
MIN_PROFILE_STEP = 0.02
FAR_THRESHOLD_SD_SQUARED = 16.0  # beyond, a point is not learned from …
MIN_FAR_STREAK_POINTS = 4.0  # … unless this many are consecutive


def seasonal_ar_fields(d: int, lags: int, season: int) -> dict[str, tuple[int, ...]]:
    """Return the fields of theta."""
    return {
        "seasonal_profile": (d, max(season, 1)),
        "lagged_values": (d, lags),
        "regression": (d, make_regression_layout(lags).size),
        "far_streak": (d,),
        "clock": (3,),  # slot | seasons seen | points seen
    }


def make_seasonal_ar(layout: Layout, d: int, lags: int, season: int) -> ResidualModel:
    """Return the model for a layout of theta."""
    functions = LinearRegression().kernels(lags + 1)
    evaluate, whitened, advance = functions.evaluate, functions.norms["whitened"], functions.advance
    work_per_variable = functions.work_size + lags + 1  # for each coordinate: workspace, then [ last values | value ]
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
        """Compute the residual in units of the initial spread."""
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
    def observe(theta: Vector, point: Vector, rejected: bool, without_learning: bool, work: Vector) -> None:
        step = maximum(MIN_REGRESSION_STEP, STEP_NUMERATOR / (theta[clock + 2] + STEP_OFFSET_POINTS))
        profile_step = maximum(MIN_PROFILE_STEP, 1.0 / (theta[clock + 1] + 1.0))
        for i in range(d):
            scratch, pair = work[i * work_per_variable :], work[i * work_per_variable + work_per_variable - lags - 1 :]
            state = theta[regression + i * size : regression + (i + 1) * size]
            error = scratch[lags + 1] * state[target_scale]
            value = pair[lags] if point[i] == point[i] else pair[lags] - error  # missing: its prediction
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
        """Advance the season, also at invalid points."""
        theta[clock + 2] += 1.0
        theta[clock] += 1.0
        if theta[clock] >= slots:
            theta[clock] = 0.0
            theta[clock + 1] += 1.0

    @kernel
    def compute_isolated_residual(theta: Vector, point: Vector, out: Vector, work: Vector) -> None:
        """Return NaN: with lags or a season, a point needs its predecessors."""
        for i in range(d):
            out[i] = math.nan

    deseason = deseason if season else noop_deseason
    work_size = d * work_per_variable
    return ResidualModel(deseason, compute_residual, compute_isolated_residual, observe, tick, work_size)


def init_seasonal(layout: Layout, theta: Vector, scaled: Vector, season: int) -> Vector:
    """Estimate the profile by medians of the first points; return them without it.

    Medians of neighboring slots smooth it and preserve steps; a slot that differs clearly from its neighbors in every
    period is not smoothed. The remainders of these points are inflated, because those of later points, from which the
    profile was not estimated, are wider.
    """
    profile, slots = layout.view(theta, "seasonal_profile"), np.arange(len(scaled)) % season
    overall_median = column_medians(scaled)
    for slot in range(season):
        values = [column[~np.isnan(column)] for column in scaled[slots == slot].T]
        slot_medians = [np.median(column) if len(column) else np.nan for column in values]
        profile[:, slot] = np.where(np.isnan(slot_medians), overall_median, slot_medians) - overall_median
    neighbor_shifts = range(-(season // SMOOTHING_WINDOW_DIVISOR), season // SMOOTHING_WINDOW_DIVISOR + 1)
    smooth = np.median([np.roll(profile, shift, axis=1) for shift in neighbor_shifts], axis=0)
    off = scaled - smooth[:, slots].T
    threshold = DISTINCT_SLOT_THRESHOLD_SD * MAD_TO_SD * column_medians(np.abs(off - column_medians(off)))
    for slot in range(season):
        seen = off[slots == slot]
        is_above, is_below = ((np.isnan(seen) | (side * seen > threshold)).all(axis=0) for side in (1.0, -1.0))
        profile[:, slot] = np.where(is_above | is_below, profile[:, slot], smooth[:, slot])
    off = scaled - profile[:, slots].T
    points_per_slot = max(2, len(neighbor_shifts) * len(scaled) // season)
    widening = np.sqrt((points_per_slot + 1.0) / (points_per_slot - 1.0))
    center = column_medians(off)
    return np.asarray(center + widening * (off - center))


def _fit_ridge(design: Vector, target: Vector) -> Vector:
    """Return the coefficients of a ridge regression with penalty 1.

    By Gaussian elimination, without pivots: linear algebra libraries choose their code, and so the last bits of their
    results, by the processor.
    """
    columns = np.column_stack([design, target])
    rows = np.stack([(columns * column[:, None]).sum(axis=0) for column in design.T])
    rows[:, :-1] += np.eye(len(rows))
    for i, row in enumerate(rows):
        row /= row[i]
        others = np.arange(len(rows)) != i
        rows[others] -= rows[others, i, None] * row
    return rows[:, -1]


def init_regression(layout: Layout, theta: Vector, points: Vector, lags: int) -> Vector:
    """Fit the coefficients by least squares; return the residuals."""
    n, d = points.shape
    residuals = np.full_like(points, np.nan)
    parts = make_regression_layout(lags)
    for i in range(d):
        state, values = layout.view(theta, "regression")[i], np.nan_to_num(points[:, i])
        padded = np.concatenate([np.zeros(lags), values])
        pairs = np.column_stack([*(padded[lags - 1 - j : lags - 1 - j + n] for j in range(lags)), values])
        reference, scale = fit_location_scale(pairs)
        standard = np.clip(standardize(pairs, reference, scale), -4.0, 4.0)  # limits outliers
        design = np.column_stack([standard[:, :lags], np.ones(n)])
        coef = _fit_ridge(design, standard[:, lags])
        parts.view(state, "reference")[:], parts.view(state, "scale")[:] = reference, scale
        parts.view(state, "coef")[:], parts.view(state, "intercept")[:] = coef[:lags], coef[lags]
        unclipped = standardize(pairs, reference, scale)
        residual = unclipped[:, lags] - (unclipped[:, :lags] * coef[:lags]).sum(axis=1) - coef[lags]
        parts.view(state, "variance")[:] = max((MAD_TO_SD * np.median(np.abs(residual))) ** 2, 1e-12)
        residuals[:, i] = np.where(np.isnan(points[:, i]), np.nan, residual)
    # The buffered points are processed again after the initialization: the clock starts with them.
    return residuals
