"""Write the tables of docs/guide/{river,sklearn,sktime}.md from lab/results/adapters.json.

After `limpet bench adapters --json FILE`, run `python lab/pages/adapters_page.py FILE`.
Without FILE the summaries present are used.
"""

import sys
from pathlib import Path

from page_tools import ROOT, format_table, import_run, insert_section, load_figures

PAGES = {name: ROOT / "docs" / "guide" / f"{name}.md" for name in ("river", "sklearn", "sktime")}
LIBRARIES = {"river": "river", "sklearn": "scikit-learn", "sktime": "sktime"}
ADDED_SUFFIX = ": over the core"


def make_adapter_table(library: str) -> str:
    """Return the times of one library's adapters, of the core, and what the adapters add."""
    values = {name: figure.value for name, figure in load_figures("adapters").items()}
    rows = []
    for name, ours in values.items():
        if name.startswith(f"{library} ") and name + ADDED_SUFFIX in values:
            added = values[name + ADDED_SUFFIX]
            rows.append([name.removeprefix(f"{library} "), *(f"{value:,.0f}" for value in (ours, ours - added, added))])
    text = format_table(["", "with the adapter", "the core", "added"], rows)
    for name, value in values.items():
        if name.startswith(f"{library} ") and name.endswith("learned and scored"):
            text += f"\nThat is {round(value, -4):,.0f} points per second, each scored and then learned.\n"
    return text


def make_drift_table() -> str:
    """Return each detector's delay on drifts of errors, what it missed, and its false alarms."""
    values = {name: figure.value for name, figure in load_figures("adapters").items()}
    titles = dict.fromkeys(name.rsplit(", ", 1)[0] for name in values if name.startswith("errors "))
    detectors = dict.fromkeys(
        name.rsplit(", ", 1)[1].partition(":")[0] for name in values if name.startswith("errors ")
    )

    def cell(title: str, detector: str) -> str:
        detected, delay, false = (values[f"{title}, {detector}: {what}"] for what in ("found", "delay", "false alarms"))
        missed = "" if detected == 100.0 else f", found in {detected:.0f} %"
        return f"{delay:.0f}{missed} ({false:.1f})"

    rows = [[title, *(cell(title, detector) for detector in detectors)] for title in titles]
    return format_table(["", *(f"`{name}`" for name in detectors)], rows)


def fill_page(library: str, text: str) -> str:
    """Insert the tables into the text of a page."""
    text = insert_section(text, "adapters", make_adapter_table(LIBRARIES[library]))
    return insert_section(text, "rises", make_drift_table()) if library == "river" else text


if __name__ == "__main__":
    for file in sys.argv[1:]:
        import_run(Path(file), ["adapters"])
    for library, page in PAGES.items():
        page.write_text(fill_page(library, page.read_text(encoding="utf-8")), encoding="utf-8")
