"""Streams of pairs (x, y) whose truth is known: targets are corrupted, and half-way the coefficients change.

Features have different units, as real ones do. What a row draws depends on the seed and the row alone: one
generator for each purpose, so that a share of corrupted targets changes no other row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray

FEATURE_UNITS = np.array([0.001, 0.1, 1.0, 50.0, 1000.0])
FEATURE_OFFSETS = np.array([0.0, 3.0, -2.0, 200.0, 5000.0])
SIGNAL_SD = 5.0  # standard deviations of the noise: how far a linear truth swings
LOGIT_SD = 3.0  # standard deviation of a true logit
TARGET_LEVEL = 10.0
CORRUPTED_SHARE = 0.05


@dataclass(frozen=True)
class PairKind:
    """A kind of stream of pairs.

    share: of targets that are corrupted. drift: by how much the coefficients change, as the standard deviation of the
    effect on the truth. jump: by how much the intercept changes. gradual: over a twentieth of the rows, not at once.
    at_random: labels are flipped anywhere, not only where they are sure. burst: so many numbers in a row, from the
    middle on, are all corrupted, each `by` so much too high.
    """

    name: str
    share: float = CORRUPTED_SHARE
    drift: float = 5.0
    jump: float = 0.0
    gradual: bool = False
    at_random: bool = False
    burst_rows: int = 0
    burst_size: float = 0.0


@dataclass(frozen=True)
class Pairs:
    """The rows of a stream, with their truth.

    y: what a learner is given. truth: E[y | x] without the corruption; for labels the probability of 1. clean: the
    target or label as it was before the corruption. change: the first row of the new regime. ramp: rows until it is all
    new; 0 if that is at once.
    """

    X: FloatArray
    y: FloatArray
    truth: FloatArray
    clean: FloatArray
    corrupted: npt.NDArray[np.bool_]
    change: int
    ramp: int


def make_linear_pairs(kind: PairKind, seed: int, n: int = 20_000) -> Pairs:
    """Draw a linear truth with noise of sd 1; half of the corrupted targets lie 10 to 30 too high, half ±100.

    >>> pairs = make_linear_pairs(PairKind("abrupt"), seed=0, n=1000)
    >>> pairs.X.shape, pairs.change, int(pairs.corrupted.sum())
    ((1000, 5), 500, 42)
    """
    feature_rng, noise_rng, corruption_rng, error_kind_rng, error_size_rng = np.random.default_rng(seed).spawn(5)
    Z, progress = _draw_features(feature_rng, n), _compute_progress(kind, n)
    before, drift = _draw_coefficients(seed, SIGNAL_SD), _draw_coefficients(seed + 10**6, kind.drift)
    truth = TARGET_LEVEL + (Z * before).sum(axis=1) + progress * (kind.jump + (Z * drift).sum(axis=1))
    clean = truth + noise_rng.standard_normal(n)
    corrupted = corruption_rng.random(n) < kind.share
    error_sizes = error_size_rng.random(n)
    error = np.where(error_kind_rng.random(n) < 0.5, 10.0 + 20.0 * error_sizes, 200.0 * error_sizes - 100.0)
    burst = slice(n // 2, n // 2 + kind.burst_rows)
    corrupted[burst], error[burst] = True, kind.burst_size
    return Pairs(
        FEATURE_OFFSETS + FEATURE_UNITS * Z,
        np.where(corrupted, truth + error, clean),
        truth,
        clean,
        corrupted,
        n // 2,
        _count_ramp_rows(kind, n),
    )


def make_logistic_pairs(kind: PairKind, seed: int, n: int = 20_000) -> Pairs:
    """Draw labels with a true logit of sd 3; corrupted ones are flipped, unless at random only where they were sure.

    Sure is the half of the labels with the larger logits, so that twice the share is flipped there.

    >>> pairs = make_logistic_pairs(PairKind("sure"), seed=0, n=1000)
    >>> bool((pairs.y[pairs.corrupted] != pairs.clean[pairs.corrupted]).all()), set(pairs.y.tolist()) == {0.0, 1.0}
    (True, True)
    """
    feature_rng, label_rng, corruption_rng = np.random.default_rng(seed).spawn(3)
    Z, progress = _draw_features(feature_rng, n), _compute_progress(kind, n)
    before, after = _draw_coefficients(seed, LOGIT_SD), _draw_coefficients(seed + 10**6, LOGIT_SD)
    logit = (Z * (before + progress[:, None] * (after - before))).sum(axis=1) + progress * kind.jump
    truth = 1.0 / (1.0 + np.exp(-logit))
    clean = (label_rng.random(n) < truth).astype(np.float64)
    share = kind.share if kind.at_random else 2.0 * kind.share * (np.abs(logit) > np.median(np.abs(logit)))
    corrupted = corruption_rng.random(n) < share
    return Pairs(
        FEATURE_OFFSETS + FEATURE_UNITS * Z,
        np.where(corrupted, 1.0 - clean, clean),
        truth,
        clean,
        corrupted,
        n // 2,
        _count_ramp_rows(kind, n),
    )


def _draw_features(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.standard_normal((n, len(FEATURE_UNITS)))


def _draw_coefficients(seed: int, size: float) -> FloatArray:
    """Return a direction for each seed, in standard units."""
    drawn = np.random.default_rng([seed, 7]).standard_normal(len(FEATURE_UNITS))
    return np.asarray(drawn * size / np.linalg.norm(drawn))


def _compute_progress(kind: PairKind, n: int) -> FloatArray:
    """Compute the share of the change that has happened, 0 to 1."""
    steps = np.arange(n) - n // 2 + 1.0
    return np.clip(steps / max(_count_ramp_rows(kind, n), 1), 0.0, 1.0)


def _count_ramp_rows(kind: PairKind, n: int) -> int:
    return n // 20 if kind.gradual else 0
