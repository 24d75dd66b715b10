"""The counts of a run as metrics."""

from __future__ import annotations

import time

from holdfast.fleet import Fleet
from holdfast.streams.prometheus import Metric
from holdfast.streams.runner import Runner


def metrics_of(runner: Runner) -> dict[str, Metric]:
    """What there is to tell of a run at this moment."""
    tally = runner.tally
    streams = len(runner.model) if isinstance(runner.model, Fleet) else 1
    metrics = {
        "holdfast_records_total": Metric(
            "counter", "Records read, those that could not be used included.", tally.records
        ),
        "holdfast_points_total": Metric("counter", "Points learnt or rejected.", tally.points),
        "holdfast_dropped_total": Metric("counter", "Points rejected as outliers.", tally.dropped),
        "holdfast_anomalies_total": Metric("counter", "Points that stand out.", tally.anomalies),
        "holdfast_alarms_total": Metric(
            "counter", "Alarms.", [({"kind": kind}, tally.alarms[kind]) for kind in ("change", "anomaly")]
        ),
        "holdfast_refused_total": Metric(
            "counter",
            "Records and points that could not be used.",
            [({"reason": reason}, count) for reason, count in sorted(tally.refused.counts.items())],
        ),
        "holdfast_late_total": Metric("counter", "Points older than the last one of their stream.", tally.late),
        "holdfast_repeated_total": Metric(
            "counter", "Points that repeat the last one of their stream.", tally.repeated
        ),
        "holdfast_checkpoints_total": Metric("counter", "Checkpoints written.", tally.checkpoints),
        "holdfast_streams": Metric("gauge", "Streams that are being followed.", streams),
    }
    if runner.behind is not None:
        behind, unit = runner.behind
        metrics[f"holdfast_lag_{unit}"] = Metric("gauge", f"What waits to be read, in {unit}.", behind)
    if runner.committed_at is not None:
        age = time.time() - runner.committed_at
        metrics["holdfast_checkpoint_age_seconds"] = Metric("gauge", "Time since all was last made sure of.", age)
    return metrics
