"""The two tables of mean squared errors, 1-D and 3-D."""

from __future__ import annotations

import numpy as np

from limpet.datasets import Stream
from limpet.metrics import segment_mse
from limpet_lab.paper import grids
from limpet_lab.paper._compare import (
    auto_verdicts,
    baselines_ahead,
    compare_cells,
    describe_auto,
    describe_comparison,
    verdicts,
)
from limpet_lab.paper._results import Cell, Result, cell
from limpet_lab.paper._select import choose_setting, written
from limpet_lab.paper.context import KINDS, S_AC, S_BC, S_EVAL, S_TOT, Lab, change_of, synthetic_learners
from limpet_lab.paper.methods import FIRST_POINTS, sem
from limpet_lab.paper.published import paper_cells

METRICS = ["S_bc", "S_ac", "S_tot"]


def fill_mse_table(lab: Lab, result: Result, key: str, dim: int, variant: str, compared: bool = True) -> None:
    """Adds one table to a result: settings chosen by S_eval, rows 500 to 999, scored on what follows.

    compared: whether the paper's cells are of the same data, so that ours are held against them.
    """
    table: dict[str, object] = {"metrics": METRICS}
    chosen: dict[str, dict[str, object]] = {}
    for kind in KINDS:
        rows: dict[str, list[Cell]] = {}
        chosen[kind] = {}
        for method in synthetic_learners(dim, lab.plan.quick):
            sweep = lab.synthetic(method, kind, dim, variant)
            errors = sweep.values[:, :, 0, 0, :]
            best = choose_setting(method, sweep, errors[:, :, [S_EVAL]], largest=False)
            rows[method.name] = cells(errors[best.row])
            chosen[kind][method.name] = best.written
            if method.name == "SRA":
                printed = grids.SRA_PRINTED[key.removesuffix("_notebook")][kind]
                rows["SRA-printed"] = cells(errors[method.settings.index(printed)])
                chosen[kind]["SRA-printed"] = written(method, printed)
        rows["constant"] = cells(np.array([standing_still(s) for s in lab.streams(kind, dim, variant)]))
        table[kind] = rows
        paper = paper_cells(key, kind)
        result.parts = [
            *result.parts,
            compare_cells(METRICS, rows, paper, f"{kind.capitalize()} change, {variant} data."),
        ]
        untuned = []
        if compared:
            records = verdicts(f"{key}, {kind}", METRICS, rows, paper, largest=False)
            untuned = auto_verdicts(f"{key}, {kind}", METRICS, rows, paper, largest=False)
            result.verdicts += records
            result.auto_verdicts += untuned
            result.parts = [*result.parts, describe_comparison(records)]
        result.parts = [
            *result.parts,
            describe_auto(METRICS, rows, untuned, largest=False),
            baselines_ahead(METRICS, rows, largest=False),
        ]
    result.tables[key] = table
    result.chosen[key] = chosen


def cells(errors: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[Cell]:
    """S_bc, S_ac and S_tot over the streams."""
    return [cell(errors[:, measure]) for measure in (S_BC, S_AC, S_TOT)]


def standing_still(stream: Stream) -> list[float]:
    """Return the errors of never moving from the start, the dummy of this table."""
    assert stream.means is not None
    learner = sem(rho=0.01, n_init=FIRST_POINTS)
    learner.process(stream.y[:FIRST_POINTS])
    means = np.broadcast_to(learner.means, stream.means.shape)
    return [np.nan, *segment_mse(means, stream.means, change_of(stream))]
