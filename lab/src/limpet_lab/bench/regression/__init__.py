"""Robust gradient descent: linear and logistic regression on streams with corrupted targets and a change half-way.

Every method predicts a row and then learns it. Each has a grid of 24 settings, of which the one with the least error on
tuning streams of the first kind is taken, and is then shown on other streams of every kind, next to the defaults.
Errors are against the truth without the corruption, in multiples of the noise's variance, or for labels in nats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from limpet.learners import SRA
from limpet.models import LinearRegression
from limpet_lab.baselines.sklearn_sgd import compute_decisions, follow_sklearn
from limpet_lab.bench._measurement import Figure
from limpet_lab.bench._timing import Job, measure_best_times
from limpet_lab.bench.regression.data import PairKind, Pairs
from limpet_lab.bench.regression.methods import PATIENT_SRA, SKLEARN_MODELS, make_sgd, standardize_by_past
from limpet_lab.bench.regression.runs import (
    LINEAR,
    LOGISTIC,
    Outcome,
    Run,
    Setting,
    compute_outcomes,
    compute_results,
    get_methods,
    list_entries,
    make_pairs,
    measure_bursts,
    measure_jumps,
)

TITLE = "5 % corrupted targets and a change half-way: errors against the truth"

ROWS, SEEDS = 20_000, range(10)
TUNING_SEEDS = range(100, 103)  # seeds of streams that settings are chosen by, and that nothing else is measured on
STREAM_KINDS = {
    LINEAR: (
        PairKind("abrupt"),
        PairKind("gradual", gradual=True),
        PairKind("clean", share=0.0),
    ),
    LOGISTIC: (PairKind("sure labels"), PairKind("any labels", at_random=True), PairKind("clean", share=0.0)),
}
ERROR_UNITS = {LINEAR: "σ²", LOGISTIC: "nats"}
OUR_METHOD, SQUARED_LOSS_METHODS = "SRA", {LINEAR: "river, squared loss", LOGISTIC: "river, log loss"}
MIN_ERROR_RATIOS = {LINEAR: 10.0, LOGISTIC: 2.0}  # of the error of a method that is not robust to that of ours
TIMED_ROWS = 2000


def measure(quick: bool) -> list[Figure]:
    """Tune, run and time all methods."""
    rows, seeds = (1000, range(1)) if quick else (ROWS, SEEDS)
    figures: list[Figure] = []
    tuned: dict[str, dict[str, Setting]] = {}
    for family, kinds in STREAM_KINDS.items():
        tuned[family] = tune_methods(family, rows, TUNING_SEEDS[:1] if quick else TUNING_SEEDS, quick)
        figures += make_setting_figures(family, tuned[family])
        for kind in kinds:
            figures += measure_kind(family, kind, tuned[family], rows, seeds, quick)
    figures += measure_jumps(tuned[LINEAR], rows, seeds, quick)
    figures += measure_bursts(tuned[LINEAR], quick)
    figures += measure_times(tuned, 300 if quick else TIMED_ROWS, 1 if quick else 3)
    return [*figures, measure_sklearn_difference(300 if quick else TIMED_ROWS)]


def tune_methods(family: str, rows: int, seeds: Sequence[int], quick: bool) -> dict[str, Setting]:
    """Return the setting of each method with the least mean error on the tuning streams; a quick run tries a few."""
    kind = STREAM_KINDS[family][0]
    grids = {name: method.grid for name, method in get_methods(family).items() if not method.tuned_as}
    grids = {name: grid[5::8] if quick else grid for name, grid in grids.items()}
    tried = [(name, setting) for name, grid in grids.items() for setting in grid]
    runs = [Run(family, kind, *entry, seed, rows) for entry in tried for seed in seeds]
    overall = iter([result.overall for result in compute_outcomes(runs, in_parallel=not quick)])
    chosen = {}
    for name, grid in grids.items():
        means = [float(np.mean([next(overall) for _ in seeds])) for _ in grid]
        chosen[name] = grid[int(np.argmin(means))]
    return chosen


def make_setting_figures(family: str, tuned: dict[str, Setting]) -> Iterator[Figure]:
    """Yield the chosen settings."""
    for name, (step, other_value) in tuned.items():
        yield Figure(f"{family}, {name}, tuned: step", step)
        yield Figure(f"{family}, {name}, tuned: {get_methods(family)[name].other_name}", other_value)


def measure_kind(
    family: str, kind: PairKind, tuned: dict[str, Setting], rows: int, seeds: Sequence[int], quick: bool
) -> Iterator[Figure]:
    """Yield the figures of one kind of stream; where targets are corrupted, also the lead over squared loss."""
    outcomes_by_column = compute_results(family, kind, list_entries(tuned, family), rows, seeds, quick)
    for name, outcomes in outcomes_by_column.items():
        yield from summarize(f"{family}, {kind.name}, {name}", outcomes, family)
    for end in ("", ", defaults"):
        pairs = zip(outcomes_by_column[OUR_METHOD + end], outcomes_by_column[PATIENT_SRA + end], strict=True)
        title = f"{family}, {kind.name}, {PATIENT_SRA}{end}: not as without"
        yield Figure(title, float(sum(not np.array_equal(*pair, equal_nan=True) for pair in pairs)), "streams")
    if kind.name in ("abrupt", "sure labels"):
        our_errors, baseline_errors = (
            np.mean(np.array(outcomes_by_column[name]), axis=0) for name in (OUR_METHOD, SQUARED_LOSS_METHODS[family])
        )
        for column, when in ((1, "before"), (3, "settled")):
            title = f"{family}, {kind.name}, {SQUARED_LOSS_METHODS[family]} over SRA: {when}"
            yield Figure(
                title, float(baseline_errors[column] / our_errors[column]), "×", at_least=MIN_ERROR_RATIOS[family]
            )


def summarize(title: str, outcomes: Sequence[Outcome], family: str) -> Iterator[Figure]:
    """Yield means with standard deviations over the seeds, and the median of the rows until recovery."""
    table = np.array(outcomes)
    for column in ("before", "after", "settled", *(("right", "right_after") if family == LOGISTIC else ())):
        values = table[:, Outcome._fields.index(column)]
        name, unit, scale = column.replace("_", " "), ERROR_UNITS[family], 1.0
        if column.startswith("right"):
            unit, scale = "%", 100.0
        yield Figure(f"{title}: {name}", scale * float(values.mean()), unit)
        yield Figure(f"{title}: {name}, std", scale * float(values.std()), unit)
    yield Figure(f"{title}: until found again", float(np.median(table[:, Outcome._fields.index("rows")])), "rows")


def measure_times(tuned: dict[str, dict[str, Setting]], rows: int, rounds: int) -> Iterator[Figure]:
    """Predict and learn, a row at a time, each by its library; and ours for a whole batch."""
    for family, chosen in tuned.items():
        pairs = make_pairs(Run(family, STREAM_KINDS[family][0], OUR_METHOD, None, TUNING_SEEDS[0], rows))
        jobs = {name: make_job(family, name, setting, pairs) for name, setting in chosen.items()}
        if family == LINEAR:
            jobs["SRA, process(X, y)"] = lambda X=pairs.X, y=pairs.y: SRA(rho=0.01, model=LinearRegression()).process(
                X, y
            )  # type: ignore[misc]
        for job in jobs.values():
            job()  # so that it is compiled
        for name, seconds in measure_best_times(jobs, rounds).items():
            yield Figure(f"time, {family}, {name}", seconds / rows * 1e6, "µs per row")


def make_job(family: str, name: str, setting: Setting, pairs: Pairs) -> Job:
    """Follow a stream, scikit-learn's by the library itself and without the time that standardising takes."""
    if name not in SKLEARN_MODELS:
        follow = get_methods(family)[name].make(*setting)
        return lambda: follow(pairs.X, pairs.y)
    Z = standardize_by_past(pairs.X)
    return lambda: follow_sklearn(
        make_sgd(*SKLEARN_MODELS[name], learning_rate="constant", eta0=setting[0]), Z, pairs.y
    )


def measure_sklearn_difference(rows: int) -> Figure:
    """Measure the largest difference between the predictions of scikit-learn and of its reimplementation."""
    differences = []
    for family, kinds in STREAM_KINDS.items():
        pairs = make_pairs(Run(family, kinds[0], OUR_METHOD, None, TUNING_SEEDS[0], rows))
        Z, y = standardize_by_past(pairs.X), (pairs.y - pairs.y.mean()) / pairs.y.std()
        for cls, loss in SKLEARN_MODELS.values():
            if (loss == "huber") == (family == LINEAR):
                model = make_sgd(cls, loss, learning_rate="constant", eta0=0.03, alpha=1e-3)
                target = y if family == LINEAR else pairs.y
                differences.append(np.abs(compute_decisions(model, Z, target) - follow_sklearn(model, Z, target)).max())
    return Figure("scikit-learn written out, off by", float(np.max(differences)), "", at_most=1e-9)
