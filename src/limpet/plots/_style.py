"""Panels one under the other, with the room that their numbers and names take, laid out in no time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._optional import optional_import

# A picture in few colours, so that its file is small.

FREQUENT, ALL = 96, 160  # colours: so many for their frequency, so many in all


def with_palette(pixels: npt.NDArray[np.uint8]) -> Any:
    """Return an image of few colours: the most frequent ones, and those that are farthest from them.

    Every other colour, as at the edges of letters, is drawn in the nearest one; the second kind is for three circles
    that are to keep their colour beside a thousand lines.
    """
    from PIL import Image  # matplotlib needs it too

    red, green, blue = (pixels[..., i].astype(np.int32) for i in range(3))
    codes = (red << 16 | green << 8 | blue).reshape(-1)
    begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))  # most pixels are like the one before
    lengths = np.diff(begins, append=len(codes))
    found, places = np.unique(codes[begins], return_inverse=True)
    counts = np.bincount(places, lengths)
    colours = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1)
    kept = list(np.argsort(-counts, kind="stable")[:FREQUENT])
    gaps = ((colours[:, None] - colours[kept]) ** 2).sum(axis=2)
    nearest, gap = np.argmin(gaps, axis=1), np.min(gaps, axis=1)
    while len(kept) < ALL and gap.max() > 0:
        farthest = int(np.argmax(gap))
        to_it = ((colours - colours[farthest]) ** 2).sum(axis=1)
        nearest[to_it < gap] = len(kept)
        gap = np.minimum(gap, to_it)
        kept.append(farthest)
    image = Image.fromarray(np.repeat(nearest.astype(np.uint8)[places], lengths).reshape(pixels.shape[:2]))
    image.putpalette(colours[kept].astype(np.uint8).tobytes())
    return image


# What all pictures share: colours, a figure to draw in, the look of its panels, and the file it becomes.

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
    thread = threading.Thread(target=_draw_something, name="limpet drawing", daemon=True)
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
