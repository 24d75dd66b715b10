"""Run and describe the two studies of `limpet demo`."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from limpet._format import format_duration, plural
from limpet.datasets import Stream, make_abrupt, make_traffic
from limpet.datasets.synthetic import TRAFFIC_ROWS_PER_DAY
from limpet.detection import Alarm
from limpet.exceptions import LimpetWarning
from limpet.learners import SEM, SRA, Detector, Learner, Trace
from limpet.metrics import MeanShift, largest_mean_shift, match_components, segment_mse
from limpet.metrics.mixture_error import PAPER_TAU
from limpet.report.html import KeyFigures, Section, Table
from limpet.tradeoff import step_size

TRAFFIC_START = np.datetime64("2026-01-05T00:00", "ns")  # a Monday
TRAFFIC_STEP_MIN = 24 * 60 // TRAFFIC_ROWS_PER_DAY
WEEK_ROWS = 7 * TRAFFIC_ROWS_PER_DAY
GAMMA, BETA, M = 3.0, 0.1, 5.0  # the paper's setting for its stream


def measure_seconds_per_point(learner: Learner, stream: Stream) -> float:
    """Return the time per point of the fastest of five runs, once compiled."""
    seconds = []
    for _ in range(5):
        rerun = learner.clone()
        start = time.perf_counter()
        rerun.process(stream.y, record="means")
        seconds.append(time.perf_counter() - start)
    return min(seconds) / len(stream)


@dataclass(frozen=True)
class TrafficStudy:
    """Synthetic traffic and results of a Detector of which only the period is set."""

    stream: Stream
    times: npt.NDArray[np.datetime64]
    learner: Detector
    trace: Trace
    seconds_per_point: float

    def find_alarm(self, kind: str, first: int, last: int) -> Alarm | None:
        """Return the first alarm of a kind from one row to another."""
        return next((alarm for alarm in self.trace.alarms if alarm.kind == kind and first <= alarm.row <= last), None)


def run_traffic_study(seed: int) -> TrafficStudy:
    """Run Detector on the synthetic traffic."""
    stream, learner = make_traffic(seed=seed), Detector(season=WEEK_ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        trace = learner.process(stream.y, record="means")
        seconds_per_point = measure_seconds_per_point(learner, stream)
    times = TRAFFIC_START + np.arange(len(stream)) * np.timedelta64(TRAFFIC_STEP_MIN, "m")
    return TrafficStudy(stream, times, learner, trace, seconds_per_point)


def describe_traffic(study: TrafficStudy) -> tuple[str, KeyFigures, list[Section]]:
    """Return the lead, key figures, and a section with all events and all alarms."""
    stream, rejected, alarms = study.stream, study.trace.rejected, study.trace.alarms
    assert stream.outliers is not None
    assert stream.labels is not None
    spikes, outage = np.flatnonzero(stream.outliers).tolist(), np.flatnonzero(stream.labels).tolist()
    (shift,) = (int(row) for row in stream.change_points)
    alarms_by_spike = {row: study.find_alarm("anomaly", row, row) for row in spikes}
    outage_alarm = study.find_alarm("anomaly", outage[0], outage[-1])
    shift_alarm = study.find_alarm("change", shift, shift + WEEK_ROWS)
    explained = [*alarms_by_spike.values(), outage_alarm, shift_alarm]
    others = [alarm for alarm in alarms if not any(alarm is cause for cause in explained)]
    n_spikes, n_rejected_spikes = len(spikes), int(rejected[spikes].sum())
    n_other, n_rejected_other = len(stream) - n_spikes - len(outage), int(rejected.sum()) - n_rejected_spikes
    n_rejected_other -= int(rejected[outage].sum())

    def delay(alarm: Alarm | None, row: int) -> str:
        return "no alarm" if alarm is None else _format_delay(alarm.row - row)

    lead = (
        f"{len(stream) // WEEK_ROWS} weeks of requests per minute, synthetic: {len(stream):,} points with daily and "
        f"weekly seasonality, {plural(n_spikes, 'spike')}, an outage of an hour, and a lasting shift of the level. "
        f"{study.learner!r} processed each point once; it was given the period (one week), not the events."
    )
    facts = [
        (f"{n_rejected_spikes} of {n_spikes}", "spikes rejected: they do not move the estimate"),
        (delay(outage_alarm, outage[0]), "from the start of the outage to its alarm"),
        (delay(shift_alarm, shift), "from the shift to its alarm"),
        (f"{len(others)}", "false alarms"),
        (f"{1e6 * study.seconds_per_point:.2g} µs", "per point"),
    ]
    events = [(row, "spike", alarm) for row, alarm in alarms_by_spike.items()]
    events += [(outage[0], "outage", outage_alarm), (shift, "shift of the level", shift_alarm)]
    events += [(alarm.row, "none", alarm) for alarm in others]
    times = [str(time).replace("T", " ") for time in np.datetime_as_string(study.times, "m")]
    rows = [
        [times[row], f"{row:,}", cause, "none" if alarm is None else alarm.kind, _describe(alarm, row)]
        for row, cause, alarm in sorted(events, key=lambda event: event[0])
    ]
    n_silent = sum(alarm is None for alarm in alarms_by_spike.values())
    sentences = (
        f"{n_silent} of {n_spikes} spikes raised no alarm: they were rejected, but after other anomalies they were no "
        f"longer rare enough for one false alarm in {1.0 / study.learner.far:,.0f} points. "
    ) * bool(n_silent)
    sentences += (
        f"Of the {n_other:,} other points {n_rejected_other} were rejected. "
        f"The first {study.learner.n_init:,} points are for the initialization of the season."
    )
    table = Table(["time", "row", "event", "alarm", "alarm text"], rows, text_columns=(2, 3, 4))
    return lead, KeyFigures(facts), [Section("Events and alarms", [table, sentences])]


def _format_delay(n_rows: int) -> str:
    return "no delay" if n_rows == 0 else format_duration(60 * TRAFFIC_STEP_MIN * n_rows)


def _describe(alarm: Alarm | None, row: int) -> str:
    if alarm is None:
        return ""
    later = f", after {_format_delay(alarm.row - row)}" if alarm.row > row else ""
    description = replace(alarm, variables=("",)).description.strip()
    return description.replace("standard deviations", "sd") + later


@dataclass(frozen=True)
class Study:
    """A stream with the results of SRA, and of sEM (the same ρ, no threshold)."""

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
    """Run SRA with the paper's setting, and sEM with its ρ, on the paper's stream.

    >>> run_study(seed=0).change
    10000
    """
    stream = make_abrupt(seed=seed)
    rho = float(step_size(GAMMA, BETA, M))
    learner, baseline = SRA(2, gamma=GAMMA, beta=BETA, M=M, norm="mean"), SEM(2, rho=rho)
    with warnings.catch_warnings():  # the report shows what happens to either
        warnings.simplefilter("ignore", LimpetWarning)
        trace = learner.process(stream.y, record="means")
        baseline_trace = baseline.process(stream.y, record="means")
        seconds_per_point = measure_seconds_per_point(learner, stream)
    change = next(iter(stream.change_points))
    assert isinstance(change, int)
    mean_shift = largest_mean_shift(trace.means, window=round(3.0 / rho))
    return Study(stream, change, rho, learner, trace, baseline, baseline_trace, mean_shift, seconds_per_point)


def describe_study(study: Study) -> tuple[str, KeyFigures, list[Section]]:
    """Return the lead, the key figures, and a section for each question."""
    stream, rejected, mean_shift = study.stream, study.trace.rejected, study.mean_shift
    assert stream.outliers is not None
    assert stream.means is not None
    n, n_outliers, n_rejected = len(stream), int(stream.outliers.sum()), int(rejected.sum())
    n_rejected_outliers = int((rejected & stream.outliers).sum())
    n_rejected_clean, lag = n_rejected - n_rejected_outliers, mean_shift.row - study.change
    sra_mse = segment_mse(study.trace.means, stream.means, study.change)
    sem_mse = segment_mse(study.baseline_trace.means, stream.means, study.change)
    nanoseconds = 1e9 * study.seconds_per_point

    lead = (
        f"The stream of the paper: {n:,} points, {n_outliers:,} of them outliers, the rest from two Gaussians whose "
        f"means jump at row {study.change:,}. {study.learner!r} processed each point once, without labels."
    )
    facts = [
        (f"{n_rejected_outliers:,}", f"of {n_outliers:,} outliers rejected"),
        (f"{n_rejected_clean:,}", f"of {n - n_outliers:,} clean points rejected"),
        (f"{abs(lag):,} rows", f"{'after' if lag >= 0 else 'before'} the change the estimated means moved most"),
        (f"{sem_mse.S_tot / sra_mse.S_tot:.3g}×", "the error without the threshold"),
        (f"{nanoseconds:.0f} ns", "per point"),
    ]
    counts = (
        ("outliers", n_outliers, n_rejected_outliers),
        ("clean points", n - n_outliers, n_rejected_clean),
        ("all", n, n_rejected),
    )
    shares = [[name, f"{total:,}", f"{part:,}", f"{part / max(total, 1):.1%}"] for name, total, part in counts]
    share_table = Table(["", "points", "rejected", "share"], shares)
    errors = [
        ["SRA", f"{sra_mse.S_bc:.5f}", f"{sra_mse.S_ac:.5f}"],
        ["sEM", f"{sem_mse.S_bc:.5f}", f"{sem_mse.S_ac:.5f}"],
        ["ratio", f"{sem_mse.S_bc / sra_mse.S_bc:.3g}", f"{sem_mse.S_ac / sra_mse.S_ac:.3g}"],
    ]
    mixture_text = (
        "The mixture after the last row. SRA rejects a point whose update is longer than "
        f"γ\u00a0=\u00a0{GAMMA:g}; sEM is the same algorithm with the same step size, "
        f"ρ\u00a0=\u00a0{study.rho:.4f}, but no threshold."
    )
    change_text = (
        f"The estimated means moved most at row {mean_shift.row:,}; the stream changed at row {study.change:,}. With "
        f"this step size an estimate is half-way after ln\u00a02/ρ\u00a0=\u00a0{math.log(2.0) / study.rho:.0f} rows."
    )
    errors_text = f"Mean squared error of the means, from row {PAPER_TAU:,} on."
    speed_text = f"{nanoseconds:.0f} ns per point, {nanoseconds * n / 1e6:.1f} ms for all {n:,}, once compiled."
    sections = [
        Section("Estimated mixture", [mixture_text, Table(["", "truth", "SRA", "sEM"], _make_parameter_rows(study))]),
        Section("Rejected points", [share_table, _describe_learned_outliers(study)]),
        Section("Change point", [change_text]),
        Section("Error of the means", [errors_text, Table(["", "before the change", "after it"], errors)]),
        Section("Speed", [speed_text]),
    ]
    return lead, KeyFigures(facts), sections


def _make_parameter_rows(study: Study) -> list[list[str]]:
    """Return a row per parameter: truth, and both estimates in the nearest order."""
    true_means, covariances = study.stream.means, study.stream.covariances
    assert true_means is not None
    assert covariances is not None
    n_components = true_means.shape[1]
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
    """Return why outliers were learned: before the threshold, or close to the rest."""
    warmup = study.learner.warmup
    learned = np.flatnonzero(np.asarray(study.stream.outliers) & ~study.trace.rejected)
    after_warmup = learned[learned >= warmup]
    reasons = []
    if len(after_warmup):
        farthest = np.abs(study.stream.y[after_warmup]).max()
        reasons.append(f"{len(after_warmup):,} lie within ±{farthest:.2f}, near the other points")
    if len(after_warmup) < len(learned):
        n_early = len(learned) - len(after_warmup)
        reasons.append(f"{n_early:,} are in the first {warmup} rows, before the threshold applies")
    if not reasons:
        return "No outlier was learned."
    n_rows_since = len(study.stream) - int(learned[-1])
    is_recent = n_rows_since * study.rho < 1.0  # within the memory 1/ρ
    recent = f" The last one, {n_rows_since:,} rows before the end, still shows in the mixture above." * is_recent
    return f"Of the learned outliers, {', and '.join(reasons)}.{recent}"
