"""The tables on real data: settings chosen on training values, cells made of test values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from limpet.report.html import Part, Picture
from limpet.tuning import Setting, SweepResult
from limpet_lab.paper import grids
from limpet_lab.paper._compare import (
    compare_cells,
    describe_auto,
    describe_baselines_ahead,
    describe_comparison,
    make_auto_records,
    make_records,
)
from limpet_lab.paper._results import Cell, Result, compute_cell
from limpet_lab.paper._select import Choice, choose_setting, describe_failures, list_reasons, make_setting_record
from limpet_lab.paper.methods import FloatArray, Method
from limpet_lab.paper.published import get_paper_cells
from limpet_lab.plots.train_test import draw_train_against_test


class RealTable:
    """A table under construction: a row for each method, a column for each annotation, tolerance or data set."""

    def __init__(self, key: str, columns: Sequence[str]) -> None:
        self.key, self.columns = key, list(columns)
        self.rows: dict[str, list[Cell]] = {}
        self.choices: dict[str, dict[str, Choice]] = {column: {} for column in columns}
        self.cannot_run: dict[str, list[str]] = {}

    def add_tuned(
        self, column: str, method: Method, sweep: SweepResult, training: FloatArray, testing: FloatArray
    ) -> Choice:
        """Tunes a method for a column by training values (settings, …, variables), and fills its cell with the test
        values (settings, n, variables) of the choice. SRA also gets the cell of the setting the paper names."""
        best = choose_setting(method, sweep, training)
        best.record["training_auc"] = float(training[best.setting_index, ..., best.variable].mean())
        self.fill_cell(method.name, column, best, testing)
        if sweep.cannot_run:
            self.cannot_run[method.name] = list_reasons(sweep)
        if method.name == "SRA":
            self.add_fixed("SRA-printed", column, method, grids.SRA_PRINTED[self.key][column], testing)
        return best

    def add_fixed(self, name: str, column: str, method: Method, setting: Setting, testing: FloatArray) -> Choice:
        """Fill a cell with the test values of a given setting of the grid, not tuned here."""
        choice = self.make_choice(method, setting)
        self.fill_cell(name, column, choice, testing)
        return choice

    @staticmethod
    def make_choice(method: Method, setting: Setting) -> Choice:
        """Return a given setting of a learner's grid as a choice."""
        return Choice(list(method.settings).index(setting), 0, setting, make_setting_record(method, setting))

    def fill_cell(self, name: str, column: str, choice: Choice, testing: FloatArray) -> None:
        """Fill a cell with mean and standard deviation of the test values of a choice."""
        self.rows.setdefault(name, []).append(compute_cell(testing[choice.setting_index, :, choice.variable]))
        self.choices[column][name] = choice

    def make_result(self, title: str, caption: str) -> Result:
        """Return the table as a result, SRA's rows first, with a comparison of SRA, the paper and the baselines."""
        rows = {name: self.rows[name] for name in sorted(self.rows, key=lambda name: not name.startswith("SRA"))}
        paper = get_paper_cells(self.key)
        records = make_records(self.key, self.columns, rows, paper)
        untuned = make_auto_records(self.key, self.columns, rows, paper)
        named = make_records(self.key, self.columns, rows, paper, method="SRA-printed")
        parts: list[Part] = [
            compare_cells(self.columns, rows, paper, caption),
            describe_comparison(records),
            describe_comparison(named, "SRA with the setting the paper names (SRA-printed)"),
            describe_auto(self.columns, rows, untuned),
            describe_baselines_ahead(self.columns, rows),
            *describe_failures(self.cannot_run),
        ]
        return Result(
            title,
            tables={self.key: {"metrics": self.columns, **rows}},
            chosen={
                self.key: {
                    c: {name: choice.record for name, choice in choices.items()} for c, choices in self.choices.items()
                }
            },
            cannot_run={self.key: self.cannot_run} if self.cannot_run else {},
            verdicts=records,
            auto_verdicts=untuned,
            parts=parts,
        )


def make_tuning_picture(key: str, panels: Mapping[str, Mapping[str, FloatArray]]) -> Picture:
    """Draw for each column and method the training AUC of every setting against its test AUC: arrays (settings, 2)."""
    points = {column: {name: (p[:, 0], p[:, 1]) for name, p in each.items()} for column, each in panels.items()}
    chosen = {column: {name: _find_best(p) for name, p in each.items()} for column, each in panels.items()}
    paper = {column: mean for column, (mean, _) in zip(panels, get_paper_cells(key)["SRA"], strict=True)}
    return Picture(
        draw_train_against_test(points, chosen=chosen, paper=paper),
        "Training AUC against test AUC for every setting of the learners, one panel for each column of the table.",
        "Every setting of the learners: AUC on the training span against AUC on the test span. Rings mark what was "
        "chosen; the dotted line is the paper’s SRA.",
    )


def _find_best(pairs: FloatArray) -> tuple[float, float]:
    training, testing = pairs[int(np.argmax(pairs[:, 0]))]
    return float(training), float(testing)
