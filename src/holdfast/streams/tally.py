"""How a run is doing: counts, rates, what could not be used, the latest alarms."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.streams.batch import Batch
from holdfast.streams.refusals import Refusals
from holdfast.streams.results import Results

NO_VALUE, BEYOND = "no value", "infinite, or beyond 1e150"
LATEST = 5  # alarms that are kept to be shown
RECENT = 10.0  # seconds over which the rate is taken
COUNTS = ("records", "points", "dropped", "anomalies", "late", "repeated", "checkpoints")


@dataclass
class Tally:
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
    refused: Refusals = field(default_factory=Refusals)
    latest: list[dict[str, Any]] = field(default_factory=list)

    @property
    def n_alarms(self) -> int:
        """Alarms of any kind."""
        return sum(self.alarms.values())

    def note_read(self, batch: Batch, late: int, repeated: int) -> None:
        """What came of reading a batch."""
        self.refused.join(batch.refused, self.records)
        self.records += batch.n_records
        self.late += late
        self.repeated += repeated

    def note_learnt(self, results: Results) -> None:
        """What came of learning it."""
        trace = results.trace
        self.points += len(trace)
        self.dropped += int(np.count_nonzero(trace.dropped))
        self.anomalies += int(np.count_nonzero(trace.anomaly))
        for alarm in trace.alarms:
            self.alarms[alarm.kind] += 1
        if trace.alarms:
            self.latest = [*self.latest, *results.alarm_rows()[-LATEST:]][-LATEST:]
        bad = np.flatnonzero(trace.bad)
        if not len(bad):
            return
        missing = np.asarray(np.isnan(results.batch.values[bad]).all(axis=1))
        if results.batch.channels is not None:  # a gap in one of many variables is no fault
            bad, missing = bad[~missing], missing[~missing]
        shown = self.refused.wanted
        for at, gone in zip(bad[:shown].tolist(), missing[:shown].tolist(), strict=True):
            point = str(results.batch.values[at].tolist())
            self.refused.add(NO_VALUE if gone else BEYOND, int(results.records[at]), point)
        n_missing = int(np.count_nonzero(missing[shown:]))
        self.refused.count(NO_VALUE, n_missing)
        self.refused.count(BEYOND, len(missing[shown:]) - n_missing)

    def as_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        counts = {name: getattr(self, name) for name in COUNTS}
        return {**counts, "alarms": dict(self.alarms), "refused": self.refused.as_json(), "latest": self.latest}

    @classmethod
    def of_json(cls, kept: dict[str, Any]) -> Tally:
        """What `as_json` was called on."""
        counts = {name: kept[name] for name in COUNTS}
        refused = Refusals.of_json(kept["refused"])
        return cls(**counts, alarms=Counter(kept["alarms"]), refused=refused, latest=list(kept["latest"]))


class Pace:
    """Points a second, lately."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, points: int) -> float:
        """The rate, now that there are so many."""
        now = time.monotonic()
        self._seen.append((now, points))
        while now - self._seen[0][0] > RECENT and len(self._seen) > 2:
            self._seen.popleft()
        then, before = self._seen[0]
        return (points - before) / (now - then) if now > then else 0.0
