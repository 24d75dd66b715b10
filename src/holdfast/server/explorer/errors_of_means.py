"""How well an estimate has followed the truth, where there is one."""

from __future__ import annotations

import math
from typing import Any

from holdfast.metrics import segment_mse
from holdfast.scheme.state import Vector
from holdfast.server.explorer.looked_at import ExplorerDataset

PAPER_TAU, PAPER_TAU_START = 1000, 500  # the paper's: rows before τ are for the start


def mse_by_phase(means: Vector, data: ExplorerDataset) -> dict[str, Any] | None:
    """Mean squared errors of the means: in all, before the first change, and from it on; None where nothing is known.

    The learner must have as many components as the truth; if it has not, `told` says so.
    """
    true_means = data.means
    if true_means is None or not data.change_points:
        return None
    if means.shape[1] != true_means.shape[1]:
        expected = f"{true_means.shape[1]} component{'s' * (true_means.shape[1] != 1)}"
        return {"total": None, "before": None, "after": None, "told": f"the truth has {expected}: choose as many"}
    mse = segment_mse(means, true_means, data.change_points[0], PAPER_TAU, PAPER_TAU_START)
    values = {"total": mse.S_tot, "before": mse.S_bc, "after": mse.S_ac}
    return {name: value if math.isfinite(value) else None for name, value in values.items()} | {"told": None}
