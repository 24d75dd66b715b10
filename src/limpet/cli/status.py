"""The command `limpet status`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from limpet.cli.detect import make_alarm_table, print_rejects
from limpet.streams.run_stats import RunStats
from limpet.streams.status_file import read_status


def run_status(folder: Path, form: str, console: Console) -> None:
    """Prints how a run is doing."""
    status = read_status(folder)
    if form == "json":
        sys.stdout.write(json.dumps(status) + "\n")
        return
    stats = RunStats.from_dict(status)
    grid = Table.grid(padding=(0, 2))
    for label, value in make_status_rows(status, stats):
        grid.add_row(Text(label, style="dim"), Text(value))
    console.print(grid)
    if stats.latest:
        console.print(Text("\nLatest alarms", style="bold"))
        console.print(make_alarm_table(stats.latest))
    print_rejects(console, stats)


def make_status_rows(status: dict[str, Any], stats: RunStats) -> list[tuple[str, str]]:
    """What there is to say, in pairs of words."""
    now = time.time()
    lag = "not known" if status["lag"] is None else "{:,} {}".format(*status["lag"])
    checkpoint = status["checkpointed_at"]
    alarms = ", ".join(f"{count:,} {kind}" for kind, count in stats.alarms.items()) or "none"
    return [
        ("source", status["source"]),
        ("state", f"{status['state']}, process {status['pid']}, last heard of {format_age(now - status['updated_at'])}"),
        ("running for", format_duration(status["updated_at"] - status["started_at"])),
        ("rate", f"{status['points_per_s']:,.0f} points/s"),
        ("lag", lag),
        ("records", f"{stats.records:,}"),
        ("points", f"{stats.points:,}"),
        ("rejected", f"{stats.rejected:,} as outliers, {stats.late:,} late, {stats.duplicates:,} duplicate"),
        ("not usable", f"{stats.malformed.total:,}"),
        ("alarms", alarms),
        (
            "checkpoint",
            "none yet" if checkpoint is None else f"number {stats.checkpoints:,}, {format_age(now - checkpoint)}",
        ),
    ]


def format_age(seconds: float) -> str:
    """How long ago.

    >>> ago(0.2), ago(75.0)
    ('just now', '1 min 15 s ago')
    """
    return "just now" if seconds < 2.0 else f"{format_duration(seconds)} ago"


def format_duration(seconds: float) -> str:
    """A time in words.

    >>> for_how_long(3700.0), for_how_long(200_000.0)
    ('1 h 1 min', '2 d 7 h')
    """
    remaining_s = int(seconds)
    units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")]
    parts: list[str] = []
    for size, name in units:
        if remaining_s >= size or (name == "s" and not parts):
            parts.append(f"{remaining_s // size} {name}")
            remaining_s %= size
    return " ".join(parts[:2])
