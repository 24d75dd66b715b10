"""Where an estimate moved most: the row of a change, read off the recorded means."""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.errors import InvalidInputError
from holdfast.metrics.reading import FloatArray, check_paired_means


class MeanShift(NamedTuple):
    """The row where the estimate moved most, and how far: the norm of the difference of two averages."""

    row: int
    size: float


def largest_mean_shift(means: npt.ArrayLike, window: int = 300) -> MeanShift:
    """Return the row at which the averages of the estimate before and after differ most.

    Row r is judged by the averages over rows [r - window, r) and [r, r + window), of all components and
    coordinates together. Both sides must be full, so the first and the last `window` rows are never named; of
    equal rows the first is. Running sums make it O(T), whatever the window.

    With a constant step ρ an estimate does not jump when the stream does: it has gone 1 - exp(-s) of the way
    after s/ρ rows. The two averages then differ most not at the change but ln(2 - exp(-ρ·window))/ρ rows
    later, which is less than ln 2/ρ, the half-life of a point's weight, however wide the window. So a wide
    window costs little accuracy, and it pays: the kick of an outlier that was learnt fades within a few 1/ρ
    and is averaged out, while a change stays. Three memories, 3/ρ, are a good window; the default is that for
    ρ = 0.01.

    Parameters
    ----------
    means : array (T, K, d)
        The estimate after each row, as `process(..., record="means")` keeps it; NaN before the start.
    window : int
        Rows in each of the two averages.

    Returns
    -------
    Movement
        The row, counted in `means`, and the size, in the units of the data; the size 0 says: nothing moved.

    Examples
    --------
    A jump at row 500, followed with ρ = 0.05:

    >>> rows = np.arange(1000)
    >>> level = np.where(rows < 500, 0.0, 1.0 - 0.95 ** (rows - 499))
    >>> largest_movement(level.reshape(-1, 1, 1), window=60).row
    513
    """
    estimates, _ = check_paired_means(means, means)
    width = _check_window(window)
    finite = np.asarray(np.isfinite(estimates).all(axis=(1, 2)))
    first = int(finite.argmax()) if finite.any() else len(estimates)
    if not finite[first:].all():
        row = first + int(finite[first:].argmin())
        raise InvalidInputError(f"means: expected numbers from row {first} on, got one that is not finite in row {row}")
    n_rows = len(estimates) - first
    if n_rows < 2 * width:
        raise InvalidInputError(
            f"means: expected at least {2 * width} rows, two windows, after the start, got {n_rows}"
        )
    averages = _moving_averages(estimates[first:].reshape(n_rows, -1), width)
    sizes = np.linalg.norm(averages[width:] - averages[:-width], axis=1)
    best = int(sizes.argmax())
    return MeanShift(first + width + best, float(sizes[best]))


def _moving_averages(values: FloatArray, width: int) -> FloatArray:
    """Return the averages over rows [i, i + width), less the first row, by differences of running sums."""
    # Without the first row the sums grow with the movement and not with the level: few digits are lost.
    sums = np.zeros((len(values) + 1, values.shape[1]))
    np.cumsum(values - values[0], axis=0, out=sums[1:])
    return np.asarray((sums[width:] - sums[:-width]) / width)


def _check_window(window: int) -> int:
    try:
        width = operator.index(window)
    except TypeError as error:
        raise InvalidInputError(f"window: expected a whole number of rows, got {window!r}") from error
    if width < 1:
        raise InvalidInputError(f"window: expected at least one row, got {window!r}")
    return width
