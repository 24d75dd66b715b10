"""Plot of regressions on a stream: what they were given, and how far they were from the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limpet._validation import FloatArray
from limpet.datasets.labeled_stream import to_flags, to_frozen_array, to_row_list
from limpet.plots._style import (
    BLACK,
    BLUE,
    CHANGE_STYLE,
    CIRCLE_STYLE,
    GREEN,
    ORANGE,
    POINT_STYLE,
    PURPLE,
    SKY,
    SMALL_PT,
    TEXT_PT,
    TITLE_PT,
    VERMILION,
    Style,
    render_png,
    style_small_panel,
)
from limpet.plots._validation import as_column, check_not_empty
from limpet_lab.plots.axes import new_page, set_log_scale, set_row_axis

LINE_STYLES: list[Style] = [
    {"color": BLUE, "linewidth": 2.6, "zorder": 5},
    {"color": SKY, "linewidth": 1.8, "zorder": 4},
    {"color": GREEN, "linewidth": 1.4},
    {"color": VERMILION, "linewidth": 1.4},
    {"color": ORANGE, "linewidth": 2.2},
    {"color": PURPLE, "linewidth": 1.4},
]
LAST_LINE_STYLE: Style = {
    "color": BLACK,
    "linewidth": 1.2,
    "linestyle": (0, (2, 1.5)),
    "zorder": 4,  # above the others
}
MAX_DRAWN_POINTS = 4000  # points of a stream at the most: more are a black band
MIN_POSITIVE_ERROR = 1e-12


@dataclass(frozen=True)
class StreamColumn:
    """A kind of stream, with the errors of the methods.

    title, y_label: what it is called, and what the error is. given: (T,), the target that was given less the true one.
    corrupted: (T,), which of them were corrupted. errors: method → (T,), the first in the colour of ours, the last in
    black dashes; NaN if missing.
    """

    title: str
    y_label: str
    target_errors: ArrayLike
    corrupted: ArrayLike
    errors: Mapping[str, ArrayLike]


def draw_running_errors(columns: Sequence[StreamColumn], *, change_points: Sequence[int], window: int = 200) -> bytes:
    """Draw for each kind of stream its targets and, below, the mean error of the last ``window`` rows; return a PNG.

    Parameters
    ----------
    columns : sequence of Column
        Next to each other, two for a page.
    change_points : sequence of int
        Rows to be marked, rising.
    window : int
        Rows of a running mean.
    """
    check_not_empty("columns", columns)
    figure = new_page(5.6)
    grid = figure.subplots(2, len(columns), sharex=True, squeeze=False, height_ratios=[1.0, 2.6])
    for above, below, column in zip(*grid, columns, strict=True):
        target_errors = as_column(f"{column.title}: given", column.target_errors)
        corrupted = to_frozen_array("corrupted", to_flags("corrupted", column.corrupted), bool, (len(target_errors),))
        _draw_given(above, target_errors, corrupted)
        above.set_title(column.title, loc="left", fontsize=TITLE_PT)
        _draw_errors(below, column, window)
        below.set_ylabel(column.y_label)
        below.set_xlabel("row")
        for axes in (above, below):
            for nth, row in enumerate(to_row_list("change_points", change_points, len(target_errors))):
                axes.axvline(row, zorder=3, label="" if nth or axes is below else "change", **CHANGE_STYLE)
            style_small_panel(axes)
            set_row_axis(axes, len(target_errors), 5)
        above.legend(loc="upper left", frameon=True, framealpha=0.9, edgecolor="none", fontsize=SMALL_PT, ncols=3)
        legend = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.16), "borderaxespad": 0.0}
        below.legend(frameon=False, fontsize=TEXT_PT, ncols=2, **legend)
    grid[0, 0].set_ylabel("given − truth")
    return render_png(figure)


def _draw_given(axes: Any, target_errors: FloatArray, corrupted: Any) -> None:
    """Draw a sample of the points."""
    rows = np.arange(0, len(target_errors), max(len(target_errors) // MAX_DRAWN_POINTS, 1))
    good, bad = rows[~corrupted[rows]], rows[corrupted[rows]]
    axes.plot(good, target_errors[good], markersize=2.0, alpha=0.5, rasterized=True, **POINT_STYLE)
    axes.plot([], [], label="target", markersize=7, **POINT_STYLE)
    axes.plot(
        bad,
        target_errors[bad],
        label="corrupted",
        **CIRCLE_STYLE | {"markersize": 3, "markeredgewidth": 0.7, "alpha": 0.7},
    )
    margin = 0.5 * float(np.ptp(target_errors[rows]))  # for the legend
    axes.set_ylim(float(target_errors[rows].min()) - 0.1 * margin, float(target_errors[rows].max()) + margin)
    axes.locator_params(axis="y", nbins=4)


def _draw_errors(axes: Any, column: StreamColumn, window: int) -> None:
    finite_errors = []
    for nth, (name, errors) in enumerate(column.errors.items()):
        style = LAST_LINE_STYLE if nth and nth == len(column.errors) - 1 else LINE_STYLES[nth % len(LINE_STYLES)]
        line = compute_running_mean(as_column(f"{column.title}: {name}", errors), window)
        axes.plot(np.arange(window - 1, window - 1 + len(line)), line, label=name, **style)
        finite_errors.append(line[np.isfinite(line)])
    all_errors = np.concatenate(finite_errors)
    low, high = np.quantile(all_errors, [0.0, 0.999])
    set_log_scale(
        axes.yaxis, max(float(low), MIN_POSITIVE_ERROR) / 1.4, max(float(high), 2.0 * MIN_POSITIVE_ERROR) * 1.4
    )


def compute_running_mean(values: FloatArray, window: int) -> FloatArray:
    """Compute the mean of each ``window`` consecutive values; NaN where one of them is.

    >>> compute_running_mean(np.array([np.nan, 1.0, 2.0, 6.0]), 2)
    array([nan, 1.5, 4. ])
    """
    return np.asarray(np.convolve(values, np.full(window, 1.0 / window), "valid"))
