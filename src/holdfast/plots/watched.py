"""The picture of a watched stream: what came, what was dropped, the alarms, the estimate, and both scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from holdfast.alarms.alarm import Alarm
from holdfast.checks import FloatArray
from holdfast.datasets.reading import row_numbers
from holdfast.learners import Trace
from holdfast.plots.arrays import as_column, as_columns
from holdfast.plots.grid import legend_above
from holdfast.plots.limits import full_or_usual, mark_beyond, usual_range
from holdfast.plots.style import (
    BLUE,
    DROPPED,
    GREEN,
    MOMENT,
    POINTS,
    PURPLE,
    RED,
    SMALL,
    Style,
    as_png,
    new_page,
    rows_below,
    small_panel,
)

ALARM: Style = {"color": RED, "linewidth": 1.3}
ONSET: Style = {"color": RED, "alpha": 0.16, "linewidth": 0}
ANOMALY: Style = {
    "color": PURPLE,
    "marker": "o",
    "linestyle": "none",
    "markersize": 9,
    "markerfacecolor": "none",
    "markeredgewidth": 1.6,
}
BAND = 2.0  # standard deviations
APART = 0.13  # of the width: change alarms that are nearer to each other are not told in words
STREAM, SCORE = 2.3, 1.25  # inches, the height of a panel


def draw_watched(
    y: ArrayLike,
    trace: Trace,
    *,
    title: str = "",
    deviations: ArrayLike | None = None,
    changes: Sequence[int] = (),
    beside: Mapping[str, Trace] | None = None,
    scores: bool = True,
    first_row: int = 0,
) -> bytes:
    """Draw a univariate stream and what a learner made of it, and return the bytes of a PNG.

    The limits are those of the points that were learnt; what lies beyond is marked at the edge. A change alarm is a
    line, with a shade from its onset on.

    Parameters
    ----------
    y : array (T,) or (T, 1)
        The stream.
    trace : Trace
        What the autopilot made of it; with `record="means"` the estimate is drawn as well.
    title : str
        Of the first panel.
    deviations : array (T,) or (T, K), optional
        The standard deviations that go with the means: a band of two of them is drawn about each.
    changes : sequence of int
        Rows at which the stream truly changed, rising.
    beside : mapping of title to Trace, optional
        What other learners made of the same stream: one more panel each, below the first.
    scores : bool
        Whether there are panels for the score and the change score, below the others.
    first_row : int
        The number of the first row drawn, if the trace continues another one.
    """
    values = as_column("y", y, len(trace))
    rows = first_row + np.arange(len(values))
    true_changes = row_numbers("changes", [row - first_row for row in changes], len(values))
    traces = {title: trace, **(beside or {})}
    heights = [STREAM] * len(traces) + [SCORE] * (2 * scores)
    figure = new_page(0.7 + sum(heights))
    panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    limits = usual_range(values[~trace.dropped], cut=0.002, margin=0.25) or (0.0, 1.0)
    for axes, (name, each) in zip(panels, traces.items(), strict=False):
        widths = None if each is not trace or deviations is None else as_columns("deviations", deviations, len(values))
        _draw_stream(axes, rows, as_column(f"{name}: y", values, len(each)), each, widths, limits)
        _draw_alarms(axes, each.alarms, rows, told=True)
        small_panel(axes, name)
        axes.set_ylabel("value")
    if scores:
        for axes, score, colour, name in (
            (panels[-2], trace.score, BLUE, "score: surprise at this point"),
            (panels[-1], trace.change_score, GREEN, "change score: has the stream changed lately?"),
        ):
            _draw_score(axes, rows, score, colour)
            _draw_alarms(axes, trace.alarms, rows, told=False)
            small_panel(axes, name)
    for axes in panels:
        for row in true_changes:
            axes.axvline(first_row + row, label="true change", zorder=1, **MOMENT)
        axes.locator_params(axis="y", nbins=4)
        axes.yaxis.set_major_formatter("{x:,g}")
    rows_below(panels[-1], len(values), 8)
    panels[-1].set_xlim(rows[0], rows[-1] + 1)
    panels[-1].set_xlabel("row")
    figure.align_ylabels(panels)
    legend_above(figure, panels)
    return as_png(figure)


def _draw_stream(
    axes: Any, rows: Any, values: FloatArray, trace: Trace, deviations: FloatArray | None, limits: tuple[float, float]
) -> None:
    """The points, those that were dropped, the anomalies, and the estimate."""
    out, odd = trace.dropped, trace.anomaly
    axes.set_ylim(*limits)
    axes.plot(rows[~out], values[~out], markersize=2.5, alpha=0.5, rasterized=True, **POINTS)
    axes.plot([], [], label="point", markersize=7, **POINTS)  # in the legend, one that can be seen
    axes.plot(rows[out], values[out], label="dropped", **DROPPED | {"markersize": 4.5, "alpha": 0.8})
    mark_beyond(axes, rows[out], values[out], limits, DROPPED, size=4.0, label="dropped, beyond the edge")
    mark_beyond(axes, rows[~out], values[~out], limits, POINTS, size=4.0)
    if odd.any():
        shown = np.clip(values[odd], *_inner_edges(limits))
        axes.plot(rows[odd], shown, label="anomaly", zorder=6, **ANOMALY)
    if "means" not in trace.recorded:
        return
    means = as_columns("means", trace.means, len(values))
    if deviations is not None:
        for mean, deviation in zip(means.T, deviations.T, strict=True):
            band = {"color": BLUE, "alpha": 0.16, "linewidth": 0, "label": f"± {BAND:g} standard deviations"}
            axes.fill_between(rows, mean - BAND * deviation, mean + BAND * deviation, zorder=2, **band)
    axes.plot(rows, means, color="white", linewidth=3.4, zorder=3)
    axes.plot(rows, means, color=BLUE, linewidth=1.9, zorder=4, label="estimate")


def _inner_edges(limits: tuple[float, float]) -> tuple[float, float]:
    """Where a mark at the edge still lies whole in the panel.

    >>> _inner_edges((0.0, 100.0))
    (2.0, 98.0)
    """
    room = 0.02 * (limits[1] - limits[0])
    return limits[0] + room, limits[1] - room


def _draw_alarms(axes: Any, alarms: Sequence[Alarm], rows: Any, told: bool) -> None:
    """Change alarms, each with a shade from its onset on, and if they are few in words."""
    shown = [alarm for alarm in alarms if alarm.kind == "change" and rows[0] <= alarm.row <= rows[-1]]
    clear = all(after.row - before.row > APART * len(rows) for before, after in pairwise(shown))
    for alarm in shown:
        axes.axvline(alarm.row, label="change alarm", zorder=5, **ALARM)
        axes.axvspan(alarm.onset, alarm.row, label="from its onset to the alarm", zorder=1, **ONSET)
        if told and clear:
            near_the_end = alarm.row > rows[0] + 0.85 * len(rows)
            axes.annotate(
                _in_short(alarm),
                (alarm.row, 1.0),
                (-4 if near_the_end else 4, -3),
                xycoords=axes.get_xaxis_transform(),
                textcoords="offset points",
                ha="right" if near_the_end else "left",
                va="top",
                fontsize=SMALL,
                color=RED,
                zorder=7,
                bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.8, "linewidth": 0},
            )


def _in_short(alarm: Alarm) -> str:
    """What a change alarm says.

    >>> _in_short(Alarm("change", 210, 201, -3.21, "down", (0,)))
    'down 3.2 sd'
    """
    if alarm.direction in ("up", "down"):
        return f"{alarm.direction} {abs(alarm.size):.2g} sd"
    return f"{alarm.direction}, × {alarm.size:.2g}"


def _draw_score(axes: Any, rows: Any, score: FloatArray, colour: str) -> None:
    """A score, on the scale of its bulk."""
    limits = full_or_usual(score, cut=0.002, margin=0.4)
    if limits is None:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no score", transform=axes.transAxes, ha="center", va="center", color="#555555")
        return
    axes.plot(rows, score, color=colour, linewidth=0.8)
    axes.set_ylim(*limits)
    mark_beyond(axes, rows, score, limits, {"color": colour, "zorder": 5}, size=4.0)
