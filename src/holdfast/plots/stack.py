"""Panels one under the other, with the room that their numbers and names take, laid out in no time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.plots.style import LETTERS, SMALL

INCH = 72.0  # points
TICK = 7.0  # points: a tick, and the gap between it and its number
LINE = 1.35  # the height of a line of text, in letters
EDGE = 0.07  # inches, at the edges of the picture
APART = 0.11  # inches, between panels


def stacked_axes(
    figure: Any,
    panels: Sequence[Any],
    heights: Sequence[float],
    legend: Any,
    beside: float = 0.0,
    over: float = 0.0,
) -> None:
    """Put panels of these relative heights below each other, and the legend, if there is one, above.

    beside, over: inches that something else takes at the right of the panels, and over them.

    What matplotlib has for this measures every text of every panel several times, which takes longer than to draw.
    """
    width, height = figure.get_size_inches()
    renderer = figure.canvas.get_renderer()

    def widths(axis: Any) -> tuple[list[float], list[float]]:
        """Where the numbers at an axis stand, and how wide they are, in inches."""
        low, high = sorted(axis.get_view_interval())
        ticks = [float(tick) for tick in axis.get_majorticklocs()]
        texts = axis.get_major_formatter().format_ticks(ticks)
        font = axis.get_major_ticks(1)[0].label1.get_fontproperties()
        room = 1e-9 * (high - low)
        shown = [(tick, text) for tick, text in zip(ticks, texts, strict=True) if low - room <= tick <= high + room]
        wide = [renderer.get_text_width_height_descent(text, font, False)[0] / figure.dpi for _, text in shown]
        return [(tick - low) / (high - low) for tick, _ in shown], wide

    left = EDGE + TICK / INCH + max((wide for axes in panels for wide in widths(axes.yaxis)[1]), default=0.0)
    right, across = EDGE + beside, list(zip(*widths(panels[-1].xaxis), strict=True))
    for _ in range(2):  # numbers below may reach beyond the panel, by how much depends on the panel's width
        inner = width - left - right
        left = max(left, EDGE + max((wide / 2.0 - place * inner for place, wide in across), default=0.0))
        right = EDGE + max([beside, *(wide / 2.0 - (1.0 - place) * inner for place, wide in across)])
    named = bool(panels[-1].get_xlabel()) or bool(panels[-1].xaxis.get_major_formatter().get_offset())
    below = (TICK + LINE * SMALL + (LINE * LETTERS + 2.0) * named) / INCH + 0.03
    above = 0.0 if legend is None else legend.get_window_extent(renderer).height / figure.dpi + 0.6 * LETTERS / INCH
    above += over
    names = [3.0 / INCH + LINE * LETTERS * 0.8 / INCH if _title(axes) else 0.0 for axes in panels]
    rest = max(height - 0.05 - above - below - sum(names) - APART * (len(panels) - 1), 0.1 * height)
    shares = np.asarray(heights) / sum(heights)
    top = height - 0.05 - above
    for axes, name, share in zip(panels, names, shares, strict=True):
        top -= name
        top -= share * rest
        axes.set_position((left / width, top / height, 1.0 - (left + right) / width, share * rest / height))
        top -= APART


def _title(axes: Any) -> bool:
    return any(axes.get_title(loc) for loc in ("left", "right"))
