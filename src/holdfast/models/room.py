"""The room that fits to a handful of points work in: whatever they write besides their results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.models.component import Component
from holdfast.models.trusting import Flags
from holdfast.scheme.state import Vector

SEEDINGS = 20  # of a mixture


class Room(NamedTuple):
    """Scratch for n points in d dimensions and K components; made once for as many streams as there are."""

    places: Vector
    """(seedings, K, d): where the components begin."""

    fit: Vector
    """[ weights | components ]."""

    kept: Flags
    """(n,): which of the points are kept in a round."""

    values: Vector
    """(n,): what is being put in order."""

    likelihood: Vector
    """(n,): its logarithm."""

    shares: Vector
    """(n, K): responsibilities."""

    heights: Vector
    """(K,): the densities at the centres, times the weights."""

    completed: Vector
    """(n·K·size): each point as each component completes it."""

    variances: Vector
    """(d,): those of all components together."""

    work: Vector
    """What a component needs."""


def room_for(component: Component, n: int, K: int, d: int) -> Room:
    """Of the sizes needed."""
    size = component.size(d)
    return Room(
        np.empty((SEEDINGS + d, K, d)),
        np.empty(K + K * size),
        np.empty(n, np.bool_),
        np.empty(n),
        np.empty(n),
        np.empty((n, K)),
        np.empty(K),
        np.empty(n * K * size),
        np.empty(d),
        np.empty(component.work(d) + 1),
    )
