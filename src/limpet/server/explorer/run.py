"""Run one setting on one stream: results of every row, alarms, and the code for the same run."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._format import plural
from limpet.core.state import Vector
from limpet.detection.alarm import Alarm
from limpet.drift import ADWIN, KSWIN, RiverPageHinkley
from limpet.drift.base import DriftDetector
from limpet.exceptions import LimpetWarning
from limpet.learners import Detector, Trace
from limpet.learners._diagnostics import WarningOnce
from limpet.learners.base import Learner
from limpet.learners.input import LabelledArray
from limpet.metrics import segment_mse
from limpet.server.explorer._lru import SizedLRUCache
from limpet.server.explorer.codegen import to_cli, to_python
from limpet.server.explorer.dataset import ExplorerDataset
from limpet.server.explorer.settings import AutoSettings, BaselineSettings, ManualSettings

WARM_UP_POINTS = 60  # after the initialization
MAX_REPORTED_ALARMS = 2000  # the latest ones
PAPER_TAU, PAPER_TAU_START = 1000, 500  # rows before τ are for the initialization, as in the paper
AUTO_ALARMS_CACHE: SizedLRUCache[dict[str, Any]] = SizedLRUCache(32 << 20)
Flags = npt.NDArray[np.bool_]


def run(data: ExplorerDataset, setting: AutoSettings | ManualSettings | BaselineSettings) -> dict[str, Any]:
    """Run a setting on a stream.

    Parameters
    ----------
    data : ExplorerDataset
        One stream with the selected columns.
    setting : AutoSettings, ManualSettings or BaselineSettings
        The learner or detector.

    Returns
    -------
    dict
        Results by row, alarms, counts, and the same run as Python and as a command.
    """
    model = setting.learner()
    if isinstance(model, DriftDetector):
        result = _run_drift_detector(model, data)
    else:
        result = _run_learner(model, data, setting)
    return result | {"python": to_python(data, setting), "command": to_cli(data, setting)}


# Learners


class WarningCollector(WarningOnce):
    """Collects the warnings of a learner, for the page; Python's warnings are global to all threads."""

    def __init__(self) -> None:
        super().__init__()
        self.collected: list[LimpetWarning] = []

    def emit(self, warning: LimpetWarning, depth: int) -> None:
        """Collect a warning."""
        self.collected.append(warning)

    def format(self) -> list[str]:
        """Return a sentence for each warning."""
        return [_format_warning(warning) for warning in self.collected]


def _format_warning(warning: LimpetWarning) -> str:
    """Format a warning for the page, where invalid rows are empty cells of a file."""
    if warning.code != "invalid":
        return str(warning)
    n = int(warning.fields["n_invalid"])  # type: ignore[call-overload]
    return f"{plural(n, 'row')} without a value skipped."


def run_timed(learner: Learner, data: ExplorerDataset) -> tuple[Trace, float, list[str]]:
    """Return the trace with estimates, the milliseconds it took, and the warnings."""
    learner._warnings = collector = WarningCollector()
    rows = LabelledArray(data.values, data.names)
    warm_up_learner = learner.clone()  # compiles and loads what the first points need
    warm_up_learner._warnings = WarningCollector()
    warm_up_learner.process(data.values[: warm_up_learner.n_init + WARM_UP_POINTS], record="means")
    started = time.perf_counter()
    trace = learner.process(rows, record="means")
    return trace, 1e3 * (time.perf_counter() - started), collector.format()


def _run_learner(learner: Learner, data: ExplorerDataset, setting: Any) -> dict[str, Any]:
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
        "gamma": _finite_or_none(learner.gamma_),
        "rho": _get_constant_step(learner),
        "mse": mse_by_phase(trace.means, data),
        "notes": notes,
        "summary": None,
    }
    if isinstance(setting, AutoSettings):
        return result | _alarm_fields(trace, data, "self") | _summary_fields(learner)
    if isinstance(setting, ManualSettings):
        return result | auto_alarms_for(data, setting)
    return result | _alarm_fields(None, data, None)


def auto_alarms_for(data: ExplorerDataset, setting: ManualSettings) -> dict[str, Any]:
    """Return the alarms of an automatic learner; they do not depend on γ and ρ and are cached."""
    auto_settings = setting.to_auto_settings()
    cache_key = f"{data.content_hash} {auto_settings.model_dump_json()}"
    fields = AUTO_ALARMS_CACHE.get(cache_key)
    if fields is None:
        trace, _, _ = run_timed(auto_settings.learner(), data)
        fields = _alarm_fields(trace, data, "auto")
        AUTO_ALARMS_CACHE.put(cache_key, fields, 8 * len(trace) + 500 * len(trace.alarms))
    return fields


