"""Residual diagnostics: autocorrelation of residuals and absolute values.

The false-alarm rate holds for exchangeable residuals. Three autocorrelations of each coordinate are estimated, of
values clipped at three standard deviations: of the residual at lag 1 and at lag `LONG_LAG`, of its absolute value at
lag 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from limpet._jit.compile import kernel
from limpet._jit.math import averaging_step
from limpet.core.state import Layout, Vector

LONG_LAG = 8
MIN_AVERAGE_STEP = 0.0005
MAX_RESIDUAL_SD = 3.0
MIN_REPORT_POINTS = 1000.0  # before a report
SETTLING_POINTS = 200.0  # ignored after a change
AUTOCORRELATION_THRESHOLD = 0.1  # from here on the false-alarm rate may not hold

# For each coordinate: variance, covariances at lag 1 and at LONG_LAG; mean, variance, covariance at lag 1 of absolute
# values; the last residuals, the latest first. At the end the number of points to ignore, and the number of points.
VARIANCE, COVARIANCE_LAG_1, COVARIANCE_LONG_LAG, MEAN_ABS, ABS_VARIANCE, ABS_COVARIANCE_LAG_1, LAST_RESIDUALS = range(7)
VALUES_PER_VARIABLE = LAST_RESIDUALS + LONG_LAG
PAUSE_POINTS, COUNT = -2, -1


def make_diagnostics_kernel(layout: Layout, d: int) -> Callable[..., Any]:
    """Return the kernel (theta, residual) for a layout; a missing coordinate is NaN."""
    offset = layout.offset("residual_autocorrelation")
    pause, count = offset + VALUES_PER_VARIABLE * d, offset + VALUES_PER_VARIABLE * d + 1

    @kernel
    def learn(theta: Vector, residual: Vector) -> None:
        if theta[pause] > 0.0:
            theta[pause] -= 1.0
            return
        theta[count] += 1.0
        step = averaging_step(theta[count] + 1.0, MIN_AVERAGE_STEP)
        for i in range(d):
            base, x = offset + VALUES_PER_VARIABLE * i, residual[i]
            if x == x:
                square, mean_abs, last = theta[base + VARIANCE], theta[base + MEAN_ABS], theta[base + LAST_RESIDUALS]
                if x * x > MAX_RESIDUAL_SD * MAX_RESIDUAL_SD * square and theta[count] > 10.0:
                    x = MAX_RESIDUAL_SD * square**0.5 * (1.0 if x > 0.0 else -1.0)
                size, before = abs(x) - mean_abs, abs(last) - mean_abs
                oldest = theta[base + LAST_RESIDUALS + LONG_LAG - 1]
                theta[base + VARIANCE] += step * (x * x - square)
                theta[base + COVARIANCE_LAG_1] += step * (x * last - theta[base + COVARIANCE_LAG_1])
                theta[base + COVARIANCE_LONG_LAG] += step * (x * oldest - theta[base + COVARIANCE_LONG_LAG])
                theta[base + MEAN_ABS] += step * size
                theta[base + ABS_VARIANCE] += step * (size * size - theta[base + ABS_VARIANCE])
                theta[base + ABS_COVARIANCE_LAG_1] += step * (size * before - theta[base + ABS_COVARIANCE_LAG_1])
            for j in range(LONG_LAG - 1, 0, -1):
                theta[base + LAST_RESIDUALS + j] = theta[base + LAST_RESIDUALS + j - 1]
            theta[base + LAST_RESIDUALS] = x if x == x else 0.0

    return learn


def reset_after_change(state: Vector, variable: int, ratio: float) -> None:
    """Skip residuals after a change; rescale moments by `ratio`, new to old spread."""
    state[PAUSE_POINTS] = SETTLING_POINTS
    moments = state[:PAUSE_POINTS].reshape(-1, VALUES_PER_VARIABLE)[variable]
    moments[[VARIANCE, COVARIANCE_LAG_1, COVARIANCE_LONG_LAG, ABS_VARIANCE, ABS_COVARIANCE_LAG_1]] *= ratio * ratio
    moments[MEAN_ABS] *= ratio
    moments[LAST_RESIDUALS:] *= ratio


@dataclass(frozen=True)
class AutocorrelationReport:
    """Autocorrelations of residuals, and of absolute values at lag 1."""

    lag_1: float
    long_lag: float
    abs_lag_1: float

    def advice(self, lags: int = 0, season: int = 0) -> str | None:
        """Return advice for a variable, None if no autocorrelation is left.

        >>> AutocorrelationReport(0.01, 0.02, 0.03).advice() is None
        True
        >>> finding, advice = AutocorrelationReport(-0.2, 0.02, 0.03).advice().split(": ")
        >>> finding
        'depends on more than the last value (autocorrelation -0.20 is left at lag 1)'
        >>> advice
        'set lags to at least 2, or its season'
        """
        more = f"lags to at least {max(lags + 1, 2)}"
        if abs(self.long_lag) > AUTOCORRELATION_THRESHOLD:
            lag = f"autocorrelation {self.long_lag:.2f} is left at lag {LONG_LAG}"
            if season:
                return f"is autocorrelated beyond its season ({lag}): set {more}, or monitor differences"
            return f"has a season or long-range autocorrelation ({lag}): set its season, or {more}"
        if abs(self.lag_1) > AUTOCORRELATION_THRESHOLD:
            lag = f"autocorrelation {self.lag_1:.2f} is left at lag 1"
            past = f"the last {lags} values" if lags > 1 else "the last value"
            return f"depends on more than {past} ({lag}): set {more}" + (", or its season" if not season else "")
        if self.abs_lag_1 > AUTOCORRELATION_THRESHOLD:
            sizes = f"autocorrelation {self.abs_lag_1:.2f} of absolute residuals"
            return f"has volatility clusters ({sizes}): expect more alarms than promised"
        return None


def autocorrelation_report(state: Vector) -> list[AutocorrelationReport] | None:
    """Return the autocorrelations of each coordinate, None after too few points."""
    if state[COUNT] < MIN_REPORT_POINTS:
        return None
    moments = state[:PAUSE_POINTS].reshape(-1, VALUES_PER_VARIABLE)
    variance = np.maximum(moments[:, VARIANCE], 1e-300)
    sizes = np.maximum(moments[:, ABS_VARIANCE], 1e-300)
    lag_1, long_lag = moments[:, COVARIANCE_LAG_1] / variance, moments[:, COVARIANCE_LONG_LAG] / variance
    ratios = zip(lag_1, long_lag, moments[:, ABS_COVARIANCE_LAG_1] / sizes, strict=True)
    return [AutocorrelationReport(*map(float, three)) for three in ratios]
