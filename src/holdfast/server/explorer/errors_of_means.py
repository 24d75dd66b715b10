"""How well an estimate has followed the truth, where there is one."""

from __future__ import annotations

import math
from typing import Any

from holdfast.metrics import segment_mse
from holdfast.scheme.state import Vector
from holdfast.server.explorer.looked_at import LookedAt

TAU, TAU_START = 1000, 500  # the paper's: rows before τ are for the start


def mean_errors(means: Vector, data: LookedAt) -> dict[str, Any] | None:
    """Mean squared errors of the means: in all, before the first change, and from it on; None where nothing is known.

    The learner must have as many components as the truth; if it has not, `told` says so.
    """
    true = data.means
    if true is None or not data.change_points:
        return None
    if means.shape[1] != true.shape[1]:
        wanted = f"{true.shape[1]} component{'s' * (true.shape[1] != 1)}"
        return {"total": None, "before": None, "after": None, "told": f"the truth has {wanted}: choose as many"}
    found = segment_mse(means, true, data.change_points[0], TAU, TAU_START)
    numbers = {"total": found.S_tot, "before": found.S_bc, "after": found.S_ac}
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()} | {"told": None}
