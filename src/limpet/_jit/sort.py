"""Sort a few numbers, compiled into the caller."""

from __future__ import annotations

from limpet._jit.compile import Vector, kernel


@kernel
def insertion_sort(values: Vector, n: int) -> None:
    """Sort the first n numbers by insertion, for small n."""
    for i in range(1, n):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@kernel
def shell_sort(values: Vector, n: int) -> None:
    """Sort the first n numbers by Shell sort, for any n."""
    gap = 1
    while 9 * gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@kernel
def median_of_sorted(values: Vector, n: int) -> float:
    return values[n // 2] if n & 1 else 0.5 * values[n // 2 - 1] + 0.5 * values[n // 2]


@kernel
def quantile_of_sorted(values: Vector, n: int, share: float) -> float:
    """Return a quantile of n sorted numbers, interpolated linearly."""
    position = share * (n - 1)
    low = int(position)
    high = low + 1 if low + 1 < n else low
    return values[low] + (position - low) * (values[high] - values[low])
