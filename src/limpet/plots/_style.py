"""Colors, figures, style and layout of panels, and the bytes of a picture."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._optional import optional_import

Style = dict[str, Any]

# The colors of Okabe and Ito, which are distinct to the color-blind; markers and dashes are distinct in print.
BLUE, SKY, GREEN, ORANGE = "#0072B2", "#56B4E9", "#009E73", "#E69F00"
VERMILION, PURPLE, YELLOW, BLACK = "#D55E00", "#CC79A7", "#F0E442", "#000000"
RED, GREY, INK = "#C8102E", "#7d848c", "#444444"

POINT_STYLE: Style = {"color": GREY, "marker": ".", "linestyle": "none", "markeredgewidth": 0}
REJECTED_STYLE: Style = {"color": VERMILION, "marker": "x", "linestyle": "none", "markeredgewidth": 1.3}
CIRCLE_STYLE = REJECTED_STYLE | {"marker": "o", "markersize": 5, "markerfacecolor": "none", "markeredgewidth": 1.0}
TRUTH_STYLE: Style = {"color": BLACK, "linewidth": 1.0, "linestyle": (0, (4, 2)), "alpha": 0.7}
CHANGE_STYLE: Style = {"color": RED, "linewidth": 1.2, "linestyle": (0, (5, 2.5))}
EVENT_STYLE: Style = {"color": INK, "linewidth": 1.0, "linestyle": ":"}
SHADE_STYLE: Style = {"color": INK, "alpha": 0.09, "linewidth": 0}

PAGE_WIDTH_IN, NARROW_WIDTH_IN = 9.6, 4.4  # the narrow one is for phones, with text of the same size
PAGE_DPI, NARROW_DPI = 150, 170  # text of 9 points is 12 pixels high on a page
TITLE_PT, TEXT_PT, SMALL_PT = 10.5, 9.5, 9.0
PT_PER_IN = 72.0
TICK_PT = 7.0  # a tick, and the gap between it and its label
LINE_HEIGHT = 1.35  # in em
MARGIN_IN = 0.07
PANEL_GAP_IN = 0.11
N_FREQUENT_COLORS, N_COLORS = 96, 160  # of a PNG


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of a size in inches, without global state."""
    with optional_import("drawing", "plots"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def load_matplotlib() -> threading.Thread:
    """Load matplotlib (one second) in a thread; join it before drawing."""

    def render_empty_figure() -> None:
        with suppress(Exception):  # the first picture raises the same error
            figure = new_figure(1.0, 1.0)
            figure.subplots().set_title("a")
            render_png(figure)

    thread = threading.Thread(target=render_empty_figure, name="limpet drawing", daemon=True)
    thread.start()
    return thread


def new_stack(height: float, narrow: bool) -> Any:
    """Return an empty figure for `render_stack`, as wide as a page or a narrow page."""
    figure = new_figure(NARROW_WIDTH_IN if narrow else PAGE_WIDTH_IN, height)
    figure.set_layout_engine("none")
    figure.set_dpi(NARROW_DPI if narrow else PAGE_DPI)
    return figure


def render_png(figure: Any, dots_per_inch: int = PAGE_DPI) -> bytes:
    """Return PNG bytes, equal for equal pictures; a palette reduces them to a third."""
    picture = BytesIO()
    figure.set_dpi(dots_per_inch)
    figure.canvas.draw()
    quantize_colors(np.asarray(figure.canvas.buffer_rgba())[..., :3]).save(picture, "png")
    return picture.getvalue()


def quantize_colors(pixels: npt.NDArray[np.uint8]) -> Any:
    """Quantize to frequent colors, and those far from them, to keep rare marks.

    Other colors, as in the antialiasing of text, become the nearest one.
    """
    from PIL import Image  # a dependency of matplotlib

    red, green, blue = (pixels[..., i].astype(np.int32) for i in range(3))
    codes = (red << 16 | green << 8 | blue).reshape(-1)
    run_starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))  # most pixels equal the previous one
    lengths = np.diff(run_starts, append=len(codes))
    unique_codes, index = np.unique(codes[run_starts], return_inverse=True)
    counts = np.bincount(index, lengths)
    colors = np.stack([unique_codes >> 16, unique_codes >> 8 & 255, unique_codes & 255], axis=1)
    kept = list(np.argsort(-counts, kind="stable")[:N_FREQUENT_COLORS])
    distances = ((colors[:, None] - colors[kept]) ** 2).sum(axis=2)
    nearest, distance = np.argmin(distances, axis=1), np.min(distances, axis=1)
    while len(kept) < N_COLORS and distance.max() > 0:
        farthest = int(np.argmax(distance))
        to_farthest = ((colors - colors[farthest]) ** 2).sum(axis=1)
        nearest[to_farthest < distance] = len(kept)
        distance = np.minimum(distance, to_farthest)
        kept.append(farthest)
    image = Image.fromarray(np.repeat(nearest.astype(np.uint8)[index], lengths).reshape(pixels.shape[:2]))
    image.putpalette(colors[kept].astype(np.uint8).tobytes())
    return image


