"""Changes beyond any threshold, and bursts of corrupted rows: where a threshold locks out, and what patience is worth.

What frees a regression that is locked out makes it learn a burst that is longer than its patience: both are measured.
"""

from __future__ import annotations

import math
import multiprocessing
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from limpet._parallel import n_threads
from limpet._validation import FloatArray
from limpet.exceptions import LimpetWarning
from limpet_lab.bench._measurement import Figure
from limpet_lab.bench.regression.data import PairKind, Pairs, make_linear_pairs, make_logistic_pairs
from limpet_lab.bench.regression.methods import (
    PATIENT_SRA,
    Follower,
    Method,
    make_linear_methods,
    make_logistic_methods,
)

# One regression on one stream of pairs, and its distance from the truth.

Setting = tuple[float, float]
Entries = dict[str, tuple[str, Setting | None]]

LINEAR, LOGISTIC = "linear", "logistic"
MIN_PROBABILITY = 1e-4  # a probability is held to lie so far from 0 and 1, lest one row decide
RUNNING_MEAN_ROWS = 100  # rows of a running error
RECOVERED_ERRORS = {LINEAR: 0.25, LOGISTIC: 0.05}  # a running error below which a method has found the truth again


@dataclass(frozen=True)
class Run:
    """A method with a setting (None: the defaults of its library) on a stream of n rows."""

    family: str
    kind: PairKind
    method: str
    setting: Setting | None
    seed: int
    n: int


class Outcome(NamedTuple):
    """Mean errors over rows, the first tenth left out, and the share of clean labels predicted correctly.

    overall: all rows. before, after: before the change, and from its very first row on. settled: after it, but for a
    tenth of all rows. rows: from the end of the change until the running error is small again. right, right_after: for
    labels.
    """

    overall: float
    before: float
    after: float
    settled: float
    rows: float
    right: float
    right_after: float


@cache
def get_methods(family: str) -> dict[str, Method]:
    """Return the methods for this kind of target, by name."""
    return {method.name: method for method in (make_linear_methods() if family == LINEAR else make_logistic_methods())}


def make_pairs(run: Run) -> Pairs:
    """Return the stream of a run."""
    return (make_linear_pairs if run.family == LINEAR else make_logistic_pairs)(run.kind, run.seed, run.n)


def make_follower(run: Run) -> Follower:
    """Return the method of a run, ready for a stream."""
    method = get_methods(run.family)[run.method]
    if run.setting is not None:
        return method.make(*run.setting)
    assert method.default is not None
    return method.default


def compute_errors(family: str, pairs: Pairs, predicted: FloatArray) -> FloatArray:
    """Compute errors against the truth: squared, or for probabilities the log-loss above the least possible.

    The variance of a linear truth's noise is 1, so that squared errors are in its units.
    """
    if family == LINEAR:
        return np.asarray((predicted - pairs.truth) ** 2)
    p, q = np.clip(pairs.truth, 1e-12, 1.0 - 1e-12), np.clip(predicted, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    return np.asarray(p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q)))


def count_rows_to_recover(error: FloatArray, max_error: float) -> int:
    """Count rows until the mean of the last RUNNING_MEAN_ROWS errors is below `max_error`; all if it never is.

    >>> count_rows_to_recover(np.append(np.ones(50), np.zeros(500)), max_error=0.2)
    131
    """
    running = np.convolve(error, np.full(RUNNING_MEAN_ROWS, 1.0 / RUNNING_MEAN_ROWS), "valid")
    below = np.flatnonzero(running < max_error)
    return int(below[0]) + RUNNING_MEAN_ROWS if len(below) else len(error)


def compute_outcome(run: Run) -> Outcome:
    """Follow the stream, and judge."""
    pairs = make_pairs(run)
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", LimpetWarning)  # a lock-out shows in the figures
        predicted = make_follower(run)(pairs.X, pairs.y)
        error = compute_errors(run.family, pairs, predicted)
    tenth, change = run.n // 10, pairs.change
    error = np.where(np.isfinite(error), error, math.inf)
    right = (predicted > 0.5) == (pairs.clean > 0.5) if run.family == LOGISTIC else np.zeros(run.n)
    return Outcome(
        float(error[tenth:].mean()),
        float(error[tenth:change].mean()),
        float(error[change:].mean()),
        float(error[change + tenth :].mean()),
        count_rows_to_recover(error[change + pairs.ramp :], RECOVERED_ERRORS[run.family]),
        float(right[tenth:change].mean()),
        float(right[change:].mean()),
    )


