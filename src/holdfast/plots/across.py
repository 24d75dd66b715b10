"""Where rows stand on the axis below: at their number, or at their time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.checks import FloatArray
from holdfast.streams.sketch import MinMaxSummary
from holdfast.streams.times import to_comparable

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
