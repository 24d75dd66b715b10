"""The detection report in sentences, figures and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from limpet._format import join_names, plural
from limpet.detection.alarm import Alarm
from limpet.report.html import DefinitionList, KeyFigures, Table
from limpet.streams.batch import RejectLog
from limpet.streams.downsample import MinMaxSummary
from limpet.streams.schema import Schema
from limpet.streams.timestamps import ISO_FORMAT, ZONED_ISO_FORMAT, format_times

MAX_TABLE_ALARMS = 200
MAX_TABLE_STREAMS = 1000
MAX_FIXED_ROWS = 15  # a longer table gets a scrollbar


@dataclass(frozen=True)
class StreamReport:
    """A stream and its alarms in the order of rows.

    Attributes
    ----------
    name : str
        The name of the stream.
    summary : MinMaxSummary or None
        The points, if they were kept.
    alarms : sequence of Alarm
        The alarms.
    n_points, n_rejected : int
        The number of points and of rejected points, for a stream without a summary.
    """

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
    """The results of a detection run.

    Attributes
    ----------
    title : str
        The name of the input.
    schema : Schema
        The columns.
    streams : sequence of StreamReport
        All streams, or those with most alarms of `n_streams`.
    alarms : sequence of Alarm
        The alarms of all streams in the order of detection, or the latest of `n_changes` and `n_anomalies`. Each has
        its time, and its key if there are several streams.
    n_points, n_rejected, n_invalid : int
        Points processed, rejected by the threshold, and invalid.
    n_records : int, optional
        Records read, malformed ones included.
    n_skipped : int
        Late and duplicate points.
    malformed : RejectLog
        Malformed records.
    far : float, optional
        The false-alarm rate; None for a learner without alarms.
    joint : bool
        Whether the columns are variables of one stream instead of one stream each.
    hints : sequence of str
        Sentences for the reader.
    results : str
        Where all results are.
    settings, command : str
        For the footer.
    """

    title: str
    schema: Schema
    streams: Sequence[StreamReport]
    alarms: Sequence[Alarm]
    n_points: int
    n_rejected: int = 0
    n_invalid: int = 0
    n_records: int | None = None
    n_skipped: int = 0
    malformed: RejectLog = field(default_factory=RejectLog)
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
    def alarm_counts(self) -> tuple[int, int]:
        """The number of changes and of anomalies."""
        counts = Counter(alarm.kind for alarm in self.alarms)
        changes = counts["change"] if self.n_changes is None else self.n_changes
        return changes, counts["anomaly"] if self.n_anomalies is None else self.n_anomalies

    @property
    def total_streams(self) -> int:
        """The number of streams."""
        return len(self.streams) if self.n_streams is None else self.n_streams


def headline(report: DetectionReport) -> str:
    """Return the result in one sentence."""
    changes, anomalies = report.alarm_counts
    of_streams = f" of {report.total_streams:,} streams" if report.total_streams > 1 else ""
    where = f"{plural(report.n_points, 'point')}{of_streams}{_format_period(report.streams)}"
    if report.far is None:
        return f"{where}: {plural(report.n_rejected, 'point')} rejected."
    if not changes and not anomalies:
        return f"Nothing to report: no change and no anomaly in {where}."
    return f"{plural(changes, 'change')} and {plural(anomalies, 'anomaly', 'anomalies')} in {where}."


def key_figures(report: DetectionReport) -> KeyFigures:
    """Return the large figures at the top of the page."""
    changes, anomalies = report.alarm_counts
    pairs = [] if report.far is None else [(f"{changes:,}", "changes"), (f"{anomalies:,}", "anomalies")]
    pairs.append((f"{report.n_points:,}", "points"))
    if report.total_streams > 1:
        pairs.append((f"{report.total_streams:,}", "streams"))
    pairs.append((_format_share(report.n_rejected, report.n_points), "of them rejected as outliers"))
    if report.n_invalid:
        pairs.append((f"{report.n_invalid:,}", "invalid points"))
    if report.n_skipped:
        pairs.append((f"{report.n_skipped:,}", "late or duplicate points, skipped"))
    if report.malformed.total:
        pairs.append((f"{report.malformed.total:,}", "malformed records"))
    return KeyFigures(pairs)


def expected_false_alarms(far: float, n_points: int) -> str:
    """Return the expected number of false alarms of a kind in stable streams.

    >>> expected_false_alarms(1e-4, 20_000), expected_false_alarms(1e-4, 8000), expected_false_alarms(1e-4, 100)
    ('about 2', 'about 1', 'fewer than 1')
    """
    expected = far * n_points
    return f"about {expected:,.0f}" if expected >= 0.5 else "fewer than 1"


def far_statement(report: DetectionReport) -> str:
    """Return the false-alarm rate in words."""
    if report.far is None:
        return ""
    each = "Each stream is monitored separately. " if report.total_streams > 1 else ""
    n_expected = expected_false_alarms(report.far, report.n_points)
    return (
        f"{each}A stable stream raises on average at most one false change alarm and one false anomaly alarm per "
        f"{1.0 / report.far:,.0f} points: over these {report.n_points:,} points, {n_expected} of each kind. Many more "
        "alarms mean that the stream does change, perhaps with the time of day or as a slow drift."
    )


def alarm_table(report: DetectionReport) -> Table:
    """Return the most important alarms: the latest changes, the largest anomalies."""
    chosen = _most_important(report.alarms)
    has_time, has_streams = any(alarm.time is not None for alarm in chosen), report.total_streams > 1
    heading = ["row", "kind", *(["stream"] if has_streams else []), "what", "since row"]
    rows = [_alarm_row(alarm, report, has_streams) for alarm in chosen]
    if has_time:
        heading = ["time", *heading]
        rows = [[_alarm_time(alarm, report), *row] for row, alarm in zip(rows, chosen, strict=True)]
    if any(alarm.p_value is not None for alarm in chosen):
        heading.append("p-value")
        p_values = ["" if alarm.p_value is None else f"{alarm.p_value:.1g}" for alarm in chosen]
        rows = [[*row, p_value] for row, p_value in zip(rows, p_values, strict=True)]
    total = sum(report.alarm_counts)
    caption = ""
    if total > len(chosen):
        where = f"; {report.results} has all of them" if report.results else ""
        caption = f"{len(chosen):,} of {total:,} alarms: the latest changes, then the largest anomalies{where}."
    text_columns = [column for column, name in enumerate(heading) if name in ("kind", "stream", "what")]
    return Table(
        heading,
        rows,
        caption,
        text_columns=text_columns,
        markers={"change": "bar", "anomaly": "dot"},
        scrollable=len(rows) > MAX_FIXED_ROWS,
    )


def stream_table(streams: Sequence[StreamReport], total: int) -> Table:
    """Return the numbers of points and alarms of each stream."""
    rows = []
    for stream in streams[:MAX_TABLE_STREAMS]:
        n_points, n_rejected = stream.point_counts
        counts = stream.alarm_counts
        numbers = (counts["change"], counts["anomaly"], n_points, n_rejected)
        rows.append([stream.name, *(f"{number:,}" for number in numbers)])
    caption = f"{len(rows):,} of {total:,} streams, those with most alarms first." if total > len(rows) else ""
    heading = ["stream", "changes", "anomalies", "points", "rejected"]
    is_long = len(rows) > MAX_FIXED_ROWS
    return Table(heading, rows, caption, toggle=f"All streams as a table ({total:,})", scrollable=is_long)


def schema_terms(report: DetectionReport) -> DefinitionList:
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
    return DefinitionList([*pairs, *(("hint", hint) for hint in report.hints)])


def malformed_tables(malformed: RejectLog) -> list[Table]:
    """Return the number of malformed records by reason, and the first of them."""
    tables = [Table(["reason", "records"], [[reason, f"{n:,}"] for reason, n in malformed.counts.most_common(30)])]
    first = [[f"{record.index:,}", record.reason, record.text] for record in malformed.first]
    if first:
        heading = ["record", "reason", "text"]
        tables.append(Table(heading, first, "The first malformed records.", text_columns=(1, 2)))
    return tables


def sort_by_alarms(streams: Sequence[StreamReport]) -> list[StreamReport]:
    """Sort streams by their number of changes, then of anomalies, largest first."""
    return sorted(streams, key=lambda stream: (-stream.alarm_counts["change"], -stream.alarm_counts["anomaly"]))


def _alarm_row(alarm: Alarm, report: DetectionReport, has_streams: bool) -> list[str]:
    names = report.schema.values
    if report.joint:
        variables = tuple(names[v] if isinstance(v, int) and v < len(names) else v for v in alarm.variables)
    else:
        variables = ("",) if has_streams else names[:1]  # the variable is the stream
    what = replace(alarm, variables=variables).description.strip().replace("standard deviations", "sd")
    onset = f"{alarm.onset:,}" if alarm.kind == "change" else ""
    key = "" if alarm.key is None else str(alarm.key)
    return [f"{alarm.row:,}", alarm.kind, *([key] if has_streams else []), what, onset]


def _alarm_time(alarm: Alarm, report: DetectionReport) -> str:
    text = "" if alarm.time is None else str(alarm.time)
    is_iso = report.schema.time_kind in (ISO_FORMAT, ZONED_ISO_FORMAT)
    return text.replace("T", " ").removesuffix("Z") if is_iso else text


def _most_important(alarms: Sequence[Alarm]) -> list[Alarm]:
    """Return at most `MAX_TABLE_ALARMS` alarms in their order."""
    if len(alarms) <= MAX_TABLE_ALARMS:
        return list(alarms)

    def rank(index: int) -> tuple[Any, ...]:
        alarm = alarms[index]
        if alarm.kind == "change":
            return 0, -index
        return 1, -np.nan_to_num(alarm.size, posinf=np.finfo(float).max), index

    return [alarms[index] for index in sorted(sorted(range(len(alarms)), key=rank)[:MAX_TABLE_ALARMS])]


def _format_period(streams: Sequence[StreamReport]) -> str:
    """Format the first and the last time, if they are known."""
    summaries = [stream.summary for stream in streams if stream.summary is not None and len(stream.summary)]
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
