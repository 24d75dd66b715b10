"""What pictures of watched streams share: alarms, points that stand out, scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray
from limpet.detection.alarm import Alarm
from limpet.plots._axes import full_or_usual, mark_beyond
from limpet.plots._style import BLUE, DROPPED, POINTS, PURPLE, RED, SMALL, Style

ALARM: Style = {"color": RED, "linewidth": 1.3}
ONSET: Style = {"color": RED, "alpha": 0.16, "linewidth": 0}
ANOMALY: Style = {
    "color": PURPLE,
    "marker": "o",
    "linestyle": "none",
    "markersize": 9,
    "markerfacecolor": "none",
    "markeredgewidth": 1.6,
}
APART = 0.13  # of the width: what the words of a change alarm take
THINNER = ((60, 0.6), (12, 0.9))  # more than so many change alarms are drawn so thin

Across = Callable[[npt.ArrayLike], npt.NDArray[Any]]


def identity(rows: npt.ArrayLike) -> npt.NDArray[Any]:
    """Rows stand at their own number."""
    return np.asarray(rows)


def inner_edges(limits: tuple[float, float]) -> tuple[float, float]:
    """Where a mark at the edge still lies whole in the panel.

    >>> inner_edges((0.0, 100.0))
    (2.0, 98.0)
    """
    room = 0.02 * (limits[1] - limits[0])
    return limits[0] + room, limits[1] - room


def draw_dropped(axes: Any, across: Any, values: FloatArray, limits: tuple[float, float], **style: Any) -> None:
    """Crosses for points that were dropped, and triangles at the edge for those beyond it."""
    axes.plot(across, values, label="rejected", **DROPPED | {"markersize": 4.5, "alpha": 0.8} | style)
    mark_beyond(axes, across, values, limits, DROPPED, size=4.0, label="dropped, beyond the edge")


def draw_points(axes: Any, across: Any, values: FloatArray, limits: tuple[float, float], size: float = 2.5) -> None:
    """Points that were learnt."""
    axes.plot(across, values, markersize=size, alpha=0.5, rasterized=True, **POINTS)
    axes.plot([], [], label="point", markersize=7, **POINTS)  # in the legend, one that can be seen
    mark_beyond(axes, across, values, limits, POINTS, size=4.0)


def draw_estimate(axes: Any, across: Any, means: FloatArray, width: float = 1.9) -> None:
    """The estimate as it followed; one line or, for (T, K), several."""
    axes.plot(across, means, color="white", linewidth=width + 1.5, zorder=3)
    axes.plot(across, means, color=BLUE, linewidth=width, zorder=4, label="estimate")


def draw_anomalies(axes: Any, across: Any, values: FloatArray, limits: tuple[float, float]) -> None:
    """Circles around points that stand out; they are whole at the edge as well."""
    if len(values):
        shown = np.clip(values, *inner_edges(limits))
        axes.plot(across, shown, label="anomaly", zorder=6, clip_on=False, **ANOMALY)


def draw_changes(
    axes: Any,
    alarms: Sequence[Alarm],
    *,
    ends: tuple[float, float],
    told: bool,
    place: Across = identity,
    faint: bool = False,
    apart: float = APART,
) -> None:
    """Change alarms, each with a shade from its onset on, and if they are few in words.

    ends: the first and last place of the axis. place: where a row stands. faint: these belong to another panel.
    apart: where alarms are nearer to each other than this share of the width, there are no words.
    """
    shown = [alarm for alarm in alarms if alarm.kind == "change"]
    places = place([alarm.row for alarm in shown]).astype(np.float64)
    inside = (places >= ends[0]) & (places <= ends[1])
    shown, places = [alarm for alarm, is_in in zip(shown, inside, strict=True) if is_in], places[inside]
    if not shown:
        return
    onsets = np.maximum(place([alarm.onset for alarm in shown]).astype(np.float64), ends[0])
    in_panel = {"transform": axes.get_xaxis_transform()}  # heights from 0, the bottom, to 1
    thin: Style = next(({"linewidth": width} for many, width in THINNER if len(shown) > many), {})
    if faint:
        style = ALARM | {"linewidth": 0.8, "alpha": 0.35, "label": "change of another variable"} | thin
        draw_lines(axes, places, zorder=1, **style, **in_panel)
        return
    draw_lines(axes, places, label="change alarm", zorder=5, **ALARM | thin, **in_panel)
    spans = list(zip(onsets, places - onsets, strict=True))
    axes.broken_barh(spans, (0.0, 1.0), label="from its onset to the alarm", zorder=1, **ONSET, **in_panel)
    length = ends[1] - ends[0]
    if not told or any(after - before <= apart * length for before, after in pairwise(places)):
        return
    for alarm, at in zip(shown, places, strict=True):
        near_the_end = at > ends[1] - (apart + 0.02) * length
        axes.annotate(
            in_short(alarm),
            (at, 1.0),
            (-4 if near_the_end else 4, -3),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha="right" if near_the_end else "left",
            va="top",
            fontsize=SMALL,
            color=RED,
            zorder=7,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.8, "linewidth": 0},
        )


def draw_lines(axes: Any, places: FloatArray, between: tuple[float, float] = (0.0, 1.0), **style: Any) -> None:
    """Upright lines at these places; `vlines` does the same and is slow where they are many."""
    from matplotlib.collections import LineCollection

    lines = np.empty((len(places), 2, 2))
    lines[..., 0], lines[..., 1] = places[:, None], between
    axes.add_collection(LineCollection(list(lines), **style), autolim=False)
    axes.update_datalim(lines[:, 0], updatey=False)
    axes.autoscale_view(scaley=False)


def in_short(alarm: Alarm) -> str:
    """What a change alarm says.

    >>> in_short(Alarm("change", 210, 201, -3.21, "down", (0,))), in_short(Alarm("change", 9, 8, math.nan, "up", (0,)))
    ('down 3.2 sd', 'up')
    """
    if not math.isfinite(alarm.size):
        return alarm.direction
    if alarm.direction in ("up", "down"):
        size = abs(alarm.size)
        return f"{alarm.direction} {size:,.0f} sd" if size >= 100.0 else f"{alarm.direction} {size:.2g} sd"
    return f"{alarm.direction}, × {alarm.size:.2g}"


def draw_score(axes: Any, across: Any, score: FloatArray, colour: str) -> None:
    """A score, on the scale of its bulk."""
    limits = full_or_usual(score, cut=0.002, margin=0.4)
    if limits is None:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no score", transform=axes.transAxes, ha="center", va="center", color="#555555")
        return
    axes.plot(across, score, color=colour, linewidth=0.8)
    axes.set_ylim(*limits)
    mark_beyond(axes, across, score, limits, {"color": colour, "zorder": 5}, size=4.0)
