"""Write the runtime tables of docs/runtime.md and README.md from lab/results, and draw the pictures.

After `limpet bench fleet runtime --json FILE`, run `python lab/pages/runtime_page.py FILE`.
Without FILE the summaries present are used.
"""

import sys
from pathlib import Path

from page_tools import NOT_MEASURED, ROOT, Figures, load, machine_of, put, table, take

from limpet_lab.bench.runtime import NUMPY_LABEL
from limpet_lab.plots.scaling import draw_growth

PICTURES = ROOT / "docs" / "pictures"
PAGES = {"docs/runtime.md": "whole", "README.md": "short"}
SIZES = {"10^3": "10³", "10^5": "10⁵", "10^6": "10⁶"}
HEADING = ["", "`update(x)`", "`process`", *(f"fleet of {size}" for size in SIZES.values()), "bytes per stream"]
SHORT = ("K=1, d=1", "K=2, d=1", "K=2, d=3", "K=5, d=8", "Detector, K=1, d=1", "compact Detector, K=1, d=1")
EM = "online EM in numpy, K=2"
DRAWN = {"runtime-streams.png": ("streams", "points per call"), "runtime-sizes.png": ("components K", "variables d")}


def in_full(value: float) -> str:
    """Format with three significant digits.

    >>> in_full(8.349), in_full(318.2), in_full(806_412.0)
    ('8.35', '318', '806,000')
    """
    return f"{value:.3g}" if value < 100.0 else f"{float(f'{value:.3g}'):,.0f}"


def cell(figures: Figures, name: str) -> str:
    """Return the value of a figure, or a dash."""
    return in_full(figures[name].value) if name in figures else "–"


def rate(figures: Figures, name: str) -> str:
    """Return nanoseconds per point and, in brackets, million points per second."""
    return f"{cell(figures, name)} ({1e3 / figures[name].value:.3g})" if name in figures else "–"


def with_spaces(name: str) -> str:
    """Print K=2 as K = 2."""
    return name.replace("=", " = ")


def kinds(figures: Figures) -> list[str]:
    """Return the kinds of streams that were measured."""
    return [name.removesuffix(": state") for name in figures if name.endswith(": state")]


def times(figures: Figures, names: list[str]) -> str:
    """Return a line for each kind of stream, and one for numpy."""
    rows = [
        [
            with_spaces(name),
            *(cell(figures, f"{name}: {how}") for how in ("update(x)", "process")),
            *(rate(figures, f"{name}: fleet of {size}") for size in SIZES),
            cell(figures, f"{name}: state"),
        ]
        for name in names
        if name in kinds(figures)
    ]
    fleets = [rate(figures, f"{NUMPY_LABEL}: fleet of {size}") for size in SIZES]
    rows.append([with_spaces(EM), cell(figures, f"{EM}: one stream"), "–", *fleets, "–"])
    return table(HEADING, rows)


def baselines(figures: Figures) -> str:
    """Return the times of baselines: one stream, and a dict of many."""
    rows = []
    for name in (each.removesuffix(": one stream") for each in figures if each.endswith(": one stream")):
        start = f"{name}: a dict of "
        (many,) = (each for each in figures if each.startswith(start))
        size = many.removeprefix(start)
        rows.append(
            [with_spaces(name), cell(figures, f"{name}: one stream"), cell(figures, many), SIZES.get(size, size)]
        )
    return table(["ns per point", "one stream", "a dict of them", "how many in the dict"], rows)


def goals(figures: Figures) -> str:
    """Return what was measured of fleets, and the goals."""
    rows = []
    for name, figure in figures.items():
        goal = f"{figure.goal_text} {figure.verdict}".strip()
        rows.append([with_spaces(name), f"{in_full(figure.value)} {figure.unit}", goal])
    return table(["", "measured", "goal"], rows)


ABOVE = """\
`limpet bench fleet runtime` measures all of this in one run, best of several alternating rounds: nanoseconds per point
and, for fleets, in brackets, million points per second. Streams are initialized and stable. Each fleet call has one
point per stream, with the keys of the previous call. `update(x)` and `process` use one core, a fleet {cores}.
"""
BETWEEN = """\
Baselines in the same run: one stream, and a dict with one detector per stream. River's and PySAD's have their
default settings; those that return scores score a point before they learn it. The row with numpy above is online EM
over all streams at once, the fastest that numpy allows.
"""
BELOW = """\
![Time per point by streams and by points per call, falling to the cost of the point itself as their number
grows](pictures/runtime-streams.png)

![Time per point by number of components and by number of variables, for update, process and a
fleet](pictures/runtime-sizes.png)

Drawn for K = 2, d = 1 unless specified otherwise. A call has a fixed cost, which the first picture shows at its left.
The points of a call, at its right, are for one stream, or for one of 10⁵ drawn at random, so that keys are looked up.
The fleet of the second picture has 10⁵ streams.
"""


def whole(runtime: Figures, fleet: Figures) -> str:
    """Return what the page shows."""
    if not runtime and not fleet:
        return NOT_MEASURED
    above = ABOVE.replace("{cores}", machine_of("runtime")["cores"])
    return "\n".join([above, times(runtime, kinds(runtime)), BETWEEN, baselines(runtime), BELOW, goals(fleet)])


def short(runtime: Figures, fleet: Figures) -> str:
    """Return what the README shows: some lines, with a dict of baselines in the column of the fleet of that size."""
    if not runtime:
        return NOT_MEASURED
    text = times(runtime, list(SHORT))
    for name in ("river ADWIN", "river PageHinkley", "river KSWIN", "PySAD LODA"):
        cells = [cell(runtime, f"{name}: {how}") for how in ("one stream", "a dict of 10^3")]
        text += f"| {name} | {cells[0]} | – | {cells[1]} | – | – | – |\n"
    return text


def page_with_figures(page: str, text: str) -> str:
    """Insert the tables into the text of a page."""
    write = {"whole": whole, "short": short}[PAGES[page]]
    return put(text, "runtime", write(load("runtime"), load("fleet")))


def lines(figures: Figures, panels: tuple[str, ...]) -> dict[str, dict[str, dict[float, float]]]:
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
    figures = load("runtime")
    for name, panels in DRAWN.items():
        if lines(figures, panels):
            (PICTURES / name).write_bytes(draw_growth(lines(figures, panels)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take(Path(sys.argv[1]), ["fleet", "runtime"])
    for page in PAGES:
        path = ROOT / page
        path.write_text(page_with_figures(page, path.read_text(encoding="utf-8")), encoding="utf-8")
    draw_all()
