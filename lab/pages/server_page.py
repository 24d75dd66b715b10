"""Writes the table of docs/guide/server.md from lab/results/server.json.

After `limpet bench serve serve_crash --json FILE`: python lab/pages/server_page.py FILE
takes the figures of FILE, and for a benchmark that it lacks keeps those taken before; without FILE it takes none.
"""

import json
import sys
from pathlib import Path

from autopilot_page import take
from marked import put
from streams_page import table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "results" / "server.json"
PAGE = ROOT / "docs" / "guide" / "server.md"
NAMES = ("serve", "serve_crash")


def page_with_figures(text: str) -> str:
    """The page with the table in its place."""
    return put(text, "figures", table(json.loads(RESULTS.read_text(encoding="utf-8")), NAMES))


if __name__ == "__main__":
    for file in sys.argv[1:]:
        take(Path(file), RESULTS)
    PAGE.write_text(page_with_figures(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
