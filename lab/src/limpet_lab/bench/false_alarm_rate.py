"""The promise: alarms on streams that do not change, against the rate that was promised.

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

RATES = (1e-3, 1e-4, 1e-5)
SHARES = (0.0, 0.01, 0.05)  # of outliers
REACH = 20.0  # outliers are uniform within as many standard deviations
EARLY, LENGTH, BATCH = 200, 2000, 200  # rows that count as early, of streams this short, so many at once

Flags = npt.NDArray[np.bool_]
Sampler = Callable[[np.random.Generator, int, int], FloatArray]


class Raised(NamedTuple):
    """In each row of a stream: whether a change alarm is raised, and whether it is called an anomaly."""

    change: Flags
    anomaly: Flags


Alarms = Callable[[FloatArray, float], Raised]


def alarms_of(**settings: Any) -> Alarms:
    """What is put to the test: SRA with these settings besides `far`."""

    def alarms(rows: FloatArray, far: float) -> Raised:
        trace = Detector(far=far, **settings).process(rows)
        return Raised(trace.change, trace.anomaly)

    return alarms


ours = alarms_of()


def without_lock(rows: FloatArray, far: float) -> Raised:
    """The detector of changes with the promise of exchangeable points alone."""
    detector = make_change_detector(rows.shape[1], lock=False)
    flags = np.zeros(len(rows))
    memory, work = np.zeros(detector.state_size), np.zeros(detector.work_size)
    detector.run(memory, rows, log_threshold(far), work, flags, np.zeros(0))
    return Raised(flags > 0.0, np.zeros(len(rows), bool))


def filtered(rows: FloatArray, first: float, second: float) -> None:
    """Turns noise into an autoregression of order 2, in place."""
    for t in range(1, len(rows)):
        for i in range(rows.shape[1]):
            rows[t, i] += first * rows[t - 1, i] + (second * rows[t - 2, i] if t > 1 else 0.0)


def clustered(rows: FloatArray) -> None:
    """Turns noise into GARCH(0.1, 0.85), in place."""
    for i in range(rows.shape[1]):
        variance = 1.0
        for t in range(len(rows)):
            rows[t, i] *= np.sqrt(variance)
            variance = 0.05 + 0.85 * variance + 0.1 * rows[t, i] * rows[t, i]


compiled_filtered, compiled_clustered = (
    jit_entry_point(filtered, releases_gil=True),
    jit_entry_point(clustered, releases_gil=True),
)


def mixture(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """The paper's: ½ N(−.5, .1²) + ½ N(.5, .1²)."""
    return rng.choice(np.array([-0.5, 0.5]), (n, 1)) + 0.1 * rng.standard_normal((n, d))


def autoregressive(first: float, second: float = 0.0) -> Sampler:
    """Each coordinate on its own."""

    def sample(rng: np.random.Generator, n: int, d: int) -> FloatArray:
        rows = rng.standard_normal((n, d))
        compiled_filtered(rows, first, second)
        return rows

    return sample


