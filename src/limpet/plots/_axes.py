"""Axes of rows and times, robust limits, and logarithmic scales."""

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

NS_PER_DAY = 86_400e9
MAX_TIME_REGRESSION = 0.02  # share of the time span; times that decrease by more are not used as an axis
ROW_AXIS, NUMBER_AXIS, DATE_AXIS = "row", "time (a number)", "time"


@dataclass(frozen=True)
class RowAxis:
    """The positions of some rows of a stream on the lower axis; other rows are interpolated."""

    kind: str  # ROW_AXIS, NUMBER_AXIS or DATE_AXIS
    rows: FloatArray
    positions: FloatArray

    def __call__(self, rows: npt.ArrayLike) -> FloatArray:
        """Return the positions of rows."""
        return np.asarray(np.interp(np.asarray(rows, np.float64), self.rows, self.positions))

    @property
    def limits(self) -> tuple[float, float]:
        """The first and the last position."""
        return float(self.positions[0]), float(self.positions[-1])


def make_row_axis(summary: MinMaxSummary, kind: str | None = None) -> RowAxis:
    """Return an axis of times if they increase, else one of rows; `kind` restricts it."""
    rows = np.append(summary.rows, max(summary.n_rows - 1, 1)).astype(np.float64)
    times = None if kind == ROW_AXIS else _increasing_times(summary)
    if times is None or (kind is not None and times[0] != kind):
        return RowAxis(ROW_AXIS, rows, rows)
    return RowAxis(times[0], rows, times[1])


def make_common_axes(summaries: Sequence[MinMaxSummary]) -> list[RowAxis]:
    """Return one axis per stream, all of the same kind."""
    axes = [make_row_axis(summary) for summary in summaries]
    if len({axis.kind for axis in axes}) > 1:
        return [make_row_axis(summary, ROW_AXIS) for summary in summaries]
    return axes


def configure_x_axis(axes: Any, kind: str, limits: tuple[float, float], ticks: int) -> None:
    """Set limits, label and ticks of the lower axis for rows, numbers or dates."""
    first, last = limits
    axes.set_xlim(first, last if last > first else first + 1.0)
    axes.set_xlabel(kind)
    if kind == DATE_AXIS:
        from matplotlib.dates import DAILY, HOURLY, MINUTELY, MONTHLY, SECONDLY, AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=ticks)
        # One tick per year, month and so on; otherwise no interval fits two days and few ticks, which is a warning.
        for unit, longest in {MONTHLY: 12, DAILY: 31, HOURLY: 24, MINUTELY: 60, SECONDLY: 60}.items():
            locator.intervald[unit] = [*locator.intervald[unit], longest]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        return
    axes.locator_params(axis="x", nbins=ticks)
    if kind == ROW_AXIS:
        axes.locator_params(axis="x", integer=True)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    else:
        set_digit_formatter(axes.xaxis)


def set_digit_formatter(axis: Any) -> None:
    """Format the tick labels of an axis with enough digits to be distinct."""
    from matplotlib.ticker import Formatter

    class Digits(Formatter):
        """Formatter whose number of digits depends on the ticks."""

        def __call__(self, value: float, _: Any = None) -> str:
            return f"{value:,.{self.digits}g}" if abs(value) < 1e15 else f"{value:.{self.digits}g}"

        def set_locs(self, locs: Any) -> None:
            ticks = np.asarray(locs, np.float64)
            step, largest = (np.diff(ticks).min(), np.abs(ticks).max()) if len(ticks) > 1 else (1.0, 1.0)
            self.digits = min(6 if step <= 0.0 else max(6, int(np.ceil(np.log10(largest / step))) + 1), 15)

    axis.set_major_formatter(Digits())


def _increasing_times(summary: MinMaxSummary) -> tuple[str, FloatArray] | None:
    """Return the kind of the times, and those of first and last rows; None if they do not increase."""
    if summary.times is None or summary.times.dtype.kind not in "Mf":
        return None
    times = np.append(summary.times, np.array([summary.last_time], summary.times.dtype))
    if np.isnat(times).any() if times.dtype.kind == "M" else not np.isfinite(times).all():
        return None
    numbers = to_comparable(times.astype("datetime64[ns]") if times.dtype.kind == "M" else times)
    if numbers is None or numbers[-1] <= numbers[0]:
        return None
    running_max = np.maximum.accumulate(numbers)  # a clock set back by an hour stands still
    if (running_max - numbers).max() > MAX_TIME_REGRESSION * (numbers[-1] - numbers[0]):
        return None
    return (DATE_AXIS, running_max / NS_PER_DAY) if times.dtype.kind == "M" else (NUMBER_AXIS, running_max)


def robust_limits(values: FloatArray, *, cut: float = 0.005, margin: float = 0.3) -> tuple[float, float] | None:
    """Return limits around all values but a share ``cut`` at either end; None without finite values.

    >>> low, high = robust_limits(np.append(np.linspace(0.0, 1.0, 999), 1e6))
    >>> -0.4 < low < 0.0 and 1.0 < high < 1.4
    True
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    low, high = np.quantile(finite, [cut, 1.0 - cut])
    padding = margin * (high - low) or 1.0
    return float(low - padding), float(high + padding)


def full_or_robust_limits(
    values: FloatArray, *, cut: float = 0.005, margin: float = 0.3, patience: float = 4.0
) -> tuple[float, float] | None:
    """Return limits around all values, or robust ones if much smaller."""
    usual = robust_limits(values, cut=cut, margin=margin)
    if usual is None:
        return None
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(finite.max())
    padding = 0.08 * (high - low) or 1.0
    if high - low > patience * (usual[1] - usual[0]):
        return max(usual[0], low - padding), min(usual[1], high + padding)
    return low - padding, high + padding


def mark_out_of_range(
    axes: Any,
    rows: npt.NDArray[Any],
    values: FloatArray,
    limits: tuple[float, float],
    style: Style,
    size: float = 5.0,
    label: str = "",
) -> None:
    """Draw a triangle at the edge of the panel for each value outside the limits."""
    for outside, marker, edge in ((values > limits[1], "^", 0.985), (values < limits[0], "v", 0.015)):
        triangle = style | {"marker": marker, "markersize": size, "markeredgewidth": 0, "linestyle": "none"}
        relative_height = {"transform": axes.get_xaxis_transform()}
        if outside.any():
            axes.plot(rows[outside], np.full(outside.sum(), edge), label=label, **triangle, **relative_height)


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_number(number: float) -> str:
    """Format a number briefly.

    >>> format_number(0.25), format_number(20_000.0), format_number(1e-7), format_number(2e6)
    ('0.25', '20,000', '10⁻⁷', '2·10⁶')
    """
    if number == 0.0 or 1e-3 <= abs(number) < 1e5:
        return f"{number:,.4g}" if abs(number) < 1e3 else f"{number:,.0f}"
    power = math.floor(math.log10(abs(number)) + 1e-9)
    factor = f"{number / 10.0**power:.3g}"
    return ("" if factor == "1" else f"{factor}·") + "10" + str(power).translate(SUPERSCRIPTS)


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
