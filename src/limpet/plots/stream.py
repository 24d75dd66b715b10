"""Picture of a stream: points, rejected points, and the estimated means."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray
from limpet.exceptions import InvalidInputError
from limpet.learners import Trace
from limpet.plots._axes import mark_out_of_range, robust_limits
from limpet.plots._style import (
    BLUE,
    EVENT_STYLE,
    ORANGE,
    POINT_STYLE,
    REJECTED_STYLE,
    TRUTH_STYLE,
    Style,
    new_figure,
    render_png,
    style_axes,
)
from limpet.plots._validation import as_column

ESTIMATE_STYLE: Style = {"color": BLUE, "linewidth": 2.2}
BASELINE_STYLE: Style = {"color": ORANGE, "linewidth": 1.3}
Baseline = tuple[str, FloatArray]  # name and means
WIDE_SIZE_IN, NARROW_SIZE_IN = (10.0, 7.6), (4.4, 10.4)  # the narrow one is for phones, with text of the same size
DPI_BY_SIZE = {WIDE_SIZE_IN: 160, NARROW_SIZE_IN: 190}


def draw_stream(
    y: npt.ArrayLike,
    trace: Trace,
    around: int,
    *,
    reach: int = 500,
    change_point: int | None = None,
    true_means: FloatArray | None = None,
    baseline: Baseline | None = None,
    narrow: bool = False,
    file_format: str = "png",
) -> bytes:
    """Draw a univariate stream in three panels and return the bytes of a file.

    The first panel has all points and the estimated means, the second one the rows near `around`, the third one the
    score. With outliers far away the axis is linear for most values and logarithmic beyond; its label has a note.

    Parameters
    ----------
    y : array (T,) or (T, 1)
        The stream.
    trace : Trace
        The results of a learner, with `record="means"`.
    around, reach : int
        The second panel has the rows from around - reach to around + reach, with a line at `around`.
    change_point : int, optional
        The true change point.
    true_means : array (T, K, 1), optional
        The true means after each row.
    baseline : (str, array (T, K, 1)), optional
        The name and the means of another learner.
    narrow : bool
        Whether the picture is for a narrow page, with the panels below each other.
    file_format : "png" or "svg"
        The points of an SVG are a raster image, since thousands of circles render slowly.
    """
    values = as_column("y", y, len(trace))
    if file_format not in ("png", "svg"):
        raise InvalidInputError(f"file_format: must be png or svg, got {file_format!r}.")
    if not 0 <= around < len(values):
        raise InvalidInputError(f"around: must be a row of the stream, from 0 to {len(values) - 1}, got {around!r}.")
    size = NARROW_SIZE_IN if narrow else WIDE_SIZE_IN
    figure = new_figure(*size)
    panels: dict[str, Any] = figure.subplot_mosaic("a;n;s" if narrow else "aa;ns")
    whole, near, score = panels["a"], panels["n"], panels["s"]
    for axes in (whole, near):
        _draw_points(axes, values, trace.rejected, 2.5 if axes is whole else 4.5)
        _draw_means(axes, trace, true_means, baseline)
    _draw_points(score, trace.score, trace.rejected, 2.5)
    _zoom(near, values, trace.rejected, around, reach, change_point)
    whole.set_ylabel("value" + _compress(whole, values, trace.rejected))
    near.set_ylabel("value")
    score.set_ylabel("−log f(y)" + _compress(score, trace.score, trace.rejected))
    titles = ("The stream and the estimated means", "Where the means moved", "The score of each point")
    for axes, title in zip((whole, near, score), titles, strict=True):
        axes.set_title(title, loc="left", fontsize=11)
        style_axes(axes)
        axes.set_xlabel("row")
        axes.locator_params(axis="x", nbins=5 if narrow or axes is not whole else 10)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        if axes is not near:
            axes.set_xlim(0, len(values))
    legend = dict(zip(*reversed(whole.get_legend_handles_labels()), strict=True))  # one entry per label
    columns = 2 if narrow else len(legend)
    figure.legend(legend.values(), legend.keys(), loc="outside upper left", ncols=columns, frameon=False, fontsize=9)
    if file_format == "png":
        return render_png(figure, DPI_BY_SIZE[size])
    picture = BytesIO()
    figure.savefig(picture, format="svg", dpi=DPI_BY_SIZE[size], metadata={"Date": None})
    return picture.getvalue()


def _draw_points(axes: Any, values: FloatArray, rejected: Any, size: float) -> None:
    rows = np.arange(len(values))
    axes.plot(rows[~rejected], values[~rejected], markersize=size, alpha=0.35, rasterized=True, **POINT_STYLE)
    axes.plot([], [], label="point", markersize=7, **POINT_STYLE)  # for the legend, larger
    axes.plot(rows[rejected], values[rejected], label="rejected point", markersize=5, **REJECTED_STYLE)


def _draw_means(axes: Any, trace: Trace, true_means: FloatArray | None, baseline: Baseline | None) -> None:
    from matplotlib.patheffects import withStroke

    edge = [withStroke(linewidth=ESTIMATE_STYLE["linewidth"] + 1.6, foreground="white")]
    if baseline is not None:
        axes.plot(baseline[1][:, :, 0], label=baseline[0], **BASELINE_STYLE)
    axes.plot(trace.means[:, :, 0], label="estimated means", path_effects=edge, **ESTIMATE_STYLE)
    if true_means is not None:
        axes.plot(true_means[:, :, 0], label="true means", **TRUTH_STYLE)


def _zoom(axes: Any, values: FloatArray, rejected: Any, around: int, reach: int, change_point: int | None) -> None:
    """Show the rows near one, limits by accepted points; mark others at the edge."""
    first, last = max(around - reach, 0), min(around + reach, len(values))
    rows, shown, out = np.arange(first, last), values[first:last], rejected[first:last]
    limits = robust_limits(shown[~out]) or axes.get_ylim()
    axes.set_xlim(first, last)
    axes.set_ylim(*limits)
    for selection, style in ((out, REJECTED_STYLE), (~out, POINT_STYLE)):
        mark_out_of_range(axes, rows[selection], shown[selection], limits, style)
    relative_height = {"transform": axes.get_xaxis_transform()}
    for row, side, text in ((change_point, "right", "true change"), (around, "left", "largest step")):
        if row is not None and first <= row < last:
            axes.axvline(row, **EVENT_STYLE)
            axes.text(row, 0.955, f" {text} \n {row:,} ", ha=side, va="top", fontsize=8, **relative_height)


def _compress(axes: Any, values: FloatArray, rejected: Any) -> str:
    """Make the axis logarithmic beyond most values if others are far; return a note."""
    finite = np.isfinite(values)
    if not (finite & ~rejected).any():
        return ""
    bulk, farthest = np.quantile(np.abs(values[finite & ~rejected]), 0.99), np.abs(values[finite]).max()
    if not 0.0 < 4.0 * bulk < farthest:
        return ""
    unit = 10.0 ** np.floor(np.log10(bulk))
    units = int(np.ceil(bulk / unit))
    edge = units * unit
    decades = unit * 10.0 ** np.arange(np.ceil(np.log10(farthest / unit)) + 1.0)
    far = decades if farthest > 100.0 * edge else np.outer(decades, [1.0, 2.0, 5.0]).ravel()
    far = far[(far >= 2.0 * edge) & (far <= 1.1 * farthest)]
    middle = np.linspace(-edge, edge, 2 * units + 1 if units < 4 else 5)
    ticks = np.concatenate([-far[::-1], middle, far])
    low, high = values[finite].min(), values[finite].max()
    axes.set_yscale("symlog", linthresh=edge, linscale=1.6)
    axes.set_yticks(ticks[(ticks >= low - 0.1 * abs(low)) & (ticks <= high + 0.1 * abs(high))])
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:,g}")
    return f" (logarithmic beyond ±{edge:g})"
