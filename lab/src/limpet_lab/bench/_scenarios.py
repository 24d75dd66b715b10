"""Streams that separate locked-out from misled learners: stable, then one change, with outliers and known truth.

Before the change every component is N(μ, I): σ = 1 in each coordinate and the level is 0. One component stands at 0;
two, of equal weight, stand at 0 and at 6σ along the first coordinate. Outliers come independently at a given rate:

- uniform: each coordinate within ±20σ of the level, which goes along with the change;
- one-sided: each coordinate from 0 to 20σ above the level;
- clustered: N(p, .1²I) about one far place p that never moves, 15σ from the first level in a direction drawn at random
  and at least 5σ from wherever a component ever is.

The level is the middle of the components; when one of two moves alone, it stays where it was.

σ is always the one before the change, so that outliers know nothing of a jump of the variance.
A shift goes by the seed: even seeds move all coordinates, odd ones a single coordinate drawn at random; seeds 0 and 1
of every four move up, the others down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

ROWS_BEFORE_CHANGE = 1000  # rows before the change
ROWS_AFTER_CHANGE = 300  # rows from the change, or from the end of the ramp, to the reading
COMPONENT_DISTANCE_SD = 6.0  # between two components
OUTLIER_RANGE_SD = 20.0  # of scattered outliers
CLUSTER_DISTANCE_SD = 15.0  # of clustered outliers from the level
CLUSTER_SD = 0.1  # their spread
MIN_CLUSTER_CLEARANCE_SD = 5.0  # their distance from any component
OUTLIER_SOURCE = -1  # the source of an outlier

SHIFT_SIZES_SD = (1.0, 3.0, 10.0, 100.0, 1e6)
OUTLIER_RATES = (0.0, 0.01, 0.05, 0.1, 0.2)
OUTLIER_KINDS = ("uniform", "one-sided", "clustered")
DIMENSIONS = (1, 3, 8)

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """The surroundings of a change: coordinates, outliers and the seed."""

    dim: int = 1
    rate: float = 0.0
    kind: str = "uniform"
    seed: int = 0

    @property
    def labels(self) -> dict[str, str]:
        """The groups that a run belongs to.

        >>> Setting(3, 0.05, "clustered").labels
        {'outliers': '5 %', 'kind': 'clustered', 'd': '3'}
        """
        kind = self.kind if self.rate > 0 else "none"
        return {"outliers": f"{100 * self.rate:g} %", "kind": kind, "d": str(self.dim)}

    def make_generator(self, *parameters: float) -> np.random.Generator:
        """Return a generator seeded by the setting and by everything else that distinguishes two runs."""
        numbers = (
            self.seed,
            self.dim,
            1000 * self.rate,
            OUTLIER_KINDS.index(self.kind),
            *(1000 * x for x in parameters),
        )
        return np.random.default_rng([round(x) for x in numbers])

    @property
    def is_upward(self) -> bool:
        """Whether the level rises."""
        return self.seed % 4 < 2


@dataclass(frozen=True, eq=False)
class Scenario:
    """A stream up to the row where the estimate is read, and the truth at that row.

    y: (T, d). source: (T,), the component each row comes from, −1 for outliers. change_row: first row that differs.
    settled_row: first row from which the truth is constant. means: (K, d) and variance, of every coordinate: the truth.
    labels: the groups that its result is counted in. seed: the setting's.
    """

    y: FloatArray
    source: npt.NDArray[np.int64]
    change_row: int
    settled_row: int
    means: FloatArray
    variance: float
    labels: dict[str, str]
    seed: int


def make_settings(
    rates: Sequence[float] = OUTLIER_RATES,
    kinds: Sequence[str] = OUTLIER_KINDS,
    dims: Sequence[int] = DIMENSIONS,
    seeds: Sequence[int] = (0,),
) -> Iterator[Setting]:
    """Yield all combinations; without outliers there is only one kind."""
    for dim in dims:
        for rate in rates:
            for kind in kinds if rate > 0 else kinds[:1]:
                for seed in seeds:
                    yield Setting(dim, rate, kind, seed)


def make_level_shift(setting: Setting, size: float, components: int = 1, alone: bool = False) -> Scenario:
    """Shift all components at once by `size` σ; or, alone, only the one of two that moves away from the other."""
    rng = setting.make_generator(0, components, alone, size)
    before = make_component_means(components, setting.dim)
    path = np.tile(before, (ROWS_BEFORE_CHANGE + ROWS_AFTER_CHANGE, 1, 1))
    moved = select_moving_components(setting, components, alone)
    path[ROWS_BEFORE_CHANGE:, moved] += size * draw_direction(setting, rng)
    level = before.mean(axis=0) if alone else path.mean(axis=1)
    labels = {"shift": f"{size:g}σ", **setting.labels}
    return draw_scenario(setting, rng, path, level, np.ones(len(path)), labels, ROWS_BEFORE_CHANGE)


def make_variance_jump(setting: Setting, factor: float) -> Scenario:
    """Multiply the variance of every coordinate by `factor`; the level stays."""
    rng = setting.make_generator(1, factor)
    path = np.zeros((ROWS_BEFORE_CHANGE + ROWS_AFTER_CHANGE, 1, setting.dim))
    scale = np.where(np.arange(len(path)) < ROWS_BEFORE_CHANGE, 1.0, np.sqrt(factor))
    labels = {"variance": f"×{factor:g}" if factor >= 1 else f"÷{1 / factor:g}", **setting.labels}
    return draw_scenario(setting, rng, path, path[:, 0], scale, labels, ROWS_BEFORE_CHANGE)


def make_ramp(setting: Setting, size: float = 10.0, length: int = 500) -> Scenario:
    """Move the level by `size` σ in `length` equal steps; it is read 300 rows after the last step."""
    rng = setting.make_generator(2, size)
    progress = np.clip(
        (np.arange(ROWS_BEFORE_CHANGE + length + ROWS_AFTER_CHANGE) - ROWS_BEFORE_CHANGE + 1.0) / length, 0.0, 1.0
    )
    path = progress[:, None, None] * size * draw_direction(setting, rng)
    labels = {"ramp": f"{size:g}σ", **setting.labels}
    return draw_scenario(setting, rng, path, path[:, 0], np.ones(len(path)), labels, ROWS_BEFORE_CHANGE + length)


def draw_burst(rng: np.random.Generator, length: int, dim: int) -> FloatArray:
    """Draw consecutive outliers: (length, d), each coordinate within ±20σ of the level 0."""
    return rng.uniform(-OUTLIER_RANGE_SD, OUTLIER_RANGE_SD, (length, dim))


def make_component_means(components: int, dim: int) -> FloatArray:
    """Return the component means before the change: (K, d)."""
    means = np.zeros((components, dim))
    means[:, 0] = COMPONENT_DISTANCE_SD * np.arange(components)
    return means


def select_moving_components(setting: Setting, components: int, alone: bool) -> slice:
    """Return the components that move: all, or alone the upper one up or the lower one down."""
    if not alone:
        return slice(None)
    return slice(components - 1, None) if setting.is_upward else slice(0, 1)


def draw_direction(setting: Setting, rng: np.random.Generator) -> FloatArray:
    """Draw 1 or −1 in the coordinates that move, else 0: (d,)."""
    sign = 1.0 if setting.is_upward else -1.0
    if setting.seed % 2 == 0:
        return np.full(setting.dim, sign)
    direction = np.zeros(setting.dim)
    direction[rng.integers(setting.dim)] = sign
    return direction


def draw_scenario(
    setting: Setting,
    rng: np.random.Generator,
    path: FloatArray,
    level: FloatArray,
    scale: FloatArray,
    labels: dict[str, str],
    settled_row: int,
) -> Scenario:
    """Draw a stream whose components follow `path` (T, K, d), with the outliers of the setting around `level`."""
    n, components, dim = path.shape
    source = np.asarray(rng.integers(components, size=n))
    y = path[np.arange(n), source] + scale[:, None] * rng.standard_normal((n, dim))
    outliers = rng.random(n) < setting.rate
    if setting.kind == "clustered":
        outlier_values = draw_cluster_center(rng, path) + CLUSTER_SD * rng.standard_normal((n, dim))
    else:
        low = -OUTLIER_RANGE_SD if setting.kind == "uniform" else 0.0
        outlier_values = level + rng.uniform(low, OUTLIER_RANGE_SD, (n, dim))
    y[outliers], source[outliers] = outlier_values[outliers], OUTLIER_SOURCE
    return Scenario(y, source, ROWS_BEFORE_CHANGE, settled_row, path[-1], float(scale[-1] ** 2), labels, setting.seed)


def draw_cluster_center(rng: np.random.Generator, path: FloatArray) -> FloatArray:
    """Draw a position 15σ from the first level, and away from all components on their whole path."""
    occupied = np.concatenate((*path[::20], path[-1]))
    while True:
        direction = rng.standard_normal(path.shape[2])
        position: FloatArray = path[0].mean(axis=0) + CLUSTER_DISTANCE_SD * direction / np.linalg.norm(direction)
        if np.linalg.norm(occupied - position, axis=1).min() >= MIN_CLUSTER_CLEARANCE_SD:
            return position
