"""Row and time axes, limits, scales; draw points, estimates, alarms, scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray
from limpet.detection.alarm import Alarm
from limpet.plots._style import BLUE, CIRCLE_STYLE, POINT_STYLE, PURPLE, RED, REJECTED_STYLE, SMALL_PT, Style
from limpet.streams.downsample import MinMaxSummary
from limpet.streams.timestamps import to_comparable

NS_PER_DAY = 86_400e9
MAX_TIME_REGRESSION = 0.02  # share of the time span; times that decrease by more are not used as an axis
ROW_AXIS, NUMBER_AXIS, DATE_AXIS = "row", "time (a number)", "time"
ALARM_STYLE: Style = {"color": RED, "linewidth": 1.3}
ONSET_STYLE: Style = {"color": RED, "alpha": 0.16, "linewidth": 0}
ANOMALY_STYLE = CIRCLE_STYLE | {"color": PURPLE, "markersize": 9, "markeredgewidth": 1.6}
MIN_LABEL_GAP = 0.13  # share of the width that the label of a change alarm takes
LINE_WIDTHS = ((60, 0.6), (12, 0.9))  # above this number of change alarms


@dataclass(frozen=True)
class RowAxis:
    """Positions of some rows of a stream on the x-axis, interpolated for others."""

    kind: str  # ROW_AXIS, NUMBER_AXIS or DATE_AXIS
    rows: FloatArray
    positions: FloatArray

    def __call__(self, rows: npt.ArrayLike) -> FloatArray:
        return np.asarray(np.interp(np.asarray(rows, np.float64), self.rows, self.positions))

    @property
    def limits(self) -> tuple[float, float]:
        """The first and the last position."""
        return float(self.positions[0]), float(self.positions[-1])


def make_row_axis(summary: MinMaxSummary, *, by_time: bool = True) -> RowAxis:
    """Return an axis of times if they increase, else one of rows."""
    rows = np.append(summary.rows, max(summary.n_rows - 1, 1)).astype(np.float64)
    times = _increasing_times(summary) if by_time else None
    return RowAxis(ROW_AXIS, rows, rows) if times is None else RowAxis(times[0], rows, times[1])


def make_common_axes(summaries: Sequence[MinMaxSummary]) -> list[RowAxis]:
    """Return one axis per stream, all of the same kind."""
    axes = [make_row_axis(summary) for summary in summaries]
    if len({axis.kind for axis in axes}) > 1:
        return [make_row_axis(summary, by_time=False) for summary in summaries]
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
    """Return kind and times of first and last rows; None if they do not increase."""
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
    """Return limits of all but a share ``cut`` at either end; None if none is finite.

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
    values: FloatArray, *, cut: float = 0.005, margin: float = 0.3, max_range_ratio: float = 4.0
) -> tuple[float, float] | None:
    """Return limits around all values, or robust ones if much smaller."""
    usual = robust_limits(values, cut=cut, margin=margin)
    if usual is None:
        return None
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(finite.max())
    padding = 0.08 * (high - low) or 1.0
    if high - low > max_range_ratio * (usual[1] - usual[0]):
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


# What is drawn in a panel


def inset_limits(limits: tuple[float, float]) -> tuple[float, float]:
    """Return limits within which a marker is completely inside the panel.

    >>> inset_limits((0.0, 100.0))
    (2.0, 98.0)
    """
    padding = 0.02 * (limits[1] - limits[0])
    return limits[0] + padding, limits[1] - padding


def draw_rejected(axes: Any, positions: Any, values: FloatArray, limits: tuple[float, float], **style: Any) -> None:
    """Draw crosses for rejected points, triangles for those outside the limits."""
    axes.plot(positions, values, label="rejected", **REJECTED_STYLE | {"markersize": 4.5, "alpha": 0.8} | style)
    mark_out_of_range(axes, positions, values, limits, REJECTED_STYLE, size=4.0, label="rejected, out of range")


def draw_points(axes: Any, positions: Any, values: FloatArray, limits: tuple[float, float], size: float = 2.5) -> None:
    """Draw the points that were not rejected."""
    axes.plot(positions, values, markersize=size, alpha=0.5, rasterized=True, **POINT_STYLE)
    axes.plot([], [], label="point", markersize=7, **POINT_STYLE)  # for the legend, larger
    mark_out_of_range(axes, positions, values, limits, POINT_STYLE, size=4.0)


def draw_estimate(axes: Any, positions: Any, means: FloatArray, width: float = 1.9) -> None:
    """Draw the estimate; one line or, for (T, K), several."""
    axes.plot(positions, means, color="white", linewidth=width + 1.5, zorder=3)
    axes.plot(positions, means, color=BLUE, linewidth=width, zorder=4, label="estimate")


