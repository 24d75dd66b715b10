"""Plot of scaling: time per point against size, both logarithmic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from limpet._validation import FloatArray
from limpet.exceptions import InvalidInputError
from limpet.plots._style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SMALL_PT, TITLE_PT, VERMILION, Style, render_png
from limpet.plots._validation import check_not_empty
from limpet_lab.plots.axes import RAISED_DIGITS, format_number, set_log_scale
from limpet_lab.plots.grid import Grid
from limpet_lab.plots.timing import format_time

LINE_STYLES: list[Style] = [
    {"color": BLUE, "linestyle": "-", "linewidth": 2.4, "marker": "o"},
    {"color": VERMILION, "linestyle": (0, (5, 1.5)), "linewidth": 1.8, "marker": "s"},
    {"color": GREEN, "linestyle": (0, (5, 1.5, 1, 1.5)), "linewidth": 1.8, "marker": "D"},
    {"color": PURPLE, "linestyle": "-", "linewidth": 1.5, "marker": "v"},
    {"color": BLACK, "linestyle": (0, (2, 1.5)), "linewidth": 1.4, "marker": "X"},
    {"color": ORANGE, "linestyle": (0, (1, 1)), "linewidth": 2.0, "marker": "^"},
]
MIN_LABEL_DISTANCE = 0.062  # of a panel's height: the least distance of two names


def draw_growth(panels: Mapping[str, Mapping[str, Mapping[float, float]]], *, y_label: str = "per point") -> bytes:
    """Draw the time per point against a size, a panel for each kind of size, and return the bytes of a PNG.

    Each line has its name at its right end.

    Parameters
    ----------
    panels : mapping of what grows to mapping of series to mapping of size to seconds
        Sizes and times above 0.
    y_label : str
        What takes that time.
    """
    check_not_empty("panels", panels)
    for title, lines in panels.items():
        for name, line in lines.items():
            if not line or min(line) <= 0.0 or not all(seconds > 0.0 for seconds in line.values()):
                raise InvalidInputError(f"{title}, {name}: sizes and times must be above 0")
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    styles = {name: LINE_STYLES[i % len(LINE_STYLES)] for i, name in enumerate(names)}
    times = [seconds for lines in panels.values() for line in lines.values() for seconds in line.values()]
    grid = Grid(len(panels), 0.82, sharey=True)
    for axes, (title, lines) in zip(grid.panels, panels.items(), strict=True):
        for name, line in lines.items():
            sizes = sorted(line)
            axes.plot(sizes, [line[size] for size in sizes], markersize=5, **styles[name])
        _set_scales(axes, lines, min(times), max(times))
        _name_lines(axes, lines, styles)
        axes.set_title(f"Time {y_label} by {title}", loc="left", fontsize=TITLE_PT)
    return render_png(grid.figure)


def _set_scales(axes: Any, lines: Mapping[str, Mapping[float, float]], shortest: float, longest: float) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter

    sizes = np.array(sorted({size for line in lines.values() for size in line}))
    margin = (sizes[-1] / sizes[0]) ** 0.04 if len(sizes) > 1 else 2.0
    wide = (sizes[-1] / sizes[0]) ** 0.6 if len(sizes) > 1 else 10.0  # where the names stand
    set_log_scale(axes.xaxis, sizes[0] / margin, sizes[-1] * wide)
    axes.xaxis.set_major_locator(FixedLocator(sizes.tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _format_size(value)))
    set_log_scale(axes.yaxis, shortest / 1.6, longest * 1.6)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_time(value)))


def _format_size(value: float) -> str:
    """Format a size; powers of ten as such, from a thousand on.

    >>> _format_size(8.0), _format_size(1000.0)
    ('8', '10³')
    """
    power = np.log10(value)
    return format_number(value) if value < 1000.0 or power % 1 else "10" + str(int(power)).translate(RAISED_DIGITS)


def _name_lines(axes: Any, lines: Mapping[str, Mapping[float, float]], styles: Mapping[str, Style]) -> None:
    """Write a name next to the last point of each line, shifted where it would hide another one."""
    from matplotlib.patheffects import withStroke

    low, high = np.log(axes.get_ylim())
    ends = [(max(line), line[max(line)]) for line in lines.values()]
    heights = np.array([(np.log(seconds) - low) / (high - low) for _, seconds in ends])
    for name, end, height in zip(lines, ends, spread_heights(heights, MIN_LABEL_DISTANCE), strict=True):
        beside = (9, float(np.exp(low + height * (high - low))))
        text_style = {"textcoords": ("offset points", "data"), "va": "center", "fontsize": SMALL_PT, "zorder": 6}
        axes.annotate(
            name,
            end,
            beside,
            color=styles[name]["color"],
            path_effects=[withStroke(linewidth=3, foreground="white")],
            **text_style,
        )


def spread_heights(heights: FloatArray, min_distance: float) -> FloatArray:
    """Shift heights as little as needed for a minimum distance between neighbors.

    >>> spread_heights(np.array([0.5, 0.5, 0.9]), 0.1).round(2)
    array([0.45, 0.55, 0.9 ])
    """
    order = np.argsort(heights, kind="stable")
    moved = heights[order].astype(float)
    for _ in range(200):
        overlaps = min_distance - np.diff(moved)
        if (overlaps <= 1e-9).all():
            break
        for i in np.flatnonzero(overlaps > 0.0):
            push = max(min_distance - (moved[i + 1] - moved[i]), 0.0) / 2.0
            moved[i] -= push
            moved[i + 1] += push
    back = np.empty_like(moved)
    back[order] = moved
    return back
