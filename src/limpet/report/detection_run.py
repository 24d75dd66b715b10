"""What a run over a file leaves for the summary and the report."""

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

MAX_KEPT_ALARMS = 50_000  # alarms kept for the summary; sinks receive all of them


class RaisedAlarm(NamedTuple):
    """An alarm: as it was raised, as a row of results, and the name of its stream where there are several."""

    alarm: Alarm
    record: dict[str, Any]
    stream: str | int | None


@dataclass
class DetectionRun:
    """What came of a file: counts, the first alarms, and if it is one stream a sketch of it."""

    path: Path
    plan: MonitorPlan
    stats: RunStats = field(default_factory=RunStats)
    raised: list[RaisedAlarm] = field(default_factory=list)
    summary: MinMaxSummary | None = None

    def top_alarms(self, max_alarms: int) -> list[dict[str, Any]]:
        """So many alarms in the order in which they came: changes before anomalies, and the largest of them."""
        by_weight = sorted(range(len(self.raised)), key=lambda i: _alarm_weight(self.raised[i].record), reverse=True)
        return [self.raised[i].record for i in sorted(by_weight[:max_alarms])]

    def on_batch(self, results: BatchResult) -> None:
        """The results of a batch."""
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
