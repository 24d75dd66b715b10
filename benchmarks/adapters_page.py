"""Writes the tables of docs/guide/{river,sklearn,sktime}.md from benchmarks/adapters.json.

After `holdfast bench adapters --json FILE`: python benchmarks/adapters_page.py FILE
takes the figures of FILE; without it, those taken before.
"""

import json
import sys
from pathlib import Path

from autopilot_page import table, take
from marked import put

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "adapters.json"
PAGES = {name: ROOT / "docs" / "guide" / f"{name}.md" for name in ("river", "sklearn", "sktime")}
LIBRARIES = {"river": "river", "sklearn": "scikit-learn", "sktime": "sktime"}
OVER = ": over the core"


def figures(library: str) -> str:
    """The adapters of one library: the time, that of the core, and what is added."""
    values = {one["name"]: one["value"] for one in json.loads(RESULTS.read_text(encoding="utf-8"))["adapters"]}
    rows = []
    for name, ours in values.items():
        if name.startswith(f"{library} ") and name + OVER in values:
            added = values[name + OVER]
            rows.append([name.removeprefix(f"{library} "), *(f"{value:,.0f}" for value in (ours, ours - added, added))])
    text = table(["", "with the adapter", "the core", "added"], rows)
    for name, value in values.items():
        if name.startswith(f"{library} ") and name.endswith("learnt and scored"):
            text += f"\nThat is {value:,.0f} points a second, each scored and then learnt.\n"
    return text


def page_with_figures(library: str, text: str) -> str:
    """The page with the table in its place."""
    return put(text, "adapters", figures(LIBRARIES[library]))


if __name__ == "__main__":
    for file in sys.argv[1:]:
        take(Path(file), RESULTS)
    for library, page in PAGES.items():
        page.write_text(page_with_figures(library, page.read_text(encoding="utf-8")), encoding="utf-8")
