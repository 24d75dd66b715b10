"""The two tables of AUCs on synthetic streams, 1-D and 3-D."""

from __future__ import annotations

import numpy as np

from limpet.metrics import benefit_auc
from limpet.tuning import Setting
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
from limpet_lab.paper._select import choose_setting, describe_failures, list_reasons, make_setting_record
from limpet_lab.paper.context import (
    AUC,
    CHANGE_KINDS,
    TOLERANCE_ROWS,
    ExperimentContext,
    get_change_row,
    make_synthetic_methods,
)
from limpet_lab.paper.methods import DETECTOR_NAME, LearnerMethod, Method, make_sra_full_norm
from limpet_lab.paper.oracle import compute_truth_auc, compute_truth_with_memory_auc
from limpet_lab.paper.published import get_paper_cells

SETTLING_ROWS = 2_000  # rows after a change, abrupt or gradual, when everything has settled


def fill_auc_table(context: ExperimentContext, result: Result, key: str, dim: int, variant: str, caption: str) -> None:
    """Add a table to a result: grid maxima on the scored streams as in the paper, and SRA tuned on others."""
    rows: dict[str, list[Cell]] = {}
    chosen: dict[str, dict[str, Setting]] = {kind: {} for kind in CHANGE_KINDS}
    best_of_ours: dict[str, Setting] = {}
    methods = make_synthetic_methods(dim, context.plan.quick)
    ours = methods[0]
    variants = [LearnerMethod("SRA-full-norm", ours.settings, make_sra_full_norm)] if not context.plan.quick else []
    for method in [*methods, *variants]:
        rows[method.name] = []
        for kind in CHANGE_KINDS:
            sweep = context.sweep_synthetic(method, kind, dim, variant)
            areas = sweep.values[:, :, 0, :, AUC]
            best = choose_setting(method, sweep, areas)
            rows[method.name].append(compute_cell(areas[best.setting_index, :, best.variable]))
            chosen[kind][method.name] = best.record
            if method is ours:
                best_of_ours[kind] = best.setting
            if sweep.cannot_run:
                result.cannot_run.setdefault(key, {})[method.name] = list_reasons(sweep)
    rows["SRA-heldout"], rows["SRA-printed"], rows["truth"], rows["truth-memory"] = [], [], [], []
    for kind in CHANGE_KINDS:
        scored = context.sweep_synthetic(ours, kind, dim, variant).values[:, :, 0, 0, AUC]
        unseen = context.sweep_synthetic(ours, kind, dim, variant, held_out=True)
        held_out = choose_setting(ours, unseen, unseen.values[:, :, 0, :, AUC])
        printed = grids.SRA_PRINTED[key.removesuffix("_notebook")][kind]
        rows["SRA-heldout"].append(compute_cell(scored[held_out.setting_index]))
        rows["SRA-printed"].append(compute_cell(scored[ours.settings.index(printed)]))
        streams = context.get_streams(kind, dim, variant)
        rows["truth"].append(compute_cell([compute_truth_auc(stream) for stream in streams]))
        rows["truth-memory"].append(compute_cell([compute_truth_with_memory_auc(stream) for stream in streams]))
        chosen[kind]["SRA-heldout"] = held_out.record
        chosen[kind]["SRA-printed"] = make_setting_record(ours, printed)
    rows = {name: rows[name] for name in sorted(rows, key=lambda name: not name.startswith("SRA"))}
    paper = get_paper_cells(key)
    records, untuned = make_records(key, CHANGE_KINDS, rows, paper), make_auto_records(key, CHANGE_KINDS, rows, paper)
    auto = next((method for method in methods if method.name == DETECTOR_NAME), None)
    result.tables[key] = {"metrics": list(CHANGE_KINDS), **rows}
    result.chosen[key] = chosen
    result.verdicts += records
    result.auto_verdicts += untuned
    result.parts = [
        *result.parts,
        compare_cells(CHANGE_KINDS, rows, paper, caption),
        describe_comparison(records),
        describe_auto(CHANGE_KINDS, rows, untuned),
        describe_baselines_ahead(CHANGE_KINDS, rows),
        *(describe_sides(context, ours, best_of_ours[kind], kind, dim, variant) for kind in CHANGE_KINDS),
        *(describe_sides(context, auto, auto.settings[0], kind, dim, variant) for kind in CHANGE_KINDS if auto),
        *([describe_held_out(context, auto, dim, variant)] if auto else []),
        *describe_failures(result.cannot_run.get(key, {})),
    ]


def describe_sides(
    context: ExperimentContext, method: Method, setting: Setting, kind: str, dim: int, variant: str
) -> str:
    """In words, how much of a learner's AUC is against rows before the change and how much against rows after it, and
    what the latter may come from: rows without a score, or a score that is not as high on stable rows as it was."""
    sides, unscored, levels = [], [], []
    for stream in context.get_streams(kind, dim, variant):
        scores, change = method.run(setting, stream, 0).scores[:, 0], get_change_row(stream)
        auc_before = benefit_auc(scores, change, TOLERANCE_ROWS, stop=change + TOLERANCE_ROWS)
        auc_after = benefit_auc(scores, change, TOLERANCE_ROWS, start=change - TOLERANCE_ROWS + 1)
        sides.append([auc_before, auc_after])
        unscored.append(np.isnan(scores[change : change + TOLERANCE_ROWS]).mean())
        levels.append([np.nanmedian(scores[: change - TOLERANCE_ROWS]), np.nanmedian(scores[change + SETTLING_ROWS :])])
    auc_before, auc_after = np.mean(sides, axis=0)
    stable, settled = np.mean(levels, axis=0)
    share = f"{np.mean(unscored):.0%} of the {TOLERANCE_ROWS} rows after the change were rejected and have no score"
    if not np.any(unscored):
        share = "no row after the change is without a score"
    return (
        f"{method.name}’s score on the {kind} streams has an AUC of {auc_before:.3f} against rows before the change "
        f"alone and of {auc_after:.3f} against those after it; {share}. On stable rows its median is {stable:.3f} "
        f"before the change and {settled:.3f} from {SETTLING_ROWS:,} rows after it on."
    )


def describe_held_out(context: ExperimentContext, auto: Method, dim: int, variant: str) -> str:
    """Describe the AUC of Detector on the streams that SRA-heldout is tuned on, and that are scored nowhere."""
    areas = [
        context.sweep_synthetic(auto, kind, dim, variant, held_out=True).values[0, :, 0, 0, AUC]
        for kind in CHANGE_KINDS
    ]
    means = " and ".join(
        f"{np.mean(areas_of_kind):.3f} on {kind}" for kind, areas_of_kind in zip(CHANGE_KINDS, areas, strict=True)
    )
    return f"On as many other streams, those that SRA-heldout is tuned on, {DETECTOR_NAME} has {means} changes."
