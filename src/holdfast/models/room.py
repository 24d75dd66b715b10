"""The room that fits to a handful of points work in: whatever they write besides their results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.models.component import Component
from holdfast.models.trusting import BoolArray
from holdfast.scheme.state import Vector

N_RANDOM_SEEDINGS = 20  # of a mixture


class EMWorkspace(NamedTuple):
    """Scratch for n points in d dimensions and K components; made once for as many streams as there are."""

    seed_points: Vector
    """(seedings, K, d): where the components begin."""

    fit: Vector
    previous_fit: Vector
    """[ weights | components ], and the same a round before."""

    retained: BoolArray
    """(n,): which of the points are kept in a round."""

    values: Vector
    """(n,): what is being put in order."""

    log_likelihood: Vector
    """(n,): its logarithm."""

    responsibilities: Vector
    """(n, K): responsibilities."""

    peak_densities: Vector
    """(K,): the densities at the centres, times the weights."""

    imputed: Vector
    """(n·K·size): each point as each component completes it."""

    variances: Vector
    """(d,): those of all components together."""

    work: Vector
    """What a component needs."""


def make_workspace(component: Component, n: int, K: int, d: int) -> EMWorkspace:
    """Of the sizes needed."""
    size = component.n_parameters(d)
    return EMWorkspace(
        np.empty((N_RANDOM_SEEDINGS + d, K, d)),
        np.empty(K + K * size),
        np.empty(K + K * size),
        np.empty(n, np.bool_),
        np.empty(n),
        np.empty(n),
        np.empty((n, K)),
        np.empty(K),
        np.empty(n * K * size),
        np.empty(d),
        np.empty(component.work_size(d) + 1),
    )
