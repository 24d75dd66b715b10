"""Model families: statistics, H, M-step, log-density and initialization of each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limpet.models.base import Model
    from limpet.models.mixture import GaussianMixture, PoissonMixture
    from limpet.models.priors import ConjugatePrior
    from limpet.models.regression import LinearRegression, LogisticRegression


__all__ = ["ConjugatePrior", "GaussianMixture", "LinearRegression", "LogisticRegression", "Model", "PoissonMixture"]

_MODULE_BY_NAME = {
    "GaussianMixture": "mixture",
    "LinearRegression": "regression",
    "LogisticRegression": "regression",
    "Model": "base",
    "ConjugatePrior": "priors",
    "PoissonMixture": "mixture",
}


def __getattr__(name: str) -> Any:
    """Import a family when it is first used."""
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'limpet.models' has no attribute {name!r}")
    value = getattr(import_module(f"limpet.models.{_MODULE_BY_NAME[name]}"), name)
    globals()[name] = value
    return value
