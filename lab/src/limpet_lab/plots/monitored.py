"""Picture of a monitored stream: points, alarms, the estimate, both scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limpet._validation import FloatArray
from limpet.datasets.labeled_stream import to_row_list
from limpet.learners import Trace
from limpet.plots._axes import (
    draw_anomalies,
    draw_changes,
    draw_estimate,
    draw_points,
    draw_rejected,
    draw_score,
    robust_limits,
)
from limpet.plots._style import BLUE, EVENT_STYLE, GREEN, add_legend_above, render_png, style_small_panel
from limpet.plots._validation import as_column
from limpet_lab.plots.axes import new_page, set_row_axis, to_columns

BAND_SD = 2.0
STREAM_HEIGHT_IN, SCORE_HEIGHT_IN = 2.3, 1.25  # of a panel


def draw_monitored_stream(
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
    """Draw a univariate stream with its results, and return the bytes of a PNG.

    The limits are those of the points that were not rejected; points outside are marked at the edge. A change alarm is
    a line, with a shade from its onset on.

    Parameters
    ----------
    y : array (T,) or (T, 1)
        The stream.
    trace : Trace
        The results; with `record="means"` the estimate is drawn as well.
    title : str
        The title of the first panel.
    deviations : array (T,) or (T, K), optional
        The standard deviation of each mean, drawn as a band of two of them.
    changes : sequence of int
        The true change points, increasing.
    beside : mapping of title to Trace, optional
        The results of other learners for the same stream: one more panel each, below the first.
    scores : bool
        Whether to add panels for the score and the change score.
    first_row : int
        The row of the first point, if the trace continues another one.
    """
    values = as_column("y", y, len(trace))
    rows = first_row + np.arange(len(values))
    true_changes = to_row_list("changes", [row - first_row for row in changes], len(values))
    traces = {title: trace, **(beside or {})}
    heights = [STREAM_HEIGHT_IN] * len(traces) + [SCORE_HEIGHT_IN] * (2 * scores)
    figure = new_page(0.7 + sum(heights))
    panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    limits = robust_limits(values[~trace.rejected], cut=0.002, margin=0.25) or (0.0, 1.0)
    for axes, (name, trace_of_panel) in zip(panels, traces.items(), strict=False):
        widths = (
            None
            if trace_of_panel is not trace or deviations is None
            else to_columns("deviations", deviations, len(values))
        )
        _draw_stream(axes, rows, as_column(f"{name}: y", values, len(trace_of_panel)), trace_of_panel, widths, limits)
        draw_changes(axes, trace_of_panel.alarms, limits=(rows[0], rows[-1]), labeled=True)
        style_small_panel(axes, name)
        axes.set_ylabel("value")
    if scores:
        for axes, score, color, name in (
            (panels[-2], trace.score, BLUE, "score: how surprising each point is"),
            (panels[-1], trace.change_score, GREEN, "change score: how far the latest points deviate"),
        ):
            draw_score(axes, rows, score, color)
            draw_changes(axes, trace.alarms, limits=(rows[0], rows[-1]), labeled=False)
            style_small_panel(axes, name)
    for axes in panels:
        for row in true_changes:
            axes.axvline(first_row + row, label="true change", zorder=1, **EVENT_STYLE)
        axes.locator_params(axis="y", nbins=4)
        axes.yaxis.set_major_formatter("{x:,g}")
    set_row_axis(panels[-1], len(values), 8)
    panels[-1].set_xlim(rows[0], rows[-1] + 1)
    panels[-1].set_xlabel("row")
    figure.align_ylabels(panels)
    add_legend_above(figure, panels)
    return render_png(figure)


def _draw_stream(
    axes: Any, rows: Any, values: FloatArray, trace: Trace, deviations: FloatArray | None, limits: tuple[float, float]
) -> None:
    rejected, anomalous = trace.rejected, trace.anomaly
    axes.set_ylim(*limits)
    draw_points(axes, rows[~rejected], values[~rejected], limits)
    draw_rejected(axes, rows[rejected], values[rejected], limits)
    draw_anomalies(axes, rows[anomalous], values[anomalous], limits)
    if "means" not in trace.recorded:
        return
    means = to_columns("means", trace.means, len(values))
    if deviations is not None:
        for mean, deviation in zip(means.T, deviations.T, strict=True):
            band = {"color": BLUE, "alpha": 0.16, "linewidth": 0, "label": f"± {BAND_SD:g} standard deviations"}
            axes.fill_between(rows, mean - BAND_SD * deviation, mean + BAND_SD * deviation, zorder=2, **band)
    draw_estimate(axes, rows, means)
