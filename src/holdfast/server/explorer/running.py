"""One setting on one stream: what became of every point, and what there is to tell about it."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.alarms.alarm import Alarm
from holdfast.detectors.base import Detector
from holdfast.learners import SRA, Trace
from holdfast.learners.reading import NamedRows
from holdfast.learners.stochastic_approximation import StochasticApproximation
from holdfast.learners.warnings import Teller
from holdfast.scheme.state import Vector
from holdfast.server.explorer.as_code import as_command, as_python
from holdfast.server.explorer.detections import as_alarms, detected
from holdfast.server.explorer.errors_of_means import mean_errors
from holdfast.server.explorer.looked_at import LookedAt
from holdfast.server.explorer.settings import Autopilot, Hand, Rival
from holdfast.server.explorer.shelf import Shelf

WARM = 60  # points after the start
MOST_ALARMS = 2000  # that are told one by one; the last ones


class Listening(Teller):
    """Keeps what a learner would warn of: the page shows it. Warnings proper are everybody's, and there are threads."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def tell(self, topic: str, message: str, depth: int = 4) -> None:
        """Kept, once a topic."""
        if topic not in self.told:
            self.told.add(topic)
            self.heard.append(message if topic != "bad" else _without_value(message))


def _without_value(message: str) -> str:
    """Rows that were skipped, in words for a page: "47 of 2600 rows could not be used …" has the number first."""
    n = int(message.split()[0])
    return f"{n:,} row{'s' * (n != 1)} {'has' if n == 1 else 'have'} no value and {'is' if n == 1 else 'are'} skipped."


BESIDE: Shelf[dict[str, Any]] = Shelf(32 << 20)


def watched_beside(data: LookedAt, setting: Hand) -> dict[str, Any]:
    """What the autopilot raises beside a learner by hand; kept, since γ and ρ make no difference to it."""
    watcher = setting.watcher()
    name = f"{data.fingerprint} {watcher.model_dump_json()}"
    found = BESIDE.get(name)
    if found is None:
        trace, _, _ = learn(watcher.learner(), data)
        found = _watched(trace, data, "autopilot")
        BESIDE.put(name, found, 8 * len(trace) + 500 * len(trace.alarms))
    return found


def run(data: LookedAt, setting: Autopilot | Hand | Rival) -> dict[str, Any]:
    """Runs it from the first point to the last. data: of one stream, with the columns that are looked at."""
    method = setting.learner()
    if isinstance(method, Detector):
        told = _of_detector(method, data)
    else:
        told = _of_learner(method, data, setting)
    return told | {"python": as_python(data, setting), "command": as_command(data, setting)}


def learn(learner: StochasticApproximation, data: LookedAt) -> tuple[Trace, float, list[str]]:
    """The trace with the estimates, the milliseconds it took, and what the learner had to say."""
    learner._teller = listening = Listening()
    rows = NamedRows(data.values, data.names)
    first = learner.clone()  # what is compiled or loaded at the first points is no part of the learning
    first._teller = Listening()
    first.process(data.values[: first.n_init + WARM], record="means")
    began = time.perf_counter()
    trace = learner.process(rows, record="means")
    return trace, 1e3 * (time.perf_counter() - began), listening.heard


def _of_learner(learner: StochasticApproximation, data: LookedAt, setting: Any) -> dict[str, Any]:
    trace, elapsed, notes = learn(learner, data)
    told: dict[str, Any] = {
        "n_rows": len(trace),
        "n_dropped": int(trace.dropped.sum()),
        "n_bad": int(trace.bad.sum()),
        "dropped": np.flatnonzero(trace.dropped),
        "estimate": [[single(component) for component in of_one.T] for of_one in trace.means.transpose(2, 0, 1)],
        "weights": learner.weights.tolist() if learner.started else None,
        "score": single(trace.score),
        "elapsed_ms": elapsed,
        "gamma": _finite(learner.threshold),
        "rho": None if learner.step_size is None else _step_of(learner),
        "mse": mean_errors(trace.means, data),
        "notes": notes,
        "summary": None,
    }
    if isinstance(setting, Autopilot):
        return told | _watched(trace, data, "itself") | _found_out(learner, trace)
    if isinstance(setting, Hand):
        return told | watched_beside(data, setting)
    return told | _unwatched()


