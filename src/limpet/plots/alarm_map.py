"""Picture of many streams: one strip per stream, with its alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limpet.detection.alarm import Alarm
from limpet.plots._axes import DATE_AXIS, ROW_AXIS, RowAxis, configure_x_axis, draw_vertical_lines, make_common_axes
from limpet.plots._style import PT_PER_IN, PURPLE, RED, SMALL_PT, Style, new_stack, render_stack
from limpet.plots._validation import check_not_empty
from limpet.plots.overview import escape_label, value_limits, variable_indices
from limpet.streams.downsample import MinMaxSummary

FILL_COLOR = "#d5d9dd"
ANOMALY_STYLE: Style = {"color": PURPLE, "marker": "o", "linestyle": "none", "markersize": 4.2, "markeredgewidth": 0}
MAX_STRIPS = 60
MAX_STRIP_BUCKETS = 800
VALUES_HEIGHT, BAR_HEIGHT = 0.84, 0.92  # shares of a strip


@dataclass(frozen=True)
class Strip:
    """A stream, its name, and its alarms."""

    name: str
    summary: MinMaxSummary
    alarms: Sequence[Alarm]


def draw_alarm_map(strips: Sequence[Strip], *, narrow: bool = False) -> bytes:
    """Draw one thin strip per stream, and return the bytes of a PNG.

    A change alarm is a bar, an anomaly a dot, and their numbers are at the right. The background is the range of the
    variable with most alarms. The axis has times if all streams have increasing ones, else the rows of each stream.

    Parameters
    ----------
    strips : sequence of Strip
        The streams, from top to bottom.
    narrow : bool
        Whether the picture is for a narrow page.
    """
    check_not_empty("strips", strips)
    pitch = 0.34 if len(strips) <= 12 else 0.24 if len(strips) <= 40 else 0.19  # inches
    figure = new_stack(0.95 + pitch * len(strips), narrow)
    axes = figure.subplots()
    row_axes = make_common_axes([strip.summary for strip in strips])
    for height, (strip, row_axis) in enumerate(zip(strips, row_axes, strict=True)):
        _draw_values(axes, strip, row_axis, height)
        for kind in ("change", "anomaly"):
            rows = [alarm.row for alarm in strip.alarms if alarm.kind == kind]
            if not rows:
                continue
            positions = row_axis(rows)
            if kind == "change":
                bar = (height - BAR_HEIGHT / 2, height + BAR_HEIGHT / 2)
                draw_vertical_lines(axes, positions, bar, color=RED, linewidth=1.6, zorder=4, label="change alarm")
            else:
                axes.plot(positions, np.full(len(positions), height), label="anomaly", zorder=5, **ANOMALY_STYLE)
    size = SMALL_PT if pitch > 0.2 else 7.5
    labels = [escape_label(strip.name, 18 if narrow else 32) for strip in strips]
    axes.set_yticks(range(len(strips)), labels, fontsize=size)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=SMALL_PT)
    axes.set_ylim(len(strips) - 0.4, -0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(True, axis="x", color="#e4e4e4", linewidth=0.7)
    kind = row_axes[0].kind
    limits = min(axis.limits[0] for axis in row_axes), max(axis.limits[1] for axis in row_axes)
    configure_x_axis(axes, kind, limits, 4 if narrow else 8)
    axes.set_xlabel({DATE_AXIS: "", ROW_AXIS: "row of the stream"}.get(kind, kind))
    offsets = (18, 38) if narrow else (48, 104)
    if not narrow:
        _annotate(axes, -0.85, "changes", "anomalies", size, offsets)
    for height, strip in enumerate(strips):
        counts = Counter(alarm.kind for alarm in strip.alarms)
        changes, anomalies = (f"{counts[kind]:,}" if counts[kind] else "–" for kind in ("change", "anomaly"))
        _annotate(axes, height, changes, anomalies, size, offsets)
    axes.yaxis.set_label_coords(0.0, 0.5)  # without a label matplotlib computes a position, slowly
    over = 0.0 if narrow else size / PT_PER_IN
    return render_stack(figure, [axes], [1.0], beside=offsets[1] / PT_PER_IN, over=over)


def _draw_values(axes: Any, strip: Strip, row_axis: RowAxis, height: int) -> None:
    """Draw the range of one variable, scaled to the strip."""
    summary = strip.summary
    counts = Counter(index for alarm in strip.alarms for index in variable_indices(alarm, summary.names)[:1])
    variable = counts.most_common(1)[0][0] if counts else 0
    low, high = value_limits(summary, variable)
    rows, *edges = summary.value_range(variable, MAX_STRIP_BUCKETS)
    bottom, top = (height + VALUES_HEIGHT * (0.5 - (np.clip(edge, low, high) - low) / (high - low)) for edge in edges)
    axes.axhline(height + 0.5, color="#eceeef", linewidth=0.6, zorder=0)
    fill = {"color": FILL_COLOR, "linewidth": 1.0, "zorder": 1, "label": "range of the values"}
    axes.fill_between(row_axis(rows), bottom, top, where=np.isfinite(bottom), **fill)


def _annotate(axes: Any, height: float, changes: str, anomalies: str, size: float, offsets: tuple[int, int]) -> None:
    """Write two labels at offsets in points to the right of a strip."""
    for text, color, offset in ((changes, RED, offsets[0]), (anomalies, PURPLE, offsets[1])):
        axes.annotate(
            text,
            (1.0, height),
            (offset, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=size,
            color="#b0b5ba" if text == "–" else color,
            annotation_clip=False,
        )
