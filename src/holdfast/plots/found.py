"""What was found in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.alarms.alarm import Alarm
from holdfast.streams.columns import Schema
from holdfast.streams.refusals import RejectLog
from holdfast.streams.sketch import MinMaxSummary


@dataclass(frozen=True)
class TimedAlarm:
    """An alarm with the time of its row, as it is written, and the name of its stream where there are several."""

    alarm: Alarm
    time: str = ""
    stream: str = ""


@dataclass(frozen=True)
class StreamReport:
    """A stream: its sketch, if one was kept, and its alarms in the order of rows; without a sketch, how long it is."""

    name: str
    sketch: MinMaxSummary | None
    alarms: Sequence[Alarm] = ()
    n_points: int = 0
    n_rejected: int = 0

    @property
    def counts(self) -> Counter[str]:
        """How many alarms of each kind."""
        return Counter(alarm.kind for alarm in self.alarms)

    @property
    def size(self) -> tuple[int, int]:
        """How many points it has, and how many of them were dropped."""
        if self.sketch is None:
            return self.n_points, self.n_rejected
        return self.sketch.n_rows, int(self.sketch.n_rejected.sum())


@dataclass(frozen=True)
class DetectionReport:
    """What was found in a file.

    title: its name. columns: what was understood of it. streams: all of them, or the most alarming ones of `n_streams`.
    alarms: those of all streams, in the order in which they were raised, or the latest ones of `n_changes` and
        `n_anomalies`.
    n_points, n_rejected, n_invalid: points watched, rejected by the threshold, and unusable. n_records: read, those refused
        included. late: points that came too late or twice and were left out.
    far: the promise; None where a learner does not raise alarms. joint: that the columns are variables of one stream,
        and not a stream each. hints: sentences the user should read. results: where all results are. settings, command:
        for the footer.
    """

    title: str
    columns: Schema
    streams: Sequence[StreamReport]
    alarms: Sequence[TimedAlarm]
    n_points: int
    n_rejected: int = 0
    n_invalid: int = 0
    n_records: int | None = None
    late: int = 0
    refused: RejectLog = field(default_factory=RejectLog)
    far: float | None = None
    joint: bool = True
    hints: Sequence[str] = ()
    results: str = ""
    settings: str = ""
    command: str = ""
    n_streams: int | None = None
    n_changes: int | None = None
    n_anomalies: int | None = None

    @property
    def found(self) -> tuple[int, int]:
        """How many changes, and how many anomalies."""
        counts = Counter(one.alarm.kind for one in self.alarms)
        changes = counts["change"] if self.n_changes is None else self.n_changes
        return changes, counts["anomaly"] if self.n_anomalies is None else self.n_anomalies

    @property
    def total_streams(self) -> int:
        """How many streams there are."""
        return len(self.streams) if self.n_streams is None else self.n_streams
