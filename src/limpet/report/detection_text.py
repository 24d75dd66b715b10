"""How it is told what was found in a file: sentences, figures and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from limpet._format import join_names
from limpet.detection.alarm import Alarm
from limpet.report.html import DefinitionList, KeyFigures, Table
from limpet.streams.downsample import MinMaxSummary
from limpet.streams.rejects import RejectLog
from limpet.streams.schema import Schema
from limpet.streams.timestamps import ISO_FORMAT, ZONED_ISO_FORMAT, format_times

# What was found in a file.


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


ROWS = 200  # alarms in the table, at most
LISTED = 1000  # streams in the table, at most


def counted(n: int, one: str, many: str = "") -> str:
    """A number and what it counts.

    >>> counted(1, "change"), counted(12_000, "anomaly", "anomalies"), counted(0, "row")
    ('1 change', '12,000 anomalies', 'no rows')
    """
    return f"{f'{n:,}' if n else 'no'} {one if n == 1 else many or one + 's'}"


def headline(found: DetectionReport) -> str:
    """The sentence that says it all."""
    changes, anomalies = found.found
    among = f" of {found.total_streams:,} streams" if found.total_streams > 1 else ""
    where = f"{counted(found.n_points, 'point')}{among}{_period(found.streams)}"
    if found.far is None:
        return f"{where}: {counted(found.n_rejected, 'point')} dropped."
    if not changes and not anomalies:
        return f"Nothing to report: no change and no anomaly in {where}."
    what = f"{counted(changes, 'change')} and {counted(anomalies, 'anomaly', 'anomalies')}"
    return f"{what[0].upper()}{what[1:]} in {where}."


def key_figures(found: DetectionReport) -> KeyFigures:
    """What is to be seen at a glance."""
    changes, anomalies = found.found
    pairs = [] if found.far is None else [(f"{changes:,}", "changes"), (f"{anomalies:,}", "anomalies")]
    pairs.append((f"{found.n_points:,}", "points watched"))
    if found.total_streams > 1:
        pairs.append((f"{found.total_streams:,}", "streams"))
    pairs.append((_share(found.n_rejected, found.n_points), "of them dropped as outliers"))
    if found.n_invalid:
        pairs.append((f"{found.n_invalid:,}", "points that could not be used"))
    if found.late:
        pairs.append((f"{found.late:,}", "points late or twice, left out"))
    if found.refused.total:
        pairs.append((f"{found.refused.total:,}", "records that could not be read"))
    return KeyFigures(pairs)


def expected_false_alarms(far: float, n_points: int) -> str:
    """How many alarms of a kind so many points of stable streams would raise.

    >>> by_chance(1e-4, 20_000), by_chance(1e-4, 8000), by_chance(1e-4, 100)
    ('about 2', 'one', 'hardly one')
    """
    expected = far * n_points
    return f"about {expected:,.0f}" if expected >= 1.5 else "one" if expected >= 0.5 else "hardly one"


def far_statement(found: DetectionReport) -> str:
    """What may be expected of the alarms."""
    if found.far is None:
        return ""
    by_itself = "Each stream is watched by itself. " if found.total_streams > 1 else ""
    about = expected_false_alarms(found.far, found.n_points)
    return (
        f"{by_itself}While a stream stays as it is, at most one false change and one false anomaly are raised in "
        f"{1.0 / found.far:,.0f} points: over the {found.n_points:,} points here, {about} of each. Far more than that "
        "means that something does change, if only with the time of day or in a slow drift."
    )


def alarm_table(found: DetectionReport) -> Table:
    """The alarms, or the most important ones: changes, the latest first, then the anomalies that are furthest out."""
    chosen = _most_important(found.alarms)
    timed, several = any(one.time for one in chosen), found.total_streams > 1
    heading = [*(["time"] if timed else []), "row", "kind", *(["stream"] if several else []), "what", "since row"]
    rows = [_alarm_row(one, found, timed, several) for one in chosen]
    if any(one.alarm.p_value is not None for one in chosen):
        heading.append("p-value")
        rows = [[*row, _p_value(one.alarm.p_value)] for row, one in zip(rows, chosen, strict=True)]
    total = sum(found.found)
    caption = ""
    if total > len(chosen):
        where = f"; all of them are in {found.results}" if found.results else ""
        caption = (
            f"{len(chosen):,} of {total:,} alarms: changes first, the latest of them if there are too many, then the "
            f"anomalies that are furthest out{where}."
        )
    texts = [place for place, word in enumerate(heading) if word in ("kind", "stream", "what")]
    return Table(heading, rows, caption, texts=texts, marks={"change": "bar", "anomaly": "dot"}, tall=len(rows) > 15)


def stream_table(streams: Sequence[StreamReport], total: int) -> Table:
    """How long the streams are, and what was found in them."""
    rows = []
    for stream in streams[:LISTED]:
        points, dropped = stream.size
        kinds = stream.counts
        rows.append([stream.name, f"{kinds['change']:,}", f"{kinds['anomaly']:,}", f"{points:,}", f"{dropped:,}"])
    caption = f"{len(rows):,} of {total:,} streams, those with most alarms first." if total > len(rows) else ""
    heading = ["stream", "changes", "anomalies", "points", "rejected"]
    return Table(heading, rows, caption, folded=f"All streams in figures ({total:,})", tall=len(rows) > 15)


def schema_terms(found: DetectionReport) -> DefinitionList:
    """Which columns are what."""
    columns = found.columns
    how = "one stream of several variables" if found.joint else "each a stream of its own"
    pairs = [("watched", join_names(columns.values, 60) + (f" ({how})" if len(columns.values) > 1 else ""))]
    kind = f" ({columns.time_kind})" if columns.time_kind else ""
    pairs.append(
        ("time", f"{columns.time}{kind}" if columns.time is not None else "none: points are told by their rows")
    )
    pairs.append(("key", columns.key if columns.key is not None else "none: all rows belong together"))
    by_reason: dict[str, list[str]] = {}
    for name, why in columns.ignored.items():
        by_reason.setdefault(why, []).append(name)
    pairs += [("not watched", f"{join_names(names, 30)}: {why}") for why, names in by_reason.items()]
    return DefinitionList([*pairs, *(("hint", hint) for hint in (*columns.hints, *found.hints))])


def refused_table(refused: RejectLog) -> list[Table]:
    """Records that could not be read: how many for each reason, and the first few."""
    counts = [[reason, f"{n:,}"] for reason, n in refused.counts.most_common(30)]
    first = [[f"{one.index:,}", one.reason, one.text] for one in refused.first]
    tables = [Table(["reason", "records"], counts)]
    return (
        [*tables, Table(["record", "reason", "it begins"], first, "The first ones.", texts=(1, 2))] if first else tables
    )


def most_alarming(streams: Sequence[StreamReport]) -> list[StreamReport]:
    """Those with most alarms first, changes before anomalies; else as they came."""
    return sorted(streams, key=lambda stream: (-stream.counts["change"], -stream.counts["anomaly"]))


def _alarm_row(one: TimedAlarm, found: DetectionReport, timed: bool, several: bool) -> list[str]:
    alarm, names = one.alarm, found.columns.values
    stream = one.stream or ("" if alarm.key is None else str(alarm.key))
    if found.joint:
        variables = tuple(names[v] if isinstance(v, int) and v < len(names) else v for v in alarm.variables)
    else:
        variables = ("",) if several else names[:1]  # the variable is the stream
    what = replace(alarm, variables=variables).description.strip().replace("standard deviations", "sd")
    since = f"{alarm.onset:,}" if alarm.kind == "change" else ""
    time = (
        one.time.replace("T", " ").removesuffix("Z")
        if found.columns.time_kind in (ISO_FORMAT, ZONED_ISO_FORMAT)
        else one.time
    )
    return [
        *([time] if timed else []),
        f"{alarm.row:,}",
        alarm.kind,
        *([stream] if several else []),
        what,
        since,
    ]


def _p_value(value: float | None) -> str:
    return "" if value is None else f"{value:.1g}"


def _most_important(alarms: Sequence[TimedAlarm]) -> list[TimedAlarm]:
    """At most as many as the table holds, in the order in which they came."""
    if len(alarms) <= ROWS:
        return list(alarms)

    def rank(place: int) -> tuple[Any, ...]:
        alarm = alarms[place].alarm
        if alarm.kind == "change":
            return 0, -place
        return 1, -np.nan_to_num(alarm.size, posinf=np.finfo(float).max), place

    return [alarms[place] for place in sorted(sorted(range(len(alarms)), key=rank)[:ROWS])]


def _period(streams: Sequence[StreamReport]) -> str:
    """From when to when, as far as it is known."""
    timed = [
        one.sketch for one in streams if one.sketch is not None and one.sketch.times is not None and len(one.sketch)
    ]
    ends = [(one.times[0], one.last_time) for one in timed if one.times is not None]
    kinds = {np.asarray(first).dtype.kind for first, _ in ends}
    if len(kinds) != 1 or kinds - {"M", "f"}:
        return ""
    both = np.array([min(first for first, _ in ends), max(last for _, last in ends)])
    if not np.isfinite(both.astype(np.float64)).all() or both[0] > both[1]:
        return ""
    first, last = format_times(both.astype("datetime64[ns]") if kinds == {"M"} else both)
    return f", from {_plain(first)} to {_plain(last)}"


def _plain(time: Any) -> str:
    """A time as people write it: to the minute.

    >>> _plain("2024-05-01T10:00:31.5Z"), _plain(1700000000)
    ('2024-05-01 10:00', '1700000000')
    """
    return time[:16].replace("T", " ") if isinstance(time, str) else str(time)


def _share(part: int, whole: int) -> str:
    """A part in per cent.

    >>> _share(0, 10), _share(1, 100_000), _share(12, 100)
    ('0 %', '0.001 %', '12 %')
    """
    return f"{100.0 * part / max(whole, 1):.2g} %" if part != whole else "100 %"
