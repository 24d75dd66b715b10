"""Writes the table of figures in the README from lab/results/results.json: python lab/pages/readme_table.py"""

import json
from pathlib import Path

from marked import put

ROOT = Path(__file__).parents[2]
ROWS = [
    ("time a point, `process`, K=2, d=1", "speed", "process, d=1, whitened: ratio"),
    ("time a point, `process`, K=2, d=3", "speed", "process, d=3, whitened: ratio"),
    ("time a point, `update(x)` with a float, K=2, d=1", "speed", "update(x), whitened: ratio"),
    ("cost a point at 10⁷ points against 10⁴", "scaling", "cost at 10^7 against 10^4"),
    ("state of a stream after its start", "scaling", "state after the start"),
    ("`import limpet; limpet.SRA` on top of numpy and numba", "startup", "import limpet; limpet.SRA adds"),
    ("`limpet --help`", "startup", "limpet --help"),
    (
        "very first call on a new machine, compiling a learner with settings",
        "startup",
        "very first call on a new machine",
    ),
    ("first call of a second process", "startup", "first call of a second process"),
    ("mean squared error before an abrupt change (paper: .009)", "accuracy", "SRA, 1-D abrupt: S_bc"),
    ("… after it (paper: .010)", "accuracy", "SRA, 1-D abrupt: S_ac"),
    ("… the same without a threshold, before", "accuracy", "SEM, 1-D abrupt: S_bc"),
    ("… and after", "accuracy", "SEM, 1-D abrupt: S_ac"),
    (
        "printed 3-D stream with the paper's γ = 7, β = 0.5, M = 5, before the change",
        "accuracy",
        "SRA, 3-D abrupt: S_bc",
    ),
    ("… after it: locked out", "accuracy", "SRA, 3-D abrupt: S_ac"),
]


def table() -> str:
    """The figures as a table in Markdown."""
    results = json.loads((ROOT / "lab" / "results" / "results.json").read_text())
    lines = ["| | |", "|---|---|"]
    for label, benchmark, name in ROWS:
        figure = next(figure for figure in results[benchmark] if figure["name"] == name)
        shown = f"{figure['value']:.3g} {figure['unit']}".strip().replace("× ADWIN", "× river's `ADWIN.update`")
        lines.append(f"| {label} | {shown} |")
    return "\n".join(lines) + "\n"


def readme_with_table(text: str) -> str:
    """The README's text with the table in its place."""
    return put(text, "figures", table())


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(readme_with_table(readme.read_text()))
