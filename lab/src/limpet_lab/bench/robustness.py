"""Recovery after changes and stability under outliers of a learner with its defaults.

A learner comes as a factory: `make()` learns one component, `make(2)` two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import permutations
from typing import NamedTuple

import numpy as np

from limpet.datasets import Stream, make_abrupt, make_gradual
from limpet.exceptions import LimpetWarning
from limpet.learners import SRA, Learner
from limpet.learners.base import from_bytes
from limpet.metrics import SegmentMSE, segment_mse
from limpet_lab.bench._measurement import Figure
from limpet_lab.bench._scenarios import (
    RATES,
    SHIFTS,
    FloatArray,
    Scenario,
    Setting,
    burst,
    level_shift,
    ramp,
    settings,
    variance_jump,
)

TITLE = "no settings; changes read 300 rows later, mean within .3σ and variance within a factor 1.5 of the truth"
NEAR, FACTOR, MIN_RECOVERED_PERCENT = 0.3, 1.5, 99.0  # σ; a ratio of variances; % of the runs
SEEDS = 20
MOVED = 0.2  # σ, by which a burst may move the estimate
CALM, WATCHED = 2000, 60  # rows before a burst, and those after it that count as its own
BURSTS = range(1, 9)
LOUD = 5.0  # σ, a new level that must raise an alarm: silence alone does not prove stability

Factory = Callable[..., Learner]
Judge = Callable[[FloatArray, FloatArray, Scenario], float]


class Run(NamedTuple):
    """How far off a learner was, and how far one that knows the change and the outliers would have been."""

    labels: dict[str, str]
    seed: int
    error: float
    oracle: float


def measure(quick: bool, make: Factory = SRA) -> list[Figure]:
    """All of it, for the learners that `make` makes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)  # a lock-out shows in the figures
        return [*measure_recovery(quick, make), *measure_bursts(quick, make), *mean_squared_errors(quick, make)]


# Recovery after changes


def measure_recovery(quick: bool, make: Factory) -> list[Figure]:
    """Shares of the runs that found the truth again, by what happened and in all."""
    seeds: Sequence[int] = (0, 3) if quick else range(SEEDS)  # two that differ in what moves, and where to
    all_kinds = partial(settings, (0.0, 0.05, 0.2) if quick else RATES, seeds=seeds)
    for_two = partial(all_kinds, dims=(1, 3), seeds=seeds[:1]) if quick else all_kinds  # 8 compile for long
    scattered = settings((0.0, 0.01, 0.05), ("uniform",), seeds=seeds)
    return [
        *shares("shift, K=1", shift_runs(make, all_kinds()), NEAR),
        *shares("variance, K=1", variance_runs(make, scattered), FACTOR),
        *shares("ramp, K=1", follow(map(ramp, all_kinds()), make, mean_error), NEAR),
        *shares("shift of both, K=2", shift_runs(make, for_two(), components=2), NEAR),
        *shares("shift of one, K=2", shift_runs(make, for_two(), components=2, alone=True), NEAR),
    ]


def shift_runs(
    make: Factory,
    grid: Iterable[Setting],
    sizes: Sequence[float] = SHIFTS,
    components: int = 1,
    alone: bool = False,
) -> list[Run]:
    """Level shifts; two components move together, or one alone."""
    streams = (level_shift(setting, size, components, alone) for setting in grid for size in sizes)
    return follow(streams, make, mean_error)


def variance_runs(make: Factory, grid: Iterable[Setting], factors: Sequence[float] = (10.0, 0.1)) -> list[Run]:
    """Jumps of the variance."""
    return follow((variance_jump(setting, factor) for setting in grid for factor in factors), make, variance_error)


def follow(streams: Iterable[Scenario], make: Factory, judge: Judge) -> list[Run]:
    """A fresh learner on each stream, read at its last row."""
    runs = []
    for scenario in streams:
        components = len(scenario.means)
        learner = make() if components == 1 else make(components)
        learner.process(scenario.y)
        variances = np.diagonal(learner.covariances, axis1=1, axis2=2)
        error = judge(np.asarray(learner.means), variances, scenario)
        runs.append(Run(scenario.labels, scenario.seed, error, judge(*hindsight(scenario), scenario)))
    return runs


def mean_error(means: FloatArray, variances: FloatArray, scenario: Scenario) -> float:
    """The largest error of any coordinate of any mean, in σ, with the components in their best order."""
    orders = permutations(range(len(means)))
    error = min(float(np.abs(means[list(order)] - scenario.means).max()) for order in orders)
    return error if np.isfinite(error) else np.inf


def variance_error(means: FloatArray, variances: FloatArray, scenario: Scenario) -> float:
    """The largest factor between a variance and the truth, either way."""
    if not (np.isfinite(variances).all() and variances.min() > 0):
        return np.inf
    ratio = variances / scenario.variance
    return float(np.maximum(ratio, 1 / ratio).max())


def hindsight(scenario: Scenario) -> tuple[FloatArray, FloatArray]:
    """Means and variances of the clean rows of the new regime: what no learner can do better than."""
    y, source = scenario.y[scenario.settled :], scenario.source[scenario.settled :]
    groups = [y[source == k] for k in range(len(scenario.means))]
    return np.array([g.mean(axis=0) for g in groups]), np.array([g.var(axis=0) for g in groups])


