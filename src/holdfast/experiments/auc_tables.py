"""The two tables of AUCs on synthetic streams, 1-D and 3-D."""

from __future__ import annotations

import numpy as np

from holdfast.experiments import grids
from holdfast.experiments.choosing import choose_setting, reasons, told_what_cannot_run, written
from holdfast.experiments.comparison import rivals_ahead, side_by_side
from holdfast.experiments.lab import AUC, KINDS, TOLERANCE, Lab, change_of, synthetic_methods
from holdfast.experiments.methods import Learner, Method, sra_full_norm
from holdfast.experiments.paper import paper_cells
from holdfast.experiments.result import Cell, Result, cell
from holdfast.experiments.truth import truth_auc, truth_with_memory_auc
from holdfast.experiments.verdicts import told, verdicts
from holdfast.metrics import benefit_auc
from holdfast.tuning import Setting


def fill_auc_table(lab: Lab, result: Result, key: str, dim: int, variant: str, caption: str) -> None:
    """Adds one table to a result: grid maxima on the scored streams as in the paper, and SRA tuned on others."""
    rows: dict[str, list[Cell]] = {}
    chosen: dict[str, dict[str, Setting]] = {kind: {} for kind in KINDS}
    best_of_ours: dict[str, Setting] = {}
    methods = synthetic_methods(dim)
    ours = methods[0]
    others = [Learner("SRA-full-norm", ours.settings, sra_full_norm)] if not lab.plan.quick else []
    for method in [*methods, *others]:
        rows[method.name] = []
        for kind in KINDS:
            sweep = lab.synthetic(method, kind, dim, variant)
            areas = sweep.values[:, :, 0, :, AUC]
            best = choose_setting(method, sweep, areas)
            rows[method.name].append(cell(areas[best.place, :, best.variable]))
            chosen[kind][method.name] = best.written
            if method is ours:
                best_of_ours[kind] = best.setting
            if sweep.cannot_run:
                result.cannot_run.setdefault(key, {})[method.name] = reasons(sweep)
    rows["SRA-heldout"], rows["SRA-printed"], rows["truth"], rows["truth-memory"] = [], [], [], []
    for kind in KINDS:
        scored = lab.synthetic(ours, kind, dim, variant).values[:, :, 0, 0, AUC]
        unseen = lab.synthetic(ours, kind, dim, variant, held_out=True)
        held_out = choose_setting(ours, unseen, unseen.values[:, :, 0, :, AUC])
        printed = grids.SRA_PRINTED[key.removesuffix("_notebook")][kind]
        rows["SRA-heldout"].append(cell(scored[held_out.place]))
        rows["SRA-printed"].append(cell(scored[ours.settings.index(printed)]))
        streams = lab.streams(kind, dim, variant)
        rows["truth"].append(cell([truth_auc(stream) for stream in streams]))
        rows["truth-memory"].append(cell([truth_with_memory_auc(stream) for stream in streams]))
        chosen[kind]["SRA-heldout"] = held_out.written
        chosen[kind]["SRA-printed"] = written(ours, printed)
    rows = {name: rows[name] for name in sorted(rows, key=lambda name: not name.startswith("SRA"))}
    paper = paper_cells(key)
    records = verdicts(key, KINDS, rows, paper)
    result.tables[key] = {"metrics": list(KINDS), **rows}
    result.chosen[key] = chosen
    result.verdicts += records
    result.parts = [
        *result.parts,
        side_by_side(KINDS, rows, paper, caption),
        told(records),
        rivals_ahead(KINDS, rows),
        *(told_sides(lab, ours, best_of_ours[kind], kind, dim, variant) for kind in KINDS),
        *told_what_cannot_run(result.cannot_run.get(key, {})),
    ]


def told_sides(lab: Lab, ours: Method, setting: Setting, kind: str, dim: int, variant: str) -> str:
    """In words, how much of SRA's AUC is against rows before the change and how much against rows after it."""
    sides, unscored = [], []
    for stream in lab.streams(kind, dim, variant):
        scores, change = ours.run(setting, stream, 0).scores[:, 0], change_of(stream)
        before = benefit_auc(scores, change, TOLERANCE, stop=change + TOLERANCE)
        after = benefit_auc(scores, change, TOLERANCE, start=change - TOLERANCE + 1)
        sides.append([before, after])
        unscored.append(np.isnan(scores[change : change + TOLERANCE]).mean())
    before, after = np.mean(sides, axis=0)
    return (
        f"SRA’s score on the {kind} streams has an AUC of {before:.3f} against rows before the change alone and of "
        f"{after:.3f} against those after it; {np.mean(unscored):.0%} of the {TOLERANCE} rows after the change were "
        "dropped and have no score."
    )
