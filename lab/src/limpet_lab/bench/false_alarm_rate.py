"""Observed against promised false-alarm rate on stable streams.

Change alarms, and anomalies among the points that are no outliers. 10⁷ points a cell, in streams of 10⁶, two streams
at a time: about a quarter of an hour. `limpet bench --quick` takes a hundredth of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import jit_entry_point
from limpet._validation import FloatArray
from limpet.detection import log_threshold, make_change_detector
from limpet.learners import Detector
from limpet_lab.bench._measurement import Figure

TITLE = "alarms on stable streams, observed rate / promised rate"

FALSE_ALARM_RATES = (1e-3, 1e-4, 1e-5)
OUTLIER_SHARES = (0.0, 0.01, 0.05)  # of outliers
OUTLIER_RANGE_SD = 20.0  # outliers are uniform within as many standard deviations
EARLY_FIRST_ROW = 200  # from here on the rows of a short stream are counted
EARLY_STREAM_ROWS = 2000  # length of a short stream
EARLY_BATCH_STREAMS = 200  # short streams per seed

Flags = npt.NDArray[np.bool_]
Sampler = Callable[[np.random.Generator, int, int], FloatArray]


class AlarmFlags(NamedTuple):
    """For each row of a stream: whether a change alarm is raised, and whether it is an anomaly."""

    change: Flags
    anomaly: Flags


AlarmFunction = Callable[[FloatArray, float], AlarmFlags]


def make_alarm_function(**settings: Any) -> AlarmFunction:
    """Return a function that flags the alarms of a Detector with these settings besides `far`."""

    def flag_alarms(rows: FloatArray, far: float) -> AlarmFlags:
        trace = Detector(far=far, **settings).process(rows)
        return AlarmFlags(trace.change, trace.anomaly)

    return flag_alarms


flag_detector_alarms = make_alarm_function()


def flag_alarms_without_threshold_inflation(rows: FloatArray, far: float) -> AlarmFlags:
    """Flag the changes of a detector whose promise holds for exchangeable points only."""
    detector = make_change_detector(rows.shape[1], adaptive_threshold=False)
    flags = np.zeros(len(rows))
    memory, work = np.zeros(detector.state_size), np.zeros(detector.work_size)
    detector.run(memory, rows, log_threshold(far), work, flags, np.zeros(0))
    return AlarmFlags(flags > 0.0, np.zeros(len(rows), bool))


def apply_autoregression(rows: FloatArray, first: float, second: float) -> None:
    """Turn noise into an autoregression of order 2, in place."""
    for t in range(1, len(rows)):
        for i in range(rows.shape[1]):
            rows[t, i] += first * rows[t - 1, i] + (second * rows[t - 2, i] if t > 1 else 0.0)


def apply_garch(rows: FloatArray) -> None:
    """Turn noise into GARCH(0.1, 0.85), in place."""
    for i in range(rows.shape[1]):
        variance = 1.0
        for t in range(len(rows)):
            rows[t, i] *= np.sqrt(variance)
            variance = 0.05 + 0.85 * variance + 0.1 * rows[t, i] * rows[t, i]


compiled_autoregression, compiled_garch = (
    jit_entry_point(apply_autoregression, releases_gil=True),
    jit_entry_point(apply_garch, releases_gil=True),
)


def draw_mixture(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Draw the paper's mixture: ½ N(−.5, .1²) + ½ N(.5, .1²)."""
    return rng.choice(np.array([-0.5, 0.5]), (n, 1)) + 0.1 * rng.standard_normal((n, d))


def make_autoregressive_sampler(first: float, second: float = 0.0) -> Sampler:
    """Return a sampler of an autoregression, each coordinate separately."""

    def sample(rng: np.random.Generator, n: int, d: int) -> FloatArray:
        rows = rng.standard_normal((n, d))
        compiled_autoregression(rows, first, second)
        return rows

    return sample


