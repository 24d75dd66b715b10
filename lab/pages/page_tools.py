"""Share what the scripts of this folder need: summaries of runs in lab/results, marks in pages, tables in Markdown."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from limpet_lab.bench._measurement import Figure

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "results"
NOT_MEASURED = "*Not measured yet.*\n"
MAX_SUMMARY_BYTES = 20_000
NUMBER_FORMATS = (".0f", ".1f", ".2f", ".3f", ".2g", ".3g")  # in which pages print numbers

Figures = dict[str, Figure]


def insert_section(text: str, name: str, generated: str) -> str:
    """Replace the text between the marks `<!-- name -->` and `<!-- end of name -->` of a page."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    start = text.index(begin) + len(begin)
    return text[:start] + generated + text[text.index(end, start) :]


def format_table(heading: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Return a table in Markdown; the first columns hold words, the others numbers."""
    lines = ["| " + " | ".join(row) + " |" for row in rows if any(cell.strip(" –/") for cell in row[words:])]
    if not lines:
        return NOT_MEASURED
    rule = "|" + "---|" * words + "---:|" * (len(heading) - words)
    return "\n".join(["| " + " | ".join(heading) + " |", rule, *lines]) + "\n"


def format_figure_table(figures: Iterable[Figure]) -> str:
    """Return a table of figures as `limpet bench` prints them, with their goals."""
    lines = ["| | | goal |", "|---|---:|---|"]
    for figure in figures:
        goal = f"{figure.goal_text} {figure.verdict}".strip()
        lines.append(f"| {figure.name.replace('10^6', '10⁶').replace('10^7', '10⁷')} | {figure.text} | {goal} |")
    return "\n".join(lines) + "\n"


# Summaries: figures of the same unit and goal are a group. In a large summary, names are a tree as well: a name is all
# keys on its path.


def round_for_print(number: float) -> float:
    """Round to six significant digits, or to as many as leave every printed form of the number as it is.

    >>> round_for_print(0.12345678), round_for_print(0.05499999999999999), round_for_print(5340.0)
    (0.123457, 0.05499999999999999, 5340)
    """
    if float(number).is_integer():
        return int(number)
    candidates = (float(f"{number:.{digits}g}") for digits in range(6, 18))
    return next(
        candidate
        for candidate in candidates
        if all(f"{candidate:{form}}" == f"{number:{form}}" for form in NUMBER_FORMATS)
    )


def to_tree(values: Mapping[str, float]) -> dict[str, Any]:
    """Put names that begin alike together.

    >>> to_tree({"change, d=1: mean": 1.0, "change, d=1: mean, std": 0.2, "change, d=3: mean": 2.0, "memory": 5.0})
    {'change': {', d=1: mean': {'': 1.0, ', std': 0.2}, ', d=3: mean': 2.0}, 'memory': 5.0}
    """
    by_first_part: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        first, *later_parts = re.split(r"(?<=.)(?=, |: )", name)
        by_first_part.setdefault(first, {})["".join(later_parts)] = value
    tree: dict[str, Any] = {}
    for first, ends in by_first_part.items():
        if ends.keys() == {""}:
            tree[first] = ends[""]
            continue
        below = to_tree(ends)
        if len(below) == 1:
            ((end, below),) = below.items()
            first += end
        tree[first] = below
    return tree


def from_tree(tree: Mapping[str, Any], start: str = "") -> dict[str, float]:
    """Return the values by name.

    >>> from_tree({"change": {", d=1": {"": 1.0, ", std": 0.2}}, "memory": 5.0})
    {'change, d=1': 1.0, 'change, d=1, std': 0.2, 'memory': 5.0}
    """
    values: dict[str, float] = {}
    for key, below in tree.items():
        values |= from_tree(below, start + key) if isinstance(below, dict) else {start + key: below}
    return values


def write_summary(name: str, figures: Sequence[Figure], machine: Mapping[str, str]) -> None:
    """Write lab/results/NAME.json."""
    consecutive = [(key, list(group)) for key, group in groupby(figures, key=_format_group)]
    text = _format_summary(
        machine, [(key, {figure.name: round_for_print(figure.value) for figure in group}) for key, group in consecutive]
    )
    if len(text.encode()) > MAX_SUMMARY_BYTES:
        merged: dict[str, dict[str, float]] = {}
        for figure in figures:
            merged.setdefault(_format_group(figure), {})[figure.name] = round_for_print(figure.value)
        text = _format_summary(machine, [(key, to_tree(values)) for key, values in merged.items()])
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")


def _format_group(figure: Figure) -> str:
    fields = {"unit": figure.unit, "at_most": figure.at_most, "at_least": figure.at_least}
    return to_json({key: value for key, value in fields.items() if value not in ("", None)})


def _format_summary(machine: Mapping[str, str], groups: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Return the text of a summary, an entry per line."""
    parts = []
    for key, values in groups:
        lines = ",\n".join(f" {to_json(name)}: {to_json(value)}" for name, value in values.items())
        parts.append(f'{{"group": {key}, "values": {{\n{lines}\n}}}}')
    figures = ",\n".join(parts)
    return f'{{"machine": {json.dumps(machine)}, "figures": [\n{figures}\n]}}\n'


def to_json(value: object) -> str:
    """Return JSON in one line without spaces between tokens."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def import_run(path: Path, names: Sequence[str], unquoted: str = "$^") -> None:
    """Summarize the run that `limpet bench NAMES --json PATH` wrote; benchmarks that it lacks keep their summaries.

    unquoted: an expression for names of figures that no page quotes.
    """
    run = json.loads(path.read_text(encoding="utf-8"))
    if run["quick"]:
        sys.exit(
            f"{path}: must be a whole run, got one with --quick. Run `limpet bench {' '.join(names)} --json {path}`."
        )
    for name in names:
        if name in run:
            records = [record for record in run[name] if not re.search(unquoted, record["name"])]
            fields = ("name", "value", "unit", "at_most", "at_least")
            write_summary(name, [Figure(*map(record.get, fields)) for record in records], run["machine"])


def load_figures(name: str) -> Figures:
    """Return the figures of a benchmark by name; empty if it has not been measured."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return {}
    figures: Figures = {}
    for part in json.loads(path.read_text(encoding="utf-8"))["figures"]:
        values = from_tree(part["values"])
        figures |= {name: Figure(name, value, **part["group"]) for name, value in values.items()}
    return figures


def load_machine(name: str) -> dict[str, str]:
    """Return what a benchmark ran on: versions, processor, cores."""
    machine: dict[str, str] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["machine"]
    return machine


def format_number(figures: Figures, name: str, digits: int = 2) -> str:
    """Return the value of a figure, or a dash."""
    return f"{figures[name].value:.{digits}f}" if name in figures else "–"
