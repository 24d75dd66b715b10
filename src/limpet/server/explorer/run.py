"""Run a setting on a stream: results by row, alarms, and code of the same run."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._format import plural
from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.core.state import Vector
from limpet.detection.alarm import Alarm
from limpet.drift import ADWIN, KSWIN, RiverPageHinkley
from limpet.drift.base import DriftDetector
from limpet.exceptions import LimpetWarning
from limpet.learners import Detector, Trace
from limpet.learners._diagnostics import WarningOnce
from limpet.learners.base import Learner
from limpet.learners.input import LabeledArray
from limpet.learners.results import Flags
from limpet.metrics import segment_mse
from limpet.server.explorer._lru import SizedLRUCache
from limpet.server.explorer.dataset import ExplorerDataset
from limpet.server.explorer.settings import AnySettings, AutoSettings, BaselineSettings, ManualSettings
from limpet.streams.monitor_plan import MAX_JOINT_COLUMNS

WARM_UP_POINTS = 60  # after the initialization
MAX_REPORTED_ALARMS = 2000  # the latest ones
AUTO_ALARMS_CACHE: SizedLRUCache[dict[str, Any]] = SizedLRUCache(32 << 20)
NO_ALARMS: dict[str, Any] = {
    "alarms_by": None,
    "n_alarms": 0,
    "n_changes": 0,
    "n_anomalies": 0,
    "n_omitted_alarms": 0,
    "alarms": [],
    "change_score": None,
    "p_value": None,
}


def run(data: ExplorerDataset, setting: AnySettings) -> dict[str, Any]:
    """Return results by row, alarms, counts, and the run as Python and as a command."""
    learner = setting.learner()
    if isinstance(learner, DriftDetector):
        result = _run_drift_detector(learner, data)
    else:
        result = _run_learner(learner, data, setting)
    return result | {"python": _to_python(data, setting), "command": _to_command(data, setting)}


class WarningCollector(WarningOnce):
    """Collect a learner's warnings for the page; Python's are global to all threads."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []  # a sentence for each

    def emit(self, warning: LimpetWarning, depth: int) -> None:
        """Collect a warning; in a file, invalid rows are empty cells."""
        if warning.code == "invalid":
            n = int(warning.fields["n_invalid"])  # type: ignore[call-overload]
            self.notes.append(f"{plural(n, 'row')} without a value, not used.")
        else:
            self.notes.append(str(warning))


def run_timed(learner: Learner, data: ExplorerDataset) -> tuple[Trace, float, list[str]]:
    """Return the trace with estimates, the milliseconds it took, and the warnings."""
    learner.warnings = collector = WarningCollector()
    rows = LabeledArray(data.values, data.names)
    warm_up_learner = learner.clone()  # compiles and loads what the first points need
    warm_up_learner.warnings = WarningCollector()
    warm_up_learner.process(data.values[: warm_up_learner.n_init + WARM_UP_POINTS], record="means")
    started = time.perf_counter()
    trace = learner.process(rows, record="means")
    return trace, 1e3 * (time.perf_counter() - started), collector.notes


def _run_learner(learner: Learner, data: ExplorerDataset, setting: AnySettings) -> dict[str, Any]:
    trace, elapsed, notes = run_timed(learner, data)
    result: dict[str, Any] = {
        "n_rows": len(trace),
        "n_rejected": int(trace.rejected.sum()),
        "n_invalid": int(trace.invalid.sum()),
        "rejected": np.flatnonzero(trace.rejected),
        "estimate": [[*map(to_float32, variable.T)] for variable in trace.means.transpose(2, 0, 1)],  # (d, K, n)
        "weights": learner.weights.tolist() if learner.started else None,
        "score": to_float32(trace.score),
        "elapsed_ms": elapsed,
        "gamma": _finite_or_none(learner.gamma_),
        "rho": _finite_or_none(getattr(getattr(learner, "step_size", None), "rho", None)),  # if it is constant
        "mse": mse_by_phase(trace.means, data),
        "notes": notes,
        "summary": None,
    }
    if isinstance(setting, AutoSettings):
        assert isinstance(learner, Detector)
        fitted = learner.fitted_params() if learner.started else {}
        summary = {"summary": learner.summary()} if learner.n_seen else {}
        return result | _alarm_fields(trace, data, "self") | summary | _map_finite(fitted)
    if isinstance(setting, ManualSettings):
        return result | _auto_alarms_for(data, setting)
    return result | NO_ALARMS


