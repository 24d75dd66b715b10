"""Figure: threshold γ, step size ρ and mean squared errors."""

from __future__ import annotations

import numpy as np

from limpet.report.html import Part, Picture, Table
from limpet.tuning import select_best
from limpet_lab.paper._results import Result
from limpet_lab.paper._select import make_setting_record
from limpet_lab.paper.context import CHANGE_KINDS, S_EVAL, ExperimentContext, make_synthetic_learners
from limpet_lab.plots.small_multiples import draw_panels

TITLE = "The trade-off between γ and ρ"
METRICS = ["S_eval", "S_bc", "S_ac", "S_tot"]


def run(context: ExperimentContext) -> Result:
    """For each γ the β and M with the least S_eval, and the resulting errors."""
    method = make_synthetic_learners(1)[0]
    gammas = sorted({setting["gamma"] for setting in method.settings})
    panels: dict[str, dict[str, list[float]]] = {name: {kind: [] for kind in CHANGE_KINDS} for name in ["ρ", *METRICS]}
    table: dict[str, list[dict[str, float]]] = {}
    best: dict[str, dict[str, float]] = {}
    for kind in CHANGE_KINDS:
        errors = context.sweep_synthetic(method, kind, 1, "printed").values[:, :, 0, 0, S_EVAL:]
        table[kind] = []
        for gamma in gammas:
            indices = [i for i, setting in enumerate(method.settings) if setting["gamma"] == gamma]
            chosen = indices[select_best(errors[indices, :, 0], maximize=False)]
            averages = errors[chosen].mean(axis=0)
            record = {
                **make_setting_record(method, method.settings[chosen]),
                **dict(zip(METRICS, averages.tolist(), strict=True)),
            }
            table[kind].append(record)
            panels["ρ"][kind].append(record["rho"])
            for metric in METRICS:
                panels[metric][kind].append(record[metric])
        best[kind] = min(table[kind], key=lambda record: record["S_eval"])
    rows = [
        [f"{kind}, γ = {r['gamma']:g}", f"{r['beta']:g}", f"{r['M']:g}", f"{r['rho']:.4f}"]
        + [f"{r[metric]:.4f}" for metric in METRICS]
        for kind in CHANGE_KINDS
        for r in table[kind]
    ]
    best_gamma = {
        kind: table[kind][int(np.argmin([r["S_tot"] for r in table[kind]]))]["gamma"] for kind in CHANGE_KINDS
    }
    parts: list[Part] = [
        Picture(
            draw_panels(gammas, panels, x_label="γ", mark=best["abrupt"]["gamma"]),
            "Five panels over γ: the step size ρ, and the four mean squared errors, for abrupt and gradual changes.",
            "For each γ the β and M that minimise S_eval (mean over the streams); ρ by Corollary 1.",
        ),
        Table(["", "β", "M", "ρ", *METRICS], rows),
        f"S_eval is least at γ = {best['abrupt']['gamma']:g} (abrupt) and {best['gradual']['gamma']:g} (gradual), "
        f"S_tot at γ = {best_gamma['abrupt']:g} and {best_gamma['gradual']:g}; the paper finds γ = 3 with (β, M) "
        "= (0.1, 5), ρ = 0.0116, for both. A γ that is too small rejects points of the new regime, one that is too "
        "large lets outliers in.",
    ]
    return Result(TITLE, {"gamma_rho": table}, parts=parts)
