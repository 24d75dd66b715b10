"""Picture of a stream of any length with its alarms and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError
from limpet.plots._axes import (
    DATE_AXIS,
    MIN_LABEL_GAP,
    RowAxis,
    configure_x_axis,
    draw_anomalies,
    draw_changes,
    draw_estimate,
    draw_points,
    draw_rejected,
    draw_score,
    make_row_axis,
    mark_out_of_range,
    robust_limits,
    set_digit_formatter,
)
from limpet.plots._style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PAGE_WIDTH_IN,
    TEXT_PT,
    Style,
    new_stack,
    render_stack,
    style_small_panel,
)
from limpet.streams.downsample import MinMaxSummary

RANGE_STYLE: Style = {"color": "#c3c8cd", "linewidth": 0.7, "label": "range of the points", "zorder": 1.5}
INVALID_STYLE: Style = {"color": INK, "marker": "|", "linestyle": "none", "markersize": 6, "markeredgewidth": 0.8}
MAX_PANELS = 16
MAX_LARGE_CROSSES = 120
MAX_REJECTED_EXTENT = 0.6  # share of the robust range by which rejected points may extend the limits


def draw_overview(
    summary: MinMaxSummary,
    alarms: Sequence[Alarm],
    *,
    title: str = "",
    scores: bool = True,
    legend: bool = True,
    narrow: bool = False,
) -> bytes:
    """Draw a stream with its alarms, and return the bytes of a PNG.

    A short stream is drawn point by point, a long one as the range of the values in each bucket. The lower axis has
    times if the stream has increasing ones, else rows. The limits are those of the points that were not rejected;
    points outside are marked at the edge.

    Parameters
    ----------
    summary : MinMaxSummary
        The stream.
    alarms : sequence of Alarm
        The alarms, in the order of rows. A change is a line, with a shade from its onset on; in the panels of other
        variables it is faint.
    title : str
        The title above all panels.
    scores : bool
        Whether to add panels for the score and the change score.
    legend : bool
        Whether to add a legend.
    narrow : bool
        Whether the picture is for a narrow page.
    """
    if not len(summary):
        raise InvalidInputError("summary: must have at least one row, got none. Add rows before drawing.")
    axis, variables = make_row_axis(summary), select_variables(summary, alarms)
    is_multivariate = len(variables) > 1
    score_names = ["score", "change score"][: (2 if summary.is_auto else 1) * scores]
    height_in = max(0.95, min(6.0 / len(variables), 1.8)) if is_multivariate else 2.5
    heights = [height_in] * len(variables) + [1.0] * len(score_names)
    figure = new_stack(0.4 + 0.5 * legend + sum(heights), narrow)
    min_gap = MIN_LABEL_GAP * PAGE_WIDTH_IN / figure.get_figwidth()
    panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, variable in zip(panels, variables, strict=False):
        _draw_variable(axes, summary, variable, alarms, axis, min_gap)
        _set_title(axes, summary.names[variable] if is_multivariate or not title else title)
    if is_multivariate and title:
        panels[0].set_title(escape_label(title), loc="right", fontsize=TEXT_PT, pad=3, y=1.0, color=INK)
    for axes, name in zip(panels[len(variables) :], score_names, strict=True):
        score, color = (summary.score, BLUE) if name == "score" else (summary.change_score, GREEN)
        draw_score(axes, axis(summary.rows), score, color)
        draw_changes(axes, alarms, limits=axis.limits, labeled=False, to_position=axis)
        _set_title(axes, _describe_score(name, summary, narrow))
    for axes in panels:
        axes.locator_params(axis="y", nbins=4)
        set_digit_formatter(axes.yaxis)
        for unlabeled in (axes.yaxis, axes.xaxis)[: 1 if axes is panels[-1] else 2]:
            unlabeled.set_label_coords(0.5, 0.0)  # without coordinates matplotlib computes them, slowly
    configure_x_axis(panels[-1], axis.kind, axis.limits, 5 if narrow else 9)
    if axis.kind == DATE_AXIS:
        panels[-1].set_xlabel("")
    return render_stack(figure, panels, heights, has_legend=legend)


def select_variables(summary: MinMaxSummary, alarms: Sequence[Alarm]) -> list[int]:
    """Return the indices of the variables to draw, those with alarms preferred."""
    indices = list(range(len(summary.names)))
    if len(indices) <= MAX_PANELS:
        return indices
    with_alarms = {index for alarm in alarms for index in variable_indices(alarm, summary.names)}
    return sorted(sorted(indices, key=lambda index: (index not in with_alarms, index))[:MAX_PANELS])


def variable_indices(alarm: Alarm, names: Sequence[str]) -> list[int]:
    """Return the indices of an alarm's variables; a single variable has all alarms."""
    if len(names) == 1:
        return [0]
    indices = [names.index(name) if isinstance(name, str) and name in names else name for name in alarm.variables]
    return [index for index in indices if isinstance(index, int) and 0 <= index < len(names)]


