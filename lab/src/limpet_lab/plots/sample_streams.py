"""Plot of sample streams: all of each, and the rows near its change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limpet._validation import FloatArray, check_int
from limpet.datasets import Stream
from limpet.plots._axes import mark_out_of_range, robust_limits
from limpet.plots._style import (
    CHANGE_STYLE,
    CIRCLE_STYLE,
    POINT_STYLE,
    TEXT_PT,
    Style,
    add_legend_above,
    render_png,
    style_small_panel,
)
from limpet.plots._validation import check_not_empty
from limpet_lab.plots.axes import new_page, set_row_axis

FAR_OUTLIER_STYLE: Style = CIRCLE_STYLE | {"markerfacecolor": CIRCLE_STYLE["color"]}


def draw_samples(streams: Sequence[Stream], *, reach: int = 500) -> bytes:
    """Draw streams with their outliers and changes, and return the bytes of a PNG.

    Every variable has a panel with all of its rows and, beside it, one with the rows near the first change on
    the scale of the inliers, where what lies beyond is marked at the edge. Univariate streams stand one under
    the other; multivariate ones in pairs next to each other, their variables one under the other.

    Parameters
    ----------
    streams : sequence of Stream
        The streams; one without a change is shown around its middle.
    reach : int
        Rows shown before and after the change.
    """
    check_not_empty("streams", streams)
    check_int("reach", reach, 1)
    bands = _group_streams(streams)
    heights = [0.6 + 1.6 * band[0].y.shape[1] for band in bands]
    figure = new_page(0.4 + sum(heights))
    parts = figure.subfigures(len(bands), 1, height_ratios=heights, squeeze=False)[:, 0]
    panels: list[Any] = []
    for part, band in zip(parts, bands, strict=True):
        dim = band[0].y.shape[1]
        widths = [2.4, 1.0] if len(band) == 1 else [1.35, 1.0] * len(band)
        grid = part.subplots(dim, len(widths), squeeze=False, gridspec_kw={"width_ratios": widths})
        for column, stream in enumerate(band):
            for variable in range(dim):
                whole, near = grid[variable, 2 * column : 2 * column + 2]
                _draw_whole(whole, stream, variable, narrow=len(band) > 1)
                _draw_near(near, stream, variable, reach)
                if variable == 0:
                    whole.set_title(stream.name, loc="left", fontsize=TEXT_PT + 1, fontweight="bold")
                    near.set_title("near the change" if _get_changes(stream) else "near the middle", fontsize=TEXT_PT)
                if column == 0:
                    whole.set_ylabel("value" if dim == 1 else f"variable {variable + 1}")
                for axes in (whole, near):
                    axes.set_xlabel("row" if variable == dim - 1 else "")
                    axes.tick_params(labelbottom=variable == dim - 1)
                    axes.yaxis.set_major_formatter("{x:,g}")
                panels += [whole, near]
    add_legend_above(figure, panels)
    return render_png(figure)


def _group_streams(streams: Sequence[Stream]) -> list[list[Stream]]:
    """Put neighbours of the same number of variables, above one, in pairs."""
    bands: list[list[Stream]] = []
    for stream in streams:
        dim = stream.y.shape[1]
        if dim > 1 and bands and len(bands[-1]) == 1 and bands[-1][0].y.shape[1] == dim:
            bands[-1].append(stream)
        else:
            bands.append([stream])
    return bands


def _get_changes(stream: Stream) -> list[int]:
    if isinstance(stream.change_points, dict):
        return sorted({row for rows in stream.change_points.values() for row in rows})
    return stream.change_points


def _split_outliers(stream: Stream, variable: int) -> tuple[FloatArray, Any, Any]:
    is_outlier = np.zeros(len(stream), dtype=bool) if stream.outliers is None else stream.outliers
    return stream.y[:, variable], np.flatnonzero(~is_outlier), np.flatnonzero(is_outlier)


def _draw_whole(axes: Any, stream: Stream, variable: int, narrow: bool) -> None:
    values, inliers, outliers = _split_outliers(stream, variable)
    axes.plot(inliers, values[inliers], markersize=1.6, alpha=0.35, rasterized=True, **POINT_STYLE)
    axes.plot(
        outliers, values[outliers], **CIRCLE_STYLE | {"markersize": 2.6 if narrow else 3.6, "markeredgewidth": 0.7}
    )
    axes.plot([], [], label="point", markersize=7, **POINT_STYLE)  # in the legend, one that can be seen
    if len(outliers):
        axes.plot([], [], label="outlier", **CIRCLE_STYLE)
    for nth, row in enumerate(_get_changes(stream)):
        axes.axvline(row, label="" if nth else "change", **CHANGE_STYLE)
    set_row_axis(axes, len(stream), 3 if narrow else 7)
    style_small_panel(axes)


def _draw_near(axes: Any, stream: Stream, variable: int, reach: int) -> None:
    values, inliers, outliers = _split_outliers(stream, variable)
    around = (_get_changes(stream) or [len(stream) // 2])[0]
    first, last = max(around - reach, 0), min(around + reach, len(stream))
    inliers = inliers[(inliers >= first) & (inliers < last)]
    outliers = outliers[(outliers >= first) & (outliers < last)]
    limits = robust_limits(values[inliers]) or robust_limits(values[first:last]) or axes.get_ylim()
    axes.plot(inliers, values[inliers], markersize=3.2, alpha=0.6, rasterized=True, **POINT_STYLE)
    axes.plot(outliers, values[outliers], **CIRCLE_STYLE)
    for row in _get_changes(stream):
        axes.axvline(row, **CHANGE_STYLE)
    axes.set_ylim(*limits)
    mark_out_of_range(axes, inliers, values[inliers], limits, POINT_STYLE)
    mark_out_of_range(axes, outliers, values[outliers], limits, FAR_OUTLIER_STYLE, label="outlier beyond the edge")
    set_row_axis(axes, len(stream), 2)
    axes.set_xlim(first, last)
    style_small_panel(axes)
