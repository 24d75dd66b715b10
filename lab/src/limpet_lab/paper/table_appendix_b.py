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
from limpet_lab.paper._compare import difference, format_cell
from limpet_lab.paper._results import Result, cell
from limpet_lab.paper.context import KINDS, TOLERANCE, Lab
from limpet_lab.paper.methods import FIRST_POINTS, sra
from limpet_lab.paper.published import paper_tables

TITLE = "Appendix B: the AUC of SRA for 60 settings"
KEY = "appendix_b_auc_of_sra"


def learner_of(**setting: Any) -> StochasticApproximation:
    """SRA as the paper's notebooks run and start it."""
    return sra(**setting, n_init=FIRST_POINTS)


def run(lab: Lab) -> Result:
    """Every setting of Appendix B on the univariate streams."""
    settings = grids.SRA_APPENDIX_B
    areas, seconds = {}, {}
    for kind in KINDS:
        streams = lab.streams(kind, 1, "printed")
        run_batched(
            [learner_of(**setting) for setting in settings[:2]], streams[0].y[:100]
        )  # compiled, before it is timed
        began = time.perf_counter()
        how: dict[str, Any] = {"workers": lab.plan.workers, "progress": lab.progress}
        areas[kind] = tune(learner_of, settings, streams, BenefitAUC(TOLERANCE), **how).sweep.values[:, :, 0]
        seconds[kind] = time.perf_counter() - began
    ours = [[*setting.values(), *(cell(areas[kind][i]) for kind in KINDS)] for i, setting in enumerate(settings)]
    printed = {tuple(row[:3]): row[3:] for row in paper_tables()[KEY]["rows"]}
    rows = []
    for row in ours:
        theirs = printed[tuple(row[:3])]
        shown_row = [",\N{NO-BREAK SPACE}".join(f"{value:g}" for value in row[:3])]
        for mine, paper in zip(row[3:], theirs, strict=True):
            shown_row += [format_cell(mine), format_cell(paper), difference(mine[0], paper[0])]
        rows.append(shown_row)
    differences = np.array([[row[3 + k][0] - printed[tuple(row[:3])][k][0] for k in (0, 1)] for row in ours])
    counts = f"{len(settings)} settings × {len(lab.plan.seeds)} streams × 20,000 points"
    parts: list[Part] = [
        f"{counts}, scores and AUCs: {seconds['abrupt']:.1f} s for the abrupt streams, {seconds['gradual']:.1f} s for "
        "the gradual ones, on this machine.",
        Table(["γ, β, M", "abrupt", "paper", "difference", "gradual", "paper", "difference"], rows),
        f"The median difference is {np.median(differences[:, 0]):+.3f} on abrupt and "
        f"{np.median(differences[:, 1]):+.3f} on gradual changes. The AUC depends on the choice as it does in the "
        f"paper, from {min(r[3][0] for r in ours):.2f} to {max(r[3][0] for r in ours):.2f} on abrupt changes: three "
        "parameters, which cannot be set without labels.",
    ]
    table = {"columns": ["gamma", "beta", "M", *KINDS], "rows": ours}
    return Result(TITLE, {KEY: table}, seconds={"whole grid": seconds}, parts=parts)