def shares(title: str, runs: Sequence[Run], limit: float) -> list[Figure]:
    """The share of runs with an error within the limit: in all, with hindsight, and in each group."""

    def share(errors: Iterable[float]) -> float:
        return 100 * float(np.mean([error <= limit for error in errors]))

    figures = [
        Figure(f"{title}: of {len(runs)} runs", share(r.error for r in runs), "%", at_least=MIN_RECOVERED_PERCENT),
        Figure(f"{title}: with hindsight", share(r.oracle for r in runs), "%"),
    ]
    for group in runs[0].labels:
        values = list(dict.fromkeys(r.labels[group] for r in runs))
        for value in values if len(values) > 1 else ():
            results = share(r.error for r in runs if r.labels[group] == value)
            figures.append(Figure(f"{title}: {group} {value}", results, "%"))
    return figures


# Stability under bursts


class Bursts(NamedTuple):
    """What bursts of one length did: (runs,) the movement in σ right after and 60 rows later."""

    at_once: FloatArray
    later: FloatArray


def measure_bursts(quick: bool, make: Factory) -> list[Figure]:
    """Bursts of scattered outliers: how far they move the estimate. (How many alarms they raise is in `delays`.)

    A change alarm, false or not, may re-initialize the estimate, so one burst in a hundred is allowed to move it.
    """
    figures = []
    for dim in (1, 3):
        results, reactions = burst_runs(make, dim, *((5, 4) if quick else (100, 20)))
        figures.append(
            Figure(
                f"a new level, {LOUD:g}σ off, d={dim}: noticed", 100 * reactions, "%", at_least=MIN_RECOVERED_PERCENT
            )
        )
        moved = {
            "right after": np.concatenate([each.at_once for each in results.values()]),
            f"{WATCHED} rows after": np.concatenate([each.later for each in results.values()]),
        }
        for when, distance in moved.items():
            many = 100 * float(np.mean(~(distance < MOVED)))
            figures.append(Figure(f"bursts, d={dim}: estimate moved by {MOVED}σ {when}", many, "%", 1.0))
            figures.append(Figure(f"bursts, d={dim}: largest movement {when}", float(distance.max()), "σ"))
    return figures


def burst_runs(make: Factory, dim: int, calms: int, futures: int) -> tuple[dict[int, Bursts], float]:
    """Bursts by their length, 1 to 8, and the share of new levels noticed within 60 rows.

    Each of some calm streams is continued in several ways, and each of those comes after every length of burst.
    """
    rows: dict[int, list[tuple[float, float]]] = {length: [] for length in BURSTS}
    reactions = []
    for seed in range(calms):
        rng = np.random.default_rng([seed, dim])
        learner = make()
        learner.process(rng.standard_normal((CALM, dim)))
        kept, level = learner.to_bytes(), np.array(learner.means)
        for _ in range(futures):
            after = rng.standard_normal((WATCHED, dim))
            reactions.append(from_bytes(kept).process(after + LOUD).change.any())
            undisturbed = from_bytes(kept)
            undisturbed.process(after)
            for length in rows:
                twin = from_bytes(kept)
                twin.process(burst(rng, length, dim))
                at_once = float(np.abs(twin.means - level).max())
                twin.process(after)
                later = float(np.abs(twin.means - undisturbed.means).max())
                rows[length].append((at_once, later))
    return {length: Bursts(*np.array(results, dtype=float).T) for length, results in rows.items()}, float(
        np.mean(reactions)
    )


# The paper's streams


def mean_squared_errors(quick: bool, make: Factory) -> list[Figure]:
    """Two components on the paper's synthetic streams: in one dimension every seed counts, in three the mean."""
    figures = []
    for generate, goal in ((make_abrupt, 0.5), (make_gradual, 0.3)):
        kind = generate.__name__.removeprefix("make_")
        total = [e.S_tot for e in squared_errors(make, generate, 1, range(100, 103 if quick else 120))]
        figures.append(Figure(f"1-D {kind}: S_tot, worst of {len(total)} seeds", float(np.max(total)), "", 0.001))
        figures.append(Figure(f"1-D {kind}: S_tot, mean", float(np.mean(total)), ""))
        after = [e.S_ac for e in squared_errors(make, generate, 3, range(2 if quick else 10))]
        figures.append(
            Figure(f"3-D {kind}, printed: S_ac, mean of {len(after)} seeds", float(np.mean(after)), "", goal)
        )
        figures.append(Figure(f"3-D {kind}, printed: S_ac, worst", float(np.max(after)), ""))
    return figures


def squared_errors(make: Factory, generate: Callable[..., Stream], dim: int, seeds: Iterable[int]) -> list[SegmentMSE]:
    """The paper's errors on the streams of these seeds."""
    errors = []
    for seed in seeds:
        stream = generate(dim=dim, seed=seed)
        assert stream.means is not None
        assert isinstance(stream.change_points, list)
        means = make(2).process(stream.y, record="means").means
        errors.append(segment_mse(means, stream.means, stream.change_points[0]))
    return errors
