"""Write the tables of docs/guide/robust-regression.md from lab/results/regression.json, and draw its picture.

After `limpet bench regression --json FILE`, run `python lab/pages/regression_page.py FILE`.
Without FILE the summaries present are used, and no picture is drawn.
"""

import math
import sys
from pathlib import Path

from page_tools import ROOT, Figures, format_table, import_run, insert_section, load_figures

from limpet_lab.bench.regression import ROWS, SEEDS, STREAM_KINDS
from limpet_lab.bench.regression.methods import PATIENT_SRA
from limpet_lab.bench.regression.runs import BURST_KINDS, JUMP_KINDS, JUMP_METHODS, LINEAR, LOGISTIC

PAGE = ROOT / "docs" / "guide" / "robust-regression.md"
TARGET_NAMES = {LINEAR: "numbers", LOGISTIC: "labels"}
UNQUOTED_PATTERN = r", (gradual|any labels|clean), .*: (settled|right|right after|.*, std)$"
BURST_METHODS = ("SRA", PATIENT_SRA, "river, Huber", "river, Cauchy")  # small steps have not settled in so few rows


def get_value(figures: Figures, name: str) -> float:
    """Return the value of a figure."""
    return figures[name].value


def format_short(number: float) -> str:
    """Format with two digits, or as an integer from a hundred on.

    >>> format_short(0.04567), format_short(6.5), format_short(12345.6)
    ('0.046', '6.5', '12,346')
    """
    return f"{number:,.0f}" if abs(number) >= 100.0 else f"{number:.2g}" if abs(number) < 10.0 else f"{number:.0f}"


def list_methods(figures: Figures, family: str) -> list[str]:
    """Return the methods in the order of measurement, without the patient SRA, which has its own tables."""
    start, end = f"{family}, {STREAM_KINDS[family][0].name}, ", ": before"
    names = [name for name in figures if name.startswith(start) and name.endswith(end) and " over " not in name]
    return [name.removeprefix(start).removesuffix(end) for name in names if PATIENT_SRA not in name]


def format_method(name: str) -> str:
    """Print our own method in bold."""
    return f"**{name}**" if name == "SRA" else name


def format_mean_and_spread(figures: Figures, name: str) -> str:
    """Return mean ± standard deviation over the seeds."""
    return format_spread(get_value(figures, name), get_value(figures, f"{name}, std"))


def format_spread(mean: float, spread: float) -> str:
    """Format both with as many decimals as show two digits of the mean and one of the spread.

    >>> format_spread(0.0362, 0.0062), format_spread(0.2, 0.027), format_spread(28.7, 6.04), format_spread(2.1, 0.026)
    ('0.036 ± 0.006', '0.20 ± 0.03', '29 ± 6', '2.10 ± 0.03')
    """
    first = [math.floor(math.log10(number)) if number else 0 for number in (mean, spread)]
    decimals = max(0, 1 - first[0], -first[1])
    return f"{mean:.{decimals}f} ± {spread:.{decimals}f}"


def format_recovery_rows(rows: float) -> str:
    """Format the rows until the truth is recovered, if it ever is."""
    return "never" if rows >= ROWS // 2 else f"{rows:,.0f}"


def make_linear_table(figures: Figures) -> str:
    """Return errors of numbers against the truth, in variances of the noise."""
    rows = []
    for name in list_methods(figures, LINEAR):
        start = f"{LINEAR}, abrupt, {name}"
        cells = [format_mean_and_spread(figures, f"{start}: {when}") for when in ("before", "after", "settled")]
        cells.append(format_recovery_rows(get_value(figures, f"{start}: until found again")))
        cells.append(format_short(get_value(figures, f"{LINEAR}, gradual, {name}: after")))
        cells += [format_short(get_value(figures, f"{LINEAR}, clean, {name}: {when}")) for when in ("before", "after")]
        rows.append([format_method(name), *cells])
    heading = ["", "before", "after", "settled", "rows to recover", "gradual: after", "clean: before", "after"]
    return format_table(heading, rows)


def make_label_table(figures: Figures) -> str:
    """Return the log-loss of labels above the minimum, and accuracy."""
    rows = []
    for name in list_methods(figures, LOGISTIC):
        start = f"{LOGISTIC}, sure labels, {name}"
        cells = [format_mean_and_spread(figures, f"{start}: {when}") for when in ("before", "after", "settled")]
        cells += [f"{get_value(figures, f'{start}: {when}'):.1f} %" for when in ("right", "right after")]
        cells += [
            format_short(get_value(figures, f"{LOGISTIC}, any labels, {name}: {when}")) for when in ("before", "after")
        ]
        cells += [
            format_short(get_value(figures, f"{LOGISTIC}, clean, {name}: {when}")) for when in ("before", "after")
        ]
        rows.append([format_method(name), *cells])
    heading = ["", "before", "after", "settled", "right before", "right after", "any labels: before", "after"]
    return format_table([*heading, "clean: before", "after"], rows)


