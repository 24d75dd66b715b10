"""What `holdfast detect` prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.cli.arrangement import Arrangement
from holdfast.plots.telling import by_chance
from holdfast.streams.tally import Tally

if TYPE_CHECKING:
    from holdfast.cli.detect import Found


def show_understood(console: Console, path: Path, arrangement: Arrangement) -> None:
    """The columns, before anything is learnt."""
    console.print(Text(str(path), style="bold"))
    grid = Table.grid(padding=(0, 2))
    for word, meaning in arrangement.told():
        grid.add_row(Text(f"  {word}", style="dim"), Text(meaning))
    console.print(grid)
    for hint in arrangement.columns.hints:
        console.print(Text(f"  hint: {hint}", style="yellow"))


def show_found(console: Console, found: Found, most: int, written: list[str]) -> None:
    """Counts, the table of alarms, what could not be read, and where everything is."""
    tally = found.tally
    console.print(Text(f"\n{in_words(tally, found.arrangement.raises_alarms)}"))
    for sentence in cautions(found):
        console.print(Text(sentence, style="yellow"))
    console.print()
    if found.raised and most:
        shown = found.most_telling(most)
        console.print(alarm_table(shown))
        if tally.n_alarms > len(shown):
            told = f"… the {len(shown)} that say most; {tally.n_alarms - len(shown):,} more are in the results"
            console.print(Text(told, style="dim"))
        console.print()
    show_troubles(console, tally)
    if written:
        console.print(Text(f"Written: {', '.join(written)}"), soft_wrap=True)


def cautions(found: Found) -> list[str]:
    """What one should know before one trusts the alarms, or that there are none."""
    tally, sentences = found.tally, []
    if tally.n_alarms:
        far = found.arrangement.learner.far
        about = by_chance(far, tally.points)
        sentences.append(f"At --far {far:g}, {about} of either kind would be raised if nothing had happened.")
    young, streams = found.arrangement.n_young, found.arrangement.n_streams
    if young and found.arrangement.raises_alarms:
        several = f"{young:,} of {streams:,} streams are" if streams > 1 else "It is"
        sentences.append(
            f"{several} too short to raise all alarms: the first 50 points, for changes 150, are to learn from."
        )
    return sentences


def in_words(tally: Tally, raises_alarms: bool = True) -> str:
    """The counts in a sentence or two.

    >>> in_words(Tally(records=1000, points=1000, dropped=7))
    '1,000 records; 7 points rejected as outliers. No alarm.'
    """
    points = f" with {tally.points:,} points" if tally.points > tally.records else ""
    lead = f"{tally.records:,} record{'s' * (tally.records != 1)}{points}; "
    lead += f"{tally.dropped:,} point{'s' * (tally.dropped != 1)} rejected as outliers. "
    if not raises_alarms:
        return lead + "It was set by hand: this is the paper's algorithm, which raises no alarms."
    changes, anomalies = tally.alarms["change"], tally.alarms["anomaly"]
    kinds = [(changes, "change", "changes"), (anomalies, "anomaly", "anomalies")]
    told = " and ".join(f"{n:,} {one if n == 1 else many}" for n, one, many in kinds if n)
    return lead + (f"Alarms: {told}." if told else "No alarm.")


def alarm_table(alarms: list[dict[str, Any]]) -> Table:
    """One row an alarm. Rows are counted in each stream, from its first point on."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    timed, keyed = alarms[0]["time"] is not None, any(alarm["key"] is not None for alarm in alarms)
    headings = [
        *(["when"] if timed else []),
        *(["stream"] if keyed else []),
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
        cells = [str(alarm["time"])] * timed + [str(alarm["key"])] * keyed + [f"{alarm['row']:,}"]
        style = "bold" if alarm["kind"] == "change" else ""
        which = Text(", ".join(alarm["variables"]))
        table.add_row(*map(Text, cells), Text(alarm["kind"], style=style), which, Text(how_much(alarm)), since)
    return table


def how_much(alarm: dict[str, Any]) -> str:
    """The size of an alarm.

    >>> how_much({"direction": "up", "size": 3.21}), how_much({"direction": "wider", "size": 2.0})
    ('up by 3.2 sd', 'wider, × 2')
    """
    direction, size = alarm["direction"], alarm["size"]
    if size is None:
        return str(direction)
    shown = f"{size:,.0f}" if size >= 99.5 else f"{size:.2g}"
    return f"{direction} by {shown} sd" if direction in ("up", "down") else f"{direction}, × {shown}"


def show_troubles(console: Console, tally: Tally) -> None:
    """Records that could not be used, by reason, and the first of them; points that came late."""
    refused = tally.refused
    if refused.total:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in refused.counts.most_common())
        console.print(Text(f"{refused.total:,} could not be used: {reasons}. The first:", style="yellow"))
        for one in refused.first:
            console.print(Text(f"  {one}", style="dim"), no_wrap=True, overflow="ellipsis")
    if tally.late or tally.repeated:
        told = (
            f"{tally.late:,} points came late and {tally.repeated:,} twice: they were skipped; --late learn takes them."
        )
        console.print(Text(told, style="yellow"))
    if tally.late > tally.points:
        told = "Most points are older than one before them: is the newest first, or is one time wrong?"
        console.print(Text(f"{told} --late learn takes them as they come.", style="yellow"))
