"""The two tables of mean squared errors, 1-D and 3-D."""

from __future__ import annotations

import numpy as np

from limpet.datasets import Stream
from limpet.metrics import segment_mse
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
from limpet_lab.paper._select import choose_setting, make_setting_record
from limpet_lab.paper.context import (
    CHANGE_KINDS,
    S_AC,
    S_BC,
    S_EVAL,
    S_TOT,
    ExperimentContext,
    get_change_row,
    make_synthetic_learners,
)
from limpet_lab.paper.methods import N_FIRST_POINTS, make_sem
from limpet_lab.paper.published import get_paper_cells

METRICS = ["S_bc", "S_ac", "S_tot"]


def fill_mse_table(
    context: ExperimentContext, result: Result, key: str, dim: int, variant: str, compared: bool = True
) -> None:
    """Add a table to a result: settings chosen by S_eval, rows 500 to 999, scored on the rows after.

    compared: whether the paper's cells are of the same data, so that ours are held against them.
    """
    table: dict[str, object] = {"metrics": METRICS}
    chosen: dict[str, dict[str, object]] = {}
    for kind in CHANGE_KINDS:
        rows: dict[str, list[Cell]] = {}
        chosen[kind] = {}
        for method in make_synthetic_learners(dim, context.plan.quick):
            sweep = context.sweep_synthetic(method, kind, dim, variant)
            errors = sweep.values[:, :, 0, 0, :]
            best = choose_setting(method, sweep, errors[:, :, [S_EVAL]], largest=False)
            rows[method.name] = compute_cells(errors[best.setting_index])
            chosen[kind][method.name] = best.record
            if method.name == "SRA":
                printed = grids.SRA_PRINTED[key.removesuffix("_notebook")][kind]
                rows["SRA-printed"] = compute_cells(errors[method.settings.index(printed)])
                chosen[kind]["SRA-printed"] = make_setting_record(method, printed)
        rows["constant"] = compute_cells(
            np.array([compute_start_errors(s) for s in context.get_streams(kind, dim, variant)])
        )
        table[kind] = rows
        paper = get_paper_cells(key, kind)
        result.parts = [
            *result.parts,
            compare_cells(METRICS, rows, paper, f"{kind.capitalize()} change, {variant} data."),
        ]
        untuned = []
        if compared:
            records = make_records(f"{key}, {kind}", METRICS, rows, paper, largest=False)
            untuned = make_auto_records(f"{key}, {kind}", METRICS, rows, paper, largest=False)
            result.verdicts += records
            result.auto_verdicts += untuned
            result.parts = [*result.parts, describe_comparison(records)]
        result.parts = [
            *result.parts,
            describe_auto(METRICS, rows, untuned, largest=False),
            describe_baselines_ahead(METRICS, rows, largest=False),
        ]
    result.tables[key] = table
    result.chosen[key] = chosen


def compute_cells(errors: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[Cell]:
    """Return S_bc, S_ac and S_tot over the streams."""
    return [compute_cell(errors[:, measure]) for measure in (S_BC, S_AC, S_TOT)]


def compute_start_errors(stream: Stream) -> list[float]:
    """Return the errors of never moving from the start, the dummy of this table."""
    assert stream.means is not None
    learner = make_sem(rho=0.01, n_init=N_FIRST_POINTS)
    learner.process(stream.y[:N_FIRST_POINTS])
    means = np.broadcast_to(learner.means, stream.means.shape)
    return [np.nan, *segment_mse(means, stream.means, get_change_row(stream))]
