"""The command `limpet tradeoff`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from limpet import tradeoff
from limpet.exceptions import InvalidInputError, MissingExtraError

DEFAULT_GAMMAS = (1.0, 3.0, 5.0, 10.0, 15.0)  # the paper's grid


def read_gammas(words: Sequence[str]) -> list[float]:
    """Return thresholds from strings such as "1,3" and "inf".

    >>> read_gammas(["1,3", "inf"])
    [1.0, 3.0, inf]
    """
    gammas = []
    for word in (part for word_list in words for part in word_list.split(",") if part.strip()):
        try:
            gammas.append(float(word))
        except ValueError:
            raise InvalidInputError(f"--gamma: must be numbers such as 3 or 1,3,5, got {word!r}.") from None
        if not 1e-100 < gammas[-1] < 1e100 and gammas[-1] != math.inf:
            raise InvalidInputError(f"--gamma: must be between 1e-100 and 1e100, or inf, got {word}.")
    return gammas or list(DEFAULT_GAMMAS)


def run_tradeoff(words: Sequence[str], beta: float, M: float, alpha: float, others: dict[str, Any], out: Path) -> None:
    """Print the table and the smallest bound, and draw ρ(γ) and the bound."""
    gammas, console = read_gammas(words), Console()
    if not out.parent.is_dir():
        raise InvalidInputError(f"--out: must be in an existing folder, got {out}.")
    if out.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInputError(f"--out: must end in .png, .svg or .pdf, got {out}.")
    constants = tradeoff.Constants.from_beta(beta, M, alpha, **others)
    parameters_text = ", ".join(f"{name} = {value:g}" for name, value in others.items())
    console.print(f"β = {constants.beta:g}, M = {M:g}, α = {alpha:g}, L = {constants.L:g} (from β), {parameters_text}")
    console.print(make_bounds_table(gammas, constants))
    optimum = tradeoff.optimum(constants)
    best = f"γ = {optimum.gamma:.4g}, ρ = {optimum.rho:.4g} ({optimum.kind})"
    console.print(f"Smallest bound {optimum.bound:.4g} at {best}.")
    console.print(optimum.explanation)
    finite = [gamma for gamma in gammas if math.isfinite(gamma)] or list(DEFAULT_GAMMAS)
    try:
        from limpet.plots.tradeoff import draw_tradeoff

        low, high = min(*finite, 1.0), max(*finite, 1.5 * constants.outlier_radius)
        fine = [low * (high / low) ** (i / 200) for i in range(201)]
        console.print(f"Picture: {draw_tradeoff(fine, constants, out)}")
    except MissingExtraError as error:
        console.print(f"No picture: {error}", markup=False, soft_wrap=True)


def make_bounds_table(gammas: Sequence[float], constants: tradeoff.Constants) -> Table:
    """Return a table with a row per threshold; † marks steps that Theorem 2 excludes."""
    table = Table(caption="† beyond the largest step that Theorem 2 admits: the bound does not hold there")
    for heading in ("γ", "ρ, Cor. 1", "largest ρ", "best ρ", "bound, Cor. 1", "bound, best", "gain of γ"):
        table.add_column(heading, justify="right")
    for gamma in sorted(gammas):
        limit, best = tradeoff.admissible_step(gamma, constants), tradeoff.best_step(gamma, constants)
        cells = [f"{gamma:g}"]
        corollary = tradeoff.step_size(gamma, constants.beta, constants.M) if math.isfinite(gamma) else None
        cells.append("–" if corollary is None else format_step(corollary, limit))
        cells.append(f"{limit:.4g}" if limit > 0.0 else "none")
        cells.append(format_step(best, limit))
        cells.append("–" if not corollary else f"{tradeoff.bound(gamma, corollary, constants):.4g}")
        cells.append(f"{tradeoff.bound(gamma, best, constants):.4g}")
        cells.append(f"{tradeoff.gain(gamma, best, constants):.4g}")
        table.add_row(*cells)
    return table


def format_step(rho: float, limit: float) -> str:
    """Return the step, with a dagger if it is not admissible."""
    return f"{rho:.4g}{'' if rho < limit else ' †'}"
