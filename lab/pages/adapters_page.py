"""Write the tables of docs/guide/{river,sklearn,sktime}.md from lab/results/adapters.json.

After `limpet bench adapters --json FILE`, run `python lab/pages/adapters_page.py FILE`.
Without FILE the summaries present are used.
"""

import sys
from pathlib import Path

from page_tools import ROOT, load, put, table, take

PAGES = {name: ROOT / "docs" / "guide" / f"{name}.md" for name in ("river", "sklearn", "sktime")}
LIBRARIES = {"river": "river", "sklearn": "scikit-learn", "sktime": "sktime"}
OVER = ": over the core"


def figures(library: str) -> str:
    """Return the times of one library's adapters, of the core, and what the adapters add."""
    values = {name: figure.value for name, figure in load("adapters").items()}
    rows = []
    for name, ours in values.items():
        if name.startswith(f"{library} ") and name + OVER in values:
            added = values[name + OVER]
            rows.append([name.removeprefix(f"{library} "), *(f"{value:,.0f}" for value in (ours, ours - added, added))])
    text = table(["", "with the adapter", "the core", "added"], rows)
    for name, value in values.items():
        if name.startswith(f"{library} ") and name.endswith("learned and scored"):
            text += f"\nThat is {round(value, -4):,.0f} points per second, each scored and then learned.\n"
    return text


def rises() -> str:
    """Return each detector's delay on drifts of errors, what it missed, and its false alarms."""
    values = {name: figure.value for name, figure in load("adapters").items()}
    titles = dict.fromkeys(name.rsplit(", ", 1)[0] for name in values if name.startswith("errors "))
    detectors = dict.fromkeys(
        name.rsplit(", ", 1)[1].partition(":")[0] for name in values if name.startswith("errors ")
    )

    def cell(title: str, detector: str) -> str:
        detected, delay, false = (values[f"{title}, {detector}: {what}"] for what in ("found", "delay", "false alarms"))
        missed = "" if detected == 100.0 else f", found in {detected:.0f} %"
        return f"{delay:.0f}{missed} ({false:.1f})"

    rows = [[title, *(cell(title, detector) for detector in detectors)] for title in titles]
    return table(["", *(f"`{name}`" for name in detectors)], rows)


def page_with_figures(library: str, text: str) -> str:
    """Insert the tables into the text of a page."""
    text = put(text, "adapters", figures(LIBRARIES[library]))
    return put(text, "rises", rises()) if library == "river" else text


if __name__ == "__main__":
    for file in sys.argv[1:]:
        take(Path(file), ["adapters"])
    for library, page in PAGES.items():
        page.write_text(page_with_figures(library, page.read_text(encoding="utf-8")), encoding="utf-8")
