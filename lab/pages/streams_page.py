"""Writes the table of docs/guide/streams.md from lab/results/streams.json.

After `limpet bench detect crash jetstream --json FILE`: python lab/pages/streams_page.py FILE
takes the figures of FILE, and for a benchmark that it lacks keeps those taken before; without FILE it takes none.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from autopilot_page import take
from marked import put

from limpet_lab.bench._measurement import Figure

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "results" / "streams.json"
PAGE = ROOT / "docs" / "guide" / "streams.md"
NAMES = ("detect", "crash", "jetstream")


def table(results: dict[str, list[dict[str, object]]], names: Sequence[str] = NAMES) -> str:
    """Every figure of these benchmarks, as they print them."""
    lines = ["| | | goal |", "|---|---:|---|"]
    for name in names:
        for record in results.get(name, []):
            figure = Figure(*(record.get(field) for field in ("name", "value", "unit", "at_most", "at_least")))  # type: ignore[arg-type]
            goal = f"{figure.goal_text} {figure.verdict}".strip()
            lines.append(f"| {figure.name.replace('10^6', '10⁶').replace('10^7', '10⁷')} | {figure.text} | {goal} |")
    return "\n".join(lines) + "\n"


def page_with_figures(text: str) -> str:
    """The page with the table in its place."""
    return put(text, "figures", table(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    for file in sys.argv[1:]:
        take(Path(file), RESULTS)
    PAGE.write_text(page_with_figures(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
