"""`limpet detect` on a large file: rows per second and memory, against reading the same file with the same reader."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from limpet_lab.bench._measurement import Figure, format_power_of_ten
from limpet_lab.bench._timing import CommandCost, measure_command

TITLE = "whole commands, from start to end, in separate processes; best of several rounds"
ROWS, QUICK_ROWS = 10_000_000, 200_000
READ_SCRIPT = """\
import sys
from pathlib import Path
from limpet.cli.detect import READ_BLOCK_BYTES, ColumnSpec, open_file_source
source = open_file_source(Path(sys.argv[1]), ColumnSpec(), None, block_bytes=READ_BLOCK_BYTES)
print(sum(len(batch) for batch in source.read(None)))
"""
HEADER_LINES = {
    "3 columns together": "a,b,c",
    "time and 2 columns": "time,a,b",
    "time, key (100), value": "time,sensor,value",
}


def write_rows(path: Path, kind: str, rows: int) -> None:
    """Write a file of numbers with four decimals, some of them far out, and a change of level every million rows."""
    heading, rng = HEADER_LINES[kind], np.random.default_rng(0)
    with path.open("w", encoding="ascii") as file:
        file.write(heading + "\n")
        for first in range(0, rows, 100_000):
            n = min(100_000, rows - first)
            columns = [_format_column(name, first, n, rng) for name in heading.split(",")]
            file.writelines(",".join(row) + "\n" for row in zip(*columns, strict=True))


def _format_column(name: str, first: int, n: int, rng: np.random.Generator) -> list[str]:
    rows = first + np.arange(n)
    if name == "time":
        return [str(row) for row in rows.tolist()]
    if name == "sensor":
        return [f"s{row % 100}" for row in rows.tolist()]
    values = rng.normal((rows // 1_000_000) % 2)
    values[rng.random(n) < 0.0003] = 50.0
    return [f"{value:.4f}" for value in values.tolist()]


def measure(quick: bool) -> list[Figure]:
    """Measure each kind of file."""
    rows, rounds = (QUICK_ROWS, 1) if quick else (ROWS, 3)
    figures = []
    for kind in HEADER_LINES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.csv"
            write_rows(path, kind, rows)
            figures += _measure_file(kind, path, rows, rounds)
    return figures


def _measure_file(kind: str, path: Path, rows: int, rounds: int) -> list[Figure]:
    reading, detecting = list[CommandCost](), list[CommandCost]()
    for _ in range(rounds):
        reading.append(measure_command([sys.executable, "-c", READ_SCRIPT, str(path)]))
        command = [sys.executable, "-m", "limpet", "detect", str(path)]
        detecting.append(measure_command(command, cwd=str(path.parent)))
    reading_seconds, detecting_seconds = min(run.seconds for run in reading), min(run.seconds for run in detecting)
    name = f"{kind}, {format_power_of_ten(rows)} rows"
    strictly = kind == "3 columns together"
    return [
        Figure(f"{name}: detect", rows / detecting_seconds / 1e6, "million rows/s", at_least=1.0 if strictly else None),
        Figure(f"{name}: reading alone", rows / reading_seconds / 1e6, "million rows/s"),
        Figure(f"{name}: detect over reading alone", reading_seconds / detecting_seconds, "of its speed"),
        Figure(f"{name}: memory", max(run.megabytes for run in detecting), "MB", at_most=500.0 if strictly else None),
    ]