def compute_outcomes(runs: Sequence[Run], in_parallel: bool) -> list[Outcome]:
    """Compute the outcomes of runs, in order; in_parallel: on all cores, in several processes."""
    if not in_parallel:
        return [compute_outcome(run) for run in runs]
    with ProcessPoolExecutor(n_threads(), multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(compute_outcome, runs, chunksize=4))


def list_entries(tuned: dict[str, Setting], family: str) -> Entries:
    """Name → method and setting: each method tuned and, where it has some, with its defaults."""
    entries: Entries = {}
    for name, method in get_methods(family).items():
        entries[name] = name, tuned[method.tuned_as or name]
        if method.default is not None:
            entries[f"{name}, defaults"] = name, None
    return entries


def compute_results(
    family: str,
    kind: PairKind,
    entries: Entries,
    rows: int,
    seeds: Sequence[int],
    quick: bool,
) -> dict[str, list[Outcome]]:
    """Compute the outcomes of each entry, seed after seed."""
    runs = [Run(family, kind, *entry, seed, rows) for entry in entries.values() for seed in seeds]
    recovered = iter(compute_outcomes(runs, in_parallel=not quick))
    return {name: [next(recovered) for _ in seeds] for name in entries}


JUMP_KINDS = (
    *(PairKind(f"coefficients by {size:g}σ", drift=size) for size in (20.0, 100.0)),
    *(PairKind(f"level by {size:g}σ", drift=0.0, jump=size) for size in (5.0, 10.0, 20.0, 50.0)),
)
JUMP_METHODS = (
    "SRA",
    "SRA, defaults",
    PATIENT_SRA,
    f"{PATIENT_SRA}, defaults",
    "SRA, no threshold",
    "river, Huber",
    "river, Cauchy",
)
BURST_KINDS = (
    PairKind("no burst", drift=0.0),
    *(
        PairKind(f"{rows} rows, {size:g}σ too high", drift=0.0, burst_rows=rows, burst_size=size)
        for size in (20.0, 100.0)
        for rows in (10, 20, 40)
    ),
)
BURST_METHODS = ("SRA", PATIENT_SRA, "SRA, no threshold", "river, Huber", "river, Cauchy")
BURST_ROWS, BURST_SEEDS = 2000, range(30)  # a burst is in the middle of its stream


def measure_jumps(tuned: dict[str, Setting], rows: int, seeds: Sequence[int], quick: bool) -> Iterator[Figure]:
    """Yield the share of streams in which the truth was recovered after a change, and the rows until then."""
    entries = {name: entry for name, entry in list_entries(tuned, LINEAR).items() if name in JUMP_METHODS}
    for kind in JUMP_KINDS[::5] if quick else JUMP_KINDS:
        for name, outcomes in compute_results(LINEAR, kind, entries, rows, seeds, quick).items():
            n_rows = np.array([outcome.rows for outcome in outcomes])
            recovered = np.array([outcome.rows < rows - rows // 2 for outcome in outcomes])
            yield Figure(f"jump, {kind.name}, {name}: found again", 100.0 * float(recovered.mean()), "%")
            yield Figure(f"jump, {kind.name}, {name}: rows", float(np.median(n_rows)), "rows")


def measure_bursts(tuned: dict[str, Setting], quick: bool) -> Iterator[Figure]:
    """Yield the mean error from the first row of a burst to the end of the stream."""
    entries = {name: entry for name, entry in list_entries(tuned, LINEAR).items() if name in BURST_METHODS}
    seeds = BURST_SEEDS[:1] if quick else BURST_SEEDS
    for kind in BURST_KINDS[::5] if quick else BURST_KINDS:
        for name, outcomes in compute_results(LINEAR, kind, entries, BURST_ROWS, seeds, quick).items():
            errors_after = np.array([outcome.after for outcome in outcomes])
            yield Figure(f"burst, {kind.name}, {name}: error", float(errors_after.mean()), "σ²")
            yield Figure(f"burst, {kind.name}, {name}: error, std", float(errors_after.std()), "σ²")
