"""The two learners of the benchmarks, and a stream for them."""

from collections.abc import Callable

import numpy as np

import limpet as lp

LEARNERS: dict[str, Callable[[], lp.SRA | lp.Detector]] = {
    "SRA": lambda: lp.SRA(gamma=3.0, rho=0.01),
    "Detector": lp.Detector,
}


def stream(n: int, seed: int = 0) -> np.ndarray:
    """Return n points of one variable, 1 % of them outliers."""
    rng = np.random.default_rng(seed)
    points = rng.normal(20.0, 0.5, n)
    points[rng.random(n) < 0.01] += 30.0
    return points
