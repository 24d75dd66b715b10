"""The theory of SRA as functions: what a threshold γ and a step size ρ cost, what they gain, which are best.

Everything follows from one inequality, Theorem 2, which :func:`bound` evaluates. The symbols are those of the
paper, and :class:`Constants` explains them; its misprints are mended, and each function says which.
"""

from holdfast.tradeoff.admissible import admissible_gamma, admissible_step
from holdfast.tradeoff.constants import Constants
from holdfast.tradeoff.corollary1 import beta_from, step_size, threshold
from holdfast.tradeoff.corollary3 import gain
from holdfast.tradeoff.minimum import Optimum, optimum
from holdfast.tradeoff.stationarity import best_step, d_bound_d_gamma, d_bound_d_rho
from holdfast.tradeoff.tails import tail
from holdfast.tradeoff.theorem1 import karimi_bound, karimi_step_limit
from holdfast.tradeoff.theorem2 import bound, bound_without_threshold

__all__ = [
    "Constants",
    "Optimum",
    "admissible_gamma",
    "admissible_step",
    "best_step",
    "beta_from",
    "bound",
    "bound_without_threshold",
    "d_bound_d_gamma",
    "d_bound_d_rho",
    "gain",
    "karimi_bound",
    "karimi_step_limit",
    "optimum",
    "step_size",
    "tail",
    "threshold",
]
