"""Plot of ROC curves: recall against false alarms."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike

from limpet.plots._style import GREY, TITLE_PT, render_png
from limpet.plots._validation import check_not_empty
from limpet_lab.plots.axes import to_pair
from limpet_lab.plots.grid import Grid
from limpet_lab.plots.method_styles import get_line_style, get_styles


def draw_curves(
    panels: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]],
    *,
    x_label: str = "false-alarm rate",
    y_label: str = "recalled benefit",
) -> bytes:
    """Draw curves in the unit square, one panel per case and one line per method, and return the bytes of a PNG.

    Parameters
    ----------
    panels : mapping of title to mapping of method to (array, array)
        What goes right and what goes up, from 0 to 1; points with a NaN are left out.
    x_label, y_label : str
        What they are.
    """
    check_not_empty("panels", panels)
    styles = get_styles(chain.from_iterable(panels.values()))
    grid = Grid(len(panels), 0.97, sharex=True, sharey=True)
    for axes, (title, curves) in zip(grid.panels, panels.items(), strict=True):
        for name, style in styles.items():
            if name in curves:
                across, up = to_pair(f"{title}: {name}", curves[name])
                seen = np.isfinite(across) & np.isfinite(up)
                axes.plot(across[seen], up[seen], label=name, **get_line_style(style))
        axes.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=1.0, linestyle=":", label="chance", zorder=1)
        axes.set_title(title, loc="left", fontsize=TITLE_PT)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        axes.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "", "0.5", "", "1"])
        axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "", "0.5", "", "1"])
    grid.label_axes(x_label, y_label)
    grid.add_legend()
    return render_png(grid.figure)
