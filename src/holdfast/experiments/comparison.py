"""Ours beside the paper's: the table, its numbers, the differences, and which rivals are ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.experiments.result import Cell
from holdfast.plots.report import Table

RIVALS = ("SDEM", "iEM", "sEM", "ADWIN", "KSWIN", "PH", "PH-river", "IsolationForest")
DIGITS = 3  # of the paper's numbers


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


def is_ahead(one: float, other: float, largest: bool = True) -> bool:
    """Whether one is better than the other by more than the digits shown hide.

    >>> is_ahead(0.5006, 0.5), is_ahead(0.5004, 0.5), is_ahead(0.4, 0.5, largest=False)
    (True, False, True)
    """
    return (one - other if largest else other - one) > 0.5 * 10.0 ** -_digits(other)


def rivals_ahead(metrics: Sequence[str], ours: Mapping[str, Sequence[Cell]], largest: bool = True) -> str:
    """In a sentence, which rivals do better than SRA, and where; by less than the digits shown is not better.

    >>> rivals_ahead(["a"], {"SRA": [[0.7, 0.0]], "sEM": [[0.8, 0.0]]})
    'Ahead of SRA: sEM in a (0.800 against 0.700).'
    """
    found = [
        f"{method} in {metric} ({figure(ours[method][place][0])} against {figure(ours['SRA'][place][0])})"
        for method in RIVALS
        if method in ours
        for place, metric in enumerate(metrics)
        if is_ahead(ours[method][place][0], ours["SRA"][place][0], largest)
    ]
    return f"Ahead of SRA: {', '.join(found)}." if found else "No rival is ahead of SRA."
