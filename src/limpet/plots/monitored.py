"""The picture of a watched stream: what came, what was dropped, the alarms, the estimate, and both scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limpet._validation import FloatArray
from limpet.datasets._validation import to_row_list
from limpet.learners import Trace
from limpet.plots._axes import usual_range
from limpet.plots._draw import draw_anomalies, draw_changes, draw_dropped, draw_estimate, draw_points, draw_score
from limpet.plots._style import BLUE, GREEN, MOMENT, as_png, new_page, rows_below, small_panel
from limpet.plots._validation import as_column, as_columns
from limpet_lab.plots.grid import legend_above

BAND = 2.0  # standard deviations
STREAM, SCORE = 2.3, 1.25  # inches, the height of a panel


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
    true_changes = to_row_list("changes", [row - first_row for row in changes], len(values))
    traces = {title: trace, **(beside or {})}
    heights = [STREAM] * len(traces) + [SCORE] * (2 * scores)
    figure = new_page(0.7 + sum(heights))
    panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    limits = usual_range(values[~trace.rejected], cut=0.002, margin=0.25) or (0.0, 1.0)
    for axes, (name, each) in zip(panels, traces.items(), strict=False):
        widths = None if each is not trace or deviations is None else as_columns("deviations", deviations, len(values))
        _draw_stream(axes, rows, as_column(f"{name}: y", values, len(each)), each, widths, limits)
        draw_changes(axes, each.alarms, ends=(rows[0], rows[-1]), told=True)
        small_panel(axes, name)
        axes.set_ylabel("value")
    if scores:
        for axes, score, colour, name in (
            (panels[-2], trace.score, BLUE, "score: surprise at this point"),
            (panels[-1], trace.change_score, GREEN, "change score: has the stream changed lately?"),
        ):
            draw_score(axes, rows, score, colour)
            draw_changes(axes, trace.alarms, ends=(rows[0], rows[-1]), told=False)
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
    out, odd = trace.rejected, trace.anomaly
    axes.set_ylim(*limits)
    draw_points(axes, rows[~out], values[~out], limits)
    draw_dropped(axes, rows[out], values[out], limits)
    draw_anomalies(axes, rows[odd], values[odd], limits)
    if "means" not in trace.recorded:
        return
    means = as_columns("means", trace.means, len(values))
    if deviations is not None:
        for mean, deviation in zip(means.T, deviations.T, strict=True):
            band = {"color": BLUE, "alpha": 0.16, "linewidth": 0, "label": f"± {BAND:g} standard deviations"}
            axes.fill_between(rows, mean - BAND * deviation, mean + BAND * deviation, zorder=2, **band)
    draw_estimate(axes, rows, means)
