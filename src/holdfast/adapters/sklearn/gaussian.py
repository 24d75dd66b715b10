"""The density of a Gaussian mixture at rows of which some coordinates may be missing."""

from __future__ import annotations

import math

import numpy as np

from holdfast.scheme.state import Vector


def log_densities(rows: Vector, weights: Vector, means: Vector, covariances: Vector) -> Vector:
    """(n, K): log w_k + log N(x; μ_k, Σ_k) over the coordinates that are there; log w_k where none is.

    >>> one = np.ones(1), np.zeros((1, 2)), np.eye(2)[None]
    >>> log_densities(np.array([[0.0, 0.0], [0.0, np.nan]]), *one).round(4)
    array([[-1.8379],
           [-0.9189]])
    """
    result = np.tile(np.log(weights), (len(rows), 1))
    present = ~np.isnan(rows)
    for pattern in np.unique(present, axis=0):
        if not pattern.any():
            continue
        has_pattern = (present == pattern).all(axis=1)
        for k, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
            factor = np.linalg.cholesky(covariance[np.ix_(pattern, pattern)])
            whitened = np.linalg.solve(factor, (rows[has_pattern][:, pattern] - mean[pattern]).T)
            log_normalizer = np.log(np.diag(factor)).sum() + 0.5 * pattern.sum() * math.log(2.0 * math.pi)
            result[has_pattern, k] -= 0.5 * (whitened * whitened).sum(axis=0) + log_normalizer
    return result


def log_sum_exp(logs: Vector) -> Vector:
    """log Σ_k exp of each row."""
    max_logs = logs.max(axis=1, keepdims=True)
    result: Vector = (max_logs + np.log(np.exp(logs - max_logs).sum(axis=1, keepdims=True)))[:, 0]
    return result
