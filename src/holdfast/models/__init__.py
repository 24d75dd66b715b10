"""What can be learnt, one family per file: its statistics, H, M-step, log-density and initialisation."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.models.base import Model
    from holdfast.models.gaussian_mixture import GaussianMixture
    from holdfast.models.linear_regression import LinearRegression
    from holdfast.models.logistic_regression import LogisticRegression
    from holdfast.models.penalty import ConjugatePrior
    from holdfast.models.poisson_mixture import PoissonMixture

__all__ = [
    "ConjugatePrior",
    "GaussianMixture",
    "LinearRegression",
    "LogisticRegression",
    "Model",
    "PoissonMixture",
]

_MODULE_BY_NAME = {
    "GaussianMixture": "gaussian_mixture",
    "LinearRegression": "linear_regression",
    "LogisticRegression": "logistic_regression",
    "Model": "base",
    "ConjugatePrior": "penalty",
    "PoissonMixture": "poisson_mixture",
}


def __getattr__(name: str) -> Any:
    """Imports a family when it is first used."""
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'holdfast.models' has no attribute {name!r}")
    value = getattr(import_module(f"holdfast.models.{_MODULE_BY_NAME[name]}"), name)
    globals()[name] = value
    return value
