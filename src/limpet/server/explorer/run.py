"""One setting on one stream: what became of every point, and what there is to tell about it."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.core.state import Vector
from limpet.detection.alarm import Alarm
from limpet.drift import ADWIN, KSWIN, RiverPageHinkley
from limpet.drift.base import Detector
from limpet.learners import SRA, Trace
from limpet.learners._diagnostics import WarningOnce
from limpet.learners.base import StochasticApproximation
from limpet.learners.input import LabelledArray
from limpet.metrics import segment_mse
from limpet.server.explorer._lru import SizedLRUCache
from limpet.server.explorer.codegen import to_cli, to_python
from limpet.server.explorer.dataset import ExplorerDataset
from limpet.server.explorer.settings import AutoSettings, BaselineSettings, ManualSettings

# Where a change detector has found a change: its scores tell, each in its own way.

Flags = npt.NDArray[np.bool_]


def to_detection_flags(detector: Detector, scores: Vector) -> Flags | None:
    """For each point and variable whether it is a detection; None for a detector without a rule for that."""
    if isinstance(detector, ADWIN):
        return np.column_stack([_window_cuts(column) for column in scores.T])
    if isinstance(detector, KSWIN):
        alarming = detector._score_table[detector._critical_gap :]
        flags: Flags = scores >= (alarming[0] if len(alarming) else np.inf)
        return flags
    if isinstance(detector, RiverPageHinkley):
        return np.asarray(scores > detector.threshold)
    return None


def _window_cuts(scores: Vector) -> Flags:
    """Where the window did not grow. The point after a cut starts anew, which is no second detection."""
    flags = np.zeros(len(scores), bool)
    valid = np.flatnonzero(~np.isnan(scores))
    shrunk = scores[valid] > -1.0
    shrunk[1:] &= ~shrunk[:-1]
    flags[valid[shrunk]] = True
    return flags


def detections_to_records(flags: Flags, data: ExplorerDataset) -> list[dict[str, Any]]:
    """Detections as the page has alarms: one for each row, with the variables that have changed."""
    records = []
    for row in np.flatnonzero(flags.any(axis=1)).tolist():
        names = [name for name, is_detected in zip(data.names, flags[row], strict=True) if is_detected]
        time = None if data.times is None else data.times[row]
        records.append(
            {
                "kind": "change",
                "row": row,
                "onset": row,
                "size": None,
                "direction": "detected",
                "variables": names,
                "p_value": None,
                "time": time,
                "onset_time": time,
                "message": f"a change of {', '.join(names)} is detected at row {row:,}",
            }
        )
    return records


# How well an estimate has followed the truth, where there is one.

PAPER_TAU, PAPER_TAU_START = 1000, 500  # the paper's: rows before τ are for the start


def mse_by_phase(means: Vector, data: ExplorerDataset) -> dict[str, Any] | None:
    """Mean squared errors of the means: in all, before the first change, and from it on; None where nothing is known.

    The learner must have as many components as the truth; if it has not, `told` says so.
    """
    true_means = data.means
    if true_means is None or not data.change_points:
        return None
    if means.shape[1] != true_means.shape[1]:
        expected = f"{true_means.shape[1]} component{'s' * (true_means.shape[1] != 1)}"
        return {"total": None, "before": None, "after": None, "told": f"the truth has {expected}: choose as many"}
    mse = segment_mse(means, true_means, data.change_points[0], PAPER_TAU, PAPER_TAU_START)
    values = {"total": mse.S_tot, "before": mse.S_bc, "after": mse.S_ac}
    return {name: value if math.isfinite(value) else None for name, value in values.items()} | {"told": None}


WARM_UP_POINTS = 60  # points after the start
MAX_REPORTED_ALARMS = 2000  # that are told one by one; the last ones


class WarningCollector(WarningOnce):
    """Keeps what a learner would warn of: the page shows it. Warnings proper are everybody's, and there are threads."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def warn_once(self, topic: str, message: str, depth: int = 4) -> None:
        """Kept, once a topic."""
        if topic not in self.issued_topics:
            self.issued_topics.add(topic)
            self.messages.append(message if topic != "invalid" else _format_skipped_rows(message))


def _format_skipped_rows(message: str) -> str:
    """Rows that were skipped, in words for a page: "47 of 2600 rows could not be used …" has the number first."""
    n = int(message.split()[0])
    return f"{n:,} row{'s' * (n != 1)} {'has' if n == 1 else 'have'} no value and {'is' if n == 1 else 'are'} skipped."


AUTO_ALARMS_CACHE: SizedLRUCache[dict[str, Any]] = SizedLRUCache(32 << 20)


def auto_alarms_for(data: ExplorerDataset, setting: ManualSettings) -> dict[str, Any]:
    """What the autopilot raises beside a learner by hand; kept, since γ and ρ make no difference to it."""
    auto_settings = setting.to_auto_settings()
    cache_key = f"{data.content_hash} {auto_settings.model_dump_json()}"
    fields = AUTO_ALARMS_CACHE.get(cache_key)
    if fields is None:
        trace, _, _ = run_timed(auto_settings.learner(), data)
        fields = _alarm_fields(trace, data, "autopilot")
        AUTO_ALARMS_CACHE.put(cache_key, fields, 8 * len(trace) + 500 * len(trace.alarms))
    return fields


def run(data: ExplorerDataset, setting: AutoSettings | ManualSettings | BaselineSettings) -> dict[str, Any]:
    """Runs it from the first point to the last. data: of one stream, with the columns that are looked at."""
    model = setting.learner()
    if isinstance(model, Detector):
        result = _detector_result(model, data)
    else:
        result = _learner_result(model, data, setting)
    return result | {"python": to_python(data, setting), "command": to_cli(data, setting)}


