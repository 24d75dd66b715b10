"""Plot of tuning: how far a setting's training AUC predicts its test AUC."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike

from limpet._validation import FloatArray
from limpet.plots._style import BLACK, BLUE, GREY, SMALL_PT, TITLE_PT, render_png
from limpet.plots._validation import check_not_empty
from limpet_lab.plots.axes import to_pair
from limpet_lab.plots.grid import Grid
from limpet_lab.plots.method_styles import get_dot_style, get_styles

AUCPairs = Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]]
RING_STYLE = {"marker": "o", "markersize": 12, "markerfacecolor": "none", "linestyle": "none", "zorder": 6}


def draw_train_against_test(
    panels: AUCPairs,
    *,
    chosen: Mapping[str, Mapping[str, tuple[float, float]]] | None = None,
    paper: Mapping[str, float] | None = None,
) -> bytes:
    """Draw a dot per setting, its training AUC to the right and its test AUC up, and return the bytes of a PNG.

    Parameters
    ----------
    panels : mapping of title to mapping of method to (array, array)
        Training and test AUC of the settings, one panel per annotation or data set; a pair with a NaN is left out.
    chosen : mapping of title to mapping of method to (float, float), optional
        The setting each method is judged by, which is ringed.
    paper : mapping of title to float, optional
        The test AUC the paper gives for SRA, a dotted line.
    """
    check_not_empty("panels", panels)
    chosen_points, paper_values = chosen or {}, paper or {}
    styles = get_styles(chain.from_iterable([*panels.values(), *chosen_points.values()]))
    grid = Grid(len(panels), 0.92, sharex=True, sharey=True)
    shown_values = [np.array(list(paper_values.values()), dtype=np.float64)]
    for axes, (title, methods) in zip(grid.panels, panels.items(), strict=True):
        axes.set_title(title, loc="left", fontsize=TITLE_PT)
        for name, style in styles.items():
            panel_name = f"{title}: {name}"
            train, test = to_pair(panel_name, methods.get(name, ((), ())))
            ringed = chosen_points.get(title, {}).get(name)
            marks = get_dot_style(style)
            hollow = "markerfacecolor" in marks  # all that is to be seen of it is its edge
            no_edge, white_edge = ({}, {}) if hollow else ({"markeredgewidth": 0}, {"markeredgecolor": "white"})
            axes.plot(train, test, **marks | {"markersize": 4, "alpha": 0.45} | no_edge)
            axes.plot([], [], label=name, **marks | {"markersize": 6.5})  # in the legend, one that can be seen
            shown_values += [train, test]
            if ringed is not None:
                xy = to_pair(panel_name, ([ringed[0]], [ringed[1]]))
                axes.plot(*xy, **marks | {"markersize": 6.5, "zorder": 7} | white_edge)
                axes.plot(*xy, color=BLACK, **RING_STYLE)
                shown_values += list(xy)
        if title in paper_values:
            axes.axhline(
                paper_values[title], color=BLUE, linestyle=":", linewidth=1.8, label="SRA in the paper", zorder=1
            )
        axes.axline((0.5, 0.5), slope=1.0, color=GREY, linewidth=0.8, zorder=1)
    if any(chosen_points.values()):
        grid.panels[0].plot([], [], color=BLACK, label="chosen setting", **RING_STYLE | {"markersize": 10})
    limits = _compute_limits(np.concatenate(shown_values))
    for axes in grid.panels:
        axes.set(xlim=limits, ylim=limits)
        axes.locator_params(nbins=5)
        axes.tick_params(labelsize=SMALL_PT)
    grid.label_axes("AUC on the training part", "AUC on the test part")
    grid.add_legend()
    return render_png(grid.figure)


def _compute_limits(values: FloatArray) -> tuple[float, float]:
    """Return limits for both axes of all panels, so that the panels can be compared."""
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    margin = 0.04 * (high - low) or 0.1
    return float(low - margin), float(high + margin)