def garch(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Volatility in clusters."""
    rows = rng.standard_normal((n, d))
    compiled_clustered(rows)
    return rows


def seasonal(period: int) -> Sampler:
    """A season of amplitude 1 in noise of standard deviation 1."""

    def sample(rng: np.random.Generator, n: int, d: int) -> FloatArray:
        rows = rng.standard_normal((n, d))
        rows += np.sin(2 * np.pi / period * np.arange(n))[:, None]
        return rows

    return sample


FAMILIES: dict[str, Sampler] = {
    "Gaussian": lambda rng, n, d: rng.standard_normal((n, d)),
    "mixture": mixture,
    "Student t(3)": lambda rng, n, d: rng.standard_t(3, (n, d)),
    "Laplace": lambda rng, n, d: rng.laplace(size=(n, d)),
    "log-normal": lambda rng, n, d: rng.lognormal(size=(n, d)),
    "AR(1) .5": autoregressive(0.5),
}

FURTHER: dict[str, Sampler] = {
    "rounded to .5 sd": lambda rng, n, d: np.round(2.0 * rng.standard_normal((n, d))) / 2.0,
}

UNPROMISED: dict[str, Sampler] = {
    "AR(1) .8": autoregressive(0.8),
    "AR(1) .95": autoregressive(0.95),
    "AR(2) .5 .3": autoregressive(0.5, 0.3),
    "GARCH .1 .85": garch,
    "season 24": seasonal(24),
    "season 288": seasonal(288),
    "rounded to 2 sd": lambda rng, n, d: 2.0 * np.round(rng.standard_normal((n, d)) / 2.0),
    "Poisson 1": lambda rng, n, d: rng.poisson(1.0, (n, d)).astype(float),
    "Cauchy": lambda rng, n, d: rng.standard_cauchy((n, d)),
    "0, 15 % exponential": lambda rng, n, d: np.where(rng.random((n, d)) < 0.15, rng.exponential(size=(n, d)), 0.0),
}

# The settings with which the promise should hold.
UNPROMISED_SETTINGS: dict[str, dict[str, int]] = {
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

SPREADS = {"mixture": 0.51, "Student t(3)": 1.732, "Laplace": 1.414, "log-normal": 2.161, "AR(1) .5": 1.155}


def stream(name: str, share: float, n: int, d: int, seed: int) -> tuple[FloatArray, Flags]:
    """n points of a family, a share of which are uniform within 20 standard deviations; and which those are."""
    rng = np.random.default_rng(seed)
    rows = {**FAMILIES, **FURTHER, **UNPROMISED}[name](rng, n, d)
    out = rng.random(n) < share
    reach = REACH * SPREADS.get(name, 1.0)
    rows[out] = rng.uniform(-reach, reach, (int(out.sum()), d))
    return np.ascontiguousarray(rows), out


class Observed(NamedTuple):
    """Observed over promised rates."""

    change: float
    anomaly: float


def observed(
    name: str, share: float, d: int, far: float, points: int, alarms: Alarms = ours, early: bool = False
) -> Observed:
    """Observed over promised rates: in streams of 10⁶ points, or in the early rows of many short ones."""
    length, seeds = (
        (LENGTH * BATCH, range(1000, 1000 + max(1, points // (LENGTH * BATCH))))
        if early
        else (
            min(points, 1_000_000),
            range(max(1, points // 1_000_000)),
        )
    )

    def rates_for_seed(seed: int) -> FloatArray:
        rows, out = stream(name, share, length, d, seed)
        pieces, first = (range(0, length, LENGTH), EARLY) if early else (range(0, length, length), 0)
        size = LENGTH if early else length
        counts = np.zeros(4)  # points, change alarms, clean points, anomalies among them
        for at in pieces:
            raised, clean = alarms(rows[at : at + size], far), ~out[at + first : at + size]
            anomalies = raised.anomaly[first:][clean]
            counts += (size - first, raised.change[first:].sum(), len(anomalies), anomalies.sum())
        return counts

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        points_seen, changes, clean_points, anomalies = sum(pool.map(rates_for_seed, seeds), np.zeros(4))
    return Observed(float(changes / points_seen / far), float(anomalies / clean_points / far))


def cells(quick: bool) -> Iterator[Figure]:
    """One figure after the other."""
    points = 100_000 if quick else 10_000_000
    for d in (1, 3):
        for name in FAMILIES:
            for far in RATES if not quick else RATES[:1]:
                for share in SHARES if not quick else SHARES[::2]:
                    label = f"{name}, d={d}, {share:.0%} outliers, far {far:g}"
                    yield from figures(label, name, share, observed(name, share, d, far, points))
                    if far > 1e-5 and not quick:
                        early = observed(name, share, d, far, points // 5, early=True)
                        yield from figures(f"{label}, rows {EARLY}–{LENGTH}", name, share, early)
    for name, settings in UNPROMISED_SETTINGS.items() if not quick else []:
        for far in RATES[:2]:
            variants = {"": ours, ", without threshold inflation": without_lock}
            if settings:
                variants[", told " + ", ".join(f"{key}={value}" for key, value in settings.items())] = alarms_of(
                    **settings
                )
            for variant, alarms in variants.items():
                rates = observed(name, 0.0, 1, far, points // 5, alarms)
                yield Figure(f"not promised: change, {name}, far {far:g}{variant}", rates.change, "× promised")
                if not variant:
                    yield Figure(f"not promised: anomaly, {name}, far {far:g}", rates.anomaly, "× promised")


def figures(label: str, name: str, share: float, rates: Observed) -> Iterator[Figure]:
    """Both kinds of alarms."""
    floor = 0.2 if name == "Gaussian" else None
    yield Figure(f"change, {label}", rates.change, "× promised", 1.5, floor)
    yield Figure(f"anomaly, {label}", rates.anomaly, "× promised", 1.5, floor if share == 0.0 else None)


def measure(quick: bool) -> list[Figure]:
    """Every family, rate, share of outliers and dimension; then the streams of which nothing can be promised."""
    return list(cells(quick))
