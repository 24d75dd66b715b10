"""Errors of the means of a mixture, and the row at which its means shift most."""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray, check_floats
from limpet.exceptions import InvalidInputError

MAX_COMPONENTS = 16  # the search visits 2**K subsets in plain Python: a fraction of a second at 16
PAPER_TAU = 1000  # errors before and after the change are counted from this row on


def match_components(means: npt.ArrayLike, true_means: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the order of the estimated components nearest to the true ones.

    The components of a mixture have no fixed order. This order minimizes the sum of squared differences over rows,
    components and coordinates, by an exact search. Rows with a value that is not finite are ignored.

    Parameters
    ----------
    means, true_means : arrays (T, K, d)
        Estimated and true component means; K is at most 16.

    Returns
    -------
    int array (K,)
        `order`, such that `means[:, order]` corresponds to `true_means`.

    Examples
    --------
    >>> match_components([[[-0.9], [0.1], [1.2]]], [[[0.0], [1.0], [-1.0]]])
    array([1, 2, 0])
    """
    estimated, true = _check_paired_means(means, true_means)
    if estimated.shape[1] > MAX_COMPONENTS:
        raise InvalidInputError(f"means: must have at most {MAX_COMPONENTS} components, got {estimated.shape[1]}.")
    usable = np.isfinite(estimated).all(axis=(1, 2)) & np.isfinite(true).all(axis=(1, 2))
    if not usable.any():
        raise InvalidInputError("means: must have at least one row that is finite in both arrays, got none.")
    estimated, true = estimated[usable], true[usable]
    with np.errstate(over="ignore"):  # a diverged estimate costs inf
        components = (estimated[:, j, None] for j in range(estimated.shape[1]))
        return _min_cost_assignment([((component - true) ** 2).sum(axis=(0, 2)).tolist() for component in components])


def _check_paired_means(means: npt.ArrayLike, true_means: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return two arrays of one shape (T, K, d)."""
    estimated, true = check_floats("means", means), check_floats("true_means", true_means)
    for name, array in (("means", estimated), ("true_means", true)):
        if array.ndim != 3 or 0 in array.shape:
            raise InvalidInputError(f"{name}: must be a non-empty array of shape (T, K, d), got {array.shape}.")
    if estimated.shape != true.shape:
        raise InvalidInputError(f"means: must have the shape of true_means, {true.shape}, got {estimated.shape}.")
    return estimated, true


def _min_cost_assignment(costs: list[list[float]]) -> npt.NDArray[np.int64]:
    """Return the estimate of each truth; costs[j][k]: estimate j for truth k."""
    # best[S] is the minimum cost of assigning the estimates in S to the first |S| truths, and the estimates in order:
    # the last of these truths is assigned to some j in S, the others to S without j. That takes K·2ᴷ steps, not K!.
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for subset in range(1, 1 << len(costs)):
        truth = subset.bit_count() - 1
        members = [j for j in range(len(costs)) if subset >> j & 1]
        cost, last = min((best[subset ^ 1 << j][0] + costs[j][truth], j) for j in members)
        best.append((cost, (*best[subset ^ 1 << last][1], last)))
    return np.array(best[-1][1], dtype=np.int64)


class SegmentMSE(NamedTuple):
    """Mean squared errors of the means by segment."""

    S_eval: float
    S_bc: float
    S_ac: float
    S_tot: float


def segment_mse(
    means: npt.ArrayLike, true_means: npt.ArrayLike, change_point: int, tau: int = PAPER_TAU, tau_start: int = 500
) -> SegmentMSE:
    """Return the paper's four mean squared errors of the means.

    The error of a row is ‖μ̂_t - μ_t‖², summed over components and coordinates. Each S is the plain average over the
    rows of its span. With the paper's time t = row + 1 and t* = change_point + 1 the spans are

    ======  =========================  =============================
    S_eval  t = tau_start, ..., tau-1  rows [tau_start - 1, tau - 1)
    S_bc    t = tau+1, ..., t*-1       rows [tau, change_point)
    S_ac    t = t*+1, ..., T           rows [change_point + 1, T)
    S_tot   t = tau+1, ..., T          rows [tau, T)
    ======  =========================  =============================

    (In print, the sum and the divisor of S_eval, and those of S_bc, differ by one row.)

    The estimates are matched to the truth once, by the order that is best on the evaluation span, and keep that order
    to the end: components that are swapped at the change increase the errors.

    Parameters
    ----------
    means, true_means : arrays (T, K, d)
        Component means: the estimates after each row, and the truth at each row.
    change_point : int
        First row of the new regime.
    tau, tau_start : int
        The paper's τ and τ_start, as times that count from 1.

    Returns
    -------
    SegmentMSE
        A span with a NaN estimate has the error NaN; if no row of the evaluation span is finite, all four are NaN.

    Examples
    --------
    >>> true = np.zeros((10, 2, 1)) + [[1.0], [-1.0]]
    >>> estimate = true[:, ::-1] + 0.5  # components in the other order
    >>> segment_mse(estimate, true, change_point=6, tau=4, tau_start=2)
    SegmentMSE(S_eval=0.5, S_bc=0.5, S_ac=0.5, S_tot=0.5)
    """
    estimated, true = _check_paired_means(means, true_means)
    names = "change_point, tau, tau_start"
    change, transient, evaluated = _check_integers(f"{names}: must be integers", change_point, tau, tau_start)
    n_rows = len(true)
    if not 1 <= evaluated < transient < change < n_rows - 1:
        raise InvalidInputError(
            f"{names}: must be 1 <= tau_start < tau < change_point < {n_rows - 1} for {n_rows} rows, "
            f"got tau_start={evaluated}, tau={transient}, change_point={change}."
        )
    evaluation = slice(evaluated - 1, transient - 1)
    finite = np.isfinite(estimated[evaluation]) & np.isfinite(true[evaluation])
    if not finite.all(axis=(1, 2)).any():
        return SegmentMSE(np.nan, np.nan, np.nan, np.nan)
    order = match_components(estimated[evaluation], true[evaluation])
    with np.errstate(over="ignore", invalid="ignore"):  # a diverged estimate has the error inf or NaN
        errors = ((estimated[:, order] - true) ** 2).sum(axis=(1, 2))
        spans = (evaluation, slice(transient, change), slice(change + 1, None), slice(transient, None))
        return SegmentMSE(*(float(errors[span].mean()) for span in spans))


def _check_integers(constraint: str, *values: int) -> list[int]:
    try:
        return [operator.index(value) for value in values]
    except TypeError as error:
        raise InvalidInputError(f"{constraint}, got {', '.join(map(repr, values))}.") from error


class MeanShift(NamedTuple):
    """The row and the size of the largest shift of the means."""

    row: int
    size: float


def largest_mean_shift(means: npt.ArrayLike, window: int = 300) -> MeanShift:
    """Return the row before and after which the averages of the means differ most.

    Row r is judged by the averages over rows [r - window, r) and [r, r + window), of all components and coordinates
    together. Both sides must be full, so the first and the last `window` rows are never named; of equal rows the first
    is. Running sums make it O(T) for any window.

    With a constant step ρ an estimate has gone 1 - exp(-s) of the way s/ρ rows after a jump. The two averages then
    differ most ln(2 - exp(-ρ·window))/ρ rows after the change, less than ln 2/ρ, the half-life of a point's weight. A
    wide window averages out the effect of outliers. A good window is 3/ρ; the default is that for ρ = 0.01.

    Parameters
    ----------
    means : array (T, K, d)
        The estimate after each row, as `process(..., record="means")` keeps it; NaN before the start.
    window : int
        Rows in each of the two averages.

    Returns
    -------
    MeanShift
        The row of `means`, and the size in the units of the data; the size 0 if no mean moved.

    Examples
    --------
    A jump at row 500, followed with ρ = 0.05:

    >>> rows = np.arange(1000)
    >>> level = np.where(rows < 500, 0.0, 1.0 - 0.95 ** (rows - 499))
    >>> largest_mean_shift(level.reshape(-1, 1, 1), window=60).row
    513
    """
    estimates, _ = _check_paired_means(means, means)
    (width,) = _check_integers("window: must be an integer", window)
    if width < 1:
        raise InvalidInputError(f"window: must be at least one row, got {window!r}.")
    finite = np.asarray(np.isfinite(estimates).all(axis=(1, 2)))
    first = int(finite.argmax()) if finite.any() else len(estimates)
    if not finite[first:].all():
        row = first + int(finite[first:].argmin())
        raise InvalidInputError(f"means: must be finite from row {first} on, got one that is not in row {row}.")
    n_rows = len(estimates) - first
    if n_rows < 2 * width:
        required = f"{2 * width} rows, two windows, after the start"
        raise InvalidInputError(f"means: must have at least {required}, got {n_rows}.")
    values = estimates[first:].reshape(n_rows, -1)
    # Less the first row, the sums grow with the movement and not with the level: few digits are lost.
    sums = np.zeros((n_rows + 1, values.shape[1]))
    np.cumsum(values - values[0], axis=0, out=sums[1:])
    averages = (sums[width:] - sums[:-width]) / width
    sizes = np.linalg.norm(averages[width:] - averages[:-width], axis=1)
    best = int(sizes.argmax())
    return MeanShift(first + width + best, float(sizes[best]))
