"""Results of a run over a file, for the summary and the report."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from limpet.detection.alarm import Alarm
from limpet.fleet import Fleet
from limpet.streams.downsample import MinMaxSummary, last_estimate
from limpet.streams.monitor_plan import MonitorPlan
from limpet.streams.results import BatchResult
from limpet.streams.run_stats import RunStats

MAX_KEPT_ALARMS = 50_000  # sinks receive all of them


class RaisedAlarm(NamedTuple):
    """An alarm with the names of the data, its record, and the key of its stream."""

    alarm: Alarm
    record: dict[str, Any]
    stream: str | int | None


@dataclass
class DetectionRun:
    """Counts, the first alarms, and the summary of a single stream.

    Attributes
    ----------
    path : Path
        The file.
    plan : MonitorPlan
        The streams and the learner.
    stats : RunStats
        Counts.
    raised : list of RaisedAlarm
        The first alarms.
    summary : MinMaxSummary or None
        The points, if they are one stream.
    """

    path: Path
    plan: MonitorPlan
    stats: RunStats = field(default_factory=RunStats)
    raised: list[RaisedAlarm] = field(default_factory=list)
    summary: MinMaxSummary | None = None

    def top_alarms(self, max_alarms: int) -> list[dict[str, Any]]:
        """Return the records of the largest alarms, changes preferred, in their order."""
        by_weight = sorted(range(len(self.raised)), key=lambda i: _alarm_weight(self.raised[i].record), reverse=True)
        return [self.raised[i].record for i in sorted(by_weight[:max_alarms])]

    def on_batch(self, results: BatchResult) -> None:
        """Add the results of a batch."""
        batch, trace = results.batch, results.trace
        if trace.alarms and len(self.raised) < MAX_KEPT_ALARMS:
            streams = [alarm.key for alarm in trace.alarms]
            self.raised += map(RaisedAlarm, results.alarms, results.alarm_records(), streams)
        if not isinstance(self.plan.model, Fleet):
            self.summary = self.summary or MinMaxSummary(batch.names or self.plan.schema.values)
            self.summary.add(batch.values, trace, last_estimate(trace), batch.times)


def _alarm_weight(alarm: dict[str, Any]) -> tuple[bool, float]:
    size = math.inf if alarm["size"] is None else alarm["size"]
    is_shift = alarm["direction"] in ("up", "down")
    return alarm["kind"] == "change", size if is_shift else 2.0 * abs(math.log(max(size, 1e-9)))