def _auto_alarms_for(data: ExplorerDataset, setting: ManualSettings) -> dict[str, Any]:
    """Return alarms of an automatic learner, cached: they do not depend on γ and ρ."""
    auto_settings = setting.to_auto_settings()
    cache_key = f"{data.content_hash} {auto_settings.model_dump_json()}"
    fields = AUTO_ALARMS_CACHE.get(cache_key)
    if fields is None:
        trace, _, _ = run_timed(auto_settings.learner(), data)
        fields = _alarm_fields(trace, data, "auto")
        AUTO_ALARMS_CACHE.put(cache_key, fields, 8 * len(trace) + 500 * len(trace.alarms))
    return fields


def mse_by_phase(means: Vector, data: ExplorerDataset) -> dict[str, Any] | None:
    """Return mean squared errors: in total, before the first change, and after it.

    None if the true means are unknown. If the learner has another number of components, all errors are None and
    `message` states it.
    """
    true_means = data.means
    if true_means is None or not data.change_points:
        return None
    if means.shape[1] != true_means.shape[1]:
        message = f"n_components: must be {true_means.shape[1]} as in the truth, got {means.shape[1]}."
        return {"total": None, "before": None, "after": None, "message": message}
    mse = segment_mse(means, true_means, data.change_points[0])
    return _map_finite({"total": mse.S_tot, "before": mse.S_bc, "after": mse.S_ac}) | {"message": None}


def _alarm_fields(trace: Trace, data: ExplorerDataset, alarms_by: str) -> dict[str, Any]:
    """Return alarms and p-values, and which learner raised them."""
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
    """Return records of the latest alarms with times, and the number omitted."""
    times, records = data.times, []
    for alarm in alarms[-MAX_REPORTED_ALARMS:]:
        record = replace(alarm, time=None if times is None else times[alarm.row]).to_dict(data.names)
        records.append(record | {"onset_time": None if times is None else times[alarm.onset]})
    return {"alarms": records, "n_omitted_alarms": len(alarms) - len(records)}


def _run_drift_detector(detector: DriftDetector, data: ExplorerDataset) -> dict[str, Any]:
    """Run a detector on each variable; a row has the largest of their scores."""
    detector.clone().process(data.values[:1])  # compiles
    started = time.perf_counter()
    scores = detector.process(data.values)
    elapsed = 1e3 * (time.perf_counter() - started)
    is_missing = np.isnan(scores).all(axis=1)
    largest = np.where(is_missing, np.nan, np.where(np.isnan(scores), -np.inf, scores).max(axis=1))
    only_of_learners = ("n_rejected", "estimate", "weights", "gamma", "rho", "mse", "summary")
    result: dict[str, Any] = {
        **dict.fromkeys(only_of_learners),
        "n_rows": len(scores),
        "n_invalid": int((~(np.abs(data.values) <= MAX_ABS_VALUE)).all(axis=1).sum()),
        "rejected": np.zeros(0, np.int64),
        "score": to_float32(largest),
        "elapsed_ms": elapsed,
        "notes": [],
        **NO_ALARMS,
    }
    detections = _to_detection_flags(detector, scores)
    if detections is None:
        return result
    alarms = [
        Alarm("change", row, row, math.nan, "detected", tuple(np.array(data.names, object)[detections[row]]))
        for row in np.flatnonzero(detections.any(axis=1)).tolist()
    ]
    counts = {"alarms_by": "detector", "n_alarms": len(alarms), "n_changes": len(alarms), "n_anomalies": None}
    return result | counts | _latest_alarms(alarms, data)


def _to_detection_flags(detector: DriftDetector, scores: Vector) -> Flags | None:
    """Return which rows and variables are detections; None without such a rule."""
    if isinstance(detector, ADWIN):
        return np.column_stack([_find_window_cuts(column) for column in scores.T])
    if isinstance(detector, KSWIN):
        return np.asarray(scores >= detector.detection_threshold)
    if isinstance(detector, RiverPageHinkley):
        return np.asarray(scores > detector.threshold)
    return None


