"""The picture of many streams at once: one strip each, with what was found in it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limpet.detection.alarm import Alarm
from limpet.plots._axes import DATES, ROWS, common_axes, configure_x_axis
from limpet.plots._draw import draw_lines
from limpet.plots._style import INCH, PAGE, PURPLE, RED, SMALL, Style, new_figure, save, stacked_axes
from limpet.plots._validation import require_some
from limpet.plots.overview import DOTS, NARROW, carriers, letters, limits_of
from limpet.streams.downsample import MinMaxSummary
from limpet_lab.plots.grid import legend_above

FILL = "#d5d9dd"
DOT: Style = {"color": PURPLE, "marker": "o", "linestyle": "none", "markersize": 4.2, "markeredgewidth": 0}
STRIPS = 60  # at most
FINE = 800  # buckets that a strip shows, at most
HIGH, FULL = 0.84, 0.92  # of a strip: the values, a bar


@dataclass(frozen=True)
class Strip:
    """A stream, its name, and what was raised in it."""

    name: str
    sketch: MinMaxSummary
    alarms: Sequence[Alarm]


def draw_alarm_map(strips: Sequence[Strip], *, narrow: bool = False) -> bytes:
    """Draw one thin strip for each stream, all over the same axis, and return the bytes of a PNG.

    Behind is the range of the values, of the variable that most alarms are about; a change alarm is a bar, an anomaly
    a dot. At the right is how many there are of both. The axis is that of the times if all streams have some that rise,
    else that of the rows, which each stream counts for itself.
    """
    require_some("strips", strips)
    width = NARROW if narrow else PAGE
    pitch = 0.34 if len(strips) <= 12 else 0.24 if len(strips) <= 40 else 0.19  # inches
    figure = new_figure(width, 0.95 + pitch * len(strips))
    figure.set_layout_engine("none")
    figure.set_dpi(DOTS[width])
    axes = figure.subplots()
    places = common_axes([strip.sketch for strip in strips])
    for height, (strip, place) in enumerate(zip(strips, places, strict=True)):
        _draw_values(axes, strip, place(strip.sketch.rows), height)
        for kind in ("change", "anomaly"):
            rows = [alarm.row for alarm in strip.alarms if alarm.kind == kind]
            if not rows:
                continue
            at = place(rows)
            if kind == "change":
                bar = (height - FULL / 2, height + FULL / 2)
                draw_lines(axes, at, bar, color=RED, linewidth=1.6, zorder=4, label="change alarm")
            else:
                axes.plot(at, np.full(len(at), height), label="anomaly", zorder=5, **DOT)
    size = SMALL if pitch > 0.2 else 7.5
    axes.set_yticks(range(len(strips)), [letters(strip.name, 18 if narrow else 32) for strip in strips], fontsize=size)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=SMALL)
    axes.set_ylim(len(strips) - 0.4, -0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(True, axis="x", color="#e4e4e4", linewidth=0.7)
    kind = places[0].kind
    ends = min(place.ends[0] for place in places), max(place.ends[1] for place in places)
    configure_x_axis(axes, kind, ends, 4 if narrow else 8)
    axes.set_xlabel({DATES: "", ROWS: "row of the stream"}.get(kind, kind))
    gaps = (18, 38) if narrow else (48, 104)
    if not narrow:
        _tell(axes, -0.85, "changes", "anomalies", size)
    for height, strip in enumerate(strips):
        counts = Counter(alarm.kind for alarm in strip.alarms)
        changes, anomalies = (f"{counts[kind]:,}" if counts[kind] else "–" for kind in ("change", "anomaly"))
        _tell(axes, height, changes, anomalies, size, gaps)
    axes.yaxis.set_label_coords(0.0, 0.5)  # it has no name, for which a place would be looked for
    above = legend_above(figure, [axes], width)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        stacked_axes(figure, [axes], [1.0], above, beside=gaps[1] / INCH, over=0.0 if narrow else size / INCH)
        return save(figure, "png", DOTS[width])


def _draw_values(axes: Any, strip: Strip, across: Any, height: int) -> None:
    """The range of the values of one variable, so large that it fills the strip."""
    sketch = strip.sketch
    counts = Counter(one for alarm in strip.alarms for one in carriers(alarm, sketch.names)[:1])
    variable = counts.most_common(1)[0][0] if counts else 0
    low, high = limits_of(sketch, variable)
    starts = np.arange(0, len(sketch), -(-len(sketch) // FINE))
    edges = np.fmin.reduceat(sketch.minimum[variable], starts), np.fmax.reduceat(sketch.maximum[variable], starts)
    bottom, top = (height + HIGH * (0.5 - (np.clip(edge, low, high) - low) / (high - low)) for edge in edges)
    axes.axhline(height + 0.5, color="#eceeef", linewidth=0.6, zorder=0)
    name = "range of the values"
    axes.fill_between(
        across[starts], bottom, top, where=np.isfinite(bottom), color=FILL, linewidth=1.0, zorder=1, label=name
    )


def _tell(
    axes: Any, height: float, changes: str, anomalies: str, size: float, gaps: tuple[int, int] = (48, 104)
) -> None:
    """How many alarms of each kind, so many points to the right of the strip."""
    for text, colour, gap in ((changes, RED, gaps[0]), (anomalies, PURPLE, gaps[1])):
        axes.annotate(
            text,
            (1.0, height),
            (gap, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=size,
            color="#b0b5ba" if text == "–" else colour,
            annotation_clip=False,
        )
