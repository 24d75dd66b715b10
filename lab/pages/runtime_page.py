"""Write the runtime tables of docs/runtime.md and README.md from lab/results, and draw the pictures.

After `limpet bench fleet runtime --json FILE`, run `python lab/pages/runtime_page.py FILE`.
Without FILE the summaries present are used.
"""

import sys
from pathlib import Path

from page_tools import NOT_MEASURED, ROOT, Figures, format_table, import_run, insert_section, load_figures, load_machine

from limpet_lab.bench.runtime import NUMPY_LABEL
from limpet_lab.plots.scaling import draw_growth

PICTURES = ROOT / "docs" / "pictures"
PAGES = {"docs/runtime.md": "whole", "README.md": "short"}
SIZE_LABELS = {"10^3": "10³", "10^5": "10⁵", "10^6": "10⁶"}
TABLE_HEADING = [
    "",
    "`update(x)`",
    "`process`",
    *(f"fleet of {size}" for size in SIZE_LABELS.values()),
    "bytes per stream",
]
README_KINDS = ("K=1, d=1", "K=2, d=1", "K=2, d=3", "K=5, d=8", "Detector, K=1, d=1", "compact Detector, K=1, d=1")
ONLINE_EM_LABEL = "online EM in numpy, K=2"
PANELS_BY_PICTURE = {
    "runtime-streams.png": ("streams", "points per call"),
    "runtime-sizes.png": ("components K", "variables d"),
}


def format_value(value: float) -> str:
    """Format with three significant digits.

    >>> format_value(8.349), format_value(318.2), format_value(806_412.0)
    ('8.35', '318', '806,000')
    """
    return f"{value:.3g}" if value < 100.0 else f"{float(f'{value:.3g}'):,.0f}"


def format_cell(figures: Figures, name: str) -> str:
    """Return the value of a figure, or a dash."""
    return format_value(figures[name].value) if name in figures else "–"


def format_rate(figures: Figures, name: str) -> str:
    """Return nanoseconds per point and, in brackets, million points per second."""
    return f"{format_cell(figures, name)} ({1e3 / figures[name].value:.3g})" if name in figures else "–"


def add_spaces(name: str) -> str:
    """Print K=2 as K = 2."""
    return name.replace("=", " = ")


def list_kinds(figures: Figures) -> list[str]:
    """Return the kinds of streams that were measured."""
    return [name.removesuffix(": state") for name in figures if name.endswith(": state")]


def make_time_table(figures: Figures, names: list[str]) -> str:
    """Return a line for each kind of stream, and one for numpy."""
    rows = [
        [
            add_spaces(name),
            *(format_cell(figures, f"{name}: {how}") for how in ("update(x)", "process")),
            *(format_rate(figures, f"{name}: fleet of {size}") for size in SIZE_LABELS),
            format_cell(figures, f"{name}: state"),
        ]
        for name in names
        if name in list_kinds(figures)
    ]
    fleets = [format_rate(figures, f"{NUMPY_LABEL}: fleet of {size}") for size in SIZE_LABELS]
    rows.append(
        [add_spaces(ONLINE_EM_LABEL), format_cell(figures, f"{ONLINE_EM_LABEL}: one stream"), "–", *fleets, "–"]
    )
    return format_table(TABLE_HEADING, rows)


def make_baseline_table(figures: Figures) -> str:
    """Return the times of baselines: one stream, and a dict of many."""
    rows = []
    for name in (
        figure_name.removesuffix(": one stream") for figure_name in figures if figure_name.endswith(": one stream")
    ):
        start = f"{name}: a dict of "
        (dict_name,) = (figure_name for figure_name in figures if figure_name.startswith(start))
        size = dict_name.removeprefix(start)
        rows.append(
            [
                add_spaces(name),
                format_cell(figures, f"{name}: one stream"),
                format_cell(figures, dict_name),
                SIZE_LABELS.get(size, size),
            ]
        )
    return format_table(["ns per point", "one stream", "a dict of them", "how many in the dict"], rows)


