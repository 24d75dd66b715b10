"""What can be learnt, one family per file: its statistics, H, M-step, log-density and initialisation."""

from holdfast.models.base import Model
from holdfast.models.gaussian_mixture import GaussianMixture
from holdfast.models.linear_regression import LinearRegression
from holdfast.models.logistic_regression import LogisticRegression
from holdfast.models.penalty import Penalty
from holdfast.models.poisson_mixture import PoissonMixture

__all__ = [
    "GaussianMixture",
    "LinearRegression",
    "LogisticRegression",
    "Model",
    "Penalty",
    "PoissonMixture",
]