def run_timed(learner: StochasticApproximation, data: ExplorerDataset) -> tuple[Trace, float, list[str]]:
    """The trace with the estimates, the milliseconds it took, and what the learner had to say."""
    learner._warnings = collector = WarningCollector()
    rows = LabelledArray(data.values, data.names)
    warm_up_learner = learner.clone()  # what is compiled or loaded at the first points is no part of the learning
    warm_up_learner._warnings = WarningCollector()
    warm_up_learner.process(data.values[: warm_up_learner.n_init + WARM_UP_POINTS], record="means")
    started = time.perf_counter()
    trace = learner.process(rows, record="means")
    return trace, 1e3 * (time.perf_counter() - started), collector.messages


def _learner_result(learner: StochasticApproximation, data: ExplorerDataset, setting: Any) -> dict[str, Any]:
    trace, elapsed, notes = run_timed(learner, data)
    result: dict[str, Any] = {
        "n_rows": len(trace),
        "n_rejected": int(trace.rejected.sum()),
        "n_invalid": int(trace.invalid.sum()),
        "rejected": np.flatnonzero(trace.rejected),
        "estimate": [
            [to_float32(component) for component in variable.T] for variable in trace.means.transpose(2, 0, 1)
        ],
        "weights": learner.weights.tolist() if learner.started else None,
        "score": to_float32(trace.score),
        "elapsed_ms": elapsed,
        "gamma": _finite_or_none(learner.threshold),
        "rho": None if learner.step_size is None else _get_constant_step(learner),
        "mse": mse_by_phase(trace.means, data),
        "notes": notes,
        "summary": None,
    }
    if isinstance(setting, AutoSettings):
        return result | _alarm_fields(trace, data, "itself") | _summary_fields(learner, trace)
    if isinstance(setting, ManualSettings):
        return result | auto_alarms_for(data, setting)
    return result | _empty_alarm_fields()


def _detector_result(detector: Detector, data: ExplorerDataset) -> dict[str, Any]:
    """A detector scores each variable; the largest of a row is shown."""
    detector.clone().process(data.values[:1])  # compiles
    started = time.perf_counter()
    scores = detector.process(data.values)
    elapsed = 1e3 * (time.perf_counter() - started)
    is_missing = np.isnan(scores).all(axis=1)
    largest = np.where(is_missing, np.nan, np.where(np.isnan(scores), -np.inf, scores).max(axis=1))
    result: dict[str, Any] = {
        "n_rows": len(scores),
        "n_rejected": None,  # it rejects nothing
        "n_invalid": int((~np.isfinite(data.values)).all(axis=1).sum()),
        "rejected": np.zeros(0, np.int64),
        "estimate": None,
        "weights": None,
        "score": to_float32(largest),
        "elapsed_ms": elapsed,
        "gamma": None,
        "rho": None,
        "mse": None,
        "notes": [],
        "summary": None,
    }
    detections = to_detection_flags(detector, scores)
    if detections is None:
        return result | _empty_alarm_fields()
    alarms = detections_to_records(detections, data)
    reported = alarms[-MAX_REPORTED_ALARMS:]
    counts = {"watched_by": "detector", "n_alarms": len(alarms), "n_changes": len(alarms), "n_anomalies": None}
    return (
        result | _empty_alarm_fields() | counts | {"alarms": reported, "alarms_left_out": len(alarms) - len(reported)}
    )


def _alarm_fields(trace: Trace, data: ExplorerDataset, raised_by: str) -> dict[str, Any]:
    """The alarms and p-values, and who raised them."""
    reported = trace.alarms[-MAX_REPORTED_ALARMS:]
    return {
        "watched_by": raised_by,
        "n_alarms": len(trace.alarms),
        "n_changes": sum(alarm.kind == "change" for alarm in trace.alarms),
        "n_anomalies": int(trace.anomaly.sum()),
        "alarms": [_alarm_to_dict(alarm, data) for alarm in reported],
        "alarms_left_out": len(trace.alarms) - len(reported),
        "change_score": to_float32(trace.change_score),
        "p_value": to_float32(trace.p_value),
    }


def _empty_alarm_fields() -> dict[str, Any]:
    empty: dict[str, Any] = {"watched_by": None, "n_alarms": 0, "n_changes": 0, "n_anomalies": 0, "alarms": []}
    return empty | {"alarms_left_out": 0, "change_score": None, "p_value": None}


def _alarm_to_dict(alarm: Alarm, data: ExplorerDataset) -> dict[str, Any]:
    return {
        "kind": alarm.kind,
        "row": alarm.row,
        "onset": alarm.onset,
        "size": _finite_or_none(alarm.size),
        "direction": alarm.direction,
        "variables": [str(variable) for variable in alarm.variables],
        "p_value": alarm.p_value,
        "time": None if data.times is None else data.times[alarm.row],
        "onset_time": None if data.times is None else data.times[alarm.onset],
        "message": str(alarm),
    }


def _summary_fields(learner: StochasticApproximation, trace: Trace) -> dict[str, Any]:
    """What the autopilot says of the stream."""
    assert isinstance(learner, SRA)
    if not learner.n_seen:
        return {}
    fields: dict[str, Any] = {"summary": learner.summary()}
    return (
        fields | {name: _finite_or_none(value) for name, value in learner.fitted_params().items()}
        if learner.started
        else fields
    )


def _get_constant_step(learner: StochasticApproximation) -> float | None:
    """ρ where it is one number."""
    return _finite_or_none(getattr(learner.step_size, "rho", None))


def _finite_or_none(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def to_float32(values: Vector) -> npt.NDArray[np.float32]:
    """In half the digits, which is plenty for a picture."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(values, np.float32)
