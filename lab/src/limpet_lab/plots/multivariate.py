"""Plot of a multivariate stream: its variables one under the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limpet._validation import FloatArray
from limpet.datasets.labeled_stream import to_row_list
from limpet.exceptions import InvalidInputError
from limpet.plots._axes import full_or_robust_limits, mark_out_of_range
from limpet.plots._style import (
    CHANGE_STYLE,
    CIRCLE_STYLE,
    RED,
    TEXT_PT,
    Style,
    add_legend_above,
    render_png,
    style_small_panel,
)
from limpet_lab.plots.axes import new_page, set_row_axis, to_columns

SPAN_STYLES: dict[str, Style] = {
    "transition": {"facecolor": "#cdebd9", "edgecolor": "#8cc9a5", "hatch": "////"},  # the hatch for the colour-blind
    "abnormal": {"facecolor": "#fbd9d6", "edgecolor": "none"},
}
OTHER_SPAN_STYLES: list[Style] = [
    {"facecolor": "#dbe7f5", "edgecolor": "#a9c3e2", "hatch": "...."},
    {"facecolor": "#f4ecc2", "edgecolor": "#d6c877", "hatch": "\\\\\\\\"},
]
LINE_COLOR = "#39424a"
THIN_LINE_STYLE: Style = {"color": RED, "linewidth": 0.8, "alpha": 0.55}
MANY_LINES_THRESHOLD = (
    12  # lines; more than so many are thin, for they are points in time that happen to matter, not regimes
)
MAX_PIXEL_COLUMNS = 1600  # columns of pixels, at most, that a panel can show


def draw_channels(
    y: ArrayLike,
    *,
    names: Sequence[str],
    lines: Sequence[int] = (),
    spans: Sequence[tuple[int, int, str]] = (),
    outliers: Mapping[int, Sequence[int]] | None = None,
) -> bytes:
    """Draw one panel per variable over the same rows, and return the bytes of a PNG.

    Where a few values would squeeze all the rest into a line, they are marked at the edge instead.

    Parameters
    ----------
    y : array (T, d)
        The stream.
    names : sequence of d str
        What the variables are called.
    lines : sequence of int
        Rows to be marked: dashed as changes if they are few, thin as anomalies if they are many.
    spans : sequence of (first row, last row, kind)
        Stretches to be shaded, such as "transition" and "abnormal".
    outliers : mapping of variable to rows, optional
        Points to be circled.
    """
    values = to_columns("y", y)
    n_rows, dim = values.shape
    if len(names) != dim:
        raise InvalidInputError(f"names: must be one for each of the {dim} variables, got {len(names)}")
    marked = to_row_list("lines", lines, n_rows)
    circled = {channel: to_row_list("outliers", rows, n_rows) for channel, rows in (outliers or {}).items()}
    if not all(0 <= channel < dim for channel in circled):
        raise InvalidInputError(f"outliers: must be variables in 0..{dim - 1}, got {sorted(circled)}")
    shades = _get_span_styles([kind for _, _, kind in spans])
    for first, last, _ in spans:
        if not 0 <= first <= last <= n_rows:
            raise InvalidInputError(
                f"spans: must be rows in 0..{n_rows}, the first before the last, got {(first, last)}"
            )
    figure = new_page(0.75 + dim * max(1.05, min(5.0 / dim, 1.8)))
    panels = figure.subplots(dim, 1, sharex=True, squeeze=False)[:, 0]
    for channel, axes in enumerate(panels):
        for first, last, kind in spans:
            axes.axvspan(first, last, label=kind, linewidth=0, zorder=0, **shades[kind])
        for row in marked:
            are_changes = len(marked) <= MANY_LINES_THRESHOLD
            axes.axvline(
                row,
                label="change" if are_changes else "anomaly",
                zorder=3 if are_changes else 1,
                **CHANGE_STYLE if are_changes else THIN_LINE_STYLE,
            )
        axes.plot(*compute_envelope(values[:, channel], MAX_PIXEL_COLUMNS), color=LINE_COLOR, linewidth=0.7, zorder=2)
        rows_circled = np.array(circled.get(channel, []), dtype=np.int64)
        if len(rows_circled):
            axes.plot(rows_circled, values[rows_circled, channel], label="outlier", zorder=4, **CIRCLE_STYLE)
        limits = full_or_robust_limits(values[:, channel], cut=0.002, max_range_ratio=12.0)
        if limits is not None:
            axes.set_ylim(*limits)
            mark_out_of_range(axes, np.arange(n_rows), values[:, channel], limits, {"color": LINE_COLOR, "zorder": 3})
            far_style = {"color": CIRCLE_STYLE["color"], "zorder": 4}
            mark_out_of_range(
                axes,
                rows_circled,
                values[rows_circled, channel],
                limits,
                far_style,
                size=6.5,
                label="outlier beyond the edge",
            )
        style_small_panel(axes)
        axes.set_title(names[channel], loc="left", fontsize=TEXT_PT, pad=3)
        set_row_axis(axes, n_rows, 9)
        axes.locator_params(axis="y", nbins=4)
    panels[-1].set_xlabel("row")
    add_legend_above(figure, panels)
    return render_png(figure)


def compute_envelope(values: FloatArray, columns: int) -> tuple[FloatArray, FloatArray]:
    """Return a line of few points that looks like the line through all: the least and the greatest of each column.

    >>> rows, heights = compute_envelope(np.sin(np.arange(100_000.0)), 100)
    >>> len(rows), bool(heights.max() > 0.999)
    (200, True)
    """
    n_rows = len(values)
    if n_rows <= 2 * columns:
        return np.arange(n_rows, dtype=np.float64), values
    starts = np.arange(0, n_rows, -(-n_rows // columns))
    pairs = np.stack([np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)], axis=1)
    rows = np.stack([starts, np.append(starts[1:], n_rows) - 1], axis=1).astype(np.float64)
    return rows.ravel(), pairs.ravel()


def _get_span_styles(kinds: Sequence[str]) -> dict[str, Any]:
    others = [kind for kind in dict.fromkeys(kinds) if kind not in SPAN_STYLES]
    return SPAN_STYLES | {kind: OTHER_SPAN_STYLES[nth % len(OTHER_SPAN_STYLES)] for nth, kind in enumerate(others)}
