"""The page about what was found in a file: alarms, pictures, what was understood and what was left out."""

from __future__ import annotations

import gc
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limpet import __version__
from limpet._format import redact_url
from limpet.detection.alarm import Alarm
from limpet.exceptions import MissingExtraError
from limpet.fleet import Fleet
from limpet.fleet._key_index import StrKeys
from limpet.learners import Detector
from limpet.learners.input import LabelledArray
from limpet.plots.alarm_map import MAX_STRIPS, Strip, draw_alarm_map
from limpet.plots.overview import MAX_PANELS, draw_overview
from limpet.report.detection_text import (
    DetectionReport,
    StreamReport,
    TimedAlarm,
    alarm_table,
    counted,
    far_statement,
    headline,
    key_figures,
    most_alarming,
    refused_table,
    schema_terms,
    stream_table,
)
from limpet.report.html import DefinitionList, Part, Picture, Section, write_report
from limpet.streams.batch import Integers
from limpet.streams.downsample import MinMaxSummary, last_estimate
from limpet.streams.event_time import EventTimeFilter
from limpet.streams.monitor_plan import MonitorPlan
from limpet.streams.run_stats import NO_VALUE, OUT_OF_RANGE
from limpet.streams.sources.base import BaseSource
from limpet.streams.split_columns import composite_keys

if TYPE_CHECKING:
    from rich.console import Console

    from limpet.report.detection_run import DetectionRun


__all__ = ["DetectionReport", "StreamReport", "TimedAlarm", "write_detection"]

PICTURES = 24  # of single streams, at most
FEW = 4  # streams, at most, whose pictures show the scores too, and are drawn for narrow pages as well

MARKS = (
    (
        "change",
        "A line, shaded from the row where it began to the row where it was noticed: the stream is another one.",
    ),
    ("anomaly", "A circle: a point, or the first of several, that stands out. Most are single; the stream goes on."),
    ("rejected", "A cross: so far out that nothing is learnt from it. A triangle stands for one beyond the edge."),
    ("estimate", "Where the middle of the stream is, as it was known at that moment; outliers do not move it."),
    ("score", "How surprising a point was when it came: −log of its probability density."),
    ("change score", "How far the last points have left what a slow memory of the stream expects."),
)


def write_detection(
    path: str | Path, found: DetectionReport, drawing: Callable[[int, int], None] | None = None
) -> str | None:
    """Write the page to ``path``; return why it has no pictures, None if it has them.

    drawing: is told how many pictures are done, and of how many; for a progress bar.
    """
    streams = most_alarming([stream for stream in found.streams if stream.size[0]])
    without: str | None = None
    overview: list[Part] = []
    single: list[Part] = []
    try:
        overview, single = _pictures(streams, found, drawing or (lambda done, of: None))
    except MissingExtraError as error:
        without = f"No pictures: {error}"
    top: list[Part] = [key_figures(found), *([without] if without else []), *overview]
    sections = [Section("", top)]
    if found.alarms:
        sections.append(Section("Alarms", [alarm_table(found)]))
    if found.far is not None:
        sections.append(Section("How far to trust them", [far_statement(found)]))
    if found.total_streams > 1:
        sections.append(Section("Stream by stream", [*single, stream_table(streams, found.total_streams)]))
    sections.append(Section("What was understood", [schema_terms(found)]))
    if found.refused.total:
        of = "" if found.n_records is None else f" of {found.n_records:,}"
        text = f"{counted(found.refused.total, 'record')}{of} could not be read. The others are not affected."
        sections.append(Section("What could not be read", [text, *refused_table(found.refused)]))
    if not without:
        sections.append(Section("How to read the pictures", [DefinitionList(MARKS)]))
    footer = " · ".join(part for part in (f"limpet {__version__}", found.settings, found.command) if part)
    write_report(path, found.title, headline(found), sections, footer)
    return without


def _pictures(
    streams: Sequence[StreamReport], found: DetectionReport, drawing: Callable[[int, int], None]
) -> tuple[list[Part], list[Part]]:
    """The picture of all streams, and those of the most alarming ones."""
    strips = [Strip(one.name, one.sketch, one.alarms) for one in streams if one.sketch is not None and len(one.sketch)]
    alarming = [strip for strip in strips if strip.alarms] or strips[:1]
    several = found.total_streams > 1
    chosen = alarming[:PICTURES]
    total = len(chosen) + several
    overview: list[Part] = []
    single: list[Part] = []
    if several and strips:
        drawing(0, total)
        overview.append(_map(strips, found))
    for nth, strip in enumerate(chosen):
        drawing(nth + several, total)
        single.append(_picture(strip, several, detailed=len(chosen) <= FEW, first=nth == 0))
        gc.collect(1)  # a figure holds itself, and many of them would take 100 MB; this is quick
    drawing(total, total)
    if not several:
        return single, []
    if len(alarming) > len(chosen):
        more = (
            f"Pictures of the {len(chosen)} streams with most alarms; {len(alarming) - len(chosen):,} more have some."
        )
        single.insert(0, more)
    return overview, single


