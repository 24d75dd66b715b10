"""Errors over γ and ρ: measured on the stream, or the bound of the theory."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from limpet import tradeoff
from limpet._parallel import n_threads
from limpet.core.state import Vector
from limpet.learners import SRA
from limpet.models._standardization import MAD_TO_SD
from limpet.server.explorer.dataset import ExplorerDataset
from limpet.server.explorer.run import mse_by_phase, run_timed
from limpet.server.explorer.settings import AutoSettings, ManualSettings

N_GAMMAS, N_RHOS = 14, 12
RHO_GRID = np.geomspace(3e-4, 0.3, N_RHOS)
GAMMA_RANGE_SD = (1.5, 60.0)  # thresholds in standard deviations
MAX_MEASURED_ROWS = 20_000
DEFAULT_BETA, DEFAULT_M = 0.1, 5.0  # of the relation between γ and ρ; the values of the paper
MIN_OUTLIER_SHARE = 0.001  # without outliers, the theory has no optimal threshold


def tradeoff_grid(data: ExplorerDataset, setting: AutoSettings | ManualSettings) -> dict[str, Any]:
    """Return the MSE over γ and ρ, or the bound of Theorem 2 without true means."""
    if isinstance(setting, ManualSettings):
        manual = setting
    else:
        n_components = 1 if isinstance(setting.n_components, str) else setting.n_components
        n_components = n_components if data.means is None else data.means.shape[1]
        manual = ManualSettings(mode="manual", n_components=n_components)
    if manual.norm == "whitened":
        low, high = GAMMA_RANGE_SD
    else:  # in the units of the data
        norm = typical_norm(data.values)
        low, high = 0.05 * norm, 20.0 * norm
    gammas = np.geomspace(low, high, N_GAMMAS)
    if data.means is not None and data.means.shape[1] == manual.n_components and len(data.values) <= MAX_MEASURED_ROWS:
        result = _measure_mse(data, manual, gammas)
    else:
        result = _compute_bound(data, manual, gammas)
    return result | {"gammas": gammas, "rhos": RHO_GRID, "norm": manual.norm, "n_components": manual.n_components}


def typical_norm(values: Vector) -> float:
    """Return the median norm of the points."""
    norms = np.sqrt(np.nansum(values**2, axis=1))
    typical = float(np.median(norms[np.isfinite(norms)])) if np.isfinite(norms).any() else 1.0
    return typical or 1.0


def noise_std(values: Vector) -> float:
    """Return the sd of the noise from differences of neighbours, robust to shifts."""
    spreads = []
    for column in values.T:
        steps = np.abs(np.diff(column[np.isfinite(column)]))
        steps = steps[np.isfinite(steps)]
        if len(steps):
            spreads.append(float(np.median(steps)) * MAD_TO_SD / math.sqrt(2.0) or float(np.mean(steps)))
    typical = float(np.median(spreads)) if spreads else 1.0
    return typical if 0.0 < typical < 1e100 else 1.0


def _measure_mse(data: ExplorerDataset, manual: ManualSettings, gammas: Vector) -> dict[str, Any]:
    """Measure the mean squared error of every pair, each with its own learner."""

    def run_pair(pair: tuple[float, float]) -> float:
        learner = SRA(manual.n_components, float(pair[0]), float(pair[1]), norm=manual.norm)
        trace, _, _ = run_timed(learner, data)
        mse = mse_by_phase(trace.means, data)
        return math.nan if mse is None or mse["total"] is None else mse["total"]

    pairs = [(gamma, rho) for gamma in gammas for rho in RHO_GRID]
    with ThreadPoolExecutor(n_threads()) as pool:
        errors = np.array(list(pool.map(run_pair, pairs))).reshape(len(gammas), len(RHO_GRID))
    best = None
    if np.isfinite(errors).any():
        i, j = np.unravel_index(np.nanargmin(errors), errors.shape)
        best = {"gamma": float(gammas[i]), "rho": float(RHO_GRID[j]), "value": float(errors[i, j])}
    return {
        "kind": "mse",
        "title": "Mean squared error of the means",
        "values": errors,
        "limits": None,
        "best": best,
        "relation": {"beta": DEFAULT_BETA, "M": DEFAULT_M},
        "assumptions": f"Measured on all {len(data.values):,} rows against the truth, from row 1,000 on.",
    }


def _compute_bound(data: ExplorerDataset, manual: ManualSettings, gammas: Vector) -> dict[str, Any]:
    """Compute the theory's bound, constants fitted to the stream or otherwise 1."""
    auto = AutoSettings(n_components=manual.n_components).learner()
    run_timed(auto, data)
    fitted = auto.fitted_params() if auto.started else {"M": 1.5, "contamination": 0.01}
    outlier_share = min(max(fitted["contamination"], MIN_OUTLIER_SHARE), 0.5)
    n, width = data.values.shape
    U = _max_deviation(data)
    constants = tradeoff.Constants(alpha=1.0 - outlier_share, U=U, dim=width, M=fitted["M"], n=max(n, 1))
    table = np.array([[tradeoff.bound(float(gamma), float(rho), constants) for rho in RHO_GRID] for gamma in gammas])
    optimum = tradeoff.optimum(constants)
    best = {"gamma": optimum.gamma, "rho": optimum.rho, "value": optimum.bound}
    assumptions = (
        "The true means are unknown: this is the bound of the theory. Fitted constants: "
        f"tail M = {fitted['M']:.3g}, contamination {100 * outlier_share:.2g} %, outliers up to "
        f"{U:.3g} standard deviations away. All other constants are 1. The map shows how the two "
        "parameters depend on each other; its values are not a forecast."
    )
    return {
        "kind": "bound",
        "title": "The theory's bound on the error",
        "values": table,
        "limits": np.asarray(tradeoff.admissible_step(gammas, constants)),
        "best": best if math.isfinite(optimum.gamma) else None,
        "relation": {"beta": constants.beta, "M": constants.M},
        "assumptions": assumptions,
    }


def _max_deviation(data: ExplorerDataset) -> float:
    """Return the largest distance of a point from the median, in robust sd."""
    values = data.values[np.isfinite(data.values).all(axis=1)]
    if not len(values):
        return 20.0
    median = np.median(values, axis=0)
    spread = MAD_TO_SD * np.median(np.abs(values - median), axis=0)
    spread = np.where(spread > 0.0, spread, np.maximum(values.std(axis=0), 1e-300))
    return float(np.clip(np.abs((values - median) / spread).max(), 5.0, 1e6))
