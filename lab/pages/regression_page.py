"""Write the tables of docs/guide/robust-regression.md from lab/results/regression.json, and draw its picture.

After `limpet bench regression --json FILE`, run `python lab/pages/regression_page.py FILE`.
Without FILE the summaries present are used, and no picture is drawn.
"""

import math
import sys
from pathlib import Path

from page_tools import ROOT, Figures, load, put, table, take

from limpet_lab.bench.regression import STREAM_KINDS, ROWS, SEEDS
from limpet_lab.bench.regression.methods import PATIENT_SRA
from limpet_lab.bench.regression.runs import BURST_KINDS, JUMP_METHODS, JUMP_KINDS, LINEAR, LOGISTIC

PAGE = ROOT / "docs" / "guide" / "robust-regression.md"
TARGETS = {LINEAR: "numbers", LOGISTIC: "labels"}
UNQUOTED = r", (gradual|any labels|clean), .*: (settled|right|right after|.*, std)$"
IN_BURSTS = ("SRA", PATIENT_SRA, "river, Huber", "river, Cauchy")  # small steps have not settled in so few rows


def value(figures: Figures, name: str) -> float:
    """Return the value of a figure."""
    return figures[name].value


def short(number: float) -> str:
    """Format with two digits, or as an integer from a hundred on.

    >>> short(0.04567), short(6.5), short(12345.6)
    ('0.046', '6.5', '12,346')
    """
    return f"{number:,.0f}" if abs(number) >= 100.0 else f"{number:.2g}" if abs(number) < 10.0 else f"{number:.0f}"


def entries(figures: Figures, family: str) -> list[str]:
    """Return the methods in the order of measurement, without the patient SRA, which has its own tables."""
    start, end = f"{family}, {STREAM_KINDS[family][0].name}, ", ": before"
    names = [name for name in figures if name.startswith(start) and name.endswith(end) and " over " not in name]
    return [name.removeprefix(start).removesuffix(end) for name in names if PATIENT_SRA not in name]


def bold(name: str) -> str:
    """Print our own method in bold."""
    return f"**{name}**" if name == "SRA" else name


def mean_and_spread(figures: Figures, name: str) -> str:
    """Return mean ± standard deviation over the seeds."""
    return with_spread(value(figures, name), value(figures, f"{name}, std"))


def with_spread(mean: float, spread: float) -> str:
    """Format both with as many decimals as show two digits of the mean and one of the spread.

    >>> with_spread(0.0362, 0.0062), with_spread(0.2, 0.027), with_spread(28.7, 6.04), with_spread(2.1, 0.026)
    ('0.036 ± 0.006', '0.20 ± 0.03', '29 ± 6', '2.10 ± 0.03')
    """
    first = [math.floor(math.log10(number)) if number else 0 for number in (mean, spread)]
    decimals = max(0, 1 - first[0], -first[1])
    return f"{mean:.{decimals}f} ± {spread:.{decimals}f}"


def until(rows: float) -> str:
    """Format the rows until the truth is recovered, if it ever is."""
    return "never" if rows >= ROWS // 2 else f"{rows:,.0f}"


def linear(figures: Figures) -> str:
    """Return errors of numbers against the truth, in variances of the noise."""
    rows = []
    for name in entries(figures, LINEAR):
        start = f"{LINEAR}, abrupt, {name}"
        cells = [mean_and_spread(figures, f"{start}: {when}") for when in ("before", "after", "settled")]
        cells.append(until(value(figures, f"{start}: until found again")))
        cells.append(short(value(figures, f"{LINEAR}, gradual, {name}: after")))
        cells += [short(value(figures, f"{LINEAR}, clean, {name}: {when}")) for when in ("before", "after")]
        rows.append([bold(name), *cells])
    heading = ["", "before", "after", "settled", "rows to recover", "gradual: after", "clean: before", "after"]
    return table(heading, rows)


def labels(figures: Figures) -> str:
    """Return the log-loss of labels above the minimum, and accuracy."""
    rows = []
    for name in entries(figures, LOGISTIC):
        start = f"{LOGISTIC}, sure labels, {name}"
        cells = [mean_and_spread(figures, f"{start}: {when}") for when in ("before", "after", "settled")]
        cells += [f"{value(figures, f'{start}: {when}'):.1f} %" for when in ("right", "right after")]
        cells += [short(value(figures, f"{LOGISTIC}, any labels, {name}: {when}")) for when in ("before", "after")]
        cells += [short(value(figures, f"{LOGISTIC}, clean, {name}: {when}")) for when in ("before", "after")]
        rows.append([bold(name), *cells])
    heading = ["", "before", "after", "settled", "right before", "right after", "any labels: before", "after"]
    return table([*heading, "clean: before", "after"], rows)