def _find_window_cuts(scores: Vector) -> Flags:
    """Return where the window shrank; the row after a cut is not a second one."""
    flags = np.zeros(len(scores), bool)
    valid = np.flatnonzero(~np.isnan(scores))
    shrunk = scores[valid] > -1.0
    shrunk[1:] &= ~shrunk[:-1]
    flags[valid[shrunk]] = True
    return flags


def _finite_or_none(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _map_finite(fields: dict[str, float]) -> dict[str, float | None]:
    return {name: _finite_or_none(value) for name, value in fields.items()}


def to_float32(values: Vector) -> npt.NDArray[np.float32]:
    """Return numbers in single precision, which suffices for a chart."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(values, np.float32)


# The same run as code


def _to_python(data: ExplorerDataset, setting: AnySettings) -> str:
    learner = setting.learner()
    is_learner, is_automatic = isinstance(learner, Learner), isinstance(setting, AutoSettings)
    params = {name: "math.inf" if value == math.inf else repr(value) for name, value in setting.to_params().items()}
    arguments = ", ".join(f"{name}={literal}" for name, literal in params.items())
    call = f"lp.{'' if is_learner else 'drift.'}{type(learner).__name__}({arguments})"
    report = ['print(learner.n_rejected, "points rejected")', *(["print(learner.summary())"] if is_automatic else [])]
    lines = ["import math"] if "math." in call else []
    source = f"lp.streams.open_source({', '.join(_source_arguments(data))})"
    if is_learner and data.source_code is None:
        sink = 'lambda results: print(*results.alarms, sep="\\n")' if is_automatic else "()"
        lines += ["import limpet as lp", ""]
        if data.metadata.get("key"):
            lines += ["# one learner with this setting for each key", f"fleet = lp.Fleet({call})"]
            lines += [f"lp.run({source}, fleet, {sink})", "print(fleet.counts())"]
        else:
            lines += [f"learner = {call}", f"lp.run({source}, learner, {sink})", *report]
        return "\n".join(lines) + "\n"
    if data.source_code is None:
        values = "values"
        lines += ["import limpet as lp", "import numpy as np", "", f"batches = {source}.read()"]
        lines += ["values = np.concatenate([batch.values for batch in batches])"]
    else:
        columns = [data.metadata["columns"].index(name) for name in data.names]
        values = f"stream.y[:, {columns}]" if _is_column_subset(data) else "stream.y"
        lines.append(data.source_code)
    if is_learner:
        alarm_lines = ["print(*trace.alarms, sep='\\n')"] if is_automatic else []
        lines += [f"learner = {call}", f"trace = learner.process({values})", *alarm_lines, *report]
    else:
        lines += [f"detector = {call}", f"scores = detector.process({values})", "print(scores[-5:])"]
    return "\n".join(lines) + "\n"


def _to_command(data: ExplorerDataset, setting: AnySettings) -> str | None:
    """Return the command for a file; None for baselines, which have no command."""
    if isinstance(setting, BaselineSettings):
        return None
    arguments = ["limpet", "detect", _file_name(data)]
    if _is_column_subset(data):
        arguments += ["--columns", ",".join(data.names)]
    if data.metadata.get("key_column"):
        arguments += ["--key", data.metadata["key_column"]]
    if len(data.names) > MAX_JOINT_COLUMNS:
        arguments.append("--joint")
    if isinstance(setting, ManualSettings):
        arguments += ["--learner", "sra"]
    for name, value in setting.to_params().items():
        text = value if isinstance(value, str) else "inf" if value == math.inf else repr(value)
        arguments += [f"--{name.replace('_', '-')}", text]
    return shlex.join(arguments)


def _file_name(data: ExplorerDataset) -> str:
    """Return the name of the file; an example stream can be saved under this name."""
    return data.name if data.source_code is None else f"{data.name}.csv"


def _source_arguments(data: ExplorerDataset) -> list[str]:
    arguments = [repr(_file_name(data))]
    if _is_column_subset(data):
        arguments.append(f"columns={list(data.names)!r}")
    if data.metadata.get("key_column"):
        arguments.append(f"key={data.metadata['key_column']!r}")
    return arguments


def _is_column_subset(data: ExplorerDataset) -> bool:
    """Return whether some columns are left out or in another order."""
    return tuple(data.metadata.get("columns", data.names)) != data.names
