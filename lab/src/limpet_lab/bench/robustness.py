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
from limpet.learners import Detector, Learner
from limpet.learners.base import from_bytes
from limpet.metrics import SegmentMSE, segment_mse
from limpet_lab.bench._measurement import Figure
from limpet_lab.bench._scenarios import (
    OUTLIER_RATES,
    SHIFT_SIZES_SD,
    FloatArray,
    Scenario,
    Setting,
    draw_burst,
    make_level_shift,
    make_ramp,
    make_settings,
    make_variance_jump,
)

TITLE = "no settings; changes read 300 rows later, mean within .3σ and variance within a factor 1.5 of the truth"
MAX_MEAN_ERROR_SD, MAX_VARIANCE_FACTOR, MIN_RECOVERED_PERCENT = 0.3, 1.5, 99.0  # σ; a ratio of variances; % of the runs
N_SEEDS = 20
MAX_MOVEMENT_SD = 0.2  # σ, by which a burst may move the estimate
ROWS_BEFORE_BURST, ROWS_AFTER_BURST = 2000, 60  # rows before a burst, and those after it that count as its own
BURST_LENGTHS = range(1, 9)
NEW_LEVEL_SD = 5.0  # σ, a new level that must raise an alarm: silence alone does not prove stability

LearnerFactory = Callable[..., Learner]
ErrorFunction = Callable[[FloatArray, FloatArray, Scenario], float]


class RecoveryRun(NamedTuple):
    """The error of a learner, and that of an oracle that knows the change and the outliers."""

    labels: dict[str, str]
    seed: int
    error: float
    oracle: float


