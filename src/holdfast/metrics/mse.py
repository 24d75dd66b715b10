"""How well the component means are followed, before and after a change."""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.errors import InvalidInputError
from holdfast.metrics.matching import match_components
from holdfast.metrics.reading import check_paired_means


class SegmentMSE(NamedTuple):
    """Mean squared errors of the means: evaluation span, before the change, after it, and in total."""

    S_eval: float
    S_bc: float
    S_ac: float
    S_tot: float


def segment_mse(
    means: npt.ArrayLike, true_means: npt.ArrayLike, change_point: int, tau: int = 1000, tau_start: int = 500
) -> SegmentMSE:
    """Return the paper's four mean squared errors of the component means (paper, Eq. def_mse_metrics).

    The error of a row is ‖μ̂_t - μ_t‖², summed over components and coordinates. Each S is the plain average
    over the rows of its span. With the paper's time t = row + 1 and t* = change_point + 1 the spans are

    ======  =========================  =============================
    S_eval  t = tau_start, ..., tau-1  rows [tau_start - 1, tau - 1)
    S_bc    t = tau+1, ..., t*-1       rows [tau, change_point)
    S_ac    t = t*+1, ..., T           rows [change_point + 1, T)
    S_tot   t = tau+1, ..., T          rows [tau, T)
    ======  =========================  =============================

    (In print the sum of S_eval runs to tau, while its divisor and the text stop one short; the divisor of
    S_bc counts one row more than its sum. Here all four are true averages over the rows of the table.)

    The estimates are matched to the truth once, by the order that is best on the evaluation span, and keep
    that order to the end: components that swap names at the change pay for it.

    Parameters
    ----------
    means : array (T, K, d)
        Estimated component means after each row.
    true_means : array (T, K, d)
        True component means at each row.
    change_point : int
        First row of the new regime.
    tau, tau_start : int
        The paper's τ and τ_start, as times that count from 1.

    Returns
    -------
    SegmentMSE
        A span that contains a NaN estimate has the error NaN; if no row of the evaluation span is finite
        there is no matching, and all four are NaN.

    Examples
    --------
    >>> true = np.zeros((10, 2, 1)) + [[1.0], [-1.0]]
    >>> estimate = true[:, ::-1] + 0.5  # components in the other order
    >>> segment_mse(estimate, true, change_point=6, tau=4, tau_start=2)
    SegmentMSE(S_eval=0.5, S_bc=0.5, S_ac=0.5, S_tot=0.5)
    """
    estimated, true = check_paired_means(means, true_means)
    change, transient, evaluated = _check_times(change_point, tau, tau_start, len(true))
    evaluation = slice(evaluated - 1, transient - 1)
    finite = np.isfinite(estimated[evaluation]) & np.isfinite(true[evaluation])
    if not finite.all(axis=(1, 2)).any():
        return SegmentMSE(np.nan, np.nan, np.nan, np.nan)
    order = match_components(estimated[evaluation], true[evaluation])
    with np.errstate(over="ignore", invalid="ignore"):  # a diverged estimate has the error inf or NaN
        errors = ((estimated[:, order] - true) ** 2).sum(axis=(1, 2))
        return SegmentMSE(
            S_eval=float(errors[evaluation].mean()),
            S_bc=float(errors[transient:change].mean()),
            S_ac=float(errors[change + 1 :].mean()),
            S_tot=float(errors[transient:].mean()),
        )


def _check_times(change_point: int, tau: int, tau_start: int, n_rows: int) -> tuple[int, int, int]:
    """Read the three times as whole numbers that leave no span empty."""
    try:
        change, transient, evaluated = (operator.index(value) for value in (change_point, tau, tau_start))
    except TypeError as error:
        received = f"{change_point!r}, {tau!r}, {tau_start!r}"
        raise InvalidInputError(f"change_point, tau, tau_start: expected whole numbers, got {received}") from error
    if not 1 <= evaluated < transient < change < n_rows - 1:
        raise InvalidInputError(
            f"expected 1 <= tau_start < tau < change_point < {n_rows - 1} for {n_rows} rows, "
            f"got tau_start={evaluated}, tau={transient}, change_point={change}"
        )
    return change, transient, evaluated