def _of_detector(detector: Detector, data: LookedAt) -> dict[str, Any]:
    """A detector scores each variable; the largest of a row is shown."""
    detector.fresh().process(data.values[:1])  # compiles
    began = time.perf_counter()
    scores = detector.process(data.values)
    elapsed = 1e3 * (time.perf_counter() - began)
    unknown = np.isnan(scores).all(axis=1)
    largest = np.where(unknown, np.nan, np.where(np.isnan(scores), -np.inf, scores).max(axis=1))
    told: dict[str, Any] = {
        "n_rows": len(scores),
        "n_dropped": None,  # it rejects nothing
        "n_bad": int((~np.isfinite(data.values)).all(axis=1).sum()),
        "dropped": np.zeros(0, np.int64),
        "estimate": None,
        "weights": None,
        "score": single(largest),
        "elapsed_ms": elapsed,
        "gamma": None,
        "rho": None,
        "mse": None,
        "notes": [],
        "summary": None,
    }
    found = detected(detector, scores)
    if found is None:
        return told | _unwatched()
    alarms = as_alarms(found, data)
    shown = alarms[-MOST_ALARMS:]
    counts = {"watched_by": "detector", "n_alarms": len(alarms), "n_changes": len(alarms), "n_anomalies": None}
    return told | _unwatched() | counts | {"alarms": shown, "alarms_left_out": len(alarms) - len(shown)}


def _watched(trace: Trace, data: LookedAt, by: str) -> dict[str, Any]:
    """The alarms and p-values, and who raised them."""
    shown = trace.alarms[-MOST_ALARMS:]
    return {
        "watched_by": by,
        "n_alarms": len(trace.alarms),
        "n_changes": sum(alarm.kind == "change" for alarm in trace.alarms),
        "n_anomalies": int(trace.anomaly.sum()),
        "alarms": [_as_json(alarm, data) for alarm in shown],
        "alarms_left_out": len(trace.alarms) - len(shown),
        "change_score": single(trace.change_score),
        "p_value": single(trace.p_value),
    }


def _unwatched() -> dict[str, Any]:
    empty: dict[str, Any] = {"watched_by": None, "n_alarms": 0, "n_changes": 0, "n_anomalies": 0, "alarms": []}
    return empty | {"alarms_left_out": 0, "change_score": None, "p_value": None}


def _as_json(alarm: Alarm, data: LookedAt) -> dict[str, Any]:
    return {
        "kind": alarm.kind,
        "row": alarm.row,
        "onset": alarm.onset,
        "size": _finite(alarm.size),
        "direction": alarm.direction,
        "variables": [str(one) for one in alarm.variables],
        "p_value": alarm.p_value,
        "time": None if data.times is None else data.times[alarm.row],
        "onset_time": None if data.times is None else data.times[alarm.onset],
        "message": str(alarm),
    }


def _found_out(learner: StochasticApproximation, trace: Trace) -> dict[str, Any]:
    """What the autopilot says of the stream."""
    assert isinstance(learner, SRA)
    if not learner.n_seen:
        return {}
    told: dict[str, Any] = {"summary": learner.summary()}
    return told | {name: _finite(value) for name, value in learner.calibration().items()} if learner.started else told


def _step_of(learner: StochasticApproximation) -> float | None:
    """ρ where it is one number."""
    return _finite(getattr(learner.step_size, "rho", None))


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def single(values: Vector) -> npt.NDArray[np.float32]:
    """In half the digits, which is plenty for a picture."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(values, np.float32)
