"""How SRA's cells compare with the paper's: a record for each, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.experiments.comparison import DIGITS, difference, figure
from holdfast.experiments.result import Cell

REACHED, EQUAL, SHORT = "reached", "equal", "short"
CELL_HEADING = ["ours", "held out", "printed setting", "paper", "difference"]

Record = Mapping[str, Any]


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
) -> list[dict[str, Any]]:
    """One record for each cell of SRA, or of another way to set it, with SRA-heldout and SRA-printed beside it."""
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
            }
        )
    return records


def told(records: Sequence[Record], who: str = "SRA") -> str:
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


def tally(records: Sequence[Record], who: str = "SRA beside the paper’s SRA") -> str:
    """In a sentence, how many cells are as the paper's.

    >>> tally([{"verdict": "reached"}, {"verdict": "short", "paper_inside_interval": True}])
    'SRA beside the paper’s SRA: of 2 cells 1 reached, 0 equal, 1 short (1 of them with the paper’s value ...'
    """
    kinds = [record["verdict"] for record in records]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in (REACHED, EQUAL, SHORT))
    inside = sum(record["verdict"] == SHORT and bool(record.get("paper_inside_interval")) for record in records)
    note = f" ({inside} of them with the paper’s value inside our 95 % interval)" if inside else ""
    return f"{who}: of {len(records)} cells {counts}{note}."


def remark(record: Record) -> str:
    """The verdict on a cell, in a word or two.

    >>> remark({"verdict": "short", "paper_inside_interval": True})
    'short, in interval'
    """
    if record["verdict"] == SHORT and record.get("paper_inside_interval"):
        return f"{SHORT}, in interval"
    return str(record["verdict"])


def cell_row(record: Record) -> list[str]:
    """A cell of SRA beside the paper's: ours, held out, printed setting, paper, difference."""
    return [
        figure(record["ours"]),
        *(figure(record[name]) if name in record else "" for name in ("heldout", "printed")),
        f"{record['paper']:.3f} ± {record['paper_std']:.3f}",
        difference(record["ours"], record["paper"]),
    ]
