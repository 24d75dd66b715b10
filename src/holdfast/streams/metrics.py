"""The counts of a run as metrics."""

from __future__ import annotations

import time

from holdfast.fleet import Fleet
from holdfast.streams.prometheus import Metric
from holdfast.streams.runner import Runner


def collect_metrics(runner: Runner) -> dict[str, Metric]:
    """What there is to tell of a run at this moment."""
    stats = runner.stats
    n_streams = len(runner.model) if isinstance(runner.model, Fleet) else 1
    metrics = {
        "holdfast_records_total": Metric(
            "counter", "Records read, those that could not be used included.", stats.records
        ),
        "holdfast_points_total": Metric("counter", "Points learnt or rejected.", stats.points),
        "holdfast_dropped_total": Metric("counter", "Points rejected as outliers.", stats.dropped),
        "holdfast_anomalies_total": Metric("counter", "Points that stand out.", stats.anomalies),
        "holdfast_alarms_total": Metric(
            "counter", "Alarms.", [({"kind": kind}, stats.alarms[kind]) for kind in ("change", "anomaly")]
        ),
        "holdfast_refused_total": Metric(
            "counter",
            "Records and points that could not be used.",
            [({"reason": reason}, count) for reason, count in sorted(stats.rejects.counts.items())],
        ),
        "holdfast_late_total": Metric("counter", "Points older than the last one of their stream.", stats.late),
        "holdfast_repeated_total": Metric(
            "counter", "Points that repeat the last one of their stream.", stats.repeated
        ),
        "holdfast_checkpoints_total": Metric("counter", "Checkpoints written.", stats.checkpoints),
        "holdfast_streams": Metric("gauge", "Streams that are being followed.", n_streams),
    }
    if runner.lag is not None:
        lag, unit = runner.lag
        metrics[f"holdfast_lag_{unit}"] = Metric("gauge", f"What waits to be read, in {unit}.", lag)
    if runner.committed_at is not None:
        age = time.time() - runner.committed_at
        metrics["holdfast_checkpoint_age_seconds"] = Metric("gauge", "Time since all was last made sure of.", age)
    return metrics
