"""Theory of SRA as functions: cost and gain of a threshold and a step size.

All follows from one inequality, Theorem 2, which :func:`bound` evaluates. The symbols are those of the paper;
:class:`Constants` explains them. Misprints of the paper are corrected and noted at each function.
"""

from limpet.tradeoff._numeric import tail
from limpet.tradeoff.constants import Constants
from limpet.tradeoff.corollary1 import beta_from, step_size, threshold
from limpet.tradeoff.optimum import Optimum, best_step, d_bound_d_gamma, d_bound_d_rho, optimum
from limpet.tradeoff.theorem1 import karimi_bound, karimi_step_limit
from limpet.tradeoff.theorem2 import admissible_gamma, admissible_step, bound, bound_without_threshold, gain

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
