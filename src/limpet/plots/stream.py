"""The picture of a stream: what came, what was dropped, and how the estimate followed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray
from limpet.exceptions import InvalidInputError
from limpet.learners import Trace
from limpet.plots._axes import mark_beyond, usual_range
from limpet.plots._style import BLUE, DROPPED, MOMENT, ORANGE, POINTS, TRUTH, Style, new_figure, plain, save
from limpet.plots._validation import as_column

ESTIMATE: Style = {"color": BLUE, "linewidth": 2.2}
RIVAL: Style = {"color": ORANGE, "linewidth": 1.3}
WIDE, NARROW = (10.0, 7.6), (4.4, 10.4)  # inches; a narrow picture keeps its letters, for a telephone
DOTS_PER_INCH = {WIDE: 160, NARROW: 190}


def draw_stream(
    y: npt.ArrayLike,
    trace: Trace,
    around: int,
    *,
    reach: int = 500,
    change_point: int | None = None,
    true_means: FloatArray | None = None,
    rival: tuple[str, FloatArray] | None = None,
    narrow: bool = False,
    file_format: str = "png",
) -> bytes:
    """Draw a univariate stream in three panels and return the picture as the bytes of a file.

    The first panel is all of it, with the points that were dropped and the means as they were estimated; the
    second is the same near one row; the third is the score. Where outliers would squeeze all the rest into a
    line, the axis is linear for the bulk of the values and logarithmic beyond, and says so.

    Parameters
    ----------
    y : array (T,) or (T, 1)
        The stream.
    trace : Trace
        What a learner made of it, with `record="means"`.
    around, reach : int
        The second panel shows the rows from around - reach to around + reach; a line marks `around`.
    change_point : int, optional
        The true row of a change, to be marked.
    true_means : array (T, K, 1), optional
        The means the estimate should follow.
    rival : (str, array (T, K, 1)), optional
        Another learner's name and means.
    narrow : bool
        One panel under the other, for a narrow page.
    file_format : "png" or "svg"
        In an SVG the points are still a raster: twenty thousand circles would be slow to show.
    """
    values = as_column("y", y, len(trace))
    if file_format not in ("png", "svg") or not 0 <= around < len(values):
        raise InvalidInputError(f"expected png or svg, and a row of the stream, got {file_format!r} and {around!r}")
    size = NARROW if narrow else WIDE
    figure = new_figure(*size)
    panels: dict[str, Any] = figure.subplot_mosaic("a;n;s" if narrow else "aa;ns")
    whole, near, score = panels["a"], panels["n"], panels["s"]
    for axes in (whole, near):
        _draw_points(axes, values, trace.rejected, 2.5 if axes is whole else 4.5)
        _draw_means(axes, trace, true_means, rival)
    _draw_points(score, trace.score, trace.rejected, 2.5)
    _zoom(near, values, trace.rejected, around, reach, change_point)
    whole.set_ylabel("value" + _compress(whole, values, trace.rejected))
    near.set_ylabel("value")
    score.set_ylabel("−log f(y)" + _compress(score, trace.score, trace.rejected))
    titles = ("The stream and the estimated means", "Where the means moved", "The score of each point")
    for axes, title in zip((whole, near, score), titles, strict=True):
        axes.set_title(title, loc="left", fontsize=11)
        plain(axes)
        axes.set_xlabel("row")
        axes.locator_params(axis="x", nbins=5 if narrow or axes is not whole else 10)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        if axes is not near:
            axes.set_xlim(0, len(values))
    legend = dict(zip(*reversed(whole.get_legend_handles_labels()), strict=True))  # a name for all means of one kind
    columns = 2 if narrow else len(legend)
    figure.legend(legend.values(), legend.keys(), loc="outside upper left", ncols=columns, frameon=False, fontsize=9)
    return save(figure, file_format, DOTS_PER_INCH[size])


def _draw_points(axes: Any, values: FloatArray, dropped: Any, size: float) -> None:
    rows = np.arange(len(values))
    axes.plot(rows[~dropped], values[~dropped], markersize=size, alpha=0.35, rasterized=True, **POINTS)
    axes.plot([], [], label="point", markersize=7, **POINTS)  # in the legend, one that can be seen
    axes.plot(rows[dropped], values[dropped], label="dropped point", markersize=5, **DROPPED)


def _draw_means(axes: Any, trace: Trace, true_means: FloatArray | None, rival: tuple[str, FloatArray] | None) -> None:
    from matplotlib.patheffects import withStroke

    edge = [withStroke(linewidth=ESTIMATE["linewidth"] + 1.6, foreground="white")]
    if rival is not None:
        axes.plot(rival[1][:, :, 0], label=rival[0], **RIVAL)
    axes.plot(trace.means[:, :, 0], label="estimated means", path_effects=edge, **ESTIMATE)
    if true_means is not None:
        axes.plot(true_means[:, :, 0], label="true means", **TRUTH)


def _zoom(axes: Any, values: FloatArray, dropped: Any, around: int, reach: int, change_point: int | None) -> None:
    """Show the rows near one, on the scale of what was kept there; what lies beyond is marked at the edge."""
    first, last = max(around - reach, 0), min(around + reach, len(values))
    rows, shown, out = np.arange(first, last), values[first:last], dropped[first:last]
    limits = usual_range(shown[~out]) or axes.get_ylim()
    axes.set_xlim(first, last)
    axes.set_ylim(*limits)
    for which, style in ((out, DROPPED), (~out, POINTS)):
        mark_beyond(axes, rows[which], shown[which], limits, style)
    in_panel = {"transform": axes.get_xaxis_transform()}  # heights from 0, the bottom, to 1
    for row, side, text in ((change_point, "right", "the stream changed"), (around, "left", "moved most")):
        if row is not None and first <= row < last:
            axes.axvline(row, **MOMENT)
            axes.text(row, 0.955, f" {text} \n {row:,} ", ha=side, va="top", fontsize=8, **in_panel)


def _compress(axes: Any, values: FloatArray, dropped: Any) -> str:
    """Make the axis logarithmic beyond the bulk of the kept values if the rest lies far out; say so."""
    finite = np.isfinite(values)
    if not (finite & ~dropped).any():
        return ""
    bulk, farthest = np.quantile(np.abs(values[finite & ~dropped]), 0.99), np.abs(values[finite]).max()
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
