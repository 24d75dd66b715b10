"""The command `limpet status`: print the state of a `limpet watch`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from limpet._format import format_duration
from limpet.cli.detect import make_alarm_table, print_rejects
from limpet.streams.checkpoint_store import read_status
from limpet.streams.results import RunStats


def run_status(folder: Path, output_format: str, console: Console) -> None:
    """Print the state of a run."""
    status, stats = read_status(folder)
    if output_format == "json":
        sys.stdout.write(json.dumps(status) + "\n")
        return
    grid = Table.grid(padding=(0, 2))
    for label, value in make_status_rows(status, stats):
        grid.add_row(Text(label, style="dim"), Text(value))
    console.print(grid)
    if stats.latest:
        console.print(Text("\nLatest alarms", style="bold"))
        console.print(make_alarm_table(stats.latest))
    print_rejects(console, stats)


def make_status_rows(status: dict[str, Any], stats: RunStats) -> list[tuple[str, str]]:
    """Return the state as pairs of a label and a value."""
    now, checkpointed_at = time.time(), status["checkpointed_at"]
    lag = "unknown" if status["lag"] is None else "{:,} {}".format(*status["lag"])
    return [
        ("source", status["source"]),
        ("state", f"{status['state']}, process {status['pid']}, updated {format_age(now - status['updated_at'])}"),
        ("running for", format_duration(int(status["updated_at"] - status["started_at"]), max_units=2)),
        ("rate", f"{status['points_per_s']:,.0f} points/s"),
        ("lag", lag),
        ("records", f"{stats.records:,}"),
        ("points", f"{stats.points:,}"),
        ("rejected", f"{stats.rejected:,} as outliers"),
        ("skipped", f"{stats.late:,} late, {stats.duplicates:,} duplicates"),
        ("malformed", f"{stats.malformed.total:,}"),
        ("alarms", ", ".join(f"{count:,} {kind}" for kind, count in stats.alarms.items()) or "none"),
        (
            "checkpoint",
            "none yet" if checkpointed_at is None else f"{stats.checkpoints:,}, {format_age(now - checkpointed_at)}",
        ),
    ]


def format_age(seconds: float) -> str:
    """Return how long ago something was.

    >>> format_age(0.2), format_age(75.0)
    ('just now', '1 min 15 s ago')
    """
    return "just now" if seconds < 2.0 else f"{format_duration(int(seconds), max_units=2)} ago"
