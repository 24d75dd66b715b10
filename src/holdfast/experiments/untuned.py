"""SRA-auto, one setting for every stream, beside the paper's SRA and ours, which are tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.experiments.comparison import difference, figure, is_ahead
from holdfast.experiments.methods import AUTO
from holdfast.experiments.result import Cell
from holdfast.experiments.verdicts import Record, tally, told, verdicts

AUTO_HEADING = ["SRA-auto", "our tuned SRA", "paper", "difference"]

Rows = Mapping[str, Sequence[Cell]]


def auto_verdicts(
    table: str, metrics: Sequence[str], rows: Rows, paper: Rows, largest: bool = True
) -> list[dict[str, Any]]:
    """One record for each cell of SRA-auto, beside the paper's SRA; `tuned` is our SRA, tuned as the paper tunes it."""
    if AUTO not in rows:
        return []
    records = verdicts(table, metrics, {AUTO: rows[AUTO]}, paper, largest, AUTO)
    return [{**record, "tuned": tuned[0]} for record, tuned in zip(records, rows["SRA"], strict=True)]


def told_auto(metrics: Sequence[str], rows: Rows, records: Sequence[Record], largest: bool = True) -> str:
    """In words, where SRA-auto stands: against the paper's SRA, if there are records of that, and against ours.

    >>> rows = {"SRA": [[0.7, 0.0], [0.6, 0.0]], "SRA-auto": [[0.8, 0.0], [0.6, 0.0]]}
    >>> told_auto(["abrupt", "gradual"], rows, [])
    'SRA-auto, untuned, beside our tuned SRA: ahead in abrupt (0.800 against 0.700); level in gradual (0.600).'
    """
    if AUTO not in rows:
        return f"{AUTO} is left out of a taste where there are several variables: it takes long to compile."
    phrases: dict[str, list[str]] = {"ahead": [], "level": [], "behind": []}
    for metric, (mine, *_), (tuned, *_) in zip(metrics, rows[AUTO], rows["SRA"], strict=True):
        ahead, behind = is_ahead(mine, tuned, largest), is_ahead(tuned, mine, largest)
        against = f"{figure(mine)} against {figure(tuned)}" if ahead or behind else figure(mine)
        phrases["ahead" if ahead else "behind" if behind else "level"].append(f"{metric} ({against})")
    beside = "; ".join(f"{where} in {', '.join(cells)}" for where, cells in phrases.items() if cells)
    if not records:
        return f"{AUTO}, untuned, beside our tuned SRA: {beside}."
    return f"{told(records, f'{AUTO}, untuned,')} Beside our tuned SRA it is {beside}."


def auto_tally(records: Sequence[Record]) -> str:
    """In a sentence, in how many cells SRA-auto is as good as the paper's SRA."""
    return tally(records, f"{AUTO}, untuned, beside the paper’s tuned SRA")


def auto_cell_row(record: Record) -> list[str]:
    """A cell of SRA-auto: SRA-auto, our tuned SRA, paper, difference to the paper's."""
    paper = f"{record['paper']:.3f} ± {record['paper_std']:.3f}"
    return [figure(record["ours"]), figure(record["tuned"]), paper, difference(record["ours"], record["paper"])]