def mse_by_phase(means: Vector, data: ExplorerDataset) -> dict[str, Any] | None:
    """Return mean squared errors of the estimate: in total, before the first change, and after it.

    None if the true means are unknown. If the learner has another number of components, all errors are None and
    `message` states it.
    """
    true_means = data.means
    if true_means is None or not data.change_points:
        return None
    if means.shape[1] != true_means.shape[1]:
        message = f"n_components: expected {true_means.shape[1]} as in the truth, got {means.shape[1]}"
        return {"total": None, "before": None, "after": None, "message": message}
    mse = segment_mse(means, true_means, data.change_points[0], PAPER_TAU, PAPER_TAU_START)
    values = {"total": mse.S_tot, "before": mse.S_bc, "after": mse.S_ac}
    return {name: _finite_or_none(value) for name, value in values.items()} | {"message": None}


def _summary_fields(learner: Learner) -> dict[str, Any]:
    """Return what an automatic learner has found in the stream."""
    assert isinstance(learner, Detector)
    if not learner.n_seen:
        return {}
    fitted = learner.fitted_params() if learner.started else {}
    return {"summary": learner.summary()} | {name: _finite_or_none(value) for name, value in fitted.items()}


def _get_constant_step(learner: Learner) -> float | None:
    """Return ρ if it is constant."""
    return _finite_or_none(getattr(getattr(learner, "step_size", None), "rho", None))


# Alarms


def _alarm_fields(trace: Trace | None, data: ExplorerDataset, alarms_by: str | None) -> dict[str, Any]:
    """Return alarms and p-values, and which learner raised them; empty without a trace."""
    if trace is None:
        counts = {"alarms_by": None, "n_alarms": 0, "n_changes": 0, "n_anomalies": 0, "n_omitted_alarms": 0}
        return counts | {"alarms": [], "change_score": None, "p_value": None}
    return {
        "alarms_by": alarms_by,
        "n_alarms": len(trace.alarms),
        "n_changes": sum(alarm.kind == "change" for alarm in trace.alarms),
        "n_anomalies": int(trace.anomaly.sum()),
        **_latest_alarms(trace.alarms, data),
        "change_score": to_float32(trace.change_score),
        "p_value": to_float32(trace.p_value),
    }


def _latest_alarms(alarms: Sequence[Alarm], data: ExplorerDataset) -> dict[str, Any]:
    """Return the records of the latest alarms with their times, and how many were omitted."""
    times, records = data.times, []
    for alarm in alarms[-MAX_REPORTED_ALARMS:]:
        record = replace(alarm, time=None if times is None else times[alarm.row]).to_dict(data.names)
        records.append(record | {"onset_time": None if times is None else times[alarm.onset]})
    return {"alarms": records, "n_omitted_alarms": len(alarms) - len(records)}


# Drift detectors


def _run_drift_detector(detector: DriftDetector, data: ExplorerDataset) -> dict[str, Any]:
    """Run a detector on each variable; the score of a row is the largest of its variables."""
    detector.clone().process(data.values[:1])  # compiles
    started = time.perf_counter()
    scores = detector.process(data.values)
    elapsed = 1e3 * (time.perf_counter() - started)
    is_missing = np.isnan(scores).all(axis=1)
    largest = np.where(is_missing, np.nan, np.where(np.isnan(scores), -np.inf, scores).max(axis=1))
    result: dict[str, Any] = {
        "n_rows": len(scores),
        "n_rejected": None,
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
    } | _alarm_fields(None, data, None)
    detections = to_detection_flags(detector, scores)
    if detections is None:
        return result
    alarms = detections_to_alarms(detections, data)
    counts = {"alarms_by": "detector", "n_alarms": len(alarms), "n_changes": len(alarms), "n_anomalies": None}
    return result | counts | _latest_alarms(alarms, data)


def to_detection_flags(detector: DriftDetector, scores: Vector) -> Flags | None:
    """Return whether each row and variable is a detection; None for a detector without a rule for it."""
    if isinstance(detector, ADWIN):
        return np.column_stack([_find_window_cuts(column) for column in scores.T])
    if isinstance(detector, KSWIN):
        return np.asarray(scores >= detector.detection_threshold)
    if isinstance(detector, RiverPageHinkley):
        return np.asarray(scores > detector.threshold)
    return None


def _find_window_cuts(scores: Vector) -> Flags:
    """Return where the window shrank; the row after a cut does not count as a second one."""
    flags = np.zeros(len(scores), bool)
    valid = np.flatnonzero(~np.isnan(scores))
    shrunk = scores[valid] > -1.0
    shrunk[1:] &= ~shrunk[:-1]
    flags[valid[shrunk]] = True
    return flags


def detections_to_alarms(flags: Flags, data: ExplorerDataset) -> list[Alarm]:
    """Return an alarm for each row with detections."""
    return [
        Alarm("change", row, row, math.nan, "detected", tuple(np.array(data.names, object)[flags[row]]))
        for row in np.flatnonzero(flags.any(axis=1)).tolist()
    ]


def _finite_or_none(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def to_float32(values: Vector) -> npt.NDArray[np.float32]:
    """Return numbers in single precision, which suffices for a chart."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(values, np.float32)
