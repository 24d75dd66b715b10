"""Appendix B: the AUC of SRA for 60 settings, abrupt and gradual."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from limpet.learners import StochasticApproximation
from limpet.report.html import Part, Table
from limpet.tuning import BenefitAUC, tune
from limpet.tuning.tune import run_batched
from limpet_lab.paper import grids
from limpet_lab.paper._compare import format_cell, format_difference
from limpet_lab.paper._results import Result, compute_cell
from limpet_lab.paper.context import CHANGE_KINDS, TOLERANCE_ROWS, ExperimentContext
from limpet_lab.paper.methods import N_FIRST_POINTS, make_sra
from limpet_lab.paper.published import load_paper_tables

TITLE = "Appendix B: the AUC of SRA for 60 settings"
KEY = "appendix_b_auc_of_sra"


def make_learner(**setting: Any) -> StochasticApproximation:
    """Return SRA as the paper's notebooks run and start it."""
    return make_sra(**setting, n_init=N_FIRST_POINTS)


def run(context: ExperimentContext) -> Result:
    """Every setting of Appendix B on the univariate streams."""
    settings = grids.SRA_APPENDIX_B
    areas, seconds = {}, {}
    for kind in CHANGE_KINDS:
        streams = context.get_streams(kind, 1, "printed")
        # Compiled before it is timed.
        run_batched([make_learner(**setting) for setting in settings[:2]], streams[0].y[:100])
        began = time.perf_counter()
        options: dict[str, Any] = {"workers": context.plan.workers, "progress": context.progress}
        areas[kind] = tune(make_learner, settings, streams, BenefitAUC(TOLERANCE_ROWS), **options).sweep.values[:, :, 0]
        seconds[kind] = time.perf_counter() - began
    our_rows = [
        [*setting.values(), *(compute_cell(areas[kind][i]) for kind in CHANGE_KINDS)]
        for i, setting in enumerate(settings)
    ]
    printed_rows = {tuple(row[:3]): row[3:] for row in load_paper_tables()[KEY]["rows"]}
    rows = []
    for row in our_rows:
        printed_row = printed_rows[tuple(row[:3])]
        shown_row = [",\N{NO-BREAK SPACE}".join(f"{value:g}" for value in row[:3])]
        for our_cell, printed_cell in zip(row[3:], printed_row, strict=True):
            shown_row += [
                format_cell(our_cell),
                format_cell(printed_cell),
                format_difference(our_cell[0], printed_cell[0]),
            ]
        rows.append(shown_row)
    differences = np.array([[row[3 + k][0] - printed_rows[tuple(row[:3])][k][0] for k in (0, 1)] for row in our_rows])
    counts = f"{len(settings)} settings × {len(context.plan.seeds)} streams × 20,000 points"
    parts: list[Part] = [
        f"{counts}, scores and AUCs: {seconds['abrupt']:.1f} s for the abrupt streams, {seconds['gradual']:.1f} s for "
        "the gradual ones, on this machine.",
        Table(["γ, β, M", "abrupt", "paper", "difference", "gradual", "paper", "difference"], rows),
        f"The median difference is {np.median(differences[:, 0]):+.3f} on abrupt and "
        f"{np.median(differences[:, 1]):+.3f} on gradual changes. The AUC depends on the choice as it does in the "
        f"paper, from {min(r[3][0] for r in our_rows):.2f} to {max(r[3][0] for r in our_rows):.2f} on abrupt changes: "
        "three parameters, which cannot be set without labels.",
    ]
    table = {"columns": ["gamma", "beta", "M", *CHANGE_KINDS], "rows": our_rows}
    return Result(TITLE, {KEY: table}, seconds={"whole grid": seconds}, parts=parts)
