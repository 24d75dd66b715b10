"""What an experiment brings: tables for results.json, and words and pictures for the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.plots.report import Part

Cell = list[float]  # [mean, standard deviation]


def cell(values: npt.ArrayLike) -> Cell:
    """Mean and standard deviation (over n) of some values.

    >>> cell([1.0, 3.0])
    [2.0, 1.0]
    """
    numbers = np.asarray(values, dtype=np.float64)
    return [float(numbers.mean()), float(numbers.std())]


@dataclass
class Result:
    """One result of the paper.

    tables: by key, laid out as the paper's numbers are (see `paper_tables.json`). chosen: settings by table, column
    and method. cannot_run: settings that no detector could be made of, by table and method, with the reason.
    intervals: 95 % intervals by table, column and method. seconds: what was timed. parts: of the report.
    verdicts: how SRA's cells compare with the paper's. auto_verdicts: how those of SRA-auto do.
    """

    title: str
    tables: dict[str, Any] = field(default_factory=dict)
    chosen: dict[str, Any] = field(default_factory=dict)
    cannot_run: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, Any] = field(default_factory=dict)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    auto_verdicts: list[dict[str, Any]] = field(default_factory=list)
    parts: Sequence[Part] = ()
