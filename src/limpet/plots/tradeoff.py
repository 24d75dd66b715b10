"""Picture of the trade-off between threshold and step size."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limpet._validation import FloatArray
from limpet.exceptions import InvalidInputError
from limpet.plots._style import BLUE, INK, SHADE_STYLE, VERMILION, YELLOW, Style, new_figure, style_axes
from limpet.tradeoff import Constants, Optimum, admissible_step, best_step, bound, optimum, step_size
from limpet.tradeoff._numeric import check_gamma
from limpet.tradeoff.optimum import profile_step

COROLLARY_1_STYLE: Style = {"color": VERMILION, "linestyle": "-", "linewidth": 2.0}
BEST_STYLE: Style = {"color": BLUE, "linestyle": (0, (6, 2)), "linewidth": 2.0}
LIMIT_STYLE: Style = {"color": INK, "linestyle": "-.", "linewidth": 1.4}


def draw_tradeoff(gammas: ArrayLike, constants: Constants, path: str | Path) -> Path:
    """Draw step sizes and bounds over the thresholds, and mark the optimum.

    The upper panel has ρ by Corollary 1, the best ρ, and the limit below which Theorem 2 admits it. The lower panel has
    the bound for the first, for the best admissible ρ, and without a threshold (Corollary 2). Lines end where Theorem 2
    does not admit the step, since the bound does not hold. The suffix of ``path`` is the format.

    Parameters
    ----------
    gammas : array
        At least two thresholds.
    constants : Constants
        The constants of the bound.
    path : str or path
        The file to write.

    Returns
    -------
    Path
        The path.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "tradeoff.png"
    >>> draw_tradeoff(np.linspace(4.0, 24.0, 200), Constants(), target) == target
    True
    """
    thresholds = np.unique(check_gamma(gammas, require_finite=True))
    if thresholds.size < 2:
        raise InvalidInputError(f"gammas: must have at least two different thresholds, got {gammas!r}.")
    best = optimum(constants)
    figure = new_figure(7.5, 8.0)
    above, below = figure.subplots(2, 1, sharex=True)
    _draw_steps(above, thresholds, constants, best)
    _draw_bounds(below, thresholds, constants, best)
    for axes in (above, below):
        style_axes(axes)
        axes.legend(fontsize=9, framealpha=0.9, edgecolor="none")
        axes.set_xlim(thresholds[0], thresholds[-1])
    below.set_xlabel("threshold γ")
    figure.savefig(path, dpi=150)
    return Path(path)


def _draw_steps(axes: Any, gammas: FloatArray, constants: Constants, best: Optimum) -> None:
    limit, steps = admissible_step(gammas, constants), best_step(gammas, constants)
    _line(axes, gammas, _corollary_1(gammas, constants), "Corollary 1: the best γ for this ρ", COROLLARY_1_STYLE)
    _line(axes, gammas, steps, "the best ρ for this γ", BEST_STYLE)
    _line(axes, gammas, limit, "admissible limit", LIMIT_STYLE)
    axes.set_yscale("log")
    shown = [value for value in (*steps, best.rho, limit.max()) if 0.0 < value < math.inf]
    bottom, top = (min(shown) / 30.0, max(shown) * 10.0) if shown else (1e-6, 1.0)
    axes.fill_between(gammas, np.maximum(limit, bottom), top, label="outside Theorem 2", **SHADE_STYLE)
    axes.set_ylim(bottom, top)
    _mark(axes, best, best.rho)
    where = f"γ = {best.gamma:.4g}" if math.isfinite(best.gamma) else "γ = ∞ (no threshold)"
    axes.set_title(f"Smallest bound {best.bound:.3g} at {where}, ρ = {best.rho:.3g}", loc="left", fontsize=11)
    axes.set_ylabel("step size ρ")
    if gammas[0] < constants.outlier_radius < gammas[-1]:
        axes.axvline(constants.outlier_radius, color="#777777", linewidth=1.0, linestyle=":")
        note = " √d·U: no outlier\n is farther away"
        axes.text(constants.outlier_radius, bottom * 1.2, note, color="#555555", fontsize=8, va="bottom")


def _draw_bounds(axes: Any, gammas: FloatArray, constants: Constants, best: Optimum) -> None:
    limit, steps = admissible_step(gammas, constants), _corollary_1(gammas, constants)
    floor = bound(math.inf, max(profile_step(math.inf, constants), 1e-300), constants)
    along_corollary = _bounds(gammas, np.where(steps < limit, steps, 0.0), constants)
    along_best = _bounds(gammas, np.minimum(best_step(gammas, constants), limit), constants)
    _line(axes, gammas, along_corollary, "ρ by Corollary 1, where admissible", COROLLARY_1_STYLE)
    _line(axes, gammas, along_best, "the best admissible ρ", BEST_STYLE)
    axes.axhline(floor, label="no threshold, its best ρ (Corollary 2)", **LIMIT_STYLE)
    if best.bound > 0.0:
        axes.set_yscale("log")
        axes.set_ylim(best.bound / 1.5, 30.0 * floor)
    if not np.any(limit > 0.0):
        note = "Theorem 2 admits no step size for these thresholds"
        axes.text(0.5, 0.6, note, transform=axes.transAxes, ha="center", color="#555555")
    if gammas[0] < constants.outlier_radius < gammas[-1]:
        axes.axvline(constants.outlier_radius, color="#777777", linewidth=1.0, linestyle=":")
    _mark(axes, best, best.bound)
    axes.set_ylabel("bound on E|h|²")


def _line(axes: Any, gammas: FloatArray, values: FloatArray, label: str, style: Style) -> None:
    """Draw the finite positive values; without any, add no legend entry either."""
    visible = np.where((values > 0.0) & np.isfinite(values), values, np.nan)
    if not np.all(np.isnan(visible)):
        axes.plot(gammas, visible, label=label, **style)


def _mark(axes: Any, best: Optimum, height: float) -> None:
    if math.isfinite(best.gamma):
        label = f"optimum ({best.kind})"
        axes.plot([best.gamma], [height], "k*", markersize=17, markerfacecolor=YELLOW, zorder=5, label=label)


def _bounds(gammas: FloatArray, rhos: FloatArray, constants: Constants) -> FloatArray:
    """Return the bounds at pairs of γ and ρ, NaN where ρ is 0."""
    pairs = zip(gammas.tolist(), rhos.tolist(), strict=True)
    return np.array([bound(gamma, rho, constants) if rho > 0.0 else np.nan for gamma, rho in pairs])


def _corollary_1(gammas: FloatArray, constants: Constants) -> FloatArray:
    """Return the steps of Corollary 1, NaN from √d·U on, or without outliers."""
    if constants.alpha == 1.0:
        return np.full_like(gammas, np.nan)
    return np.where(gammas < constants.outlier_radius, step_size(gammas, constants.beta, constants.M), np.nan)
