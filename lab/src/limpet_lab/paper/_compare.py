"""Detector, one setting for every stream, compared with the paper's SRA and ours, which are tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from limpet.report.html import Table
from limpet_lab.paper._results import Cell
from limpet_lab.paper.methods import DETECTOR_NAME

# Ours compared with the paper's: the table, its numbers, the differences, and which baselines are ahead.

BASELINES = ("SDEM", "iEM", "sEM", "ADWIN", "KSWIN", "PH", "PH-river", "IsolationForest")
N_PAPER_DIGITS = 3  # of the paper's numbers


def compare_cells(
    metrics: Sequence[str], ours: Mapping[str, Sequence[Cell]], paper: Mapping[str, Sequence[Cell]], caption: str = ""
) -> Table:
    """Return a row for each method and, where the paper has it too, the paper's numbers and the differences.

    >>> compare_cells(["a"], {"SRA": [[0.75, 0.02]]}, {"SRA": [[0.717, 0.021]]}).rows
    [['SRA', '0.750 ± 0.020'], ['paper', '0.717 ± 0.021'], ['difference', '+0.033']]
    """
    rows, note_rows = [], []
    for method, cells in ours.items():
        rows.append([method, *map(format_cell, cells)])
        if method in paper:
            note_rows += [len(rows), len(rows) + 1]
            rows.append(
                ["paper", *(f"{mean:.{N_PAPER_DIGITS}f} ± {std:.{N_PAPER_DIGITS}f}" for mean, std in paper[method])]
            )
            pairs = zip(cells, paper[method], strict=True)
            rows.append(
                ["difference", *(format_difference(our_cell[0], paper_cell[0]) for our_cell, paper_cell in pairs)]
            )
    return Table(["", *metrics], rows, caption, note_rows)


def format_cell(value: Cell) -> str:
    """Format mean ± standard deviation; small numbers with the digits they need, large ones with fewer.

    >>> format_cell([0.71234, 0.02]), format_cell([0.00031, 0.00002]), format_cell([128.24, 44.57])
    ('0.712 ± 0.020', '0.00031 ± 0.00002', '128.2 ± 44.6')
    """
    digits = _count_digits(value[0])
    return f"{value[0]:.{digits}f} ± {value[1]:.{digits}f}"


def format_value(value: float) -> str:
    """Format with three digits, or as many as a small number needs."""
    return f"{value:.{_count_digits(value)}f}"


def format_difference(ours: float, paper: float) -> str:
    """Format ours less the paper's, with its sign and as many digits as ours has.

    >>> format_difference(0.739, 0.717), format_difference(0.00069, 0.001)
    ('+0.022', '−0.00031')
    """
    return f"{ours - paper:+.{_count_digits(ours)}f}".replace("-", "−")


def _count_digits(value: float) -> int:
    if abs(value) >= 100.0:
        return 1
    return 3 if value == 0.0 or abs(value) >= 0.0015 else 5


def is_ahead(value: float, other: float, largest: bool = True) -> bool:
    """Whether one is better than the other by more than the digits shown hide.

    >>> is_ahead(0.5006, 0.5), is_ahead(0.5004, 0.5), is_ahead(0.4, 0.5, largest=False)
    (True, False, True)
    """
    return (value - other if largest else other - value) > 0.5 * 10.0 ** -_count_digits(other)


def describe_baselines_ahead(metrics: Sequence[str], ours: Mapping[str, Sequence[Cell]], largest: bool = True) -> str:
    """Describe which baselines do better than SRA, and where; by less than the digits shown is not better.

    >>> describe_baselines_ahead(["a"], {"SRA": [[0.7, 0.0]], "sEM": [[0.8, 0.0]]})
    'Ahead of SRA: sEM in a (0.800 against 0.700).'
    """
    pairs = [
        f"{method} in {metric} ({format_value(ours[method][i][0])} against {format_value(ours['SRA'][i][0])})"
        for method in BASELINES
        if method in ours
        for i, metric in enumerate(metrics)
        if is_ahead(ours[method][i][0], ours["SRA"][i][0], largest)
    ]
    return f"Ahead of SRA: {', '.join(pairs)}." if pairs else "No baseline is ahead of SRA."


# How SRA's cells compare with the paper's: a record for each, and its description.

REACHED, EQUAL, SHORT = "reached", "equal", "short"
CELL_HEADING = ["ours", "held out", "printed setting", "paper", "difference"]

CellRecord = Mapping[str, Any]


def compute_verdict(ours: float, paper: Cell, largest: bool = True) -> str:
    """Compare a cell with the paper's, at the paper's three digits.

    A cell that is short by less than the paper's own standard deviation counts as equal.

    >>> [compute_verdict(ours, [0.717, 0.021]) for ours in (0.7172, 0.70, 0.67)]
    ['reached', 'equal', 'short']
    >>> compute_verdict(0.0003, [0.009, 0.001], largest=False)
    'reached'
    """
    shortfall = paper[0] - round(ours, N_PAPER_DIGITS) if largest else round(ours, N_PAPER_DIGITS) - paper[0]
    if shortfall <= 1e-9:
        return REACHED
    return EQUAL if shortfall < paper[1] - 1e-9 else SHORT


def make_records(
    table: str,
    metrics: Sequence[str],
    rows: Mapping[str, Sequence[Cell]],
    paper: Mapping[str, Sequence[Cell]],
    largest: bool = True,
    method: str = "SRA",
) -> list[dict[str, Any]]:
    """Return a record for each cell of SRA, or of another way to set it, with SRA-heldout and SRA-printed."""
    records = []
    for i, metric in enumerate(metrics):
        our_mean, paper_cell = rows[method][i][0], paper["SRA"][i]
        other_means = {name: rows[f"SRA-{name}"][i][0] for name in ("heldout", "printed") if f"SRA-{name}" in rows}
        records.append(
            {
                "table": table,
                "cell": metric,
                "ours": our_mean,
                **other_means,
                "paper": paper_cell[0],
                "paper_std": paper_cell[1],
                "difference": our_mean - paper_cell[0],
                "verdict": compute_verdict(our_mean, paper_cell, largest),
            }
        )
    return records


def describe_comparison(records: Sequence[CellRecord], name: str = "SRA") -> str:
    """Describe how SRA's cells compare with the paper's.

    >>> describe_comparison([{"cell": "abrupt", "ours": 0.74, "paper": 0.717, "verdict": "reached"}])
    'SRA reaches the paper’s SRA in abrupt (0.740 against 0.717).'
    """
    phrases = []
    for kind, words in (
        (REACHED, "reaches the paper’s SRA in"),
        (EQUAL, "falls short by less than the paper’s own standard deviation in"),
        (SHORT, "does not reach the paper’s SRA in"),
    ):
        cells = [
            f"{r['cell']} ({format_value(r['ours'])} against {r['paper']:.{N_PAPER_DIGITS}f})"
            for r in records
            if r["verdict"] == kind
        ]
        if cells:
            phrases.append(f"{words} {', '.join(cells)}")
    return f"{name} {'; it '.join(phrases)}."


def describe_tally(records: Sequence[CellRecord], title: str = "SRA compared with the paper’s SRA") -> str:
    """Describe how many cells are as the paper's.

    >>> describe_tally([{"verdict": "reached"}, {"verdict": "short", "paper_inside_interval": True}])
    'SRA compared with the paper’s SRA: of 2 cells 1 reached, 0 equal, 1 short (1 of them with the paper’s value ...'
    """
    kinds = [record["verdict"] for record in records]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in (REACHED, EQUAL, SHORT))
    inside = sum(record["verdict"] == SHORT and bool(record.get("paper_inside_interval")) for record in records)
    note = f" ({inside} of them with the paper’s value inside our 95 % interval)" if inside else ""
    return f"{title}: of {len(records)} cells {counts}{note}."


def format_verdict(record: CellRecord) -> str:
    """Format the verdict on a cell.

    >>> format_verdict({"verdict": "short", "paper_inside_interval": True})
    'short, in interval'
    """
    if record["verdict"] == SHORT and record.get("paper_inside_interval"):
        return f"{SHORT}, in interval"
    return str(record["verdict"])


def make_cell_row(record: CellRecord) -> list[str]:
    """Return a cell of SRA compared with the paper's: ours, held out, printed setting, paper, difference."""
    return [
        format_value(record["ours"]),
        *(format_value(record[name]) if name in record else "" for name in ("heldout", "printed")),
        f"{record['paper']:.3f} ± {record['paper_std']:.3f}",
        format_difference(record["ours"], record["paper"]),
    ]


