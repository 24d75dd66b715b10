"""Plot of how methods followed a stream: their estimates and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limpet._validation import FloatArray
from limpet.datasets.labeled_stream import to_flags, to_frozen_array, to_row_list
from limpet.plots._axes import full_or_robust_limits, mark_out_of_range, robust_limits
from limpet.plots._style import (
    CHANGE_STYLE,
    CIRCLE_STYLE,
    POINT_STYLE,
    TITLE_PT,
    Style,
    add_legend_above,
    render_png,
    style_small_panel,
)
from limpet.plots._validation import as_column, check_not_empty
from limpet_lab.plots.axes import new_page, set_row_axis, to_columns
from limpet_lab.plots.method_styles import get_line_style, get_styles


def draw_estimates(
    y: ArrayLike,
    rows: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    change_points: Sequence[int],
    outliers: ArrayLike | None = None,
    score_label: str = "change score",
) -> bytes:
    """Draw one row of panels per method, its estimate over the stream and its score; return the bytes of a PNG.

    Limits are those of the bulk of the values; what lies beyond is marked at the edge.

    Parameters
    ----------
    y : array (T,) or (T, 1)
        The stream.
    rows : mapping of method to (array, array)
        The estimated mean or means, (T,) or (T, K), and the score (T,); NaN leaves a gap, as where a point was
        rejected, and a method without an estimate has NaN throughout.
    change_points : sequence of int
        Rows to be marked, rising.
    outliers : bool array (T,), optional
        The points to be circled.
    score_label : str
        What the score is.
    """
    values = as_column("y", y)
    check_not_empty("rows", rows)
    changes = to_row_list("change_points", change_points, len(values))
    flags = np.zeros(len(values), dtype=bool) if outliers is None else outliers
    is_outlier = to_frozen_array("outliers", to_flags("outliers", flags), bool, (len(values),))
    styles = get_styles(rows)
    figure = new_page(0.8 + 1.5 * len(rows))
    grid = figure.subplots(len(rows), 2, sharex=True, squeeze=False)
    for (left, right), (name, (means, score)) in zip(grid, rows.items(), strict=True):
        style = get_line_style(styles[name]) | {"linestyle": "-", "zorder": 4}
        estimate = to_columns(f"{name}: means", means, len(values))
        _draw_estimate(left, values, estimate, is_outlier, style)
        _draw_score(right, as_column(f"{name}: score", score, len(values)), style)
        for axes in (left, right):
            for nth, row in enumerate(changes):
                axes.axvline(row, label="" if nth else "change", zorder=3, **CHANGE_STYLE)
            style_small_panel(axes)
            set_row_axis(axes, len(values), 5)
            axes.locator_params(axis="y", nbins=4)
            axes.yaxis.set_major_formatter("{x:,g}")
        left.set_title(name, loc="left", fontsize=TITLE_PT, fontweight="bold", color=style["color"], pad=3)
    grid[0, 1].set_title(score_label, loc="left", fontsize=TITLE_PT, pad=3)
    for axes in grid[-1]:
        axes.set_xlabel("row")
    add_legend_above(figure, [grid[0, 0]])
    return render_png(figure)


def _draw_estimate(axes: Any, values: FloatArray, means: FloatArray, is_outlier: Any, style: Style) -> None:
    limits = robust_limits(values[~is_outlier], cut=0.002, margin=0.15) or axes.get_ylim()
    rows = np.arange(len(values))
    axes.plot(rows[~is_outlier], values[~is_outlier], markersize=2.0, alpha=0.4, rasterized=True, **POINT_STYLE)
    axes.plot([], [], label="point", markersize=7, **POINT_STYLE)
    if is_outlier.any():
        axes.plot(rows[is_outlier], values[is_outlier], label="outlier", **CIRCLE_STYLE | {"markersize": 4})
    axes.plot(rows, means, **style | {"linewidth": 1.8})
    axes.plot([], [], label="estimate, in the method's colour", color="black", linewidth=1.8)
    axes.set_ylim(*limits)
    far_style = CIRCLE_STYLE | {"markerfacecolor": CIRCLE_STYLE["color"], "alpha": 0.5}
    mark_out_of_range(axes, rows[is_outlier], values[is_outlier], limits, far_style, size=3.5, label="beyond the edge")
    mark_out_of_range(axes, rows[~is_outlier], values[~is_outlier], limits, POINT_STYLE, size=3.5)


def _draw_score(axes: Any, score: FloatArray, style: Style) -> None:
    limits = full_or_robust_limits(score, cut=0.015, margin=0.4)
    if limits is None:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no score", transform=axes.transAxes, ha="center", va="center", color="#555555")
        return
    axes.plot(score, **style | {"linewidth": 0.9})
    is_isolated = (
        np.isfinite(score) & ~np.isfinite(np.append(score[1:], np.nan)) & ~np.isfinite(np.append(np.nan, score[:-1]))
    )
    axes.plot(
        np.flatnonzero(is_isolated),
        score[is_isolated],
        color=style["color"],
        marker=".",
        markersize=2,
        linestyle="none",
    )
    axes.set_ylim(*limits)
    mark_out_of_range(axes, np.arange(len(score)), score, limits, {"color": style["color"], "zorder": 5}, size=4.0)