def jumps(figures: Figures) -> str:
    """Return the share of streams in which the truth was recovered, and after how many rows."""
    rows = []
    for kind in JUMP_KINDS:
        cells = []
        for name in JUMP_METHODS:
            start = f"jump, {kind.name}, {name}"
            recovered = value(figures, f"{start}: found again")
            cells.append(f"{recovered:.0f} %, {until(value(figures, f'{start}: rows'))}" if recovered else "never")
        rows.append([kind.name, *cells])
    return table(["change", *map(bold, JUMP_METHODS)], rows)


def bursts(figures: Figures) -> str:
    """Return the error over the rows from the start of a burst."""
    rows = []
    for kind in BURST_KINDS:
        names = [f"burst, {kind.name}, {name}: error" for name in IN_BURSTS]
        rows.append([kind.name, *(mean_and_spread(figures, name) for name in names)])
    return table(["burst", *map(bold, IN_BURSTS)], rows)


def patient(figures: Figures) -> str:
    """Return in how many streams of the first two tables patience makes a difference."""
    lines = []
    for family, kinds in STREAM_KINDS.items():
        for end, setting in (("", "tuned"), (", defaults", "with the defaults")):
            names = [f"{family}, {kind.name}, {PATIENT_SRA}{end}: not as without" for kind in kinds]
            differ = sum(value(figures, name) for name in names)
            lines.append(
                f"- {family}, {setting}: another error than without in {differ:.0f} of "
                f"{len(kinds) * len(SEEDS)} streams"
            )
    return "\n".join(lines) + "\n"


def settings(figures: Figures) -> str:
    """Return the setting chosen for each method, and the time per row."""
    rows = []
    for family in STREAM_KINDS:
        for name in entries(figures, family):
            chosen = {
                label.partition(": ")[2]: figure.value
                for label, figure in figures.items()
                if label.startswith(f"{family}, {name}, tuned: ")
            }
            if chosen:
                words = ", ".join(f"{what} {number:g}" for what, number in chosen.items())
                rows.append([family, name, words, f"{value(figures, f'time, {family}, {name}'):.0f}"])
    batch = "SRA, process(X, y)"
    rows.append([LINEAR, f"`{batch}`", "a batch", f"{value(figures, f'time, {LINEAR}, {batch}'):.1f}"])
    return table(["", "", "tuned", "µs per row"], rows, 3)


def ahead(figures: Figures) -> str:
    """Return the error of each other tuned method over that of SRA, on the first kind of stream."""
    rows = []
    for family, kinds in STREAM_KINDS.items():
        start = f"{family}, {kinds[0].name}, "
        for name in entries(figures, family):
            if not name.startswith("SRA") and not name.endswith("defaults"):
                ends = [f": {when}" for when in ("before", "after", "settled")]
                over = [value(figures, f"{start}{name}{end}") / value(figures, f"{start}SRA{end}") for end in ends]
                rows.append(
                    [
                        f"{TARGETS[family]}: {name}",
                        *(f"{times:.1f} ×" if times < 10.0 else f"{times:.0f} ×" for times in over),
                    ]
                )
    return table(["", "before", "after", "settled"], rows)


def tuned(figures: Figures) -> dict[str, dict[str, tuple[float, float]]]:
    """Return family → method → the chosen setting."""
    settings_by_family: dict[str, dict[str, list[float]]] = {family: {} for family in STREAM_KINDS}
    for name, figure in figures.items():
        head, chosen, _ = name.partition(", tuned: ")
        family, _, method = head.partition(", ")
        if chosen:
            settings_by_family[family].setdefault(method, []).append(figure.value)
    return {
        family: {name: (step, other) for name, (step, other) in each.items()}
        for family, each in settings_by_family.items()
    }


def page_with_figures(text: str) -> str:
    """Insert every table into the text of the page."""
    figures = load("regression")
    for make in (linear, ahead, labels, jumps, patient, bursts, settings):
        text = put(text, make.__name__, make(figures))
    return text


if __name__ == "__main__":
    for file in sys.argv[1:]:
        take(Path(file), ["regression"], UNQUOTED)
    PAGE.write_text(page_with_figures(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    if sys.argv[1:]:
        from regression_pictures import draw

        draw(tuned(load("regression")))