def _map(strips: Sequence[Strip], found: DetectionReport) -> Picture:
    """All streams, or the most alarming ones, in the order of their names as they came."""
    kept = {id(strip.sketch) for strip in strips[:MAX_STRIPS]}
    order = {id(stream.sketch): place for place, stream in enumerate(found.streams)}
    shown = sorted((strip for strip in strips if id(strip.sketch) in kept), key=lambda strip: order[id(strip.sketch)])
    which = (
        "" if len(shown) == found.total_streams else f"The {len(shown)} with most alarms of {found.total_streams:,}. "
    )
    return Picture(
        draw_alarm_map(shown),
        f"One strip for each of {counted(len(shown), 'stream')}, with its change alarms and anomalies over time.",
        f"{which}Each strip is a stream; a red bar is a change alarm, a dot an anomaly. Alarms one above the other "
        "happened at the same time.",
        narrow=draw_alarm_map(shown, narrow=True),
    )


def _picture(strip: Strip, several: bool, detailed: bool, first: bool) -> Picture:
    """One stream; the marks are named in the first picture only, and at the end of the page."""
    kinds = [sum(alarm.kind == kind for alarm in strip.alarms) for kind in ("change", "anomaly")]
    what = f"{counted(kinds[0], 'change')}, {counted(kinds[1], 'anomaly', 'anomalies')}"
    names = strip.sketch.names
    left_out = f" {MAX_PANELS} of {len(names)} variables are shown, those with alarms first." if len(names) > MAX_PANELS else ""
    rows = (
        "" if strip.sketch.is_exact else f" The grey is the range of the points, {strip.sketch.width:,} rows at a time."
    )
    title = strip.name if several else ""

    def drawn(narrow: bool) -> bytes:
        return draw_overview(strip.sketch, strip.alarms, title=title, scores=detailed, legend=first, narrow=narrow)

    return Picture(
        drawn(narrow=False),
        f"{strip.name}: {counted(strip.sketch.n_rows, 'point')} over time, with {what}.",
        f"{f'{strip.name}: ' if several else ''}{what} in {counted(strip.sketch.n_rows, 'point')}.{rows}{left_out}",
        narrow=drawn(narrow=True) if detailed else None,
    )


# The page that `limpet detect` writes.


def write_detection_report(
    path: Path,
    detection_run: DetectionRun,
    values: dict[str, Any],
    reopen: Callable[[], BaseSource],
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
            columns=plan.schema,
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
            n_rejected=stats.rejected,
            n_invalid=stats.malformed.counts[NO_VALUE] + stats.malformed.counts[OUT_OF_RANGE],
            n_records=stats.records,
            late=stats.late + stats.duplicates,
            refused=stats.malformed,
            far=plan.learner.far if isinstance(plan.learner, Detector) else None,
            joint=not plan.is_split,
            hints=tuple(plan.schema.hints),
            settings=repr(plan.learner),
            command=shlex.join(["limpet", *map(redact_url, sys.argv[1:])]),
            n_streams=plan.n_streams,
            n_changes=stats.alarms["change"],
            n_anomalies=stats.alarms["anomaly"],
        )
        problem = write_detection(path, detection)
    if problem and not quiet:
        console.print(problem, markup=False, style="yellow")


def _list_streams(detection_run: DetectionRun, late: str, reopen: Callable[[], BaseSource]) -> list[StreamReport]:
    """The streams of a fleet, those with most alarms first; the first of them with a sketch."""
    fleet = detection_run.plan.model
    assert isinstance(fleet, Fleet)
    alarms: dict[Any, list[Alarm]] = defaultdict(list)
    for raised in detection_run.raised:
        alarms[raised.stream].append(raised.alarm)
    counts = fleet.counts()
    order = sorted(range(len(counts["key"])), key=lambda i: (-len(alarms[counts["key"][i]]), i))
    names = [str(counts["key"][i]) for i in order]
    summaries = _make_summaries(detection_run.plan, names[:MAX_STRIPS], late, reopen())
    return [
        StreamReport(name, summaries.get(name), alarms[name], int(counts["n_seen"][i]), int(counts["n_rejected"][i]))
        for name, i in zip(names, order, strict=True)
    ]


def _make_summaries(plan: MonitorPlan, names: Sequence[str], late: str, source: BaseSource) -> dict[str, MinMaxSummary]:
    """Sketches of some streams, with estimates: each is learnt once more by itself, which gives the same."""
    learners = {name: plan.learner.clone() for name in names}
    for learner in learners.values():
        learner.suppress_warning("invalid")
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
