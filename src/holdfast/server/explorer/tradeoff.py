"""The trade-off drawn: what every γ and ρ cost on this stream, or what the theory says that they cost."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from holdfast import tradeoff
from holdfast.learners import SRA
from holdfast.scheme.state import Vector
from holdfast.server.explorer.errors_of_means import mean_errors
from holdfast.server.explorer.looked_at import LookedAt
from holdfast.server.explorer.running import learn
from holdfast.server.explorer.settings import Autopilot, Hand
from holdfast.threads import cores

N_GAMMAS, N_RHOS = 14, 12
RHOS = np.geomspace(3e-4, 0.3, N_RHOS)
WHITENED = (1.5, 60.0)  # thresholds in standard deviations
MOST_ROWS = 20_000
BETA, SHARPNESS = 0.1, 5.0  # of the relation between γ and ρ: values of the paper
LEAST_SHARE = 0.001  # of outliers: the theory has no best threshold without any


def trade(data: LookedAt, setting: Autopilot | Hand) -> dict[str, Any]:
    """A table over γ and ρ: of the mean squared error where the truth is known, else of the bound of Theorem 2."""
    hand = setting if isinstance(setting, Hand) else Hand(mode="hand", n_components=_components(data, setting))
    gammas = np.geomspace(*_range(data, hand), N_GAMMAS)
    if data.means is not None and data.means.shape[1] == hand.n_components and len(data.values) <= MOST_ROWS:
        told = _measured(data, hand, gammas)
    else:
        told = _promised(data, hand, gammas)
    return told | {"gammas": gammas, "rhos": RHOS, "norm": hand.norm, "n_components": hand.n_components}


def _components(data: LookedAt, setting: Autopilot) -> int:
    if data.means is not None:
        return int(data.means.shape[1])
    return 1 if isinstance(setting.n_components, str) else setting.n_components


def _range(data: LookedAt, hand: Hand) -> tuple[float, float]:
    """Thresholds worth a look: standard deviations, or for the paper's norms lengths in the units of the data."""
    if hand.norm == "whitened":
        return WHITENED
    length = usual_length(data.values)
    return 0.05 * length, 20.0 * length


def usual_length(values: Vector) -> float:
    """How far points lie from 0, usually."""
    lengths = np.sqrt(np.nansum(values**2, axis=1))
    usual = float(np.median(lengths[np.isfinite(lengths)])) if np.isfinite(lengths).any() else 1.0
    return usual or 1.0


def usual_spread(values: Vector) -> float:
    """The standard deviation of the noise, by how far neighbours are apart: changes of the level do not count."""
    spreads = []
    for column in values.T:
        steps = np.abs(np.diff(column[np.isfinite(column)]))
        steps = steps[np.isfinite(steps)]
        if len(steps):
            spreads.append(float(np.median(steps)) * 1.4826 / math.sqrt(2.0) or float(np.mean(steps)))
    usual = float(np.median(spreads)) if spreads else 1.0
    return usual if 0.0 < usual < 1e100 else 1.0


def _measured(data: LookedAt, hand: Hand, gammas: Vector) -> dict[str, Any]:
    """The mean squared error of every pair, each learner run by itself."""

    def error(pair: tuple[float, float]) -> float:
        learner = SRA(hand.n_components, float(pair[0]), float(pair[1]), norm=hand.norm)
        trace, _, _ = learn(learner, data)
        found = mean_errors(trace.means, data)
        return math.nan if found is None or found["total"] is None else found["total"]

    pairs = [(gamma, rho) for gamma in gammas for rho in RHOS]
    with ThreadPoolExecutor(cores()) as pool:
        errors = np.array(list(pool.map(error, pairs))).reshape(len(gammas), len(RHOS))
    best = None
    if np.isfinite(errors).any():
        i, j = np.unravel_index(np.nanargmin(errors), errors.shape)
        best = {"gamma": float(gammas[i]), "rho": float(RHOS[j]), "value": float(errors[i, j])}
    return {
        "kind": "mse",
        "title": "Mean squared error of the means",
        "values": errors,
        "limits": None,
        "best": best,
        "relation": {"beta": BETA, "M": SHARPNESS},
        "assumed": f"Measured on all {len(data.values):,} rows against the truth, from row 1,000 on.",
    }


def _promised(data: LookedAt, hand: Hand, gammas: Vector) -> dict[str, Any]:
    """The bound of the theory, with what the autopilot finds in the stream; its other constants are 1."""
    pilot = Autopilot(n_components=hand.n_components).learner()
    learn(pilot, data)
    found = pilot.calibration() if pilot.started else {"M": 1.5, "contamination": 0.01}
    share = min(max(found["contamination"], LEAST_SHARE), 0.5)
    n, width, reach = len(data.values), data.values.shape[1], _reach(data)
    constants = tradeoff.Constants(alpha=1.0 - share, U=reach, dim=width, M=found["M"], n=max(n, 1))
    table = np.array([[tradeoff.bound(float(gamma), float(rho), constants) for rho in RHOS] for gamma in gammas])
    least = tradeoff.optimum(constants)
    best = {"gamma": least.gamma, "rho": least.rho, "value": least.bound} if math.isfinite(least.gamma) else None
    assumed = (
        f"No truth is known here, so this is what the theory promises. Found in the stream: tail M = {found['M']:.3g}, "
        f"contamination {100 * share:.2g} %, outliers up to {reach:.3g} standard deviations off; its other "
        "constants are taken to be 1. It shows how the two knobs depend on each other; its height is no forecast."
    )
    return {
        "kind": "bound",
        "title": "The theory's bound on the error",
        "values": table,
        "limits": np.asarray(tradeoff.admissible_step(gammas, constants)),
        "best": best,
        "relation": {"beta": constants.beta, "M": constants.M},
        "assumed": assumed,
    }


def _reach(data: LookedAt) -> float:
    """How many standard deviations off the farthest point is."""
    values = data.values[np.isfinite(data.values).all(axis=1)]
    if not len(values):
        return 20.0
    middle = np.median(values, axis=0)
    spread = 1.4826 * np.median(np.abs(values - middle), axis=0)
    spread = np.where(spread > 0.0, spread, np.maximum(values.std(axis=0), 1e-300))
    return float(np.clip(np.abs((values - middle) / spread).max(), 5.0, 1e6))
