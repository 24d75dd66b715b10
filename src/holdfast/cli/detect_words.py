"""What `holdfast detect` prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.cli.arrangement import MonitorPlan
from holdfast.plots.telling import expected_false_alarms
from holdfast.streams.tally import RunStats

if TYPE_CHECKING:
    from holdfast.cli.detect import DetectionRun


def print_schema(console: Console, path: Path, plan: MonitorPlan) -> None:
    """The columns, before anything is learnt."""
    console.print(Text(str(path), style="bold"))
    grid = Table.grid(padding=(0, 2))
    for label, value in plan.describe():
        grid.add_row(Text(f"  {label}", style="dim"), Text(value))
    console.print(grid)
    for hint in plan.columns.hints:
        console.print(Text(f"  hint: {hint}", style="yellow"))


def print_summary(console: Console, detection_run: DetectionRun, max_alarms: int, output_uris: list[str]) -> None:
    """Counts, the table of alarms, what could not be read, and where everything is."""
    stats = detection_run.stats
    console.print(Text(f"\n{summary_line(stats, detection_run.plan.raises_alarms)}"))
    for sentence in caveats(detection_run):
        console.print(Text(sentence, style="yellow"))
    console.print()
    if detection_run.raised and max_alarms:
        top = detection_run.top_alarms(max_alarms)
        console.print(make_alarm_table(top))
        if stats.n_alarms > len(top):
            note = f"… the {len(top)} that say most; {stats.n_alarms - len(top):,} more are in the results"
            console.print(Text(note, style="dim"))
        console.print()
    print_rejects(console, stats)
    if output_uris:
        console.print(Text(f"Written: {', '.join(output_uris)}"), soft_wrap=True)


def caveats(detection_run: DetectionRun) -> list[str]:
    """What one should know before one trusts the alarms, or that there are none."""
    stats, sentences = detection_run.stats, []
    if stats.n_alarms:
        far = detection_run.plan.learner.far
        n_expected = expected_false_alarms(far, stats.points)
        sentences.append(f"At --far {far:g}, {n_expected} of either kind would be raised if nothing had happened.")
    n_warming_up, streams = detection_run.plan.n_warming_up, detection_run.plan.n_streams
    if n_warming_up and detection_run.plan.raises_alarms:
        subject = f"{n_warming_up:,} of {streams:,} streams are" if streams > 1 else "It is"
        sentences.append(
            f"{subject} too short to raise all alarms: the first 50 points, for changes 150, are to learn from."
        )
    return sentences


def summary_line(stats: RunStats, raises_alarms: bool = True) -> str:
    """The counts in a sentence or two.

    >>> in_words(Tally(records=1000, points=1000, dropped=7))
    '1,000 records; 7 points rejected as outliers. No alarm.'
    """
    points = f" with {stats.points:,} points" if stats.points > stats.records else ""
    lead = f"{stats.records:,} record{'s' * (stats.records != 1)}{points}; "
    lead += f"{stats.dropped:,} point{'s' * (stats.dropped != 1)} rejected as outliers. "
    if not raises_alarms:
        return lead + "It was set by hand: this is the paper's algorithm, which raises no alarms."
    changes, anomalies = stats.alarms["change"], stats.alarms["anomaly"]
    kinds = [(changes, "change", "changes"), (anomalies, "anomaly", "anomalies")]
    counts = " and ".join(f"{n:,} {singular if n == 1 else plural}" for n, singular, plural in kinds if n)
    return lead + (f"Alarms: {counts}." if counts else "No alarm.")


def make_alarm_table(alarms: list[dict[str, Any]]) -> Table:
    """One row an alarm. Rows are counted in each stream, from its first point on."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    has_time, has_key = alarms[0]["time"] is not None, any(alarm["key"] is not None for alarm in alarms)
    headings = [
        *(["when"] if has_time else []),
        *(["stream"] if has_key else []),
        "row",
        "what",
        "where",
        "how much",
        "since row",
    ]
    for heading in headings:
        right = heading in ("row", "since row")
        table.add_column(heading, justify="right" if right else "left", no_wrap=heading in ("when", "row", "what"))
    for alarm in alarms:
        since = f"{alarm['onset']:,}" if alarm["onset"] != alarm["row"] else ""
        cells = [str(alarm["time"])] * has_time + [str(alarm["key"])] * has_key + [f"{alarm['row']:,}"]
        style = "bold" if alarm["kind"] == "change" else ""
        which = Text(", ".join(alarm["variables"]))
        table.add_row(*map(Text, cells), Text(alarm["kind"], style=style), which, Text(format_size(alarm)), since)
    return table


def format_size(alarm: dict[str, Any]) -> str:
    """The size of an alarm.

    >>> how_much({"direction": "up", "size": 3.21}), how_much({"direction": "wider", "size": 2.0})
    ('up by 3.2 sd', 'wider, × 2')
    """
    direction, size = alarm["direction"], alarm["size"]
    if size is None:
        return str(direction)
    size_text = f"{size:,.0f}" if size >= 99.5 else f"{size:.2g}"
    return f"{direction} by {size_text} sd" if direction in ("up", "down") else f"{direction}, × {size_text}"


def print_rejects(console: Console, stats: RunStats) -> None:
    """Records that could not be used, by reason, and the first of them; points that came late."""
    rejects = stats.rejects
    if rejects.total:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in rejects.counts.most_common())
        console.print(Text(f"{rejects.total:,} could not be used: {reasons}. The first:", style="yellow"))
        for reject in rejects.first:
            console.print(Text(f"  {reject}", style="dim"), no_wrap=True, overflow="ellipsis")
    if stats.late or stats.repeated:
        message = (
            f"{stats.late:,} points came late and {stats.repeated:,} twice: they were skipped; --late learn takes them."
        )
        console.print(Text(message, style="yellow"))
    if stats.late > stats.points:
        message = "Most points are older than one before them: is the newest first, or is one time wrong?"
        console.print(Text(f"{message} --late learn takes them as they come.", style="yellow"))
