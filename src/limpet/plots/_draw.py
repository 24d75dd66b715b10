"""Parts of pictures of streams: points, estimates, alarms, scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray
from limpet.detection.alarm import Alarm
from limpet.plots._axes import full_or_robust_limits, mark_out_of_range
from limpet.plots._style import BLUE, CIRCLE_STYLE, POINT_STYLE, PURPLE, RED, REJECTED_STYLE, SMALL_PT, Style

ALARM_STYLE: Style = {"color": RED, "linewidth": 1.3}
ONSET_STYLE: Style = {"color": RED, "alpha": 0.16, "linewidth": 0}
ANOMALY_STYLE = CIRCLE_STYLE | {"color": PURPLE, "markersize": 9, "markeredgewidth": 1.6}
MIN_LABEL_GAP = 0.13  # share of the width that the label of a change alarm takes
LINE_WIDTHS = ((60, 0.6), (12, 0.9))  # above this number of change alarms

RowToPosition = Callable[[npt.ArrayLike], npt.NDArray[Any]]


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
    labelled: bool,
    to_position: RowToPosition = np.asarray,
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
    if not labelled or any(after - before <= min_gap * length for before, after in pairwise(positions)):
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
    """Draw vertical lines at these positions; `vlines` does the same, slowly for many lines."""
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
