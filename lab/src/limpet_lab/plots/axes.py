"""Figures, axes of rows, logarithmic axes and their numbers, and series to draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray, check_floats
from limpet.exceptions import InvalidInputError
from limpet.plots._style import PAGE_WIDTH_IN, new_figure

RAISED_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_number(number: float) -> str:
    """Format a number briefly.

    >>> format_number(0.25), format_number(20_000.0), format_number(1e-7), format_number(2e6)
    ('0.25', '20,000', '10⁻⁷', '2·10⁶')
    """
    if number == 0.0 or 1e-3 <= abs(number) < 1e5:
        return f"{number:,.4g}" if abs(number) < 1e3 else f"{number:,.0f}"
    power = math.floor(math.log10(abs(number)) + 1e-9)
    factor = f"{number / 10.0**power:.3g}"
    return ("" if factor == "1" else f"{factor}·") + "10" + str(power).translate(RAISED_DIGITS)


def set_log_scale(axis: Any, low: float, high: float, ticks: int = 5) -> None:
    """Make an axis logarithmic, with about this number of ticks; on less than one decade the ticks are linear."""
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
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value)))
    (axis.axes.set_xlim if across else axis.axes.set_ylim)(low, high)


def to_pair(name: str, pair: tuple[npt.ArrayLike, npt.ArrayLike]) -> tuple[FloatArray, FloatArray]:
    """Return x and y, two series of equal length; they may be empty."""
    if len(pair) != 2:
        raise InvalidInputError(f"{name}: must be a pair of x and y, got {len(pair)} series")
    x, y = check_floats(name, pair[0]), check_floats(name, pair[1])
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidInputError(f"{name}: must be two series of equal length, got shapes {x.shape} and {y.shape}")
    return x, y


def new_page(height: float) -> Any:
    """Return an empty figure as wide as a page, with padding around its panels."""
    figure = new_figure(PAGE_WIDTH_IN, height)
    figure.get_layout_engine().set(w_pad=0.07, h_pad=0.07)
    return figure


def set_row_axis(axes: Any, n_rows: int, ticks: int = 6) -> None:
    """Configure the lower axis for rows."""
    axes.set_xlim(0, n_rows)
    axes.locator_params(axis="x", nbins=ticks)
    axes.xaxis.set_major_formatter("{x:,.0f}")


def to_columns(name: str, values: npt.ArrayLike, n_rows: int | None = None) -> FloatArray:
    """Return numbers per row, (T, K), from an array (T,), (T, K) or (T, K, 1).

    >>> to_columns("means", [1.0, 2.0]).shape
    (2, 1)
    """
    columns = check_floats(name, values)
    if columns.ndim == 1:
        columns = columns[:, None]
    elif columns.ndim == 3 and columns.shape[2] == 1:
        columns = columns[:, :, 0]
    if columns.ndim != 2 or 0 in columns.shape or n_rows not in (None, len(columns)):
        rows = "each row" if n_rows is None else f"each of the {n_rows} rows"
        raise InvalidInputError(f"{name}: must have one or more numbers for {rows}, got shape {columns.shape}.")
    return columns
