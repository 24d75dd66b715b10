"""The page that `holdfast detect` writes."""

from __future__ import annotations

import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.alarms.alarm import Alarm
from holdfast.cli.arrangement import MonitorPlan
from holdfast.fleet import Fleet
from holdfast.fleet.keys import StrKeys
from holdfast.learners.reading import LabelledArray
from holdfast.plots.alarm_map import STRIPS
from holdfast.plots.detection import DetectionReport, StreamReport, TimedAlarm, write_detection
from holdfast.streams.batch import Integers
from holdfast.streams.lateness import EventTimeFilter
from holdfast.streams.places import redact
from holdfast.streams.separate import composite_keys
from holdfast.streams.sketch import MinMaxSummary, last_estimate
from holdfast.streams.source import Source
from holdfast.streams.tally import NO_VALUE, OUT_OF_RANGE

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.cli.detect import DetectionRun


def write_report(
    path: Path,
    detection_run: DetectionRun,
    values: dict[str, Any],
    reopen: Callable[[], Source],
    console: Console,
    quiet: bool,
) -> None:
    """Writes the page. again: opens the file anew, for the pictures of some of many streams."""
    with nullcontext() if quiet else console.status("drawing …"):
        plan, stats = detection_run.plan, detection_run.stats
        is_fleet = isinstance(plan.model, Fleet)
        alarms = [raised.alarm for raised in detection_run.raised]
        streams = (
            _list_streams(detection_run, values["late"], reopen)
            if is_fleet
            else [StreamReport("", detection_run.summary, alarms)]
        )
        detection = DetectionReport(
            title=detection_run.path.name,
            columns=plan.columns,
            streams=streams,
            alarms=[
                TimedAlarm(
                    raised.alarm,
                    "" if raised.record["time"] is None else str(raised.record["time"]),
                    str(raised.stream or ""),
                )
                for raised in detection_run.raised
            ],
            n_points=stats.points,
            n_rejected=stats.dropped,
            n_invalid=stats.rejects.counts[NO_VALUE] + stats.rejects.counts[OUT_OF_RANGE],
            n_records=stats.records,
            late=stats.late + stats.repeated,
            refused=stats.rejects,
            far=plan.learner.far if plan.raises_alarms else None,
            joint=not plan.separate,
            hints=plan.columns.hints,
            settings=repr(plan.learner),
            command=shlex.join(["holdfast", *map(redact, sys.argv[1:])]),
            n_streams=plan.n_streams,
            n_changes=stats.alarms["change"],
            n_anomalies=stats.alarms["anomaly"],
        )
        problem = write_detection(path, detection)
    if problem and not quiet:
        console.print(problem, markup=False, style="yellow")


def _list_streams(detection_run: DetectionRun, late: str, reopen: Callable[[], Source]) -> list[StreamReport]:
    """The streams of a fleet, those with most alarms first; the first of them with a sketch."""
    fleet = detection_run.plan.model
    assert isinstance(fleet, Fleet)
    alarms: dict[Any, list[Alarm]] = defaultdict(list)
    for raised in detection_run.raised:
        alarms[raised.stream].append(raised.alarm)
    counts = fleet.counts()
    order = sorted(range(len(counts["key"])), key=lambda i: (-len(alarms[counts["key"][i]]), i))
    names = [str(counts["key"][i]) for i in order]
    summaries = _make_summaries(detection_run.plan, names[:STRIPS], late, reopen())
    return [
        StreamReport(name, summaries.get(name), alarms[name], int(counts["n_seen"][i]), int(counts["n_rejected"][i]))
        for name, i in zip(names, order, strict=True)
    ]


def _make_summaries(plan: MonitorPlan, names: Sequence[str], late: str, source: Source) -> dict[str, MinMaxSummary]:
    """Sketches of some streams, with estimates: each is learnt once more by itself, which gives the same."""
    learners = {name: plan.learner.clone() for name in names}
    for learner in learners.values():
        learner._suppress_warning("invalid")
    summaries: dict[str, MinMaxSummary] = {}
    time_filter = EventTimeFilter(late)
    for batch in plan.wrap_source(source).read(None):
        accepted, _, _ = time_filter.filter(batch)
        keys = composite_keys(accepted)
        if keys is None or not len(accepted) or accepted.names is None:
            continue
        for name, rows in _group_rows_by_stream(keys, names):
            points = accepted.values[rows]
            trace = learners[name].process(LabelledArray(points, accepted.names), record="means")
            summary = summaries.setdefault(name, MinMaxSummary(accepted.names))
            summary.add(points, trace, last_estimate(trace), None if accepted.times is None else accepted.times[rows])
    return summaries


def _group_rows_by_stream(keys: StrKeys, names: Sequence[str]) -> Iterator[tuple[str, Integers]]:
    """Which points are those of each of these streams, for those that have some."""
    index_by_name = {name: index for index, name in enumerate(names)}
    index_by_code = np.array(
        [index_by_name.get(name, len(names)) for name in (*keys.values, None)], np.int16
    )  # −1 is the last one
    index_by_point = index_by_code[:-1] if keys.codes is None else index_by_code[keys.codes]
    order = np.argsort(index_by_point, kind="stable")
    edges = np.searchsorted(index_by_point[order], np.arange(len(names) + 1))
    for name, start, end in zip(names, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if end > start:
            yield name, order[start:end]
