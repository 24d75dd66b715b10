"""Logarithmic axes with ticks that can be read, however many or few decades they span."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def in_words(number: float) -> str:
    """Write a number as briefly as it can be read.

    >>> in_words(0.25), in_words(20_000.0), in_words(1e-7), in_words(2e6)
    ('0.25', '20,000', '10⁻⁷', '2·10⁶')
    """
    if number == 0.0 or 1e-3 <= abs(number) < 1e5:
        return f"{number:,.4g}" if abs(number) < 1e3 else f"{number:,.0f}"
    power = math.floor(math.log10(abs(number)) + 1e-9)
    factor = f"{number / 10.0**power:.3g}"
    return ("" if factor == "1" else f"{factor}·") + "10" + str(power).translate(SUPERSCRIPTS)


def make_logarithmic(axis: Any, low: float, high: float, ticks: int = 5) -> None:
    """Make an axis logarithmic from ``low`` to ``high``, with about so many ticks.

    Over many decades the ticks are powers of ten or some of them, over few their multiples too; on less than one
    the axis is almost linear, and so are the ticks.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    across = axis.axis_name == "x"
    (axis.axes.set_xscale if across else axis.axes.set_yscale)("log", nonpositive="clip")
    powers = 10.0 ** np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    sparse = [powers[first::step] for step in (3, 2) for first in range(step)]
    dense = [np.outer(powers, factors).ravel() for factors in ([1.0], [1.0, 3.0], [1.0, 2.0, 5.0])]
    seen = [choice[(choice >= low) & (choice <= high)] for choice in (*dense, *sparse)]
    best = min(seen, key=lambda choice: abs(len(choice) - ticks))
    locator = FixedLocator(best.tolist()) if len(best) > 2 else MaxNLocator(ticks - 1, steps=[1, 2, 5, 10])
    axis.set_major_locator(locator)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: in_words(value)))
    (axis.axes.set_xlim if across else axis.axes.set_ylim)(low, high)
