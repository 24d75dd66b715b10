"""Centre and spread of a few numbers: median and median absolute deviation."""

from __future__ import annotations

from holdfast.scheme.compiling import compiled, fingerprint, kernel
from holdfast.scheme.sorting import median_of_sorted, sort
from holdfast.scheme.state import Vector

MAD_TO_SD = 1.4826022185056018
QUANTILE_80_OF_NORMAL = 1.2815515655446004  # of |x|
RELATIVE_FLOOR, FLOOR = 1e-14, 1e-300  # some units in the last place: what rounding makes of a constant


@kernel
def centre_and_spread(values: Vector, n: int) -> tuple[float, float, bool]:
    """Median, 1.4826·MAD, and whether there was no spread at all; destroys the values.

    Where more than half of the numbers are equal the 80 % quantile of the deviations takes the MAD's place; where that
    is 0, too, a floor that is relative to the centre.
    """
    sort(values, n)
    centre = median_of_sorted(values, n)
    for j in range(n):
        values[j] = abs(values[j] - centre)
    sort(values, n)
    spread = MAD_TO_SD * median_of_sorted(values, n)
    floor = RELATIVE_FLOOR * abs(centre) + FLOOR
    if spread <= floor:
        spread = values[(4 * n) // 5] / QUANTILE_80_OF_NORMAL
    degenerate = spread <= floor
    return centre, floor if degenerate else spread, degenerate


def _centre_and_spread(values: Vector, n: int) -> tuple[float, float, bool]:
    stamp  # noqa: B018  (part of what Numba's cache looks at)
    return centre_and_spread(values, n)


stamp = fingerprint([centre_and_spread])
compiled_centre_and_spread = compiled(_centre_and_spread)
"""The same, to be called from Python."""
