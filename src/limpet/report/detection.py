"""The report of a detection run: alarms, pictures, columns, malformed records."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from limpet import __version__
from limpet._format import plural
from limpet.detection.alarm import Alarm
from limpet.fleet import Fleet
from limpet.fleet._key_index import StrKeys
from limpet.learners.input import LabelledArray
from limpet.plots.alarm_map import MAX_STRIPS, Strip, draw_alarm_map
from limpet.plots.overview import MAX_PANELS, draw_overview
from limpet.report.detection_text import (
    DetectionReport,
    StreamReport,
    alarm_table,
    far_statement,
    headline,
    key_figures,
    malformed_tables,
    schema_terms,
    sort_by_alarms,
    stream_table,
)
from limpet.report.html import DefinitionList, Part, Picture, Section, write_report
from limpet.streams.batch import Integers, composite_keys
from limpet.streams.downsample import MinMaxSummary, last_estimate
from limpet.streams.event_time import EventTimeFilter
from limpet.streams.monitor_plan import MonitorPlan
from limpet.streams.sources.base import BaseSource

MAX_PICTURES = 24  # of single streams
MAX_DETAILED = 4  # streams whose pictures have scores, and a version for narrow pages

MARKS = (
    ("change", "A line, shaded from the estimated onset to the alarm: the stream has changed permanently."),
    ("anomaly", "A circle: an unusual point, or the first of several. The stream continues as before."),
    ("rejected", "A cross: a point too far away to be learned. A triangle is a point outside the panel."),
    ("estimate", "The center of the stream as it was known at that time; outliers do not move it."),
    ("score", "How surprising a point was: −log of its probability density."),
    ("change score", "How far the latest points deviate from the long-term behavior of the stream."),
)


def write_detection(path: str | Path, report: DetectionReport) -> None:
    """Write the page to ``path``."""
    streams = sort_by_alarms([stream for stream in report.streams if stream.point_counts[0]])
    overview, single = _draw_pictures(streams, report)
    sections = [Section("", [key_figures(report), *overview])]
    if report.alarms:
        sections.append(Section("Alarms", [alarm_table(report)]))
    if report.far is not None:
        sections.append(Section("False alarms", [far_statement(report)]))
    if report.total_streams > 1:
        sections.append(Section("Streams", [*single, stream_table(streams, report.total_streams)]))
    sections.append(Section("Columns", [schema_terms(report)]))
    if report.malformed.total:
        of_all = "" if report.n_records is None else f" of {report.n_records:,}"
        text = f"{plural(report.malformed.total, 'record')}{of_all} could not be parsed and were skipped."
        sections.append(Section("Malformed records", [text, *malformed_tables(report.malformed)]))
    sections.append(Section("Legend", [DefinitionList(MARKS)]))
    footer = " · ".join(part for part in (f"limpet {__version__}", report.settings, report.command) if part)
    write_report(path, report.title, headline(report), sections, footer)


def _draw_pictures(streams: Sequence[StreamReport], report: DetectionReport) -> tuple[list[Part], list[Part]]:
    """Return the picture of all streams, and those of streams with most alarms."""
    strips = [
        Strip(stream.name, stream.summary, stream.alarms)
        for stream in streams
        if stream.summary is not None and len(stream.summary)
    ]
    alarming = [strip for strip in strips if strip.alarms] or strips[:1]
    has_streams = report.total_streams > 1
    chosen = alarming[:MAX_PICTURES]
    single: list[Part] = []
    for index, strip in enumerate(chosen):
        single.append(_draw_stream(strip, has_streams, detailed=len(chosen) <= MAX_DETAILED, legend=index == 0))
        gc.collect(1)  # figures are reference cycles and would take 100 MB; one collection is fast
    if not has_streams:
        return single, []
    if len(alarming) > len(chosen):
        n_more = len(alarming) - len(chosen)
        single.insert(0, f"Pictures of the {len(chosen)} streams with most alarms; {n_more:,} more have alarms.")
    return [_draw_map(strips, report)] if strips else [], single


def _draw_map(strips: Sequence[Strip], report: DetectionReport) -> Picture:
    """Draw all streams, or those with most alarms, in their original order."""
    kept = {id(strip.summary) for strip in strips[:MAX_STRIPS]}
    order = {id(stream.summary): index for index, stream in enumerate(report.streams)}
    shown = sorted((strip for strip in strips if id(strip.summary) in kept), key=lambda strip: order[id(strip.summary)])
    selection = (
        "" if len(shown) == report.total_streams else f"The {len(shown)} with most alarms of {report.total_streams:,}. "
    )
    return Picture(
        draw_alarm_map(shown),
        f"One strip per stream for {plural(len(shown), 'stream')}, with change alarms and anomalies over time.",
        f"{selection}Each strip is a stream; a red bar is a change alarm, a dot an anomaly. Simultaneous alarms are "
        "above each other.",
        narrow=draw_alarm_map(shown, narrow=True),
    )


def _draw_stream(strip: Strip, has_streams: bool, detailed: bool, legend: bool) -> Picture:
    """Draw one stream."""
    summary, counts = strip.summary, Counter(alarm.kind for alarm in strip.alarms)
    alarms = f"{plural(counts['change'], 'change')}, {plural(counts['anomaly'], 'anomaly', 'anomalies')}"
    points, title = plural(summary.n_rows, "point"), strip.name if has_streams else ""
    caption = f"{f'{title}: ' if title else ''}{alarms} in {points}."
    if not summary.is_exact:
        caption += f" The grey area is the range of the points, {summary.width:,} rows at a time."
    if len(summary.names) > MAX_PANELS:
        caption += f" {MAX_PANELS} of {len(summary.names)} variables, those with alarms first."
    draw = partial(draw_overview, summary, strip.alarms, title=title, scores=detailed, legend=legend)
    description = f"{title or 'The stream'}: {points} over time, with {alarms}."
    return Picture(draw(), description, caption, narrow=draw(narrow=True) if detailed else None)


def list_streams(plan: MonitorPlan, alarms: Sequence[Alarm], late: str, source: BaseSource) -> list[StreamReport]:
    """Return the streams of a fleet, those with most alarms first.

    The first of them get a summary from the source, which is learned again, with estimates.
    """
    fleet = plan.model
    assert isinstance(fleet, Fleet)
    alarms_by_stream: dict[Any, list[Alarm]] = defaultdict(list)
    for alarm in alarms:
        alarms_by_stream[alarm.key].append(alarm)
    counts = fleet.counts()
    order = sorted(range(len(counts["key"])), key=lambda i: (-len(alarms_by_stream[counts["key"][i]]), i))
    names = [str(counts["key"][i]) for i in order]
    summaries = _make_summaries(plan, names[:MAX_STRIPS], late, source)
    return [
        StreamReport(
            name, summaries.get(name), alarms_by_stream[name], int(counts["n_seen"][i]), int(counts["n_rejected"][i])
        )
        for name, i in zip(names, order, strict=True)
    ]


def _make_summaries(plan: MonitorPlan, names: Sequence[str], late: str, source: BaseSource) -> dict[str, MinMaxSummary]:
    """Return the summaries of some streams; each is learned again, with estimates."""
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
    """Yield the rows of each of these streams that has any."""
    index_by_name = {name: index for index, name in enumerate(names)}
    index_by_code = np.array(
        [index_by_name.get(name, len(names)) for name in (*keys.values, None)], np.int16
    )  # code −1 is the last one
    index_by_point = index_by_code[:-1] if keys.codes is None else index_by_code[keys.codes]
    order = np.argsort(index_by_point, kind="stable")
    edges = np.searchsorted(index_by_point[order], np.arange(len(names) + 1))
    for name, start, end in zip(names, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if end > start:
            yield name, order[start:end]
