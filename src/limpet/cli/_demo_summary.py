"""What `limpet demo` finds out: the study of one stream, and that study in words and tables."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass

import numpy as np

from limpet.datasets import Stream, make_abrupt
from limpet.exceptions import LimpetWarning
from limpet.learners import SEM, SRA, Trace
from limpet.metrics import MeanShift, largest_mean_shift, match_components, segment_mse
from limpet.report.html import KeyFigures, Section, Table
from limpet.tradeoff import step_size

GAMMA, BETA, M = 3.0, 0.1, 5.0  # the paper's setting for this stream
BURN_IN_ROWS = 1000  # the paper's τ: errors are counted from here on


@dataclass(frozen=True)
class Study:
    """A stream with what SRA made of it, and what sEM did, which has the same step ρ and no threshold."""

    stream: Stream
    change: int
    rho: float
    learner: SRA
    trace: Trace
    baseline: SEM
    baseline_trace: Trace
    mean_shift: MeanShift
    seconds_per_point: float


def run_study(seed: int) -> Study:
    """Let SRA, with the paper's setting, and sEM, with the same step, learn the paper's stream.

    >>> study_stream(seed=0).change
    10000
    """
    stream = make_abrupt(seed=seed)
    rho = float(step_size(GAMMA, BETA, M))
    learner, baseline = SRA(2, gamma=GAMMA, beta=BETA, M=M, norm="mean"), SEM(2, rho=rho)
    seconds = []
    with warnings.catch_warnings():  # what becomes of either is in the report
        warnings.simplefilter("ignore", LimpetWarning)
        trace = learner.process(stream.y, record="means")
        baseline_trace = baseline.process(stream.y, record="means")
        for _ in range(5):  # now that it is compiled; the fastest is the one least disturbed
            rerun = learner.clone()
            start = time.perf_counter()
            rerun.process(stream.y, record="means")
            seconds.append(time.perf_counter() - start)
    change = next(iter(stream.change_points))
    assert isinstance(change, int)
    mean_shift = largest_mean_shift(trace.means, window=round(3.0 / rho))
    seconds_per_point = min(seconds) / len(stream)
    return Study(stream, change, rho, learner, trace, baseline, baseline_trace, mean_shift, seconds_per_point)


def describe_study(study: Study) -> tuple[str, KeyFigures, list[Section]]:
    """The study in words and numbers: a lead, the figures to see first, and a section for each question."""
    stream, rejected, mean_shift = study.stream, study.trace.rejected, study.mean_shift
    assert stream.outliers is not None
    assert stream.means is not None
    n, n_outliers, n_rejected = len(stream), int(stream.outliers.sum()), int(rejected.sum())
    n_rejected_outliers = int((rejected & stream.outliers).sum())
    n_rejected_clean, lag = n_rejected - n_rejected_outliers, mean_shift.row - study.change
    sra_mse = segment_mse(study.trace.means, stream.means, study.change, BURN_IN_ROWS)
    sem_mse = segment_mse(study.baseline_trace.means, stream.means, study.change, BURN_IN_ROWS)
    nanoseconds = 1e9 * study.seconds_per_point

    lead = (
        f"{n:,} points came, one after another: {n_outliers:,} of them outliers, the rest from two "
        f"Gaussians whose means jumped at row {study.change:,}. The learner saw each point once, and was "
        "told none of it."
    )
    facts = KeyFigures(
        [
            (f"{n_rejected_outliers:,}", f"of {n_outliers:,} outliers dropped"),
            (f"{n_rejected_clean:,}", f"of {n - n_outliers:,} clean points dropped"),
            (f"{abs(lag):,} rows", f"{'after' if lag >= 0 else 'before'} the change the means moved most"),
            (f"{sem_mse.S_tot / sra_mse.S_tot:.3g}×", "as large an error without the threshold"),
            (f"{nanoseconds:.0f} ns", "a point"),
        ]
    )
    parameters = Table(["", "truth", "SRA", "sEM"], _make_parameter_rows(study))
    outcomes = Table(
        ["", "came", "rejected", "share"],
        [
            [
                "outliers",
                f"{n_outliers:,}",
                f"{n_rejected_outliers:,}",
                f"{n_rejected_outliers / max(n_outliers, 1):.1%}",
            ],
            [
                "clean points",
                f"{n - n_outliers:,}",
                f"{n_rejected_clean:,}",
                f"{n_rejected_clean / (n - n_outliers):.1%}",
            ],
            ["all", f"{n:,}", f"{n_rejected:,}", f"{n_rejected / n:.1%}"],
        ],
    )
    errors = Table(
        ["", "before the change", "after it"],
        [
            ["SRA", f"{sra_mse.S_bc:.5f}", f"{sra_mse.S_ac:.5f}"],
            ["sEM", f"{sem_mse.S_bc:.5f}", f"{sem_mse.S_ac:.5f}"],
            ["ratio", f"{sem_mse.S_bc / sra_mse.S_bc:.3g}", f"{sem_mse.S_ac / sra_mse.S_ac:.3g}"],
        ],
    )
    sections = [
        Section(
            "What was learnt",
            [
                "The mixture after the last row. SRA drops a point whose update is longer than "
                f"γ\u00a0=\u00a0{GAMMA:g}; sEM is the same algorithm with the same step, "
                f"ρ\u00a0=\u00a0{study.rho:.4f}, but no threshold.",
                parameters,
            ],
        ),
        Section("What was dropped", [outcomes, _describe_learned_outliers(study)]),
        Section(
            "Where it changed",
            [
                f"The estimated means moved most at row {mean_shift.row:,}; the stream changed at row "
                f"{study.change:,}. With this step an estimate is half-way after "
                f"ln\u00a02/ρ\u00a0=\u00a0{math.log(2.0) / study.rho:.0f} rows: it moves, and does not jump."
            ],
        ),
        Section(
            "How far off the means were",
            [f"Mean squared error of the means, from row {BURN_IN_ROWS:,} on.", errors],
        ),
        Section(
            "How long it took",
            [f"{nanoseconds:.0f} ns a point, {nanoseconds * n / 1e6:.1f} ms for all {n:,}, once compiled."],
        ),
    ]
    return lead, facts, sections


def _make_parameter_rows(study: Study) -> list[list[str]]:
    """One row a parameter: the truth, and both estimates in the order that lies nearest to it."""
    true_means, covariances = study.stream.means, study.stream.covariances
    assert true_means is not None
    assert covariances is not None
    n_components = true_means.shape[1]
    # The generator draws every component as often; deviations and means it writes down.
    columns = [(np.full(n_components, 1.0 / n_components), true_means[-1], covariances)]
    for learner in (study.learner, study.baseline):
        order = match_components(learner.means[None], true_means[-1:])
        columns.append((learner.weights[order], learner.means[order], learner.covariances[order]))
    rows = []
    for k in range(n_components):
        rows.append([f"weight {k + 1}", *(_format_number(weights[k]) for weights, _, _ in columns)])
        rows.append([f"mean {k + 1}", *(_format_number(means[k, 0]) for _, means, _ in columns)])
        rows.append([f"deviation {k + 1}", *(_format_number(math.sqrt(spread[k, 0, 0])) for _, _, spread in columns)])
    return rows


def _format_number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _describe_learned_outliers(study: Study) -> str:
    """Why outliers were learnt: they came before the threshold acts, or lie too near the rest."""
    warmup = study.learner.warmup
    learned = np.flatnonzero(np.asarray(study.stream.outliers) & ~study.trace.rejected)
    after_warmup = learned[learned >= warmup]
    reasons = []
    if len(after_warmup):
        farthest = np.abs(study.stream.y[after_warmup]).max()
        reasons.append(f"{len(after_warmup):,} lie within ±{farthest:.2f}, too near the rest to be told from it")
    if len(after_warmup) < len(learned):
        reasons.append(
            f"{len(learned) - len(after_warmup):,} came in the first {warmup} rows, before the threshold acts"
        )
    if not reasons:
        return "No outlier was learnt."
    n_rows_since = len(study.stream) - int(learned[-1])
    is_recent = n_rows_since * study.rho < 1.0  # within the memory 1/ρ
    recent = (
        f" The last one came {n_rows_since:,} rows before the end: it still shows in the mixture above." * is_recent
    )
    return f"Of the outliers that were learnt, {', and '.join(reasons)}.{recent}"
