"""The mean squared errors of the paper's synthetic streams, with the paper's settings."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from limpet.datasets import Stream, make_abrupt, make_gradual
from limpet.exceptions import LimpetWarning
from limpet.learners import SEM, SRA, Learner
from limpet.metrics import segment_mse
from limpet_lab.bench._measurement import Figure

TITLE = "medians over 30 seeds, α = 0.99, U = 20, started on the first 10 points"
N_SEEDS = 30
FAILED_START_MSE = 0.1  # an S_eval per coordinate beyond which a component lies where the data have none


def measure(quick: bool) -> list[Figure]:
    """Measure S_bc, S_ac, S_tot for each stream; the share of failed starts; the lock-out on the printed 3-D data."""
    seeds = range(5 if quick else N_SEEDS)
    figures = []
    for make, goals in ((make_abrupt, (0.001, 0.004, 0.003)), (make_gradual, (0.001, 0.002, 0.001))):
        figures += measure_learner(
            "SRA", make, 1, goals, seeds, lambda: SRA(2, gamma=3.0, beta=0.1, M=5.0, norm="mean")
        )
    for make in (make_abrupt, make_gradual):
        figures += measure_learner(
            "SRA", make, 3, (0.035, None, None), seeds, lambda: SRA(2, gamma=7.0, beta=0.5, M=5.0, norm="mean")
        )
    for make in (make_abrupt, make_gradual):  # for scale: the same without a threshold
        figures += measure_learner("SEM", make, 1, (None, None, None), seeds, lambda: SEM(2, rho=0.005))
    return figures


def measure_learner(
    name: str,
    make_stream: Callable[..., Stream],
    dim: int,
    goals: tuple[float | None, float | None, float | None],
    seeds: range,
    make_learner: Callable[[], Learner],
) -> list[Figure]:
    """Measure one learner on one kind of stream."""
    errors, rejected = [], []
    for seed in seeds:
        stream = make_stream(dim=dim, seed=seed)
        model = make_learner()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LimpetWarning)  # the lock-out starves a component: it is shown below
            means = model.process(stream.y, record="means").means
        assert stream.means is not None
        assert isinstance(stream.change_points, list)
        errors.append(segment_mse(means, stream.means, stream.change_points[0]))
        rejected.append(model.n_rejected / model.n_seen)
    table = np.array(errors)
    title = f"{name}, {dim}-D {make_stream.__name__.removeprefix('make_')}"
    figures = [
        Figure(f"{title}: {metric}", float(np.median(table[:, column])), "", goal)
        for column, (metric, goal) in enumerate(zip(("S_bc", "S_ac", "S_tot"), goals, strict=True), start=1)
    ]
    failed = float(np.mean(table[:, 0] > FAILED_START_MSE * dim))
    figures.append(Figure(f"{title}: failed starts", 100 * failed, "% of the seeds"))
    figures.append(Figure(f"{title}: rejected", 100 * float(np.median(rejected)), "% of the points"))
    return figures
