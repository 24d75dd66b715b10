"""The promise: change alarms on streams that do not change, against the rate that was promised.

10⁷ points a cell, in streams of 10⁶: about ten minutes. `holdfast bench --quick` takes a twentieth of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from holdfast.alarms import ChangeDetector, change_detector, threshold_for
from holdfast.benchmarks.figure import Figure
from holdfast.checks import FloatArray
from holdfast.scheme.compiling import compiled

TITLE = "change alarms on stable streams, observed rate / promised rate"

RATES = (1e-3, 1e-4, 1e-5)
SHARES = (0.0, 0.01, 0.05)  # of outliers
REACH = 20.0  # outliers are uniform within as many standard deviations
EARLY, LENGTH, BATCH = 200, 2000, 200  # rows that count as early, of streams this short, so many at once

Alarms = Callable[[FloatArray, float], FloatArray]
Sampler = Callable[[np.random.Generator, int, int], FloatArray]


def change_alarms(rows: FloatArray, far: float) -> FloatArray:
    """1 in each row of a stream (T, d) at which a change alarm is raised, else 0: what is put to the test."""
    return alarms_of(change_detector(rows.shape[1]), rows, far)


def without_lock(rows: FloatArray, far: float) -> FloatArray:
    """The same, with the promise of exchangeable points alone."""
    return alarms_of(change_detector(rows.shape[1], lock=False), rows, far)


def alarms_of(detector: ChangeDetector, rows: FloatArray, far: float) -> FloatArray:
    """The alarms of a detector that has seen nothing before."""
    flags = np.zeros(len(rows))
    memory, work = np.zeros(detector.size), np.zeros(detector.work_size)
    detector.run(memory, rows, threshold_for(far), work, flags, np.zeros(0))
    return flags


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


compiled_filtered, compiled_clustered = compiled(filtered, releases_gil=True), compiled(clustered, releases_gil=True)


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
}

SPREADS = {"mixture": 0.51, "Student t(3)": 1.732, "Laplace": 1.414, "log-normal": 2.161, "AR(1) .5": 1.155}


def stream(name: str, share: float, n: int, d: int, seed: int) -> FloatArray:
    """n points of a family, a share of which are uniform within 20 standard deviations."""
    rng = np.random.default_rng(seed)
    rows = {**FAMILIES, **UNPROMISED}[name](rng, n, d)
    if share > 0.0:
        out = rng.random(n) < share
        reach = REACH * SPREADS.get(name, 1.0)
        rows[out] = rng.uniform(-reach, reach, (int(out.sum()), d))
    return np.ascontiguousarray(rows)


def observed(
    name: str, share: float, d: int, far: float, points: int, alarms: Alarms = change_alarms, early: bool = False
) -> float:
    """Observed over promised rate: in streams of 10⁶ points, or in the early rows of many short ones."""
    seen, count = 0, 0.0
    if early:
        for seed in range(max(1, points // (LENGTH * BATCH))):
            many = stream(name, share, LENGTH * BATCH, d, 1000 + seed).reshape(BATCH, LENGTH, d)
            for one in many:
                count, seen = count + alarms(one, far)[EARLY:].sum(), seen + LENGTH - EARLY
    else:
        length = min(points, 1_000_000)
        for seed in range(points // length):
            count, seen = count + alarms(stream(name, share, length, d, seed), far).sum(), seen + length
    return float(count / seen / far)


def cells(quick: bool) -> Iterator[Figure]:
    """One figure after the other."""
    points = 500_000 if quick else 10_000_000
    for d in (1, 3):
        for name in FAMILIES:
            floor = 0.2 if name == "Gaussian" else None
            for far in RATES if not quick else RATES[:2]:
                for share in SHARES:
                    label = f"{name}, d={d}, {share:.0%} outliers, far {far:g}"
                    yield Figure(label, observed(name, share, d, far, points), "× promised", 1.5, floor)
                    if far > 1e-5 and not quick:
                        early = observed(name, share, d, far, points, early=True)
                        yield Figure(f"{label}, rows {EARLY}–{LENGTH}", early, "× promised", 1.5, floor)
    for name in UNPROMISED:
        for far in RATES[:2]:
            for lock, alarms in (("", change_alarms), (", without the second lock", without_lock)):
                value = observed(name, 0.0, 1, far, points // 5, alarms)
                yield Figure(f"not promised: {name}, far {far:g}{lock}", value, "× promised")


def measure(quick: bool) -> list[Figure]:
    """Every family, rate, share of outliers and dimension; then the streams of which nothing can be promised."""
    return list(cells(quick))
