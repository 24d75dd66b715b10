"""Plot of the idea: robust against outliers, adaptive to a change."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill

import numpy as np
from numpy.typing import ArrayLike

from limpet.datasets.labeled_stream import to_flags, to_frozen_array, to_row_list
from limpet.plots._axes import mark_out_of_range, robust_limits
from limpet.plots._style import (
    BLUE,
    CHANGE_STYLE,
    GREEN,
    ORANGE,
    POINT_STYLE,
    PURPLE,
    REJECTED_STYLE,
    TITLE_PT,
    TRUTH_STYLE,
    add_legend_above,
    render_png,
    style_small_panel,
)
from limpet.plots._validation import as_column, check_not_empty
from limpet_lab.plots.axes import new_page, set_row_axis, to_columns

COLORS = (GREEN, PURPLE, ORANGE)  # of all but the last, which is the one to be shown: it is blue
TITLE_WIDTH_CHARS = 84  # letters of a title that fit on a page


def draw_illustration(
    y: ArrayLike,
    estimates: Mapping[str, ArrayLike],
    *,
    change_point: int,
    outliers: ArrayLike,
    truth: ArrayLike | None = None,
) -> bytes:
    """Draw the same univariate stream in one panel per estimate, next to each other, and return the bytes of a PNG.

    Parameters
    ----------
    y : array (T,) or (T, 1)
        The stream, with outliers and one change.
    estimates : mapping of title to array (T,) or (T, K)
        What was estimated, row by row; the last one is meant to be the good one.
    change_point : int
        The row of the change.
    outliers : bool array (T,)
        Which points are outliers; they are crossed, or marked at the edge where they lie too far out.
    truth : array (T,) or (T, K), optional
        What should have been estimated.
    """
    values = as_column("y", y)
    check_not_empty("estimates", estimates)
    to_row_list("change_point", [change_point], len(values))
    is_outlier = to_frozen_array("outliers", to_flags("outliers", outliers), bool, (len(values),))
    true_values = None if truth is None else to_columns("truth", truth, len(values))
    rows = np.arange(len(values))
    limits = robust_limits(values[~is_outlier], cut=0.0, margin=0.6) or (0.0, 1.0)
    figure = new_page(3.5)
    panels = figure.subplots(1, len(estimates), sharex=True, sharey=True, squeeze=False)[0]
    colors = [COLORS[nth % len(COLORS)] for nth in range(len(estimates) - 1)] + [BLUE]
    for axes, color, (title, estimate) in zip(panels, colors, estimates.items(), strict=True):
        axes.plot(rows[~is_outlier], values[~is_outlier], markersize=3.0, alpha=0.35, rasterized=True, **POINT_STYLE)
        axes.plot([], [], label="point", markersize=8, **POINT_STYLE)  # in the legend, one that can be seen
        axes.plot(
            rows[is_outlier], values[is_outlier], markersize=5, label="outlier", **REJECTED_STYLE | {"alpha": 0.8}
        )
        axes.axvline(change_point, label="change", **CHANGE_STYLE)
        means = to_columns(title, estimate, len(values))
        axes.plot(rows, means, color="white", linewidth=4.4, zorder=3)
        axes.plot(rows, means, color=color, linewidth=2.6, zorder=4)
        axes.plot([], [], label="estimate", color=BLUE, linewidth=2.6)
        if true_values is not None:
            axes.plot(rows, true_values, label="truth", zorder=5, **TRUTH_STYLE | {"linewidth": 1.1, "alpha": 1.0})
        axes.set_ylim(*limits)
        mark_out_of_range(
            axes, rows[is_outlier], values[is_outlier], limits, REJECTED_STYLE, label="outlier beyond the edge"
        )
        style_small_panel(axes)
        axes.set_title(
            _wrap_title(title, TITLE_WIDTH_CHARS // len(estimates)), loc="left", fontsize=TITLE_PT, fontweight="bold"
        )
        set_row_axis(axes, len(values), 4)
        axes.set_xlabel("row")
    add_legend_above(figure, panels)
    return render_png(figure)


def _wrap_title(title: str, length: int) -> str:
    """Break a title that is too long, first after its colon.

    >>> _wrap_title("both: SRA, a threshold and a step", 28)
    'both:\\nSRA, a threshold and a step'
    """
    if len(title) <= length:
        return title
    return "\n".join(fill(line, length) for line in title.replace(": ", ":\n", 1).split("\n"))
