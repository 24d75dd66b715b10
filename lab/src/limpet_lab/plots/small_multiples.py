"""Small multiples: how several measures depend on one setting of few values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from limpet._validation import FloatArray
from limpet.exceptions import InvalidInputError
from limpet.plots._style import SMALL_PT, TITLE_PT, YELLOW, Style, render_png
from limpet.plots._validation import as_column, check_not_empty
from limpet_lab.plots.axes import format_number, set_log_scale
from limpet_lab.plots.grid import Grid
from limpet_lab.plots.method_styles import get_styles

Series = Mapping[str, Mapping[str, Sequence[float]]]


def draw_panels(
    x: Sequence[float],
    panels: Series,
    *,
    x_label: str,
    log: bool = True,
    mark: float | None = None,
    spread: Series | None = None,
) -> bytes:
    """Draw one panel per measure with a line per series, and return the bytes of a PNG.

    Parameters
    ----------
    x : sequence of float
        The values of the setting; drawn at equal distances.
    panels : mapping of title to mapping of series to values
        One value for each of ``x``. What is NaN, or not positive on a logarithmic axis, is left out.
    x_label : str
        What the setting is called.
    log : bool
        Whether the values are on a logarithmic axis.
    mark : float, optional
        One of ``x`` to be highlighted.
    spread : mapping as ``panels``, optional
        Half the lengths of error bars; panels and series may be missing from it.
    """
    settings = as_column("x", x)
    check_not_empty("panels", panels)
    if mark is not None and mark not in settings:
        raise InvalidInputError(f"mark: must be one of {settings.tolist()}, got {mark!r}")
    names = list(dict.fromkeys(chain.from_iterable(panels.values())))
    styles = get_styles(names)
    grid = Grid(len(panels), 0.72)
    for axes, (title, series) in zip(grid.panels, panels.items(), strict=True):
        axes.set_title(title, loc="left", fontsize=TITLE_PT)
        if mark is not None:
            position = float(np.flatnonzero(settings == mark)[0])
            axes.axvspan(position - 0.32, position + 0.32, color=YELLOW, alpha=0.35, linewidth=0, zorder=0)
        bars = (spread or {}).get(title, {})
        heights = [
            _draw_series(
                axes, _compute_offsets(names, name, len(settings)), values, bars.get(name), styles[name], name, log
            )
            for name, values in series.items()
        ]
        _set_scale(axes, np.concatenate([*heights, np.empty(0)]), log)
        _set_ticks(axes, settings, mark)
    grid.label_axes(x_label)
    if len(names) > 1 or grid.spare:
        grid.add_legend()
    return render_png(grid.figure)


def _compute_offsets(names: Sequence[str], name: str, n_values: int) -> FloatArray:
    """Return where a series stands: a little beside the others, so that error bars do not hide each other."""
    step = min(0.08, 0.4 / len(names))
    return np.arange(n_values, dtype=np.float64) + step * (names.index(name) - (len(names) - 1) / 2.0)


def _draw_series(
    axes: Any,
    offsets: FloatArray,
    values: Sequence[float],
    bars: Sequence[float] | None,
    style: Style,
    name: str,
    log: bool,
) -> FloatArray:
    """Draw one series and return the heights that must be seen."""
    heights = as_column(name, values, len(offsets))
    lengths = np.zeros(len(heights)) if bars is None else np.nan_to_num(as_column(name, bars, len(offsets)))
    is_shown = np.isfinite(heights) & ((heights > 0.0) | (not log))
    positions, shown_heights, shown_lengths = offsets[is_shown], heights[is_shown], lengths[is_shown]
    axes.plot(positions, shown_heights, label=name, markersize=5.5, **style)
    if shown_lengths.any():
        line = {"color": style["color"], "linestyle": "none", "elinewidth": 1.1, "capsize": 2.5, "zorder": 2}
        axes.errorbar(positions, shown_heights, yerr=shown_lengths, **line)
    lower = np.maximum(shown_heights - shown_lengths, shown_heights / 4.0) if log else shown_heights - shown_lengths
    return np.concatenate([lower, shown_heights + shown_lengths])


def _set_scale(axes: Any, heights: FloatArray, log: bool) -> None:
    if not len(heights):
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", fontsize=SMALL_PT, color="#555555")
        return
    low, high = float(heights.min()), float(heights.max())
    if log:
        margin = max((high / low) ** 0.08, 1.05)
        set_log_scale(axes.yaxis, low / margin, high * margin)
        return
    margin = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    axes.set_ylim(low - margin, high + margin)
    axes.locator_params(axis="y", nbins=5)


def _set_ticks(axes: Any, settings: FloatArray, mark: float | None) -> None:
    axes.set_xticks(np.arange(len(settings)), [format_number(value) for value in settings.tolist()])
    axes.set_xlim(-0.5, len(settings) - 0.5)
    for label, value in zip(axes.get_xticklabels(), settings, strict=True):
        if value == mark:
            label.set_fontweight("bold")
