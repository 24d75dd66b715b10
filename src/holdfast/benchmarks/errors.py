"""Drifts of a classifier's error, zeros and ones: how soon a rise is noticed, beside river's own detectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.benchmarks.figure import Figure
from holdfast.extras import optional_import

RISES = ((0.05, 0.2), (0.1, 0.2), (0.2, 0.35), (0.1, 0.9))
CALM, AFTER = 2_000, 2_000  # errors before the rise, and after it
UNSEEN = 1_000  # the first seed: the size of a block was chosen on streams of smaller ones


def drifts_of_errors(quick: bool) -> list[Figure]:
    """Of each rise: how many of the streams it was found in, the median delay, and false alarms before it."""
    with optional_import("this benchmark", "river"):
        from river import drift

        from holdfast.adapters.river import DriftDetector
    detectors: dict[str, Callable[[], Any]] = {
        "DriftDetector": lambda: DriftDetector(direction="up"),
        "ADWIN": drift.ADWIN,
        "DDM": drift.binary.DDM,
    }
    figures = []
    for before, after in RISES:
        for name, make in detectors.items():
            seeds = range(UNSEEN, UNSEEN + (5 if quick else 50))
            outcomes = [followed(make(), errors(before, after, seed)) for seed in seeds]
            delays = [delay for _, delay in outcomes if delay is not None]
            title = f"errors from {before:.0%} to {after:.0%}, {name}"
            figures += [
                Figure(f"{title}: found", 100.0 * len(delays) / len(outcomes), "%"),
                Figure(f"{title}: delay", float(np.median(delays)) if delays else float("nan"), "predictions"),
                Figure(f"{title}: false alarms", 1e4 * sum(n for n, _ in outcomes) / (CALM * len(outcomes)), "in 10^4"),
            ]
    return figures


def errors(before: float, after: float, seed: int) -> list[int]:
    """Zeros and ones, with so many ones before and after the rise."""
    rng = np.random.default_rng(seed)
    drawn = np.concatenate([rng.random(CALM) < before, rng.random(AFTER) < after])
    numbers: list[int] = drawn.astype(int).tolist()
    return numbers


def followed(detector: Any, values: list[int]) -> tuple[int, int | None]:
    """How many drifts were told before the rise, and how long after it the first one was, if any."""
    early = 0
    for row, value in enumerate(values):
        detector.update(value)
        if detector.drift_detected and row >= CALM:
            return early, row - CALM
        early += bool(detector.drift_detected)
    return early, None