def escape_label(name: str, max_chars: int = 70) -> str:
    """Return a label on one line, truncated, without formulas.

    >>> escape_label("5$ a\\nb")
    '5\\\\$ a b'
    """
    one_line = "".join(c if c.isprintable() else " " for c in name)
    return (one_line if len(one_line) <= max_chars else one_line[: max_chars - 1] + "…").replace("$", r"\$")


def value_limits(summary: MinMaxSummary, variable: int) -> tuple[float, float]:
    """Return limits around accepted points and rejected points nearby."""
    low, high = summary.minimum[variable], summary.maximum[variable]
    rejected = np.concatenate([summary.rejected_minimum[variable], summary.rejected_maximum[variable]])
    accepted = np.concatenate([low, high])
    known = accepted if np.isfinite(accepted).any() else rejected
    known = known[np.isfinite(known)]
    if not len(known):
        return 0.0, 1.0
    if known.min() == known.max():
        padding = 0.1 * abs(float(known[0])) or 1.0
        return float(known[0]) - padding, float(known[0]) + padding
    usual = robust_limits(known, cut=0.002, margin=0.15)
    assert usual is not None
    extent = MAX_REJECTED_EXTENT * (usual[1] - usual[0])
    shown = np.concatenate([known, rejected[np.isfinite(rejected)]])
    shown = shown[(shown >= usual[0] - extent) & (shown <= usual[1] + extent)]
    margin = 0.04 * (usual[1] - usual[0])
    lowest, highest = float(shown.min()) - margin, float(shown.max()) + margin
    return min(usual[0], lowest), max(usual[1], highest)


def _draw_variable(
    axes: Any, summary: MinMaxSummary, variable: int, alarms: Sequence[Alarm], axis: RowAxis, min_gap: float
) -> None:
    positions, limits = axis(summary.rows), value_limits(summary, variable)
    low, high = summary.minimum[variable], summary.maximum[variable]
    axes.set_ylim(*limits)
    if summary.is_exact:
        known = np.isfinite(low)
        draw_points(axes, positions[known], low[known], limits, size=2.5 if len(low) > 500 else 5.0)
    else:
        axes.fill_between(positions, low, high, where=np.isfinite(low), **RANGE_STYLE)
        for edge in (low, high):
            mark_out_of_range(axes, positions, edge, limits, {"color": GREY}, size=4.0)
    low, high = summary.rejected_minimum[variable], summary.rejected_maximum[variable]
    x, y = (positions, low) if summary.is_exact else (np.append(positions, positions), np.append(low, high))
    known = np.isfinite(y)
    small = {"markersize": 2.5, "alpha": 0.5, "markeredgewidth": 0.7} if known.sum() > MAX_LARGE_CROSSES else {}
    if known.any():
        draw_rejected(axes, x[known], y[known], limits, **small)
    estimate = summary.estimate[variable]
    known = np.isfinite(estimate)
    if known.any():
        ends = axis(np.minimum(summary.rows + summary.width - 1, summary.n_rows - 1))
        draw_estimate(axes, ends[known], estimate[known], 1.9 if summary.is_exact else 1.3)
    if summary.n_invalid.any():
        invalid = positions[summary.n_invalid > 0]
        relative_height = {"transform": axes.get_xaxis_transform()}
        axes.plot(invalid, np.full(len(invalid), 0.03), label="invalid", **INVALID_STYLE, **relative_height)
    matching = [alarm for alarm in alarms if variable in variable_indices(alarm, summary.names)]
    others = [alarm for alarm in alarms if variable not in variable_indices(alarm, summary.names)]
    draw_changes(axes, matching, limits=axis.limits, labeled=True, to_position=axis, min_gap=min_gap)
    draw_changes(axes, others, limits=axis.limits, labeled=False, to_position=axis, faint=True)
    anomalies = [alarm for alarm in matching if alarm.kind == "anomaly" and 0 <= alarm.row < summary.n_rows]
    heights = np.array([_get_height(alarm, summary, variable) for alarm in anomalies])
    draw_anomalies(axes, axis([alarm.row for alarm in anomalies]), heights, limits)


def _get_height(alarm: Alarm, summary: MinMaxSummary, variable: int) -> float:
    """Return the value of an anomaly: the most extreme one in its bucket."""
    bucket = alarm.row // summary.width
    if alarm.direction == "down":
        return float(np.fmin(summary.minimum[variable, bucket], summary.rejected_minimum[variable, bucket]))
    return float(np.fmax(summary.maximum[variable, bucket], summary.rejected_maximum[variable, bucket]))


def _set_title(axes: Any, name: str) -> None:
    style_small_panel(axes)
    axes.set_title(escape_label(name, 110), loc="left", fontsize=TEXT_PT, pad=3, y=1.0)  # a fixed height


def _describe_score(name: str, summary: MinMaxSummary, narrow: bool) -> str:
    what = "how surprising each point is" if name == "score" else "how far the latest points deviate"
    if not summary.is_exact and not narrow:
        what += f" (the largest of {summary.width:,} rows)"
    return f"{name}: {what}"
