"""Plot of one stream as several people divided it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from limpet.datasets.labeled_stream import to_row_list
from limpet.plots._style import CHANGE_STYLE, INK, SHADE_STYLE, TEXT_PT, add_legend_above, render_png, style_small_panel
from limpet.plots._validation import as_column, check_not_empty
from limpet_lab.plots.axes import new_page, set_row_axis


def draw_annotations(
    y: npt.ArrayLike, annotations: Mapping[int | str, Sequence[int]], *, split: int | None = None
) -> bytes:
    """Draw the stream once for each annotator, with the changes he or she saw, and return the bytes of a PNG.

    Parameters
    ----------
    y : array (T,) or (T, 1)
        The stream.
    annotations : mapping of annotator to rows
        The change points, rising.
    split : int, optional
        The first row of the test part, which is shaded.
    """
    values = as_column("y", y)
    check_not_empty("annotations", annotations)
    if split is not None:
        to_row_list("split", [split], len(values))
    figure = new_page(0.75 + 1.3 * len(annotations))
    panels = figure.subplots(len(annotations), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (who, changes) in zip(panels, annotations.items(), strict=True):
        rows = to_row_list(f"annotations[{who!r}]", changes, len(values))
        axes.plot(values, color="#5b6670", linewidth=0.7)
        for nth, row in enumerate(rows):
            axes.axvline(row, label="" if nth else "change point", **CHANGE_STYLE)
        if split is not None:
            axes.axvspan(split, len(values), label="test part", **SHADE_STYLE)
        name = f"annotator {who}" if isinstance(who, int) else who
        count = "1 change" if len(rows) == 1 else f"{len(rows)} changes"
        style_small_panel(axes)
        axes.set_title(f"{name}: {count}", loc="left", fontsize=TEXT_PT, color=INK, pad=3)
        set_row_axis(axes, len(values), 9)
        axes.locator_params(axis="y", nbins=4)
        axes.yaxis.set_major_formatter("{x:,.0f}" if np.nanmax(np.abs(values)) >= 1e3 else "{x:g}")
    panels[-1].set_xlabel("row")
    add_legend_above(figure, panels)
    return render_png(figure)