def make_jump_table(figures: Figures) -> str:
    """Return the share of streams in which the truth was recovered, and after how many rows."""
    rows = []
    for kind in JUMP_KINDS:
        cells = []
        for name in JUMP_METHODS:
            start = f"jump, {kind.name}, {name}"
            recovered = get_value(figures, f"{start}: found again")
            cells.append(
                f"{recovered:.0f} %, {format_recovery_rows(get_value(figures, f'{start}: rows'))}"
                if recovered
                else "never"
            )
        rows.append([kind.name, *cells])
    return format_table(["change", *map(format_method, JUMP_METHODS)], rows)


def make_burst_table(figures: Figures) -> str:
    """Return the error over the rows from the start of a burst."""
    rows = []
    for kind in BURST_KINDS:
        names = [f"burst, {kind.name}, {name}: error" for name in BURST_METHODS]
        rows.append([kind.name, *(format_mean_and_spread(figures, name) for name in names)])
    return format_table(["burst", *map(format_method, BURST_METHODS)], rows)


def describe_patience(figures: Figures) -> str:
    """Return in how many streams of the first two tables patience makes a difference."""
    lines = []
    for family, kinds in STREAM_KINDS.items():
        for end, setting in (("", "tuned"), (", defaults", "with the defaults")):
            names = [f"{family}, {kind.name}, {PATIENT_SRA}{end}: not as without" for kind in kinds]
            differ = sum(get_value(figures, name) for name in names)
            lines.append(
                f"- {family}, {setting}: another error than without in {differ:.0f} of "
                f"{len(kinds) * len(SEEDS)} streams"
            )
    return "\n".join(lines) + "\n"


def make_setting_table(figures: Figures) -> str:
    """Return the setting chosen for each method, and the time per row."""
    rows = []
    for family in STREAM_KINDS:
        for name in list_methods(figures, family):
            chosen = {
                label.partition(": ")[2]: figure.value
                for label, figure in figures.items()
                if label.startswith(f"{family}, {name}, tuned: ")
            }
            if chosen:
                words = ", ".join(f"{what} {number:g}" for what, number in chosen.items())
                rows.append([family, name, words, f"{get_value(figures, f'time, {family}, {name}'):.0f}"])
    batch = "SRA, process(X, y)"
    rows.append([LINEAR, f"`{batch}`", "a batch", f"{get_value(figures, f'time, {LINEAR}, {batch}'):.1f}"])
    return format_table(["", "", "tuned", "µs per row"], rows, 3)


def make_ratio_table(figures: Figures) -> str:
    """Return the error of each other tuned method over that of SRA, on the first kind of stream."""
    rows = []
    for family, kinds in STREAM_KINDS.items():
        start = f"{family}, {kinds[0].name}, "
        for name in list_methods(figures, family):
            if not name.startswith("SRA") and not name.endswith("defaults"):
                ends = [f": {when}" for when in ("before", "after", "settled")]
                over = [
                    get_value(figures, f"{start}{name}{end}") / get_value(figures, f"{start}SRA{end}") for end in ends
                ]
                rows.append(
                    [
                        f"{TARGET_NAMES[family]}: {name}",
                        *(f"{times:.1f} ×" if times < 10.0 else f"{times:.0f} ×" for times in over),
                    ]
                )
    return format_table(["", "before", "after", "settled"], rows)


def get_tuned_settings(figures: Figures) -> dict[str, dict[str, tuple[float, float]]]:
    """Return family → method → the chosen setting."""
    settings_by_family: dict[str, dict[str, list[float]]] = {family: {} for family in STREAM_KINDS}
    for name, figure in figures.items():
        head, chosen, _ = name.partition(", tuned: ")
        family, _, method = head.partition(", ")
        if chosen:
            settings_by_family[family].setdefault(method, []).append(figure.value)
    return {
        family: {name: (step, other) for name, (step, other) in settings_by_method.items()}
        for family, settings_by_method in settings_by_family.items()
    }


def fill_page(text: str) -> str:
    """Insert every table into the text of the page."""
    figures = load_figures("regression")
    sections = {
        "linear": make_linear_table,
        "ahead": make_ratio_table,
        "labels": make_label_table,
        "jumps": make_jump_table,
        "patient": describe_patience,
        "bursts": make_burst_table,
        "settings": make_setting_table,
    }
    for name, make in sections.items():
        text = insert_section(text, name, make(figures))
    return text


if __name__ == "__main__":
    for file in sys.argv[1:]:
        import_run(Path(file), ["regression"], UNQUOTED_PATTERN)
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    if sys.argv[1:]:
        from regression_pictures import draw

        draw(get_tuned_settings(load_figures("regression")))
