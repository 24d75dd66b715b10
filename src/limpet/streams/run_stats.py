"""Counts of a run: records, points, alarms, malformed records."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limpet.streams.batch import Batch, RejectLog
from limpet.streams.results import BatchResult

NO_VALUE, OUT_OF_RANGE = "no value", "infinite, or beyond 1e150"
MAX_LATEST_ALARMS = 5
RATE_WINDOW_S = 10.0
COUNT_FIELDS = ("records", "points", "rejected", "anomalies", "late", "duplicates", "checkpoints")


@dataclass
class RunStats:
    """Counts since the first start of the run."""

    records: int = 0
    points: int = 0
    rejected: int = 0
    anomalies: int = 0
    late: int = 0
    duplicates: int = 0
    checkpoints: int = 0
    alarms: Counter[str] = field(default_factory=Counter)
    malformed: RejectLog = field(default_factory=RejectLog)
    latest: list[dict[str, Any]] = field(default_factory=list)

    @property
    def n_alarms(self) -> int:
        """Alarms of any kind."""
        return sum(self.alarms.values())

    def record_read(self, batch: Batch, late: int, duplicates: int) -> None:
        """Count the records of a batch."""
        self.malformed.merge(batch.rejects, self.records)
        self.records += batch.n_records
        self.late += late
        self.duplicates += duplicates

    def record_processed(self, results: BatchResult) -> None:
        """Count the results of a batch."""
        trace = results.trace
        self.points += len(trace)
        self.rejected += int(np.count_nonzero(trace.rejected))
        self.anomalies += int(np.count_nonzero(trace.anomaly))
        for alarm in trace.alarms:
            self.alarms[alarm.kind] += 1
        if trace.alarms:
            self.latest = [*self.latest, *results.alarm_records()[-MAX_LATEST_ALARMS:]][-MAX_LATEST_ALARMS:]
        invalid = np.flatnonzero(trace.invalid)
        if not len(invalid):
            return
        missing = np.asarray(np.isnan(results.batch.values[invalid]).all(axis=1))
        if results.batch.variable_names is not None:  # a gap in one of several separate variables is no error
            invalid, missing = invalid[~missing], missing[~missing]
        n_shown = self.malformed.remaining_capacity
        for index, is_missing in zip(invalid[:n_shown].tolist(), missing[:n_shown].tolist(), strict=True):
            point = str(results.batch.values[index].tolist())
            self.malformed.add(NO_VALUE if is_missing else OUT_OF_RANGE, int(results.record_indexes[index]), point)
        n_missing = int(np.count_nonzero(missing[n_shown:]))
        self.malformed.count(NO_VALUE, n_missing)
        self.malformed.count(OUT_OF_RANGE, len(missing[n_shown:]) - n_missing)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON can hold them."""
        counts = {name: getattr(self, name) for name in COUNT_FIELDS}
        return {**counts, "alarms": dict(self.alarms), "malformed": self.malformed.to_dict(), "latest": self.latest}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RunStats:
        """Create the counts from the result of `to_dict`."""
        counts = {name: data[name] for name in COUNT_FIELDS}
        malformed = RejectLog.from_dict(data["malformed"])
        return cls(**counts, alarms=Counter(data["alarms"]), malformed=malformed, latest=list(data["latest"]))


class RateMeter:
    """Points per second over the last seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def rate(self, points: int) -> float:
        """Return the rate, given the number of points so far."""
        now = time.monotonic()
        self._samples.append((now, points))
        while now - self._samples[0][0] > RATE_WINDOW_S and len(self._samples) > 2:
            self._samples.popleft()
        since, before = self._samples[0]
        return (points - before) / (now - since) if now > since else 0.0
