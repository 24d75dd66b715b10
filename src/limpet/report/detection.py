"""The report of a detection run: alarms, pictures, columns, malformed records."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from limpet import __version__
from limpet._format import join_names, plural
from limpet.detection.alarm import Alarm, most_important
from limpet.fleet import Fleet
from limpet.fleet._key_index import StrKeys
from limpet.learners.input import LabeledArray
from limpet.plots.alarm_map import MAX_STRIPS, Strip, draw_alarm_map
from limpet.plots.overview import MAX_PANELS, draw_overview
from limpet.report.html import DefinitionList, KeyFigures, Part, Picture, Section, Table, write_report
from limpet.streams.batch import InputErrorLog, Integers, composite_keys
from limpet.streams.downsample import MinMaxSummary, last_estimate
from limpet.streams.event_time import EventTimeFilter
from limpet.streams.monitor_plan import MonitorPlan
from limpet.streams.schema import Schema
from limpet.streams.sources.base import BaseSource
from limpet.streams.timestamps import ISO_FORMAT, ZONED_ISO_FORMAT, format_times

MAX_PICTURES = 24  # of single streams
MAX_DETAILED_STREAMS = 4  # streams whose pictures have scores, and a version for narrow pages
MAX_TABLE_ALARMS = 200
MAX_TABLE_STREAMS = 1000
MAX_FIXED_ROWS = 15  # a longer table gets a scrollbar

LEGEND_ENTRIES = (
    ("change", "A line, shaded from the estimated onset to the alarm: the distribution differs from the onset on."),
    ("anomaly", "A circle: an unusual point, or the first of several. The stream continues as before."),
    ("rejected", "A cross: a point too far away to be learned. A triangle is a point outside the panel."),
    ("estimate", "The estimated mean at that time; outliers do not move it."),
    ("score", "How surprising a point was: −log of its probability density."),
    ("change score", "How far the latest points deviate from the long-term behavior of the stream."),
)


@dataclass(frozen=True)
class StreamReport:
    """A stream and its alarms by row; the numbers are for one without a summary."""

    name: str
    summary: MinMaxSummary | None
    alarms: Sequence[Alarm] = ()
    n_points: int = 0
    n_rejected: int = 0

    @property
    def alarm_counts(self) -> Counter[str]:
        """The number of alarms of each kind."""
        return Counter(alarm.kind for alarm in self.alarms)

    @property
    def point_counts(self) -> tuple[int, int]:
        """The number of points and of rejected points."""
        if self.summary is None:
            return self.n_points, self.n_rejected
        return self.summary.n_rows, int(self.summary.n_rejected.sum())


@dataclass(frozen=True)
class DetectionReport:
    """Results of a detection run; alarms have times and, of several streams, keys."""

    title: str
    schema: Schema
    streams: Sequence[StreamReport]  # all, or those with most alarms of `n_streams`
    alarms: Sequence[Alarm]  # of all streams in the order of detection, or the first of `n_changes` and `n_anomalies`
    n_points: int
    n_rejected: int = 0
    n_invalid: int = 0
    n_records: int | None = None  # malformed ones included
    n_skipped: int = 0  # late and duplicate points
    malformed: InputErrorLog = field(default_factory=InputErrorLog)
    far: float | None = None  # None for a learner without alarms
    joint: bool = True  # whether the columns are variables of one stream, instead of one stream each
    settings: str = ""  # for the footer, like the command
    command: str = ""
    n_streams: int | None = None
    n_changes: int | None = None
    n_anomalies: int | None = None

    @property
    def alarm_counts(self) -> tuple[int, int]:
        """The number of changes and of anomalies."""
        counts = Counter(alarm.kind for alarm in self.alarms)
        changes = counts["change"] if self.n_changes is None else self.n_changes
        return changes, counts["anomaly"] if self.n_anomalies is None else self.n_anomalies

    @property
    def total_streams(self) -> int:
        """The number of streams."""
        return len(self.streams) if self.n_streams is None else self.n_streams


def write_detection(path: str | Path, report: DetectionReport) -> None:
    """Write the page to ``path``."""
    streams = [stream for stream in report.streams if stream.point_counts[0]]
    streams.sort(key=lambda stream: (-stream.alarm_counts["change"], -stream.alarm_counts["anomaly"]))
    overview, single = _draw_pictures(streams, report)
    sections = [Section("", [_make_key_figures(report), *overview])]
    if report.alarms:
        sections.append(Section("Alarms", [_make_alarm_table(report)]))
    if report.far is not None:
        sections.append(Section("False alarms", [_describe_far(report)]))
    if report.total_streams > 1:
        sections.append(Section("Streams", [*single, _make_stream_table(streams, report.total_streams)]))
    sections.append(Section("Columns", [_list_columns(report)]))
    if report.malformed.total:
        of_all = "" if report.n_records is None else f" of {report.n_records:,}"
        text = f"{plural(report.malformed.total, 'record')}{of_all} could not be parsed and were not read."
        sections.append(Section("Malformed records", [text, *_make_malformed_tables(report.malformed)]))
    sections.append(Section("Legend", [DefinitionList(LEGEND_ENTRIES)]))
    footer = " · ".join(part for part in (f"limpet {__version__}", report.settings, report.command) if part)
    write_report(path, report.title, _make_headline(report), sections, footer)


def _draw_pictures(streams: Sequence[StreamReport], report: DetectionReport) -> tuple[list[Part], list[Part]]:
    """Return the picture of all streams, and those of streams with most alarms."""
    strips = [Strip(stream.name, stream.summary, stream.alarms) for stream in streams if stream.summary]
    alarming = [strip for strip in strips if strip.alarms] or strips[:1]
    has_streams, chosen = report.total_streams > 1, alarming[:MAX_PICTURES]
    single: list[Part] = []
    for index, strip in enumerate(chosen):
        single.append(_draw_stream(strip, has_streams, detailed=len(chosen) <= MAX_DETAILED_STREAMS, legend=index == 0))
        gc.collect(1)  # figures are reference cycles and would take 100 MB; one collection is fast
    if not has_streams:
        return single, []
    if len(alarming) > len(chosen):
        n_more = len(alarming) - len(chosen)
        single.insert(0, f"Pictures of the {len(chosen)} streams with most alarms; {n_more:,} more have alarms.")
    return [_draw_map(strips, report)] if strips else [], single


def _draw_map(strips: Sequence[Strip], report: DetectionReport) -> Picture:
    """Draw all streams, or those with most alarms, in their original order."""
    order = {id(stream.summary): index for index, stream in enumerate(report.streams)}
    shown = sorted(strips[:MAX_STRIPS], key=lambda strip: order[id(strip.summary)])
    n_streams = report.total_streams
    selection = "" if len(shown) == n_streams else f"The {len(shown)} with most alarms of {n_streams:,}. "
    return Picture(
        draw_alarm_map(shown),
        f"One strip per stream for {plural(len(shown), 'stream')}, with change alarms and anomalies over time.",
        f"{selection}Each strip is a stream; a red bar is a change alarm, a dot an anomaly. Simultaneous alarms are "
        "above each other.",
        narrow=draw_alarm_map(shown, narrow=True),
    )


def _draw_stream(strip: Strip, has_streams: bool, detailed: bool, legend: bool) -> Picture:
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


# Sentences, figures and tables


def _make_headline(report: DetectionReport) -> str:
    changes, anomalies = report.alarm_counts
    of_streams = f" of {report.total_streams:,} streams" if report.total_streams > 1 else ""
    where = f"{plural(report.n_points, 'point')}{of_streams}{_format_period(report.streams)}"
    if report.far is None:
        return f"{where}: {plural(report.n_rejected, 'point')} rejected."
    if not changes and not anomalies:
        return f"No changes and no anomalies in {where}."
    return f"{plural(changes, 'change')} and {plural(anomalies, 'anomaly', 'anomalies')} in {where}."


def _make_key_figures(report: DetectionReport) -> KeyFigures:
    changes, anomalies = report.alarm_counts
    pairs = [] if report.far is None else [(f"{changes:,}", "changes"), (f"{anomalies:,}", "anomalies")]
    pairs.append((f"{report.n_points:,}", "points"))
    if report.total_streams > 1:
        pairs.append((f"{report.total_streams:,}", "streams"))
    pairs.append((_format_share(report.n_rejected, report.n_points), "of them rejected as outliers"))
    faults = {"invalid points": report.n_invalid, "late or duplicate points, skipped": report.n_skipped}
    faults["malformed records"] = report.malformed.total
    return KeyFigures([*pairs, *((f"{n:,}", name) for name, n in faults.items() if n)])


def expected_false_alarms(far: float, n_points: int) -> str:
    """Return the expected number of false alarms of a kind in stable streams.

    >>> expected_false_alarms(1e-4, 20_000), expected_false_alarms(1e-4, 8000), expected_false_alarms(1e-4, 100)
    ('about 2', 'about 1', 'fewer than 1')
    """
    expected = far * n_points
    return f"about {expected:,.0f}" if expected >= 0.5 else "fewer than 1"


def _describe_far(report: DetectionReport) -> str:
    assert report.far is not None
    each = "Each stream is monitored separately. " if report.total_streams > 1 else ""
    n_expected = expected_false_alarms(report.far, report.n_points)
    return (
        f"{each}A stable stream raises on average at most one false change alarm and one false anomaly alarm per "
        f"{1.0 / report.far:,.0f} points: over these {report.n_points:,} points, {n_expected} of each kind. Many more "
        "alarms mean that the stream does change, perhaps with the time of day or as a slow drift."
    )


def _make_alarm_table(report: DetectionReport) -> Table:
    """Return the most important alarms."""
    chosen = [report.alarms[index] for index in most_important(report.alarms, MAX_TABLE_ALARMS)]
    columns: dict[str, list[str]] = {}
    if any(alarm.time is not None for alarm in chosen):
        columns["time"] = [_format_alarm_time(alarm, report) for alarm in chosen]
    columns["row"] = [f"{alarm.row:,}" for alarm in chosen]
    columns["kind"] = [alarm.kind for alarm in chosen]
    if report.total_streams > 1:
        columns["stream"] = ["" if alarm.key is None else str(alarm.key) for alarm in chosen]
    columns["what"] = [_describe_alarm(alarm, report) for alarm in chosen]
    columns["since row"] = [f"{alarm.onset:,}" if alarm.kind == "change" else "" for alarm in chosen]
    if any(alarm.p_value is not None for alarm in chosen):
        columns["p-value"] = ["" if alarm.p_value is None else f"{alarm.p_value:.1g}" for alarm in chosen]
    rows, caption = list(zip(*columns.values(), strict=True)), ""
    if (total := sum(report.alarm_counts)) > len(chosen):
        caption = f"{len(chosen):,} of {total:,} alarms: the largest changes, then the largest anomalies."
    return Table(
        list(columns),
        rows,
        caption,
        text_columns=[column for column, name in enumerate(columns) if name in ("kind", "stream", "what")],
        markers={"change": "bar", "anomaly": "dot"},
        marker_column=list(columns).index("kind"),
        scrollable=len(rows) > MAX_FIXED_ROWS,
    )


def _make_stream_table(streams: Sequence[StreamReport], total: int) -> Table:
    rows = []
    for stream in streams[:MAX_TABLE_STREAMS]:
        numbers = (stream.alarm_counts["change"], stream.alarm_counts["anomaly"], *stream.point_counts)
        rows.append([stream.name, *(f"{number:,}" for number in numbers)])
    caption = f"{len(rows):,} of {total:,} streams, those with most alarms first." if total > len(rows) else ""
    heading, toggle = ["stream", "changes", "anomalies", "points", "rejected"], f"All streams as a table ({total:,})"
    return Table(heading, rows, caption, toggle=toggle, scrollable=len(rows) > MAX_FIXED_ROWS)


def _list_columns(report: DetectionReport) -> DefinitionList:
    """Return the role of each column."""
    schema = report.schema
    mode = "one stream of several variables" if report.joint else "one stream each"
    names = join_names(schema.values, max_names=60)
    pairs = [("values", f"{names} ({mode})" if len(schema.values) > 1 else names)]
    kind = f" ({schema.time_kind})" if schema.time_kind else ""
    pairs.append(("time", "none: points have row numbers" if schema.time is None else f"{schema.time}{kind}"))
    pairs.append(("key", "none: all rows are one stream" if schema.key is None else schema.key))
    by_reason: dict[str, list[str]] = {}
    for name, reason in schema.ignored.items():
        by_reason.setdefault(reason, []).append(name)
    pairs += [("ignored", f"{join_names(names, max_names=30)}: {reason}") for reason, names in by_reason.items()]
    return DefinitionList([*pairs, *(("hint", hint) for hint in schema.hints)])


def _make_malformed_tables(malformed: InputErrorLog) -> list[Table]:
    tables = [Table(["reason", "records"], [[reason, f"{n:,}"] for reason, n in malformed.counts.most_common(30)])]
    first = [[f"{record.index:,}", record.reason, record.text] for record in malformed.first]
    if first:
        heading = ["record", "reason", "text"]
        tables.append(Table(heading, first, "The first malformed records.", text_columns=(1, 2)))
    return tables


def _describe_alarm(alarm: Alarm, report: DetectionReport) -> str:
    names = report.schema.values
    if report.joint:
        variables = tuple(names[v] if isinstance(v, int) and v < len(names) else v for v in alarm.variables)
    else:
        variables = ("",) if report.total_streams > 1 else names[:1]  # the variable is the stream
    return replace(alarm, variables=variables).description.strip().replace("standard deviations", "sd")


def _format_alarm_time(alarm: Alarm, report: DetectionReport) -> str:
    text = "" if alarm.time is None else str(alarm.time)
    is_iso = report.schema.time_kind in (ISO_FORMAT, ZONED_ISO_FORMAT)
    return text.replace("T", " ").removesuffix("Z") if is_iso else text


def _format_period(streams: Sequence[StreamReport]) -> str:
    """Format the first and the last time, if they are known."""
    summaries = [stream.summary for stream in streams if stream.summary]
    ends = [(summary.times[0], summary.last_time) for summary in summaries if summary.times is not None]
    kinds = {np.asarray(first).dtype.kind for first, _ in ends}
    if len(kinds) != 1 or kinds - {"M", "f"}:
        return ""
    both = np.array([min(first for first, _ in ends), max(last for _, last in ends)])
    if not np.isfinite(both.astype(np.float64)).all() or both[0] > both[1]:
        return ""
    first, last = format_times(both.astype("datetime64[ns]") if kinds == {"M"} else both)
    return f", from {_format_minute(first)} to {_format_minute(last)}"


def _format_minute(time: Any) -> str:
    """Format a time without seconds; a number as it is.

    >>> _format_minute("2024-05-01T10:00:31.5Z"), _format_minute(1700000000)
    ('2024-05-01 10:00', '1700000000')
    """
    return time[:16].replace("T", " ") if isinstance(time, str) else str(time)


def _format_share(part: int, whole: int) -> str:
    """Format a share as a percentage.

    >>> _format_share(0, 10), _format_share(1, 100_000), _format_share(12, 100)
    ('0 %', '0.001 %', '12 %')
    """
    return f"{100.0 * part / max(whole, 1):.2g} %" if part != whole else "100 %"


# The streams of a fleet


def list_streams(plan: MonitorPlan, alarms: Sequence[Alarm], late: str, source: BaseSource) -> list[StreamReport]:
    """Return a fleet's streams, most alarms first; the first have a summary."""
    fleet = plan.learner_or_fleet
    assert isinstance(fleet, Fleet)
    alarms_by_stream: dict[Any, list[Alarm]] = defaultdict(list)
    for alarm in alarms:
        alarms_by_stream[alarm.key].append(alarm)
    counts = fleet.counts()
    order = sorted(range(len(counts["key"])), key=lambda i: (-len(alarms_by_stream[counts["key"][i]]), i))
    names = [str(counts["key"][i]) for i in order]
    summaries = _make_summaries(plan, names[:MAX_STRIPS], late, source)
    reports = []
    for name, i in zip(names, order, strict=True):
        n_points, n_rejected = int(counts["n_seen"][i]), int(counts["n_rejected"][i])
        reports.append(StreamReport(name, summaries.get(name), alarms_by_stream[name], n_points, n_rejected))
    return reports


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
            trace = learners[name].process(LabeledArray(points, accepted.names), record="means")
            summary = summaries.setdefault(name, MinMaxSummary(accepted.names))
            summary.add(points, trace, last_estimate(trace), None if accepted.times is None else accepted.times[rows])
    return summaries


def _group_rows_by_stream(keys: StrKeys, names: Sequence[str]) -> Iterator[tuple[str, Integers]]:
    """Yield the rows of each of these streams that has any."""
    index_by_name = {name: index for index, name in enumerate(names)}
    indices = [index_by_name.get(name, len(names)) for name in (*keys.values, None)]
    index_by_code = np.array(indices, np.int16)  # code −1 is the last one
    index_by_point = index_by_code[:-1] if keys.codes is None else index_by_code[keys.codes]
    order = np.argsort(index_by_point, kind="stable")
    edges = np.searchsorted(index_by_point[order], np.arange(len(names) + 1))
    for name, start, end in zip(names, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if end > start:
            yield name, order[start:end]
