"""Center and spread of a few numbers: median and median absolute deviation."""

from __future__ import annotations

from limpet._jit.compile import jit_entry_point, kernel, source_fingerprint
from limpet._jit.sort import insertion_sort, median_of_sorted
from limpet.core.state import Vector

MAD_TO_SD = 1.4826022185056018
QUANTILE_80_OF_NORMAL = 1.2815515655446004  # of |x|
MIN_RELATIVE_SPREAD, MIN_ABSOLUTE_SPREAD = (
    1e-14,
    1e-300,
)  # rounding errors of a constant


@kernel
def median_mad(values: Vector, n: int) -> tuple[float, float, bool]:
    """Return median, 1.4826·MAD, and whether the values are constant.

    Overwrites the values.

    If more than half of the numbers are equal, the 80 % quantile of the deviations replaces the MAD; if that is 0 too,
    a minimum relative to the center.
    """
    insertion_sort(values, n)
    center = median_of_sorted(values, n)
    for j in range(n):
        values[j] = abs(values[j] - center)
    insertion_sort(values, n)
    spread = MAD_TO_SD * median_of_sorted(values, n)
    min_spread = MIN_RELATIVE_SPREAD * abs(center) + MIN_ABSOLUTE_SPREAD
    if spread <= min_spread:
        spread = values[(4 * n) // 5] / QUANTILE_80_OF_NORMAL
    is_degenerate = spread <= min_spread
    return center, min_spread if is_degenerate else spread, is_degenerate


def _median_mad(values: Vector, n: int) -> tuple[float, float, bool]:
    stamp  # noqa: B018  (part of the cache key)
    return median_mad(values, n)


stamp = source_fingerprint([median_mad])
median_mad_entry_point = jit_entry_point(_median_mad)
"""`median_mad`, callable from Python."""