AUTO_HEADING = ["Detector", "our tuned SRA", "paper", "difference"]

Rows = Mapping[str, Sequence[Cell]]


def make_auto_records(
    table: str, metrics: Sequence[str], rows: Rows, paper: Rows, largest: bool = True
) -> list[dict[str, Any]]:
    """Return a record for each cell of Detector, against the paper's SRA; `tuned` is our tuned SRA."""
    if DETECTOR_NAME not in rows:
        return []
    records = make_records(table, metrics, {DETECTOR_NAME: rows[DETECTOR_NAME]}, paper, largest, DETECTOR_NAME)
    return [{**record, "tuned": tuned[0]} for record, tuned in zip(records, rows["SRA"], strict=True)]


def describe_auto(metrics: Sequence[str], rows: Rows, records: Sequence[CellRecord], largest: bool = True) -> str:
    """Describe how Detector compares with the paper's SRA, if there are records of that, and with ours.

    >>> rows = {"SRA": [[0.7, 0.0], [0.6, 0.0]], "Detector": [[0.8, 0.0], [0.6, 0.0]]}
    >>> describe_auto(["abrupt", "gradual"], rows, [])
    'Detector, untuned, compared with our tuned SRA: ahead in abrupt (0.800 against 0.700); level in gradual (0.600).'
    """
    if DETECTOR_NAME not in rows:
        return f"{DETECTOR_NAME} is left out of quick runs with several variables: it takes long to compile."
    phrases: dict[str, list[str]] = {"ahead": [], "level": [], "behind": []}
    for metric, (mean, *_), (tuned_mean, *_) in zip(metrics, rows[DETECTOR_NAME], rows["SRA"], strict=True):
        ahead, behind = is_ahead(mean, tuned_mean, largest), is_ahead(tuned_mean, mean, largest)
        against = f"{format_value(mean)} against {format_value(tuned_mean)}" if ahead or behind else format_value(mean)
        phrases["ahead" if ahead else "behind" if behind else "level"].append(f"{metric} ({against})")
    standing = "; ".join(f"{where} in {', '.join(cells)}" for where, cells in phrases.items() if cells)
    if not records:
        return f"{DETECTOR_NAME}, untuned, compared with our tuned SRA: {standing}."
    return f"{describe_comparison(records, f'{DETECTOR_NAME}, untuned,')} Compared with our tuned SRA it is {standing}."


def describe_auto_tally(records: Sequence[CellRecord]) -> str:
    """Describe in how many cells Detector is as good as the paper's SRA."""
    return describe_tally(records, f"{DETECTOR_NAME}, untuned, compared with the paper’s tuned SRA")


def make_auto_cell_row(record: CellRecord) -> list[str]:
    """Return a cell of Detector: Detector, our tuned SRA, paper, difference to the paper's."""
    paper = f"{record['paper']:.3f} ± {record['paper_std']:.3f}"
    return [
        format_value(record["ours"]),
        format_value(record["tuned"]),
        paper,
        format_difference(record["ours"], record["paper"]),
    ]