def style_axes(axes: Any) -> None:
    """Style a panel: a light grid, and the left and lower axis only."""
    axes.grid(True, color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def style_small_panel(axes: Any, title: str = "") -> None:
    """Style one of several panels, with smaller text and its title at the left."""
    style_axes(axes)
    axes.tick_params(labelsize=SMALL_PT)
    axes.xaxis.label.set_size(TEXT_PT)
    axes.yaxis.label.set_size(TEXT_PT)
    if title:
        axes.set_title(title, loc="left", fontsize=TITLE_PT)


def add_legend_above(figure: Any, panels: Iterable[Any]) -> Any:
    """Add one legend above all panels, in as few lines as possible."""
    entries = legend_entries(panels)
    if not entries:
        return None
    legend = {"loc": "outside upper left", "ncols": _count_columns(list(map(len, entries)), figure.get_figwidth())}
    return figure.legend(entries.values(), entries.keys(), frameon=False, fontsize=TEXT_PT, **legend)


def legend_entries(panels: Iterable[Any]) -> dict[str, Any]:
    """Return the first handle of each label."""
    entries: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    return entries


def _count_columns(lengths: list[int], width: float = PAGE_WIDTH_IN) -> int:
    """Return the number of columns of a legend that fit into a width in inches.

    >>> _count_columns([3, 4, 3]), _count_columns([15] * 9)
    (3, 5)
    """
    width_em = PT_PER_IN * width / TEXT_PT  # a character takes 0.6 em, a handle and the gaps around it 5
    for n_lines in range(1, len(lengths)):
        columns = [lengths[first : first + n_lines] for first in range(0, len(lengths), n_lines)]
        if sum(0.6 * max(column) + 5.0 for column in columns) <= width_em:
            return len(columns)
    return 1


def render_stack(
    figure: Any,
    panels: Sequence[Any],
    heights: Sequence[float],
    has_legend: bool = True,
    beside: float = 0.0,
    over: float = 0.0,
) -> bytes:
    """Stack panels with a legend above them; return the bytes of a PNG."""
    legend = add_legend_above(figure, panels) if has_legend else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a character missing from the font is drawn as a box
        _stack_panels(figure, panels, heights, legend, beside, over)
        return render_png(figure, figure.dpi)


def _stack_panels(
    figure: Any, panels: Sequence[Any], heights: Sequence[float], legend: Any, beside: float, over: float
) -> None:
    """Stack panels with relative heights; reserve inches at the right and above.

    The layout engines of matplotlib measure each label of each panel several times, which takes longer than to draw.
    """
    width, height = figure.get_size_inches()
    renderer = figure.canvas.get_renderer()

    def widths(axis: Any) -> tuple[list[float], list[float]]:
        """Return the relative positions of the tick labels, and their widths in inches."""
        low, high = sorted(axis.get_view_interval())
        ticks = [float(tick) for tick in axis.get_majorticklocs()]
        labels = axis.get_major_formatter().format_ticks(ticks)
        font = axis.get_major_ticks(1)[0].label1.get_fontproperties()
        slack = 1e-9 * (high - low)
        labeled = zip(ticks, labels, strict=True)
        visible = [(tick, text) for tick, text in labeled if low - slack <= tick <= high + slack]
        widths_in = [renderer.get_text_width_height_descent(text, font, False)[0] / figure.dpi for _, text in visible]
        return [(tick - low) / (high - low) for tick, _ in visible], widths_in

    y_widths = [label_width for axes in panels for label_width in widths(axes.yaxis)[1]]
    left, right = MARGIN_IN + TICK_PT / PT_PER_IN + max(y_widths, default=0.0), MARGIN_IN + beside
    x_labels = list(zip(*widths(panels[-1].xaxis), strict=True))
    for _ in range(2):  # labels may extend beyond the panel, by an amount that depends on its width
        inner = width - left - right
        left = max(left, MARGIN_IN + max((label / 2.0 - at * inner for at, label in x_labels), default=0.0))
        right = MARGIN_IN + max([beside, *(label / 2.0 - (1.0 - at) * inner for at, label in x_labels)])
    named = bool(panels[-1].get_xlabel()) or bool(panels[-1].xaxis.get_major_formatter().get_offset())
    below = (TICK_PT + LINE_HEIGHT * SMALL_PT + (LINE_HEIGHT * TEXT_PT + 2.0) * named) / PT_PER_IN + 0.03
    above = over
    if legend is not None:
        above += legend.get_window_extent(renderer).height / figure.dpi + 0.6 * TEXT_PT / PT_PER_IN
    titled = [any(axes.get_title(loc) for loc in ("left", "right")) for axes in panels]
    names = [3.0 / PT_PER_IN + LINE_HEIGHT * TEXT_PT * 0.8 / PT_PER_IN if has_title else 0.0 for has_title in titled]
    rest = max(height - 0.05 - above - below - sum(names) - PANEL_GAP_IN * (len(panels) - 1), 0.1 * height)
    shares = np.asarray(heights) / sum(heights)
    top = height - 0.05 - above
    for axes, name, share in zip(panels, names, shares, strict=True):
        top -= name
        top -= share * rest
        axes.set_position((left / width, top / height, 1.0 - (left + right) / width, share * rest / height))
        top -= PANEL_GAP_IN