def make_goal_table(figures: Figures) -> str:
    """Return what was measured of fleets, and the goals."""
    rows = []
    for name, figure in figures.items():
        goal = f"{figure.goal_text} {figure.verdict}".strip()
        rows.append([add_spaces(name), f"{format_value(figure.value)} {figure.unit}", goal])
    return format_table(["", "measured", "goal"], rows)


INTRODUCTION_TEXT = """\
`limpet bench fleet runtime` measures all of this in one run, best of several alternating rounds: nanoseconds per point
and, for fleets, in brackets, million points per second. Streams are initialized and stable. Each fleet call has one
point per stream, with the keys of the previous call. `update(x)` and `process` use one core, a fleet {cores}.
"""
BASELINES_TEXT = """\
Baselines in the same run: one stream, and a dict with one detector per stream. River's and PySAD's have their
default settings; those that return scores score a point before they learn it. The row with numpy above is online EM
over all streams at once, the fastest that numpy allows.
"""
PICTURES_TEXT = """\
![Time per point by streams and by points per call, falling to the cost of the point itself as their number
grows](pictures/runtime-streams.png)

![Time per point by number of components and by number of variables, for update, process and a
fleet](pictures/runtime-sizes.png)

Drawn for K = 2, d = 1 unless specified otherwise. A call has a fixed cost, which the first picture shows at its left.
The points of a call, at its right, are for one stream, or for one of 10⁵ drawn at random, so that keys are looked up.
The fleet of the second picture has 10⁵ streams.
"""


def make_page_section(runtime: Figures, fleet: Figures) -> str:
    """Return what the page shows."""
    if not runtime and not fleet:
        return NOT_MEASURED
    above = INTRODUCTION_TEXT.replace("{cores}", load_machine("runtime")["cores"])
    return "\n".join(
        [
            above,
            make_time_table(runtime, list_kinds(runtime)),
            BASELINES_TEXT,
            make_baseline_table(runtime),
            PICTURES_TEXT,
            make_goal_table(fleet),
        ]
    )


def make_readme_table(runtime: Figures, fleet: Figures) -> str:
    """Return what the README shows: some lines, with a dict of baselines in the column of the fleet of that size."""
    if not runtime:
        return NOT_MEASURED
    text = make_time_table(runtime, list(README_KINDS))
    for name in ("river ADWIN", "river PageHinkley", "river KSWIN", "PySAD LODA"):
        cells = [format_cell(runtime, f"{name}: {how}") for how in ("one stream", "a dict of 10^3")]
        text += f"| {name} | {cells[0]} | – | {cells[1]} | – | – | – |\n"
    return text


def fill_page(page: str, text: str) -> str:
    """Insert the tables into the text of a page."""
    write = {"whole": make_page_section, "short": make_readme_table}[PAGES[page]]
    return insert_section(text, "runtime", write(load_figures("runtime"), load_figures("fleet")))


def group_lines(figures: Figures, panels: tuple[str, ...]) -> dict[str, dict[str, dict[float, float]]]:
    """Return quantity → what is timed → amount → seconds."""
    drawn: dict[str, dict[str, dict[float, float]]] = {panel: {} for panel in panels}
    for name, figure in figures.items():
        panel, _, rest = name.partition(": ")
        if panel in drawn:
            line, _, size = rest.rpartition(": ")
            drawn[panel].setdefault(line, {})[float(size)] = figure.value * 1e-9
    return {panel: lines_of_panel for panel, lines_of_panel in drawn.items() if lines_of_panel}


def draw_all() -> None:
    """Draw the pictures, if the figures exist."""
    figures = load_figures("runtime")
    for name, panels in PANELS_BY_PICTURE.items():
        if group_lines(figures, panels):
            (PICTURES / name).write_bytes(draw_growth(group_lines(figures, panels)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import_run(Path(sys.argv[1]), ["fleet", "runtime"])
    for page in PAGES:
        path = ROOT / page
        path.write_text(fill_page(page, path.read_text(encoding="utf-8")), encoding="utf-8")
    draw_all()
