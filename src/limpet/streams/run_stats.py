"""How a run is doing: counts, rates, what could not be used, the latest alarms."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limpet.streams.batch import Batch
from limpet.streams.rejects import RejectLog
from limpet.streams.results import BatchResult

NO_VALUE, OUT_OF_RANGE = "no value", "infinite, or beyond 1e150"
MAX_LATEST_ALARMS = 5  # alarms that are kept to be shown
RATE_WINDOW_S = 10.0  # seconds over which the rate is taken
COUNT_FIELDS = ("records", "points", "rejected", "anomalies", "late", "repeated", "checkpoints")


@dataclass
class RunStats:
    """What has come so far, since the run first began.

    records: lines, rows or what messages carry. points: those learnt or looked at, which with separate variables are
    more. dropped: rejected as outliers. anomalies: points that stand out. alarms: how many of each kind. refused: what
    could not be used, by reason. late, repeated: points older than the last one of their stream, or the same again.
    """

    records: int = 0
    points: int = 0
    dropped: int = 0
    anomalies: int = 0
    late: int = 0
    repeated: int = 0
    checkpoints: int = 0
    alarms: Counter[str] = field(default_factory=Counter)
    rejects: RejectLog = field(default_factory=RejectLog)
    latest: list[dict[str, Any]] = field(default_factory=list)

    @property
    def n_alarms(self) -> int:
        """Alarms of any kind."""
        return sum(self.alarms.values())

    def record_read(self, batch: Batch, late: int, repeated: int) -> None:
        """What came of reading a batch."""
        self.rejects.merge(batch.rejects, self.records)
        self.records += batch.n_records
        self.late += late
        self.repeated += repeated

    def record_processed(self, results: BatchResult) -> None:
        """What came of learning it."""
        trace = results.trace
        self.points += len(trace)
        self.dropped += int(np.count_nonzero(trace.rejected))
        self.anomalies += int(np.count_nonzero(trace.anomaly))
        for alarm in trace.alarms:
            self.alarms[alarm.kind] += 1
        if trace.alarms:
            self.latest = [*self.latest, *results.alarm_records()[-MAX_LATEST_ALARMS:]][-MAX_LATEST_ALARMS:]
        invalid = np.flatnonzero(trace.invalid)
        if not len(invalid):
            return
        missing = np.asarray(np.isnan(results.batch.values[invalid]).all(axis=1))
        if results.batch.variable_names is not None:  # a gap in one of many variables is no fault
            invalid, missing = invalid[~missing], missing[~missing]
        n_shown = self.rejects.remaining_capacity
        for index, is_missing in zip(invalid[:n_shown].tolist(), missing[:n_shown].tolist(), strict=True):
            point = str(results.batch.values[index].tolist())
            self.rejects.add(NO_VALUE if is_missing else OUT_OF_RANGE, int(results.record_indexes[index]), point)
        n_missing = int(np.count_nonzero(missing[n_shown:]))
        self.rejects.count(NO_VALUE, n_missing)
        self.rejects.count(OUT_OF_RANGE, len(missing[n_shown:]) - n_missing)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        counts = {name: getattr(self, name) for name in COUNT_FIELDS}
        return {**counts, "alarms": dict(self.alarms), "refused": self.rejects.to_dict(), "latest": self.latest}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RunStats:
        """What `as_json` was called on."""
        counts = {name: data[name] for name in COUNT_FIELDS}
        rejects = RejectLog.from_dict(data["refused"])
        return cls(**counts, alarms=Counter(data["alarms"]), rejects=rejects, latest=list(data["latest"]))


class RateMeter:
    """Points a second, lately."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def rate(self, points: int) -> float:
        """The rate, now that there are so many."""
        now = time.monotonic()
        self._samples.append((now, points))
        while now - self._samples[0][0] > RATE_WINDOW_S and len(self._samples) > 2:
            self._samples.popleft()
        since, before = self._samples[0]
        return (points - before) / (now - since) if now > since else 0.0