def draw_anomalies(axes: Any, positions: Any, values: FloatArray, limits: tuple[float, float]) -> None:
    """Draw circles around anomalies; a circle at the edge is complete."""
    if len(values):
        shown = np.clip(values, *inset_limits(limits))
        axes.plot(positions, shown, label="anomaly", zorder=6, clip_on=False, **ANOMALY_STYLE)


def draw_changes(
    axes: Any,
    alarms: Sequence[Alarm],
    *,
    limits: tuple[float, float],
    labeled: bool,
    to_position: Callable[[npt.ArrayLike], npt.NDArray[Any]] = np.asarray,
    faint: bool = False,
    min_gap: float = MIN_LABEL_GAP,
) -> None:
    """Draw the changes among alarms: a line, a shade from the onset on, and a label.

    Limits are the first and last position of the axis. Alarms of another panel are faint. No alarm has a label if two
    are closer than a share `min_gap` of the width.
    """
    shown = [alarm for alarm in alarms if alarm.kind == "change"]
    positions = to_position([alarm.row for alarm in shown]).astype(np.float64)
    inside = (positions >= limits[0]) & (positions <= limits[1])
    shown, positions = [alarm for alarm, is_in in zip(shown, inside, strict=True) if is_in], positions[inside]
    if not shown:
        return
    onsets = np.maximum(to_position([alarm.onset for alarm in shown]).astype(np.float64), limits[0])
    relative_height = {"transform": axes.get_xaxis_transform()}
    thin: Style = next(({"linewidth": width} for n_alarms, width in LINE_WIDTHS if len(shown) > n_alarms), {})
    if faint:
        style = ALARM_STYLE | {"linewidth": 0.8, "alpha": 0.35, "label": "change of another variable"} | thin
        draw_vertical_lines(axes, positions, zorder=1, **style, **relative_height)
        return
    draw_vertical_lines(axes, positions, label="change alarm", zorder=5, **ALARM_STYLE | thin, **relative_height)
    spans = list(zip(onsets, positions - onsets, strict=True))
    axes.broken_barh(spans, (0.0, 1.0), label="from its onset to the alarm", zorder=1, **ONSET_STYLE, **relative_height)
    length = limits[1] - limits[0]
    if not labeled or any(after - before <= min_gap * length for before, after in pairwise(positions)):
        return
    for alarm, position in zip(shown, positions, strict=True):
        is_near_end = position > limits[1] - (min_gap + 0.02) * length
        axes.annotate(
            format_alarm_label(alarm),
            (position, 1.0),
            (-4 if is_near_end else 4, -3),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha="right" if is_near_end else "left",
            va="top",
            fontsize=SMALL_PT,
            color=RED,
            zorder=7,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.8, "linewidth": 0},
        )


def draw_vertical_lines(
    axes: Any, positions: FloatArray, between: tuple[float, float] = (0.0, 1.0), **style: Any
) -> None:
    """Draw vertical lines at these positions, faster than `vlines` for many."""
    from matplotlib.collections import LineCollection

    lines = np.empty((len(positions), 2, 2))
    lines[..., 0], lines[..., 1] = positions[:, None], between
    axes.add_collection(LineCollection(list(lines), **style), autolim=False)
    axes.update_datalim(lines[:, 0], updatey=False)
    axes.autoscale_view(scaley=False)


def format_alarm_label(alarm: Alarm) -> str:
    """Format direction and size of a change alarm.

    >>> format_alarm_label(Alarm("change", 210, 201, -3.21, "down", (0,)))
    'down 3.2 sd'
    """
    if not math.isfinite(alarm.size):
        return alarm.direction
    if alarm.direction in ("up", "down"):
        size = abs(alarm.size)
        return f"{alarm.direction} {size:,.0f} sd" if size >= 100.0 else f"{alarm.direction} {size:.2g} sd"
    return f"{alarm.direction}, × {alarm.size:.2g}"


def draw_score(axes: Any, positions: Any, score: FloatArray, color: str) -> None:
    """Draw a score, with limits around most values."""
    limits = full_or_robust_limits(score, cut=0.002, margin=0.4)
    if limits is None:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no score", transform=axes.transAxes, ha="center", va="center", color="#555555")
        return
    axes.plot(positions, score, color=color, linewidth=0.8)
    axes.set_ylim(*limits)
    mark_out_of_range(axes, positions, score, limits, {"color": color, "zorder": 5}, size=4.0)
