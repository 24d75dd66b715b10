"""Robust gradient descent: linear and logistic regression on streams with corrupted targets and a change half-way.

Every method predicts a row and then learns it. Each has a grid of 24 settings, of which the one with the least error on
tuning streams of the first kind is taken, and is then shown on other streams of every kind; beside it the defaults.
Errors are against the truth without the corruption, in multiples of the noise's variance, or for labels in nats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from limpet.learners import SRA
from limpet.models import LinearRegression
from limpet_lab.baselines.sklearn_sgd import decisions, follow_sklearn
from limpet_lab.bench._measurement import Figure
from limpet_lab.bench._timing import Job, best_times
from limpet_lab.bench.regression.data import Kind, Pairs
from limpet_lab.bench.regression.methods import PATIENT, SKLEARN, sgd, so_far_standardised
from limpet_lab.bench.regression.runs import (
    LINEAR,
    LOGISTIC,
    Outcome,
    Run,
    Setting,
    bursts,
    columns,
    jumps,
    methods,
    outcomes,
    pairs_of,
    results,
)

TITLE = "5 % corrupted targets and a change half-way: errors against the truth"

ROWS, SEEDS = 20_000, range(10)
TUNING = range(100, 103)  # seeds of streams that settings are chosen by, and that nothing else is measured on
KINDS = {
    LINEAR: (
        Kind("abrupt"),
        Kind("gradual", gradual=True),
        Kind("clean", share=0.0),
    ),
    LOGISTIC: (Kind("sure labels"), Kind("any labels", at_random=True), Kind("clean", share=0.0)),
}
UNITS = {LINEAR: "σ²", LOGISTIC: "nats"}
OURS, SQUARED = "SRA", {LINEAR: "river, squared loss", LOGISTIC: "river, log loss"}
WIDE = {LINEAR: 10.0, LOGISTIC: 2.0}  # so many times as large at the least is the error of what is not robust
TIMED = 2000


def measure(quick: bool) -> list[Figure]:
    """Tunes, runs and times all of them."""
    rows, seeds = (1000, range(1)) if quick else (ROWS, SEEDS)
    figures: list[Figure] = []
    tuned: dict[str, dict[str, Setting]] = {}
    for family, kinds in KINDS.items():
        tuned[family] = choose(family, rows, TUNING[:1] if quick else TUNING, quick)
        figures += setting_figures(family, tuned[family])
        for kind in kinds:
            figures += rows_of(family, kind, tuned[family], rows, seeds, quick)
    figures += jumps(tuned[LINEAR], rows, seeds, quick)
    figures += bursts(tuned[LINEAR], quick)
    figures += times(tuned, 300 if quick else TIMED, 1 if quick else 3)
    return [*figures, written_out(300 if quick else TIMED)]


def choose(family: str, rows: int, seeds: Sequence[int], quick: bool) -> dict[str, Setting]:
    """Return the setting of each method with the least mean error on the tuning streams; a quick run tries a few."""
    kind = KINDS[family][0]
    grids = {name: method.grid for name, method in methods(family).items() if not method.tuned_as}
    grids = {name: grid[5::8] if quick else grid for name, grid in grids.items()}
    tried = [(name, setting) for name, grid in grids.items() for setting in grid]
    runs = [Run(family, kind, *entry, seed, rows) for entry in tried for seed in seeds]
    overall = iter([result.overall for result in outcomes(runs, several=not quick)])
    chosen = {}
    for name, grid in grids.items():
        means = [float(np.mean([next(overall) for _ in seeds])) for _ in grid]
        chosen[name] = grid[int(np.argmin(means))]
    return chosen


def setting_figures(family: str, tuned: dict[str, Setting]) -> Iterator[Figure]:
    """What was chosen."""
    for name, (step, other) in tuned.items():
        yield Figure(f"{family}, {name}, tuned: step", step)
        yield Figure(f"{family}, {name}, tuned: {methods(family)[name].other}", other)


def rows_of(
    family: str, kind: Kind, tuned: dict[str, Setting], rows: int, seeds: Sequence[int], quick: bool
) -> Iterator[Figure]:
    """Yield the figures of one kind of stream; where targets are corrupted, also the lead over squared loss."""
    outcomes_by_column = results(family, kind, columns(tuned, family), rows, seeds, quick)
    for name, each in outcomes_by_column.items():
        yield from summarize(f"{family}, {kind.name}, {name}", each, family)
    for end in ("", ", defaults"):
        pairs = zip(outcomes_by_column[OURS + end], outcomes_by_column[PATIENT + end], strict=True)
        title = f"{family}, {kind.name}, {PATIENT}{end}: not as without"
        yield Figure(title, float(sum(not np.array_equal(*pair, equal_nan=True) for pair in pairs)), "streams")
    if kind.name in ("abrupt", "sure labels"):
        ours, theirs = (np.mean(np.array(outcomes_by_column[name]), axis=0) for name in (OURS, SQUARED[family]))
        for column, when in ((1, "before"), (3, "settled")):
            title = f"{family}, {kind.name}, {SQUARED[family]} over SRA: {when}"
            yield Figure(title, float(theirs[column] / ours[column]), "×", at_least=WIDE[family])


def summarize(title: str, each: Sequence[Outcome], family: str) -> Iterator[Figure]:
    """Means with standard deviations over the seeds, and the median of the rows until the truth is found again."""
    table = np.array(each)
    for column in ("before", "after", "settled", *(("right", "right_after") if family == LOGISTIC else ())):
        values = table[:, Outcome._fields.index(column)]
        name, unit, scale = column.replace("_", " "), UNITS[family], 1.0
        if column.startswith("right"):
            unit, scale = "%", 100.0
        yield Figure(f"{title}: {name}", scale * float(values.mean()), unit)
        yield Figure(f"{title}: {name}, std", scale * float(values.std()), unit)
    yield Figure(f"{title}: until found again", float(np.median(table[:, Outcome._fields.index("rows")])), "rows")


def times(tuned: dict[str, dict[str, Setting]], rows: int, rounds: int) -> Iterator[Figure]:
    """Predict and learn, a row at a time, each by its library; and ours for a whole batch."""
    for family, chosen in tuned.items():
        pairs = pairs_of(Run(family, KINDS[family][0], OURS, None, TUNING[0], rows))
        jobs = {name: job_of(family, name, setting, pairs) for name, setting in chosen.items()}
        if family == LINEAR:
            jobs["SRA, process(X, y)"] = lambda X=pairs.X, y=pairs.y: SRA(rho=0.01, model=LinearRegression()).process(
                X, y
            )  # type: ignore[misc]
        for job in jobs.values():
            job()  # so that it is compiled
        for name, seconds in best_times(jobs, rounds).items():
            yield Figure(f"time, {family}, {name}", seconds / rows * 1e6, "µs per row")


def job_of(family: str, name: str, setting: Setting, pairs: Pairs) -> Job:
    """Follow a stream, scikit-learn's by the library itself and without the time that standardising takes."""
    if name not in SKLEARN:
        follow = methods(family)[name].make(*setting)
        return lambda: follow(pairs.X, pairs.y)
    Z = so_far_standardised(pairs.X)
    return lambda: follow_sklearn(sgd(*SKLEARN[name], learning_rate="constant", eta0=setting[0]), Z, pairs.y)


def written_out(rows: int) -> Figure:
    """How far what stands for scikit-learn is from scikit-learn, at the most, in what either predicts."""
    differences = []
    for family, kinds in KINDS.items():
        pairs = pairs_of(Run(family, kinds[0], OURS, None, TUNING[0], rows))
        Z, y = so_far_standardised(pairs.X), (pairs.y - pairs.y.mean()) / pairs.y.std()
        for cls, loss in SKLEARN.values():
            if (loss == "huber") == (family == LINEAR):
                model = sgd(cls, loss, learning_rate="constant", eta0=0.03, alpha=1e-3)
                target = y if family == LINEAR else pairs.y
                differences.append(np.abs(decisions(model, Z, target) - follow_sklearn(model, Z, target)).max())
    return Figure("scikit-learn written out, off by", float(np.max(differences)), "", at_most=1e-9)
