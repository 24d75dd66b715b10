"""Limits of an axis that a few far points do not spoil, and marks at the edge for those points."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.checks import FloatArray
from holdfast.plots.style import Style


def usual_range(values: FloatArray, *, cut: float = 0.005, margin: float = 0.3) -> tuple[float, float] | None:
    """Return limits around all values but a share ``cut`` at either end; None if there is nothing to see.

    >>> low, high = usual_range(np.append(np.linspace(0.0, 1.0, 999), 1e6))
    >>> -0.4 < low < 0.0 and 1.0 < high < 1.4
    True
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    low, high = np.quantile(finite, [cut, 1.0 - cut])
    room = margin * (high - low) or 1.0
    return float(low - room), float(high + room)


def full_or_usual(
    values: FloatArray, *, cut: float = 0.005, margin: float = 0.3, patience: float = 4.0
) -> tuple[float, float] | None:
    """Return limits around all values, unless that takes more than ``patience`` times the usual range."""
    usual = usual_range(values, cut=cut, margin=margin)
    if usual is None:
        return None
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(finite.max())
    room = 0.08 * (high - low) or 1.0
    if high - low > patience * (usual[1] - usual[0]):
        return max(usual[0], low - room), min(usual[1], high + room)
    return low - room, high + room


def mark_beyond(
    axes: Any,
    rows: npt.NDArray[Any],
    values: FloatArray,
    limits: tuple[float, float],
    style: Style,
    size: float = 5.0,
    label: str = "",
) -> None:
    """Put a triangle at the edge for each value that lies beyond it; the label is for the legend."""
    for beyond, marker, edge in ((values > limits[1], "^", 0.985), (values < limits[0], "v", 0.015)):
        triangle = style | {"marker": marker, "markersize": size, "markeredgewidth": 0, "linestyle": "none"}
        in_panel = {"transform": axes.get_xaxis_transform()}  # heights from 0, the bottom, to 1
        if beyond.any():
            axes.plot(rows[beyond], np.full(beyond.sum(), edge), label=label, **triangle, **in_panel)
