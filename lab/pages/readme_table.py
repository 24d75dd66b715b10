"""Write the table of figures in the README from lab/results: `python lab/pages/readme_table.py [FILE]`.

FILE is what `limpet bench --json FILE` wrote; without it, the summaries present are used.
"""

import sys
from pathlib import Path

from page_tools import ROOT, import_run, insert_section, load_figures

from limpet_lab.bench import DEFAULT_BENCHMARKS

ROWS = [
    ("SRA: time per point, `process`, K=2, d=1", "speed", "process, d=1, whitened: ratio"),
    ("SRA: time per point, `process`, K=2, d=3", "speed", "process, d=3, whitened: ratio"),
    ("SRA: time per point, `update(x)` with a float, K=2, d=1", "speed", "update(x), whitened: ratio"),
    ("SRA: cost per point at 10⁷ points against 10⁴", "scaling", "cost at 10^7 against 10^4"),
    ("SRA: state of a stream after its start", "scaling", "state after the start"),
    ("`import limpet; limpet.SRA` on top of numpy and numba", "startup", "import limpet; limpet.SRA adds"),
    ("`limpet --help`", "startup", "limpet --help"),
    (
        "SRA: very first call on a new machine, which compiles",
        "startup",
        "very first call on a new machine",
    ),
    ("SRA: first call of a second process", "startup", "first call of a second process"),
    ("SRA: mean squared error before an abrupt change (paper: .009)", "accuracy", "SRA, 1-D abrupt: S_bc"),
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


def make_table() -> str:
    """Return the figures as a table in Markdown."""
    lines = ["| | |", "|---|---|"]
    for label, benchmark, name in ROWS:
        figure = load_figures(benchmark)[name]
        cell = f"{figure.value:.3g} {figure.unit}".strip().replace("× ADWIN", "× river's `ADWIN.update`")
        lines.append(f"| {label} | {cell} |")
    return "\n".join(lines) + "\n"


def fill_readme(text: str) -> str:
    """Insert the table into the text of the README."""
    return insert_section(text, "figures", make_table())


if __name__ == "__main__":
    for file in sys.argv[1:]:
        import_run(Path(file), list(DEFAULT_BENCHMARKS))
    readme = ROOT / "README.md"
    readme.write_text(fill_readme(readme.read_text()))