def draw_garch(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Draw noise with clusters of volatility."""
    rows = rng.standard_normal((n, d))
    compiled_garch(rows)
    return rows


def make_seasonal_sampler(period: int) -> Sampler:
    """Return a sampler of a season of amplitude 1 in noise of standard deviation 1."""

    def sample(rng: np.random.Generator, n: int, d: int) -> FloatArray:
        rows = rng.standard_normal((n, d))
        rows += np.sin(2 * np.pi / period * np.arange(n))[:, None]
        return rows

    return sample


FAMILIES: dict[str, Sampler] = {
    "Gaussian": lambda rng, n, d: rng.standard_normal((n, d)),
    "mixture": draw_mixture,
    "Student t(3)": lambda rng, n, d: rng.standard_t(3, (n, d)),
    "Laplace": lambda rng, n, d: rng.laplace(size=(n, d)),
    "log-normal": lambda rng, n, d: rng.lognormal(size=(n, d)),
    "AR(1) .5": make_autoregressive_sampler(0.5),
}

ROUNDED_FAMILIES: dict[str, Sampler] = {
    "rounded to .5 sd": lambda rng, n, d: np.round(2.0 * rng.standard_normal((n, d))) / 2.0,
}

FAMILIES_OUTSIDE_PROMISE: dict[str, Sampler] = {
    "AR(1) .8": make_autoregressive_sampler(0.8),
    "AR(1) .95": make_autoregressive_sampler(0.95),
    "AR(2) .5 .3": make_autoregressive_sampler(0.5, 0.3),
    "GARCH .1 .85": draw_garch,
    "season 24": make_seasonal_sampler(24),
    "season 288": make_seasonal_sampler(288),
    "rounded to 2 sd": lambda rng, n, d: 2.0 * np.round(rng.standard_normal((n, d)) / 2.0),
    "Poisson 1": lambda rng, n, d: rng.poisson(1.0, (n, d)).astype(float),
    "Cauchy": lambda rng, n, d: rng.standard_cauchy((n, d)),
    "0, 15 % exponential": lambda rng, n, d: np.where(rng.random((n, d)) < 0.15, rng.exponential(size=(n, d)), 0.0),
}

# The settings with which the promise should hold.
SETTINGS_OUTSIDE_PROMISE: dict[str, dict[str, int]] = {
    "AR(1) .8": {},
    "AR(1) .95": {"lags": 2},
    "AR(2) .5 .3": {"lags": 2},
    "GARCH .1 .85": {},
    "season 24": {"season": 24},
    "season 288": {"season": 288},
    "rounded to 2 sd": {},
    "Poisson 1": {},
    "Cauchy": {},
    "0, 15 % exponential": {},
}

FAMILY_SDS = {"mixture": 0.51, "Student t(3)": 1.732, "Laplace": 1.414, "log-normal": 2.161, "AR(1) .5": 1.155}


def draw_stream(name: str, share: float, n: int, d: int, seed: int) -> tuple[FloatArray, Flags]:
    """Draw n points of a family, a share of them uniform within 20 standard deviations; return which those are."""
    rng = np.random.default_rng(seed)
    rows = {**FAMILIES, **ROUNDED_FAMILIES, **FAMILIES_OUTSIDE_PROMISE}[name](rng, n, d)
    is_outlier = rng.random(n) < share
    reach = OUTLIER_RANGE_SD * FAMILY_SDS.get(name, 1.0)
    rows[is_outlier] = rng.uniform(-reach, reach, (int(is_outlier.sum()), d))
    return np.ascontiguousarray(rows), is_outlier


class RateRatios(NamedTuple):
    """Observed over promised rates."""

    change: float
    anomaly: float


def measure_rates(
    name: str,
    share: float,
    d: int,
    far: float,
    points: int,
    flag_alarms: AlarmFunction = flag_detector_alarms,
    early: bool = False,
) -> RateRatios:
    """Measure observed over promised rates: in streams of 10⁶ points, or in the early rows of many short ones."""
    length = EARLY_STREAM_ROWS * EARLY_BATCH_STREAMS if early else min(points, 1_000_000)
    first_seed, n_seeds = 1000 if early else 0, max(1, points // (length if early else 1_000_000))
    first, size = (EARLY_FIRST_ROW, EARLY_STREAM_ROWS) if early else (0, length)

    def count_alarms(seed: int) -> FloatArray:
        rows, is_outlier = draw_stream(name, share, length, d, seed)
        counts = np.zeros(4)  # points, change alarms, clean points, anomalies among them
        for start in range(0, length, size):
            flags, is_clean = flag_alarms(rows[start : start + size], far), ~is_outlier[start + first : start + size]
            anomalies = flags.anomaly[first:][is_clean]
            counts += (size - first, flags.change[first:].sum(), len(anomalies), anomalies.sum())
        return counts

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        points_seen, changes, clean_points, anomalies = sum(
            pool.map(count_alarms, range(first_seed, first_seed + n_seeds)), np.zeros(4)
        )
    return RateRatios(float(changes / points_seen / far), float(anomalies / clean_points / far))


def measure_promised_rates(quick: bool) -> Iterator[Figure]:
    """Measure the streams of the promise; early rows in a whole run only."""
    points = 100_000 if quick else 10_000_000
    for d in (1, 3):
        for name in FAMILIES:
            for far in FALSE_ALARM_RATES if not quick else FALSE_ALARM_RATES[:1]:
                for share in OUTLIER_SHARES if not quick else OUTLIER_SHARES[::2]:
                    label = f"{name}, d={d}, {share:.0%} outliers, far {far:g}"
                    yield from make_figures(label, name, share, measure_rates(name, share, d, far, points))
                    if far > 1e-5 and not quick:
                        early = measure_rates(name, share, d, far, points // 5, early=True)
                        yield from make_figures(
                            f"{label}, rows {EARLY_FIRST_ROW}–{EARLY_STREAM_ROWS}", name, share, early
                        )


def measure_rates_outside_promise(points: int) -> Iterator[Figure]:
    """Measure streams outside the promise: by default, without threshold inflation, and with the right settings."""
    for name, settings in SETTINGS_OUTSIDE_PROMISE.items():
        for far in FALSE_ALARM_RATES[:2]:
            variants = {
                "": flag_detector_alarms,
                ", without threshold inflation": flag_alarms_without_threshold_inflation,
            }
            if settings:
                variants[", with " + ", ".join(f"{key}={value}" for key, value in settings.items())] = (
                    make_alarm_function(**settings)
                )
            for variant, flag_alarms in variants.items():
                rates = measure_rates(name, 0.0, 1, far, points, flag_alarms)
                yield Figure(f"not promised: change, {name}, far {far:g}{variant}", rates.change, "× promised")
                if not variant:
                    yield Figure(f"not promised: anomaly, {name}, far {far:g}", rates.anomaly, "× promised")


def make_figures(label: str, name: str, share: float, rates: RateRatios) -> Iterator[Figure]:
    """Return the figures of both kinds of alarms."""
    floor = 0.2 if name == "Gaussian" else None
    yield Figure(f"change, {label}", rates.change, "× promised", 1.5, floor)
    yield Figure(f"anomaly, {label}", rates.anomaly, "× promised", 1.5, floor if share == 0.0 else None)


def measure(quick: bool) -> list[Figure]:
    """Measure every family, rate, share of outliers and dimension; then the streams outside the promise."""
    figures = list(measure_promised_rates(quick))
    return figures if quick else figures + list(measure_rates_outside_promise(2_000_000))
