"""Ours beside the paper's: the table, the differences, and in words where they lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.experiments.result import Cell
from holdfast.plots.report import Table

RIVALS = ("SDEM", "iEM", "sEM", "ADWIN", "KSWIN", "PH", "PH-river")
AT_OR_ABOVE, EQUAL, SHORT = "at or above", "equal", "short"
DIGITS = 3  # of the paper's numbers


def verdict(ours: float, paper: Cell, largest: bool = True) -> str:
    """How a cell compares with the paper's, at the paper's three digits.

    A cell that is short by less than the paper's own standard deviation counts as equal.

    >>> verdict(0.7172, [0.717, 0.021]), verdict(0.70, [0.717, 0.021]), verdict(0.67, [0.717, 0.021])
    ('at or above', 'equal', 'short')
    >>> verdict(0.0003, [0.009, 0.001], largest=False)
    'at or above'
    """
    short = paper[0] - round(ours, DIGITS) if largest else round(ours, DIGITS) - paper[0]
    if short <= 1e-9:
        return AT_OR_ABOVE
    return EQUAL if short < paper[1] - 1e-9 else SHORT


def verdicts(
    table: str, metrics: Sequence[str], ours: Sequence[Cell], paper: Sequence[Cell], largest: bool = True
) -> list[dict[str, Any]]:
    """One record for each of SRA's cells."""
    return [
        {
            "table": table,
            "cell": metric,
            "ours": mine[0],
            "paper": theirs[0],
            "paper_std": theirs[1],
            "difference": mine[0] - theirs[0],
            "verdict": verdict(mine[0], theirs, largest),
        }
        for metric, mine, theirs in zip(metrics, ours, paper, strict=True)
    ]


def side_by_side(
    metrics: Sequence[str], ours: Mapping[str, Sequence[Cell]], paper: Mapping[str, Sequence[Cell]], caption: str = ""
) -> Table:
    """A row for each method; for each metric ours, the paper's, and the difference."""
    heading = [""]
    for metric in metrics:
        heading += [metric, "paper", "difference"]
    rows = []
    for method, cells in ours.items():
        row = [method]
        for place, mine in enumerate(cells):
            row.append(shown(mine))
            theirs = paper[method][place] if method in paper else None
            row += [shown(theirs), f"{mine[0] - theirs[0]:+.3f}"] if theirs else ["–", "–"]
        rows.append(row)
    return Table(heading, rows, caption)


def shown(value: Cell | None) -> str:
    """Mean ± standard deviation; small numbers with the digits they need.

    >>> shown([0.71234, 0.02]), shown([0.00031, 0.00002]), shown(None)
    ('0.712 ± 0.020', '0.00031 ± 0.00002', '–')
    """
    if value is None or math.isnan(value[0]):
        return "–"
    digits = 3 if value[0] == 0 or abs(value[0]) >= 0.0095 else 5
    if abs(value[0]) >= 100:
        digits = 1
    return f"{value[0]:.{digits}f} ± {value[1]:.{digits}f}"


def told(records: Sequence[Mapping[str, Any]]) -> str:
    """In a sentence, how SRA's cells compare with the paper's.

    >>> told([{"cell": "abrupt", "ours": 0.74, "paper": 0.717, "paper_std": 0.021, "verdict": "at or above"}])
    'SRA reaches the paper’s SRA in abrupt (0.740 against 0.717).'
    """
    phrases = []
    for kind, words in (
        (AT_OR_ABOVE, "reaches the paper’s SRA in"),
        (EQUAL, "falls short by less than the paper’s own standard deviation in"),
        (SHORT, "does not reach the paper’s SRA in"),
    ):
        cells = [
            f"{r['cell']} ({figure(r['ours'])} against {figure(r['paper'])})" for r in records if r["verdict"] == kind
        ]
        if cells:
            phrases.append(f"{words} {', '.join(cells)}")
    return f"SRA {'; it '.join(phrases)}."


def rivals_above(metrics: Sequence[str], ours: Mapping[str, Sequence[Cell]], largest: bool = True) -> str:
    """In a sentence, which honest rivals beat SRA, and where.

    >>> rivals_above(["a"], {"SRA": [[0.7, 0.0]], "sEM": [[0.8, 0.0]]})
    'Honest rivals above SRA: sEM in a (0.800 against 0.700).'
    """
    found = [
        f"{method} in {metric} ({figure(ours[method][place][0])} against {figure(ours['SRA'][place][0])})"
        for method in RIVALS
        if method in ours
        for place, metric in enumerate(metrics)
        if (ours[method][place][0] > ours["SRA"][place][0]) == largest
        and ours[method][place][0] != ours["SRA"][place][0]
    ]
    return f"Honest rivals above SRA: {', '.join(found)}." if found else "No honest rival is above SRA."


def figure(value: float) -> str:
    """Three digits, or as many as a small number needs."""
    return f"{value:.3f}" if abs(value) >= 0.0095 or value == 0 else f"{value:.5f}"
