"""Ours beside the paper's: the table, the differences, and in words where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.experiments.result import Cell
from holdfast.plots.report import Table

RIVALS = ("SDEM", "iEM", "sEM", "ADWIN", "KSWIN", "PH", "PH-river", "IsolationForest")
REACHED, EQUAL, SHORT = "reached", "equal", "short"
DIGITS = 3  # of the paper's numbers


def verdict(ours: float, paper: Cell, largest: bool = True) -> str:
    """How a cell compares with the paper's, at the paper's three digits.

    A cell that is short by less than the paper's own standard deviation counts as equal.

    >>> verdict(0.7172, [0.717, 0.021]), verdict(0.70, [0.717, 0.021]), verdict(0.67, [0.717, 0.021])
    ('reached', 'equal', 'short')
    >>> verdict(0.0003, [0.009, 0.001], largest=False)
    'reached'
    """
    short = paper[0] - round(ours, DIGITS) if largest else round(ours, DIGITS) - paper[0]
    if short <= 1e-9:
        return REACHED
    return EQUAL if short < paper[1] - 1e-9 else SHORT


def verdicts(
    table: str,
    metrics: Sequence[str],
    rows: Mapping[str, Sequence[Cell]],
    paper: Mapping[str, Sequence[Cell]],
    largest: bool = True,
    method: str = "SRA",
    same_data: bool = True,
) -> list[dict[str, Any]]:
    """One record for each cell of SRA, or of another way to set it, with SRA-heldout and SRA-printed beside it.

    same_data: whether the paper's cells are of these data; if not they are for orientation, and not counted.
    """
    records = []
    for place, metric in enumerate(metrics):
        mine, theirs = rows[method][place][0], paper["SRA"][place]
        beside = {name: rows[f"SRA-{name}"][place][0] for name in ("heldout", "printed") if f"SRA-{name}" in rows}
        records.append(
            {
                "table": table,
                "cell": metric,
                "ours": mine,
                **beside,
                "paper": theirs[0],
                "paper_std": theirs[1],
                "difference": mine - theirs[0],
                "verdict": verdict(mine, theirs, largest),
                "same_data": same_data,
            }
        )
    return records


def side_by_side(
    metrics: Sequence[str], ours: Mapping[str, Sequence[Cell]], paper: Mapping[str, Sequence[Cell]], caption: str = ""
) -> Table:
    """A row for each method and, where the paper has it too, the paper's numbers and the differences below.

    >>> side_by_side(["a"], {"SRA": [[0.75, 0.02]]}, {"SRA": [[0.717, 0.021]]}).rows
    [['SRA', '0.750 ± 0.020'], ['paper', '0.717 ± 0.021'], ['difference', '+0.033']]
    """
    rows, aside = [], []
    for method, cells in ours.items():
        rows.append([method, *map(shown, cells)])
        if method in paper:
            aside += [len(rows), len(rows) + 1]
            rows.append(["paper", *(f"{mean:.{DIGITS}f} ± {std:.{DIGITS}f}" for mean, std in paper[method])])
            pairs = zip(cells, paper[method], strict=True)
            rows.append(["difference", *(difference(mine[0], theirs[0]) for mine, theirs in pairs)])
    return Table(["", *metrics], rows, caption, aside)


def shown(value: Cell) -> str:
    """Mean ± standard deviation; small numbers with the digits they need, large ones with fewer.

    >>> shown([0.71234, 0.02]), shown([0.00031, 0.00002]), shown([128.24, 44.57])
    ('0.712 ± 0.020', '0.00031 ± 0.00002', '128.2 ± 44.6')
    """
    digits = _digits(value[0])
    return f"{value[0]:.{digits}f} ± {value[1]:.{digits}f}"


def figure(value: float) -> str:
    """Three digits, or as many as a small number needs."""
    return f"{value:.{_digits(value)}f}"


def difference(ours: float, paper: float) -> str:
    """Ours less the paper's, with its sign and as many digits as ours has.

    >>> difference(0.739, 0.717), difference(0.00069, 0.001)
    ('+0.022', '−0.00031')
    """
    return f"{ours - paper:+.{_digits(ours)}f}".replace("-", "−")


def _digits(value: float) -> int:
    if abs(value) >= 100.0:
        return 1
    return 3 if value == 0.0 or abs(value) >= 0.0015 else 5


def told(records: Sequence[Mapping[str, Any]], who: str = "SRA") -> str:
    """In a sentence, how SRA's cells compare with the paper's.

    >>> told([{"cell": "abrupt", "ours": 0.74, "paper": 0.717, "verdict": "reached"}])
    'SRA reaches the paper’s SRA in abrupt (0.740 against 0.717).'
    """
    phrases = []
    for kind, words in (
        (REACHED, "reaches the paper’s SRA in"),
        (EQUAL, "falls short by less than the paper’s own standard deviation in"),
        (SHORT, "does not reach the paper’s SRA in"),
    ):
        cells = [
            f"{r['cell']} ({figure(r['ours'])} against {r['paper']:.{DIGITS}f})"
            for r in records
            if r["verdict"] == kind
        ]
        if cells:
            phrases.append(f"{words} {', '.join(cells)}")
    return f"{who} {'; it '.join(phrases)}."


def rivals_ahead(metrics: Sequence[str], ours: Mapping[str, Sequence[Cell]], largest: bool = True) -> str:
    """In a sentence, which rivals do better than SRA, and where; by less than the digits shown is not better.

    >>> rivals_ahead(["a"], {"SRA": [[0.7, 0.0]], "sEM": [[0.8, 0.0]]})
    'Ahead of SRA: sEM in a (0.800 against 0.700).'
    """
    sign = 1.0 if largest else -1.0
    found = [
        f"{method} in {metric} ({figure(ours[method][place][0])} against {figure(ours['SRA'][place][0])})"
        for method in RIVALS
        if method in ours
        for place, metric in enumerate(metrics)
        if sign * (ours[method][place][0] - ours["SRA"][place][0]) > 0.5 * 10.0 ** -_digits(ours["SRA"][place][0])
    ]
    return f"Ahead of SRA: {', '.join(found)}." if found else "No rival is ahead of SRA."
