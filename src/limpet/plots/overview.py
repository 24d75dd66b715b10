"""The picture of a stream of any length and what was found in it: its variables one under the other, and the scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from limpet._validation import FloatArray
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError
from limpet.plots._axes import DATES, RowAxis, axis_of, configure_x_axis, in_digits, mark_beyond, usual_range
from limpet.plots._draw import APART, draw_anomalies, draw_changes, draw_dropped, draw_estimate, draw_points, draw_score
from limpet.plots._style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    LETTERS,
    PAGE,
    Style,
    new_figure,
    save,
    small_panel,
    stacked_axes,
)
from limpet.streams.downsample import MinMaxSummary
from limpet_lab.plots.grid import legend_above

RANGE: Style = {"color": "#c3c8cd", "linewidth": 0.7}
GAP: Style = {"color": INK, "marker": "|", "linestyle": "none", "markersize": 6, "markeredgewidth": 0.8}
PANELS = 16  # variables that are drawn, at most
NARROW = 4.4  # inches: the width of a picture for a telephone, which keeps its letters
DOTS = {PAGE: 150, NARROW: 170}  # an inch
CROWD = 120  # crosses; more than so many are drawn smaller
NEAR = 0.6  # of the usual range: a dropped point that is not further out than this is shown where it is


def draw_overview(
    sketch: MinMaxSummary,
    alarms: Sequence[Alarm],
    *,
    title: str = "",
    scores: bool = True,
    legend: bool = True,
    narrow: bool = False,
) -> bytes:
    """Draw a stream and what was found in it, and return the bytes of a PNG.

    A short stream is drawn point by point; of a long one the range of the values in each of some thousand buckets is
    shown. The axis below is that of the times if the stream has some that rise, else that of the rows. The limits are
    those of what was learnt; dropped points beyond are marked at the edge.

    Parameters
    ----------
    sketch : Sketch
        The stream.
    alarms : sequence of Alarm
        What was raised, in the order of rows. A change is a line, with a shade from its onset on, where it was found to
        be; in the panels of other variables it is faint.
    title : str
        Stands above all.
    scores : bool
        Whether there are panels for the score and the change score, below the others.
    legend : bool
        Whether the marks are named above the panels.
    narrow : bool
        For a narrow page.
    """
    if not len(sketch):
        raise InvalidInputError("nothing to draw: the stream has no rows")
    axis, variables = axis_of(sketch), drawn_variables(sketch, alarms)
    many = len(variables) > 1
    below = ["score", "change score"][: (2 if sketch.is_auto else 1) * scores]
    heights = [_height(len(variables))] * len(variables) + [1.0] * len(below)
    width = NARROW if narrow else PAGE
    figure = new_figure(width, 0.4 + 0.5 * legend + sum(heights))
    figure.set_layout_engine("none")
    figure.set_dpi(DOTS[width])
    panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, variable in zip(panels, variables, strict=False):
        _draw_variable(axes, sketch, variable, alarms, axis, APART * PAGE / width)
        _name(axes, sketch.names[variable] if many or not title else title)
    if many and title:
        panels[0].set_title(letters(title), loc="right", fontsize=LETTERS, pad=3, y=1.0, color=INK)
    for axes, name in zip(panels[len(variables) :], below, strict=True):
        score, colour = (sketch.score, BLUE) if name == "score" else (sketch.change_score, GREEN)
        draw_score(axes, axis(sketch.rows), score, colour)
        draw_changes(axes, alarms, ends=axis.ends, told=False, place=axis)
        _name(axes, _about(name, sketch, narrow))
    for axes in panels:
        axes.locator_params(axis="y", nbins=4)
        in_digits(axes.yaxis)
        for nameless in (axes.yaxis, axes.xaxis)[: 1 if axes is panels[-1] else 2]:
            nameless.set_label_coords(0.5, 0.0)  # it has no name, for which a place would be looked for
    configure_x_axis(panels[-1], axis.kind, axis.ends, 5 if narrow else 9)
    if axis.kind == DATES:
        panels[-1].set_xlabel("")
    above = legend_above(figure, panels, width) if legend else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # names may be in any script; what cannot be drawn is a box
        stacked_axes(figure, panels, heights, above)
        return save(figure, "png", DOTS[width])


def drawn_variables(sketch: MinMaxSummary, alarms: Sequence[Alarm]) -> list[int]:
    """All variables, or if there are too many those that carry alarms, and then the first ones; in their order."""
    every = list(range(len(sketch.names)))
    if len(every) <= PANELS:
        return every
    carrying = {place for alarm in alarms for place in carriers(alarm, sketch.names)}
    return sorted(sorted(every, key=lambda place: (place not in carrying, place))[:PANELS])


def carriers(alarm: Alarm, names: Sequence[str]) -> list[int]:
    """Which variables carry an alarm; of a single one, it is always that."""
    if len(names) == 1:
        return [0]
    found = [names.index(one) if isinstance(one, str) and one in names else one for one in alarm.variables]
    return [one for one in found if isinstance(one, int) and 0 <= one < len(names)]


def letters(name: str, most: int = 70) -> str:
    """A text as a picture can show it: on one line, not too long, and with nothing in it that would be a formula.

    >>> letters("5$ a\\nb")
    '5\\\\$ a b'
    """
    one_line = "".join(c if c.isprintable() else " " for c in name)
    return (one_line if len(one_line) <= most else one_line[: most - 1] + "…").replace("$", r"\$")


def limits_of(sketch: MinMaxSummary, variable: int) -> tuple[float, float]:
    """Around what was learnt, and around dropped points where they are near."""
    low, high = sketch.minimum[variable], sketch.maximum[variable]
    dropped = np.concatenate([sketch.rejected_minimum[variable], sketch.rejected_maximum[variable]])
    learnt = np.concatenate([low, high])
    known = learnt if np.isfinite(learnt).any() else dropped
    known = known[np.isfinite(known)]
    if not len(known):
        return 0.0, 1.0
    if known.min() == known.max():
        room = 0.1 * abs(float(known[0])) or 1.0
        return float(known[0]) - room, float(known[0]) + room
    usual = usual_range(known, cut=0.002, margin=0.15)
    assert usual is not None
    near = NEAR * (usual[1] - usual[0])
    shown = np.concatenate([known, dropped[np.isfinite(dropped)]])
    shown = shown[(shown >= usual[0] - near) & (shown <= usual[1] + near)]
    margin = 0.04 * (usual[1] - usual[0])
    lowest, highest = float(shown.min()) - margin, float(shown.max()) + margin
    return min(usual[0], lowest), max(usual[1], highest)


def _draw_variable(
    axes: Any, sketch: MinMaxSummary, variable: int, alarms: Sequence[Alarm], axis: RowAxis, apart: float
) -> None:
    """One panel: what came, what was dropped, the estimate, and the alarms."""
    across, limits = axis(sketch.rows), limits_of(sketch, variable)
    low, high = sketch.minimum[variable], sketch.maximum[variable]
    axes.set_ylim(*limits)
    if sketch.is_exact:
        known = np.isfinite(low)
        draw_points(axes, across[known], low[known], limits, size=2.5 if len(low) > 500 else 5.0)
    else:
        axes.fill_between(across, low, high, where=np.isfinite(low), label="range of the points", zorder=1.5, **RANGE)
        for edge in (low, high):
            mark_beyond(axes, across, edge, limits, {"color": GREY}, size=4.0)
    _draw_dropped(axes, sketch, variable, across, limits)
    estimate = sketch.estimate[variable]
    known = np.isfinite(estimate)
    if known.any():
        ends = axis(np.minimum(sketch.rows + sketch.width - 1, sketch.n_rows - 1))
        draw_estimate(axes, ends[known], estimate[known], 1.9 if sketch.is_exact else 1.3)
    if sketch.n_invalid.any():
        unusable = across[sketch.n_invalid > 0]
        in_panel = {"transform": axes.get_xaxis_transform()}
        axes.plot(unusable, np.full(len(unusable), 0.03), label="cannot be used", **GAP, **in_panel)
    own = [alarm for alarm in alarms if variable in carriers(alarm, sketch.names)]
    others = [alarm for alarm in alarms if variable not in carriers(alarm, sketch.names)]
    draw_changes(axes, own, ends=axis.ends, told=True, place=axis, apart=apart)
    draw_changes(axes, others, ends=axis.ends, told=False, place=axis, faint=True)
    odd = [alarm for alarm in own if alarm.kind == "anomaly" and 0 <= alarm.row < sketch.n_rows]
    heights = np.array([_height_of(alarm, sketch, variable) for alarm in odd])
    draw_anomalies(axes, axis([alarm.row for alarm in odd]), heights, limits)


def _draw_dropped(
    axes: Any, sketch: MinMaxSummary, variable: int, across: FloatArray, limits: tuple[float, float]
) -> None:
    low, high = sketch.rejected_minimum[variable], sketch.rejected_maximum[variable]
    both = (np.append(across, across), np.append(low, high)) if not sketch.is_exact else (across, low)
    known = np.isfinite(both[1])
    small = {"markersize": 2.5, "alpha": 0.5, "markeredgewidth": 0.7} if known.sum() > CROWD else {}
    if known.any():
        draw_dropped(axes, both[0][known], both[1][known], limits, **small)


def _height_of(alarm: Alarm, sketch: MinMaxSummary, variable: int) -> float:
    """Where a point stands that is an anomaly: the one furthest out in its bucket."""
    at = alarm.row // sketch.width
    if alarm.direction == "down":
        return float(np.fmin(sketch.minimum[variable, at], sketch.rejected_minimum[variable, at]))
    return float(np.fmax(sketch.maximum[variable, at], sketch.rejected_maximum[variable, at]))


def _height(n_variables: int) -> float:
    """Of a panel, in inches."""
    return 2.5 if n_variables == 1 else max(0.95, min(6.0 / n_variables, 1.8))


def _name(axes: Any, name: str) -> None:
    small_panel(axes)
    axes.set_title(letters(name, 110), loc="left", fontsize=LETTERS, pad=3, y=1.0)  # so that it is not moved


def _about(name: str, sketch: MinMaxSummary, narrow: bool) -> str:
    what = "surprise at this point" if name == "score" else "has the stream changed lately?"
    if not sketch.is_exact and not narrow:
        what += f" (the largest of {sketch.width:,} rows each)"
    return f"{name}: {what}"
