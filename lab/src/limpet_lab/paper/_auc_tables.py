"""The two tables of AUCs on synthetic streams, 1-D and 3-D."""

from __future__ import annotations

import numpy as np

from limpet.metrics import benefit_auc
from limpet.tuning import Setting
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
from limpet_lab.paper._select import choose_setting, describe_failures, reasons, written
from limpet_lab.paper.context import AUC, KINDS, TOLERANCE, Lab, change_of, synthetic_methods
from limpet_lab.paper.methods import AUTO, Learner, Method, sra_full_norm
from limpet_lab.paper.oracle import truth_auc, truth_with_memory_auc
from limpet_lab.paper.published import paper_cells

ROWS_TO_SETTLE = 2_000  # rows after a change, abrupt or gradual, when everything has settled


def fill_auc_table(lab: Lab, result: Result, key: str, dim: int, variant: str, caption: str) -> None:
    """Adds one table to a result: grid maxima on the scored streams as in the paper, and SRA tuned on others."""
    rows: dict[str, list[Cell]] = {}
    chosen: dict[str, dict[str, Setting]] = {kind: {} for kind in KINDS}
    best_of_ours: dict[str, Setting] = {}
    methods = synthetic_methods(dim, lab.plan.quick)
    ours = methods[0]
    others = [Learner("SRA-full-norm", ours.settings, sra_full_norm)] if not lab.plan.quick else []
    for method in [*methods, *others]:
        rows[method.name] = []
        for kind in KINDS:
            sweep = lab.synthetic(method, kind, dim, variant)
            areas = sweep.values[:, :, 0, :, AUC]
            best = choose_setting(method, sweep, areas)
            rows[method.name].append(cell(areas[best.row, :, best.variable]))
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
        rows["SRA-heldout"].append(cell(scored[held_out.row]))
        rows["SRA-printed"].append(cell(scored[ours.settings.index(printed)]))
        streams = lab.streams(kind, dim, variant)
        rows["truth"].append(cell([truth_auc(stream) for stream in streams]))
        rows["truth-memory"].append(cell([truth_with_memory_auc(stream) for stream in streams]))
        chosen[kind]["SRA-heldout"] = held_out.written
        chosen[kind]["SRA-printed"] = written(ours, printed)
    rows = {name: rows[name] for name in sorted(rows, key=lambda name: not name.startswith("SRA"))}
    paper = paper_cells(key)
    records, untuned = verdicts(key, KINDS, rows, paper), auto_verdicts(key, KINDS, rows, paper)
    auto = next((method for method in methods if method.name == AUTO), None)
    result.tables[key] = {"metrics": list(KINDS), **rows}
    result.chosen[key] = chosen
    result.verdicts += records
    result.auto_verdicts += untuned
    result.parts = [
        *result.parts,
        compare_cells(KINDS, rows, paper, caption),
        describe_comparison(records),
        describe_auto(KINDS, rows, untuned),
        baselines_ahead(KINDS, rows),
        *(describe_sides(lab, ours, best_of_ours[kind], kind, dim, variant) for kind in KINDS),
        *(describe_sides(lab, auto, auto.settings[0], kind, dim, variant) for kind in KINDS if auto),
        *([describe_fresh(lab, auto, dim, variant)] if auto else []),
        *describe_failures(result.cannot_run.get(key, {})),
    ]


def describe_sides(lab: Lab, method: Method, setting: Setting, kind: str, dim: int, variant: str) -> str:
    """In words, how much of a learner's AUC is against rows before the change and how much against rows after it, and
    what the latter may come from: rows without a score, or a score that is not as high on stable rows as it was."""
    sides, unscored, levels = [], [], []
    for stream in lab.streams(kind, dim, variant):
        scores, change = method.run(setting, stream, 0).scores[:, 0], change_of(stream)
        before = benefit_auc(scores, change, TOLERANCE, stop=change + TOLERANCE)
        after = benefit_auc(scores, change, TOLERANCE, start=change - TOLERANCE + 1)
        sides.append([before, after])
        unscored.append(np.isnan(scores[change : change + TOLERANCE]).mean())
        levels.append([np.nanmedian(scores[: change - TOLERANCE]), np.nanmedian(scores[change + ROWS_TO_SETTLE :])])
    before, after = np.mean(sides, axis=0)
    stable, settled = np.mean(levels, axis=0)
    share = f"{np.mean(unscored):.0%} of the {TOLERANCE} rows after the change were rejected and have no score"
    if not np.any(unscored):
        share = "no row after the change is without a score"
    return (
        f"{method.name}’s score on the {kind} streams has an AUC of {before:.3f} against rows before the change alone "
        f"and of {after:.3f} against those after it; {share}. On stable rows its median is {stable:.3f} before the "
        f"change and {settled:.3f} from {ROWS_TO_SETTLE:,} rows after it on."
    )


def describe_fresh(lab: Lab, auto: Method, dim: int, variant: str) -> str:
    """In words, what Detector has on the streams that SRA-heldout is tuned on, and that are scored nowhere."""
    areas = [lab.synthetic(auto, kind, dim, variant, held_out=True).values[0, :, 0, 0, AUC] for kind in KINDS]
    means = " and ".join(f"{np.mean(each):.3f} on {kind}" for kind, each in zip(KINDS, areas, strict=True))
    return f"On as many other streams, those that SRA-heldout is tuned on, {AUTO} has {means} changes."
