"""The two tables of AUCs on synthetic streams, 1-D and 3-D."""

from __future__ import annotations

import numpy as np

from holdfast.datasets import Stream
from holdfast.experiments import grids
from holdfast.experiments.choosing import choose_setting, reasons, told_what_cannot_run, written
from holdfast.experiments.comparison import rivals_above, side_by_side, told, verdicts
from holdfast.experiments.lab import AUC, KINDS, TOLERANCE, Lab, change_of, synthetic_methods
from holdfast.experiments.methods import Learner, sra_full_norm
from holdfast.experiments.paper import paper_cells
from holdfast.experiments.result import Cell, Result, cell
from holdfast.metrics import benefit_auc


def fill_auc_table(lab: Lab, result: Result, key: str, dim: int, variant: str, caption: str) -> None:
    """Adds one table to a result: grid maxima on the scored streams as in the paper, and SRA tuned on others."""
    rows: dict[str, list[Cell]] = {}
    chosen: dict[str, dict[str, object]] = {kind: {} for kind in KINDS}
    methods = synthetic_methods(dim)
    ours = methods[0]
    others = [Learner("SRA-full-norm", ours.settings, sra_full_norm)] if dim == 1 and not lab.plan.quick else []
    for method in [*methods, *others]:
        rows[method.name] = []
        for kind in KINDS:
            sweep = lab.synthetic(method, kind, dim, variant)
            areas = sweep.values[:, :, 0, :, AUC]
            best = choose_setting(method, sweep, areas)
            rows[method.name].append(cell(areas[best.setting, :, best.variable]))
            chosen[kind][method.name] = best.written
            if sweep.cannot_run:
                result.cannot_run.setdefault(key, {})[method.name] = reasons(sweep)
    rows["SRA-heldout"], rows["SRA-printed"], rows["oracle"] = [], [], []
    for kind in KINDS:
        scored = lab.synthetic(ours, kind, dim, variant).values[:, :, 0, 0, AUC]
        unseen = lab.synthetic(ours, kind, dim, variant, held_out=True)
        held_out = choose_setting(ours, unseen, unseen.values[:, :, 0, :, AUC])
        printed = grids.SRA_PRINTED[key.removesuffix("_notebook")][kind]
        rows["SRA-heldout"].append(cell(scored[held_out.setting]))
        rows["SRA-printed"].append(cell(scored[ours.settings.index(printed)]))
        rows["oracle"].append(cell([oracle_auc(stream) for stream in lab.streams(kind, dim, variant)]))
        chosen[kind]["SRA-heldout"] = held_out.written
        chosen[kind]["SRA-printed"] = written(ours, printed)
    rows = {name: rows[name] for name in sorted(rows, key=lambda name: not name.startswith("SRA"))}
    paper = paper_cells(key)
    records = verdicts(key, KINDS, rows, paper)
    result.tables[key] = {"metrics": list(KINDS), **rows}
    result.chosen[key] = chosen
    result.verdicts += records
    result.parts = [*result.parts, side_by_side(KINDS, rows, paper, caption), told(records), rivals_above(KINDS, rows)]
    result.parts = [*result.parts, *told_what_cannot_run(result.cannot_run.get(key, {}))]


def oracle_auc(stream: Stream) -> float:
    """The AUC of −log f with the true parameters, of the old regime for T_b rows more than it lasts; outliers known.

    No causal score can know more about the change. It is a mark to read the table by, not a contender.
    """
    assert stream.means is not None
    assert stream.covariances is not None
    assert stream.outliers is not None
    change = change_of(stream)
    means = stream.means.copy()
    means[change : change + TOLERANCE] = means[change - 1]
    precision = np.linalg.inv(stream.covariances[0])  # the same for both components: its determinant is a constant
    away = stream.y[:, None, :] - means
    densities = np.exp(-0.5 * np.einsum("tki,ij,tkj->tk", away, precision, away)).mean(axis=1)
    with np.errstate(divide="ignore"):
        scores = -np.log(densities)
    return benefit_auc(np.where(stream.outliers, np.nan, scores), change, TOLERANCE)