def measure(quick: bool, make_learner: LearnerFactory = Detector) -> list[Figure]:
    """Measure all, for the learners that `make_learner` returns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)  # a lock-out shows in the figures
        return [
            *measure_recovery(quick, make_learner),
            *measure_bursts(quick, make_learner),
            *measure_squared_errors(quick, make_learner),
        ]


# Recovery after changes


def measure_recovery(quick: bool, make_learner: LearnerFactory) -> list[Figure]:
    """Measure the shares of the runs that recovered the truth, by kind of change and in all."""
    seeds: Sequence[int] = (0, 3) if quick else range(N_SEEDS)  # two that differ in what moves, and where to
    all_kinds = partial(make_settings, (0.0, 0.05, 0.2) if quick else OUTLIER_RATES, seeds=seeds)
    for_two = partial(all_kinds, dims=(1, 3), seeds=seeds[:1]) if quick else all_kinds  # 8 compile for long
    scattered = make_settings((0.0, 0.01, 0.05), ("uniform",), seeds=seeds)
    return [
        *make_share_figures("shift, K=1", run_shifts(make_learner, all_kinds()), MAX_MEAN_ERROR_SD),
        *make_share_figures("variance, K=1", run_variance_jumps(make_learner, scattered), MAX_VARIANCE_FACTOR),
        *make_share_figures(
            "ramp, K=1", run_scenarios(map(make_ramp, all_kinds()), make_learner, compute_mean_error), MAX_MEAN_ERROR_SD
        ),
        *make_share_figures("shift of both, K=2", run_shifts(make_learner, for_two(), components=2), MAX_MEAN_ERROR_SD),
        *make_share_figures(
            "shift of one, K=2", run_shifts(make_learner, for_two(), components=2, alone=True), MAX_MEAN_ERROR_SD
        ),
    ]


def run_shifts(
    make_learner: LearnerFactory,
    grid: Iterable[Setting],
    sizes: Sequence[float] = SHIFT_SIZES_SD,
    components: int = 1,
    alone: bool = False,
) -> list[RecoveryRun]:
    """Run level shifts; two components move together, or one alone."""
    streams = (make_level_shift(setting, size, components, alone) for setting in grid for size in sizes)
    return run_scenarios(streams, make_learner, compute_mean_error)


def run_variance_jumps(
    make_learner: LearnerFactory, grid: Iterable[Setting], factors: Sequence[float] = (10.0, 0.1)
) -> list[RecoveryRun]:
    """Run jumps of the variance."""
    return run_scenarios(
        (make_variance_jump(setting, factor) for setting in grid for factor in factors),
        make_learner,
        compute_variance_error,
    )


def run_scenarios(
    streams: Iterable[Scenario], make_learner: LearnerFactory, compute_error: ErrorFunction
) -> list[RecoveryRun]:
    """Run a new learner on each stream, and compute its error at the last row."""
    runs = []
    for scenario in streams:
        components = len(scenario.means)
        learner = make_learner() if components == 1 else make_learner(components)
        learner.process(scenario.y)
        variances = np.diagonal(learner.covariances, axis1=1, axis2=2)
        error = compute_error(np.asarray(learner.means), variances, scenario)
        runs.append(
            RecoveryRun(scenario.labels, scenario.seed, error, compute_error(*compute_oracle(scenario), scenario))
        )
    return runs


def compute_mean_error(means: FloatArray, variances: FloatArray, scenario: Scenario) -> float:
    """Compute the largest error of any coordinate of any mean, in σ, with the components in their best order."""
    orders = permutations(range(len(means)))
    error = min(float(np.abs(means[list(order)] - scenario.means).max()) for order in orders)
    return error if np.isfinite(error) else np.inf


def compute_variance_error(means: FloatArray, variances: FloatArray, scenario: Scenario) -> float:
    """Compute the largest factor between a variance and the truth, either way."""
    if not (np.isfinite(variances).all() and variances.min() > 0):
        return np.inf
    ratio = variances / scenario.variance
    return float(np.maximum(ratio, 1 / ratio).max())


def compute_oracle(scenario: Scenario) -> tuple[FloatArray, FloatArray]:
    """Compute means and variances of the clean rows of the new regime: no learner can do better."""
    y, source = scenario.y[scenario.settled_row :], scenario.source[scenario.settled_row :]
    groups = [y[source == k] for k in range(len(scenario.means))]
    return np.array([g.mean(axis=0) for g in groups]), np.array([g.var(axis=0) for g in groups])


def make_share_figures(title: str, runs: Sequence[RecoveryRun], limit: float) -> list[Figure]:
    """Return the share of runs with an error within the limit: in all, of the oracle, and in each group."""

    def compute_share(errors: Iterable[float]) -> float:
        return 100 * float(np.mean([error <= limit for error in errors]))

    figures = [
        Figure(
            f"{title}: of {len(runs)} runs", compute_share(r.error for r in runs), "%", at_least=MIN_RECOVERED_PERCENT
        ),
        Figure(f"{title}: oracle", compute_share(r.oracle for r in runs), "%"),
    ]
    for group in runs[0].labels:
        values = list(dict.fromkeys(r.labels[group] for r in runs))
        for value in values if len(values) > 1 else ():
            results = compute_share(r.error for r in runs if r.labels[group] == value)
            figures.append(Figure(f"{title}: {group} {value}", results, "%"))
    return figures


# Stability under bursts


class BurstMovements(NamedTuple):
    """Movements of the estimate by bursts of one length: (runs,), in σ, immediately and 60 rows later."""

    immediate: FloatArray
    delayed: FloatArray


def measure_bursts(quick: bool, make_learner: LearnerFactory) -> list[Figure]:
    """Measure how far bursts of outliers move the estimate. (How many alarms they raise is in `detection_delay`.)

    A change alarm, false or not, may re-initialize the estimate, so one burst in a hundred is allowed to move it.
    """
    figures = []
    for dim in (1, 3):
        results, detected_share = run_bursts(make_learner, dim, *((5, 4) if quick else (100, 20)))
        figures.append(
            Figure(
                f"a new level, {NEW_LEVEL_SD:g}σ off, d={dim}: noticed",
                100 * detected_share,
                "%",
                at_least=MIN_RECOVERED_PERCENT,
            )
        )
        moved = {
            "right after": np.concatenate([movements.immediate for movements in results.values()]),
            f"{ROWS_AFTER_BURST} rows after": np.concatenate([movements.delayed for movements in results.values()]),
        }
        for when, distance in moved.items():
            moved_percent = 100 * float(np.mean(~(distance < MAX_MOVEMENT_SD)))
            figures.append(
                Figure(f"bursts, d={dim}: estimate moved by {MAX_MOVEMENT_SD}σ {when}", moved_percent, "%", 1.0)
            )
            figures.append(Figure(f"bursts, d={dim}: largest movement {when}", float(distance.max()), "σ"))
    return figures


def run_bursts(
    make_learner: LearnerFactory, dim: int, n_streams: int, n_continuations: int
) -> tuple[dict[int, BurstMovements], float]:
    """Return bursts by their length, 1 to 8, and the share of new levels detected within 60 rows.

    Each of some stable streams is continued in several ways, and each of those comes after every length of burst.
    """
    rows: dict[int, list[tuple[float, float]]] = {length: [] for length in BURST_LENGTHS}
    detected = []
    for seed in range(n_streams):
        rng = np.random.default_rng([seed, dim])
        learner = make_learner()
        learner.process(rng.standard_normal((ROWS_BEFORE_BURST, dim)))
        saved, level = learner.to_bytes(), np.array(learner.means)
        for _ in range(n_continuations):
            following_rows = rng.standard_normal((ROWS_AFTER_BURST, dim))
            detected.append(from_bytes(saved).process(following_rows + NEW_LEVEL_SD).change.any())
            undisturbed = from_bytes(saved)
            undisturbed.process(following_rows)
            for length in rows:
                twin = from_bytes(saved)
                twin.process(draw_burst(rng, length, dim))
                immediate = float(np.abs(twin.means - level).max())
                twin.process(following_rows)
                delayed = float(np.abs(twin.means - undisturbed.means).max())
                rows[length].append((immediate, delayed))
    return {length: BurstMovements(*np.array(results, dtype=float).T) for length, results in rows.items()}, float(
        np.mean(detected)
    )


# The paper's streams


def measure_squared_errors(quick: bool, make_learner: LearnerFactory) -> list[Figure]:
    """Measure two components on the paper's synthetic streams: in one dimension every seed, in three the mean."""
    figures = []
    for make_stream, goal in ((make_abrupt, 0.5), (make_gradual, 0.3)):
        kind = make_stream.__name__.removeprefix("make_")
        total = [
            e.S_tot for e in compute_squared_errors(make_learner, make_stream, 1, range(100, 103 if quick else 120))
        ]
        figures.append(Figure(f"1-D {kind}: S_tot, worst of {len(total)} seeds", float(np.max(total)), "", 0.001))
        figures.append(Figure(f"1-D {kind}: S_tot, mean", float(np.mean(total)), ""))
        errors_after = [e.S_ac for e in compute_squared_errors(make_learner, make_stream, 3, range(2 if quick else 10))]
        figures.append(
            Figure(
                f"3-D {kind}, printed: S_ac, mean of {len(errors_after)} seeds", float(np.mean(errors_after)), "", goal
            )
        )
        figures.append(Figure(f"3-D {kind}, printed: S_ac, worst", float(np.max(errors_after)), ""))
    return figures


def compute_squared_errors(
    make_learner: LearnerFactory, make_stream: Callable[..., Stream], dim: int, seeds: Iterable[int]
) -> list[SegmentMSE]:
    """Compute the paper's errors on the streams of these seeds."""
    errors = []
    for seed in seeds:
        stream = make_stream(dim=dim, seed=seed)
        assert stream.means is not None
        assert isinstance(stream.change_points, list)
        means = make_learner(2).process(stream.y, record="means").means
        errors.append(segment_mse(means, stream.means, stream.change_points[0]))
    return errors
