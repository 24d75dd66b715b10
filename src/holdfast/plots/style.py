"""What all pictures share: colours, a figure to draw in, the look of its panels, and the file it becomes."""

from __future__ import annotations

import threading
from contextlib import suppress
from io import BytesIO
from typing import Any

import numpy as np

from holdfast.extras import optional_import
from holdfast.plots.palette import with_palette

Style = dict[str, Any]

# Okabe and Ito's colours, which the colour-blind can tell apart; marks and dashes tell them apart in print.
BLUE, SKY, GREEN, ORANGE = "#0072B2", "#56B4E9", "#009E73", "#E69F00"
VERMILION, PURPLE, YELLOW, BLACK = "#D55E00", "#CC79A7", "#F0E442", "#000000"
RED, GREY, INK = "#C8102E", "#7d848c", "#444444"

POINTS: Style = {"color": GREY, "marker": ".", "linestyle": "none", "markeredgewidth": 0}
DROPPED: Style = {"color": VERMILION, "marker": "x", "linestyle": "none", "markeredgewidth": 1.3}
CIRCLED: Style = {
    "color": VERMILION,
    "marker": "o",
    "linestyle": "none",
    "markersize": 5,
    "markerfacecolor": "none",
    "markeredgewidth": 1.0,
}
TRUTH: Style = {"color": BLACK, "linewidth": 1.0, "linestyle": (0, (4, 2)), "alpha": 0.7}
CHANGE: Style = {"color": RED, "linewidth": 1.2, "linestyle": (0, (5, 2.5))}
MOMENT: Style = {"color": INK, "linewidth": 1.0, "linestyle": ":"}
SHADE: Style = {"color": INK, "alpha": 0.09, "linewidth": 0}

PAGE = 9.6  # inches, the width of a page; with the dots below, letters of 9 points are 12 pixels high there
DOTS_PER_INCH = 150
TITLE, LETTERS, SMALL = 10.5, 9.5, 9.0  # points


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of so many inches, which no window and no global state knows of."""
    with optional_import("drawing", "plots"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def prepared_drawing() -> threading.Thread:
    """Load what drawing needs meanwhile, which takes a second; wait for the thread before a picture is drawn."""
    thread = threading.Thread(target=_draw_something, name="holdfast drawing", daemon=True)
    thread.start()
    return thread


def _draw_something() -> None:
    with suppress(Exception):  # if it cannot be done, that is told where pictures are wanted
        figure = new_figure(1.0, 1.0)
        figure.subplots().set_title("a")
        as_png(figure)


def new_page(height: float) -> Any:
    """Return an empty figure as wide as a page, with some room around its panels."""
    figure = new_figure(PAGE, height)
    figure.get_layout_engine().set(w_pad=0.07, h_pad=0.07)
    return figure


def save(figure: Any, file_format: str, dots_per_inch: int) -> bytes:
    """Return the picture's bytes, equal for equal pictures; a PNG gets a palette, a third of the size."""
    picture = BytesIO()
    if file_format == "svg":
        figure.savefig(picture, format="svg", dpi=dots_per_inch, metadata={"Date": None})
        return picture.getvalue()
    figure.set_dpi(dots_per_inch)
    figure.canvas.draw()
    with_palette(np.asarray(figure.canvas.buffer_rgba())[..., :3]).save(picture, "png")
    return picture.getvalue()


def as_png(figure: Any) -> bytes:
    """Return the bytes of a PNG, equal for equal pictures."""
    return save(figure, "png", DOTS_PER_INCH)


def plain(axes: Any) -> None:
    """Give a panel a quiet grid behind what is drawn, and no frame but the two axes."""
    axes.grid(True, color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def small_panel(axes: Any, title: str = "") -> None:
    """Give one of many panels the quiet look, smaller letters, and its title at the left."""
    plain(axes)
    axes.tick_params(labelsize=SMALL)
    axes.xaxis.label.set_size(LETTERS)
    axes.yaxis.label.set_size(LETTERS)
    if title:
        axes.set_title(title, loc="left", fontsize=TITLE)


def rows_below(axes: Any, n_rows: int, ticks: int = 6) -> None:
    """Make the axis below one of rows, all of them."""
    axes.set_xlim(0, n_rows)
    axes.locator_params(axis="x", nbins=ticks)
    axes.xaxis.set_major_formatter("{x:,.0f}")
