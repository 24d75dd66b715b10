"""What a learner has learnt, as attributes; which of them there are depends on the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from holdfast.scheme.state import Vector


class EstimatesMixin(ABC):
    """Mixtures have weights, means and covariances; regressions have coef and intercept."""

    @property
    def weights(self) -> Vector:
        """(K,): the weights of a mixture, which sum to 1."""
        return self._estimate("weights")  # type: ignore[no-any-return]

    @property
    def means(self) -> Vector:
        """(K, d): the means of a mixture."""
        return self._estimate("means")  # type: ignore[no-any-return]

    @property
    def covariances(self) -> Vector:
        """(K, d, d): the covariances of a mixture, always positive definite."""
        return self._estimate("covariances")  # type: ignore[no-any-return]

    @property
    def coef(self) -> Vector:
        """(p,): the coefficients of a regression."""
        return self._estimate("coef")  # type: ignore[no-any-return]

    @property
    def intercept(self) -> float:
        """The intercept of a regression."""
        return self._estimate("intercept")  # type: ignore[no-any-return]

    @abstractmethod
    def _estimate(self, name: str) -> Any:
        """The estimate of this name; AttributeError if the model has no such thing."""
