"""The command `holdfast status`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.cli.detect_words import alarm_table, show_troubles
from holdfast.streams.status import read_status
from holdfast.streams.tally import Tally


def run_status(folder: Path, form: str, console: Console) -> None:
    """Prints how a run is doing."""
    told = read_status(folder)
    if form == "json":
        sys.stdout.write(json.dumps(told) + "\n")
        return
    tally = Tally.of_json(told)
    grid = Table.grid(padding=(0, 2))
    for word, meaning in pairs_of(told, tally):
        grid.add_row(Text(word, style="dim"), Text(meaning))
    console.print(grid)
    if tally.latest:
        console.print(Text("\nLatest alarms", style="bold"))
        console.print(alarm_table(tally.latest))
    show_troubles(console, tally)


def pairs_of(told: dict[str, Any], tally: Tally) -> list[tuple[str, str]]:
    """What there is to say, in pairs of words."""
    now = time.time()
    behind = "not known" if told["behind"] is None else "{:,} {}".format(*told["behind"])
    checkpoint = told["last_checkpoint"]
    alarms = ", ".join(f"{count:,} {kind}" for kind, count in tally.alarms.items()) or "none"
    return [
        ("source", told["source"]),
        ("state", f"{told['state']}, process {told['pid']}, last heard of {ago(now - told['updated'])}"),
        ("running for", for_how_long(told["updated"] - told["began"])),
        ("rate", f"{told['rate']:,.0f} points/s"),
        ("lag", behind),
        ("records", f"{tally.records:,}"),
        ("points", f"{tally.points:,}"),
        ("dropped", f"{tally.dropped:,} as outliers, {tally.late:,} late, {tally.repeated:,} repeated"),
        ("not usable", f"{tally.refused.total:,}"),
        ("alarms", alarms),
        ("checkpoint", "none yet" if checkpoint is None else f"number {tally.checkpoints:,}, {ago(now - checkpoint)}"),
    ]


def ago(seconds: float) -> str:
    """How long ago.

    >>> ago(0.2), ago(75.0)
    ('just now', '1 min 15 s ago')
    """
    return "just now" if seconds < 2.0 else f"{for_how_long(seconds)} ago"


def for_how_long(seconds: float) -> str:
    """A time in words.

    >>> for_how_long(3700.0), for_how_long(200_000.0)
    ('1 h 1 min', '2 d 7 h')
    """
    whole = int(seconds)
    units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")]
    parts: list[str] = []
    for size, name in units:
        if whole >= size or (name == "s" and not parts):
            parts.append(f"{whole // size} {name}")
            whole %= size
    return " ".join(parts[:2])
