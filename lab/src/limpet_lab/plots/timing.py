"""Plot of what tuning costs: all of it, and each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from limpet._validation import FloatArray, check_floats
from limpet.exceptions import InvalidInputError
from limpet.plots._style import SMALL_PT, TEXT_PT, render_png, style_small_panel
from limpet.plots._validation import check_not_empty
from limpet_lab.plots.axes import new_page, set_log_scale
from limpet_lab.plots.method_styles import get_dot_style, get_styles

TIME_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
ROUND_TIMES_S = (*10.0 ** np.arange(-9.0, 2.0), 60.0, 600.0, 3_600.0, 36_000.0, 86_400.0, 864_000.0)


def draw_times(total: Mapping[str, float], each: Mapping[str, Sequence[float]]) -> bytes:
    """Draw the seconds that tuning took, by method, and return the bytes of a PNG.

    On the left a bar for all of it, on the right a dot for each setting and a stroke at their median. Both
    axes are logarithmic; what is not above 0 is left out.

    Parameters
    ----------
    total : mapping of method to seconds
        The time for all settings.
    each : mapping of method to seconds
        The time for each of them.
    """
    names = list(dict.fromkeys([*total, *each]))
    check_not_empty("total", names)
    totals = {name: _to_seconds(name, [value]) for name, value in total.items()}
    singles = {name: _to_seconds(name, values) for name, values in each.items()}
    figure = new_page(1.0 + 0.36 * len(names))
    left, right = figure.subplots(1, 2, sharey=True)
    styles = get_styles(names)
    for row, name in enumerate(names):
        style = styles[name]
        for seconds in totals.get(name, np.empty(0)):
            left.barh(row, seconds, height=0.62, color=style["color"], zorder=2)
            left.annotate(
                format_time(seconds), (seconds, row), (4, 0), textcoords="offset points", va="center", fontsize=SMALL_PT
            )
        settings = np.sort(singles.get(name, np.empty(0)))
        if len(settings):
            heights = row + 0.26 * np.sin(2.4 * np.arange(len(settings)))  # scattered, the same way each time
            right.plot(settings, heights, **get_dot_style(style) | {"markersize": 4, "alpha": 0.45, "zorder": 2})
            median = float(np.median(settings))
            right.plot([median] * 2, [row - 0.38, row + 0.38], color="black", linewidth=2.2, zorder=5)
    left.set_yticks(range(len(names)), names)
    left.set_ylim(len(names) - 0.45, -0.55)
    style_small_panel(left, "Time to tune")
    style_small_panel(right, "Time for one setting (stroke: median)")
    _set_scale(left, np.concatenate([*totals.values(), np.empty(0)]), margin=5.0)
    _set_scale(right, np.concatenate([*singles.values(), np.empty(0)]), margin=1.0)
    for axes in (left, right):
        axes.tick_params(axis="y", length=0, labelsize=TEXT_PT)
    return render_png(figure)


def format_time(seconds: float) -> str:
    """Write a time in the unit that suits it.

    >>> format_time(0.0042), format_time(75.0), format_time(7200.0)
    ('4.2 ms', '1.2 min', '2 h')
    """
    size, unit = next((pair for pair in TIME_UNITS if seconds >= 0.9995 * pair[0]), TIME_UNITS[-1])
    amount = seconds / size
    return f"{amount:.0f} {unit}" if amount >= 99.5 else f"{amount:.2g} {unit}"


def _to_seconds(name: str, values: Sequence[float]) -> FloatArray:
    seconds = check_floats(name, values)
    if seconds.ndim != 1:
        raise InvalidInputError(f"{name}: must be a list of seconds, got shape {seconds.shape}")
    return seconds[np.isfinite(seconds) & (seconds > 0.0)]


def _set_scale(axes: Any, seconds: FloatArray, margin: float) -> None:
    """Show all times, with space for the words at their right, and ticks in units."""
    from matplotlib.ticker import FuncFormatter

    if not len(seconds):
        axes.set_xticks([])
        return
    low, high = float(seconds.min()), float(seconds.max())
    first, last = low / 2.0, high * 2.0 * margin
    set_log_scale(axes.xaxis, first, last)
    round_times = [time for time in ROUND_TIMES_S if first <= time <= last]
    if len(round_times) > 2:
        axes.set_xticks(round_times[:: -(-len(round_times) // 6)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_time(value)))
