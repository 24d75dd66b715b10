"""Reimplementation of SGDRegressor and SGDClassifier for row-by-row learning.

scikit-learn's `partial_fit` with one row takes a good part of a millisecond, nearly all of it checks, which is too long
to try settings on many streams. `follow_sklearn` runs the library itself; benchmark and test hold the two together.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from limpet._jit.compile import jit_entry_point
from limpet._validation import FloatArray

HUBER_LOSS, LOG_LOSS, MODIFIED_HUBER_LOSS = range(3)
LOSS_CODES = {"huber": HUBER_LOSS, "log_loss": LOG_LOSS, "modified_huber": MODIFIED_HUBER_LOSS}
CONSTANT_RATE, INVERSE_RATE, OPTIMAL_RATE = range(3)
RATE_CODES = {"constant": CONSTANT_RATE, "invscaling": INVERSE_RATE, "optimal": OPTIMAL_RATE}


def compute_decisions(model: Any, Z: FloatArray, y: FloatArray) -> FloatArray:
    """Return the predictions of an SGDRegressor or SGDClassifier for each row, before it learns the row."""
    loss, rate = LOSS_CODES[model.loss], RATE_CODES[model.learning_rate]
    target = y if loss == HUBER_LOSS else np.where(y > 0.5, 1.0, -1.0)
    decisions = np.empty(len(y))
    power = getattr(model, "power_t", 0.0)
    _descend(np.ascontiguousarray(Z), target, loss, rate, model.eta0, power, model.alpha, model.epsilon, decisions)
    return decisions


def follow_sklearn(model: Any, Z: FloatArray, y: FloatArray) -> FloatArray:
    """Return the same by the library: `partial_fit` a row at a time, predicted from its coefficients."""
    from sklearn import config_context

    labels = model.loss != "huber"
    first = {"classes": np.array([0.0, 1.0])} if labels else {}
    decisions = np.zeros(len(y))
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for row, x in enumerate(Z):
            if row:
                decisions[row] = model.coef_.ravel() @ x + model.intercept_[0]
            model.partial_fit(x[None], y[row : row + 1], **first)
    return decisions


def compute_probabilities(decisions: FloatArray, loss: str) -> FloatArray:
    """Return the probabilities of label 1, as `predict_proba` has them for this loss.

    >>> compute_probabilities(np.array([-2.0, 0.0, 0.5]), "modified_huber")
    array([0.  , 0.5 , 0.75])
    """
    if loss == "modified_huber":
        return np.asarray((np.clip(decisions, -1.0, 1.0) + 1.0) / 2.0)
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(decisions, -700.0, 700.0))))


def _descend_loop(
    Z: Any, y: Any, loss: int, rate: int, eta0: float, power: float, alpha: float, epsilon: float, decisions: Any
) -> None:
    p = Z.shape[1]
    intercept, offset = 0.0, 0.0
    weights = np.zeros(p)
    if rate == OPTIMAL_RATE:  # Bottou's start: the first step is as large as a weight may be
        offset = 1.0 / (math.sqrt(1.0 / math.sqrt(alpha)) * alpha)
    for t in range(len(y)):
        decision = intercept
        for i in range(p):
            decision += weights[i] * Z[t, i]
        decisions[t] = decision
        eta = eta0
        if rate == INVERSE_RATE:
            eta = eta0 / (t + 1.0) ** power
        elif rate == OPTIMAL_RATE:
            eta = 1.0 / (alpha * (offset + t))
        if loss == HUBER_LOSS:
            slope = min(max(decision - y[t], -epsilon), epsilon)
        else:
            margin = decision * y[t]
            if loss == LOG_LOSS:
                slope = -y[t] / (1.0 + math.exp(min(margin, 700.0)))
            elif margin >= 1.0:
                slope = 0.0
            else:
                slope = -2.0 * y[t] * (1.0 - margin) if margin >= -1.0 else -4.0 * y[t]
        shrink = max(0.0, 1.0 - eta * alpha)
        for i in range(p):
            weights[i] = shrink * weights[i] - eta * slope * Z[t, i]
        intercept -= eta * slope


_descend = jit_entry_point(_descend_loop, allocates=True)
