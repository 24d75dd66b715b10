"""Logarithmic axes with ticks that can be read, however many or few decades they span."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray
from limpet.plots._style import Style
from limpet.streams.downsample import MinMaxSummary
from limpet.streams.timestamps import to_comparable

# Where rows stand on the axis below: at their number, or at their time.

DAY = 86_400e9  # nanoseconds
BACK = 0.02  # of all the time: times that go back further have no order
ROWS, NUMBERS, DATES = "row", "time (a number)", "time"


@dataclass(frozen=True)
class RowAxis:
    """Of a stream: which rows are known to stand where; between them it goes on evenly."""

    kind: str
    rows: FloatArray
    places: FloatArray

    def __call__(self, rows: npt.ArrayLike) -> FloatArray:
        """Where these rows stand."""
        return np.asarray(np.interp(np.asarray(rows, np.float64), self.rows, self.places))

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last place."""
        return float(self.places[0]), float(self.places[-1])


def axis_of(sketch: MinMaxSummary, kind: str | None = None) -> RowAxis:
    """Times if the stream has some that rise, dates or numbers; else rows, or where they are asked for."""
    rows = np.append(sketch.rows, max(sketch.n_rows - 1, 1)).astype(np.float64)
    times = None if kind == ROWS else _in_order(sketch)
    if times is None or (kind is not None and times[0] != kind):
        return RowAxis(ROWS, rows, rows)
    return RowAxis(times[0], rows, times[1])


def common_axes(sketches: Sequence[MinMaxSummary]) -> list[RowAxis]:
    """One for each stream, all of the same kind."""
    axes = [axis_of(sketch) for sketch in sketches]
    if len({axis.kind for axis in axes}) > 1:
        return [axis_of(sketch, ROWS) for sketch in sketches]
    return axes


def configure_x_axis(axes: Any, kind: str, ends: tuple[float, float], ticks: int) -> None:
    """Show all of it, with ticks for rows, numbers or dates."""
    first, last = ends
    axes.set_xlim(first, last if last > first else first + 1.0)
    axes.set_xlabel(kind)
    if kind == DATES:
        from matplotlib.dates import DAILY, HOURLY, MINUTELY, MONTHLY, SECONDLY, AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=ticks)
        # One tick a year, a month and so on: without these no interval fits two days and few ticks, and it warns.
        for unit, all_of_it in {MONTHLY: 12, DAILY: 31, HOURLY: 24, MINUTELY: 60, SECONDLY: 60}.items():
            locator.intervald[unit] = [*locator.intervald[unit], all_of_it]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        return
    axes.locator_params(axis="x", nbins=ticks)
    if kind == ROWS:
        axes.locator_params(axis="x", integer=True)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    else:
        in_digits(axes.xaxis)


def in_digits(axis: Any) -> None:
    """Write the numbers at an axis with as many digits as it takes to tell them apart."""
    from matplotlib.ticker import Formatter

    class Digits(Formatter):
        """By the ticks, which it is told before it writes them."""

        def __call__(self, value: float, _: Any = None) -> str:
            return f"{value:,.{self.digits}g}" if abs(value) < 1e15 else f"{value:.{self.digits}g}"

        def set_locs(self, locs: Any) -> None:
            ticks = np.asarray(locs, np.float64)
            step, largest = (np.diff(ticks).min(), np.abs(ticks).max()) if len(ticks) > 1 else (1.0, 1.0)
            self.digits = min(6 if step <= 0.0 else max(6, int(np.ceil(np.log10(largest / step))) + 1), 15)

    axis.set_major_formatter(Digits())


def _in_order(sketch: MinMaxSummary) -> tuple[str, FloatArray] | None:
    """What the times are, and those of the buckets' first rows and of the last row; None if they do not rise."""
    if sketch.times is None or sketch.times.dtype.kind not in "Mf":
        return None
    times = np.append(sketch.times, np.array([sketch.last_time], sketch.times.dtype))
    if np.isnat(times).any() if times.dtype.kind == "M" else not np.isfinite(times).all():
        return None
    numbers = to_comparable(times.astype("datetime64[ns]") if times.dtype.kind == "M" else times)
    if numbers is None or numbers[-1] <= numbers[0]:
        return None
    risen = np.maximum.accumulate(numbers)  # a clock that is put back for an hour stands still here meanwhile
    if (risen - numbers).max() > BACK * (numbers[-1] - numbers[0]):
        return None
    numbers = risen
    return (DATES, numbers / DAY) if times.dtype.kind == "M" else (NUMBERS, numbers)


# Limits of an axis that a few far points do not spoil, and marks at the edge for those points.


def usual_range(values: FloatArray, *, cut: float = 0.005, margin: float = 0.3) -> tuple[float, float] | None:
    """Return limits around all values but a share ``cut`` at either end; None if there is nothing to see.

    >>> low, high = usual_range(np.append(np.linspace(0.0, 1.0, 999), 1e6))
    >>> -0.4 < low < 0.0 and 1.0 < high < 1.4
    True
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    low, high = np.quantile(finite, [cut, 1.0 - cut])
    room = margin * (high - low) or 1.0
    return float(low - room), float(high + room)


def full_or_usual(
    values: FloatArray, *, cut: float = 0.005, margin: float = 0.3, patience: float = 4.0
) -> tuple[float, float] | None:
    """Return limits around all values, unless that takes more than ``patience`` times the usual range."""
    usual = usual_range(values, cut=cut, margin=margin)
    if usual is None:
        return None
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(finite.max())
    room = 0.08 * (high - low) or 1.0
    if high - low > patience * (usual[1] - usual[0]):
        return max(usual[0], low - room), min(usual[1], high + room)
    return low - room, high + room


def mark_beyond(
    axes: Any,
    rows: npt.NDArray[Any],
    values: FloatArray,
    limits: tuple[float, float],
    style: Style,
    size: float = 5.0,
    label: str = "",
) -> None:
    """Put a triangle at the edge for each value that lies beyond it; the label is for the legend."""
    for beyond, marker, edge in ((values > limits[1], "^", 0.985), (values < limits[0], "v", 0.015)):
        triangle = style | {"marker": marker, "markersize": size, "markeredgewidth": 0, "linestyle": "none"}
        in_panel = {"transform": axes.get_xaxis_transform()}  # heights from 0, the bottom, to 1
        if beyond.any():
            axes.plot(rows[beyond], np.full(beyond.sum(), edge), label=label, **triangle, **in_panel)


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
