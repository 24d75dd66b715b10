"""iEM: the incremental EM algorithm."""

from __future__ import annotations

from holdfast.learners.stochastic_approximation import StochasticApproximation
from holdfast.models.gaussian_mixture import GaussianMixture
from holdfast.models.penalty import ConjugatePrior
from holdfast.scheme.step_sizes import InverseTime


class IEM(StochasticApproximation):
    """The incremental EM algorithm [1]_ on a stream: SDEM with r = 1/t, so that every point weighs the same.

    n_components: K. alpha: SDEM's smoothing, which fades as 1/t does.
    covariance: "full" or "diagonal". penalty: a prior for the M-step.

    >>> import numpy as np
    >>> model = IEM(1)
    >>> _ = model.process(np.random.default_rng(0).normal(3.0, 1.0, 5000))
    >>> model.means.round(1)
    array([[3.]])

    .. [1] Neal, R. and Hinton, G. (1999). A view of the EM algorithm that justifies incremental, sparse, and other
       variants. In Learning in Graphical Models, MIT Press.
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        alpha: float = 1.0,
        covariance: str = "full",
        penalty: ConjugatePrior | None = None,
        n_init: int = 10,
        seed: int = 0,
        on_invalid: str = "skip",
    ) -> None:
        self.n_components, self.alpha = n_components, alpha
        self.covariance, self.penalty = covariance, penalty
        model = GaussianMixture(n_components, penalty, alpha, covariance)
        super().__init__(model, InverseTime(), n_init=n_init, seed=seed, on_invalid=on_invalid)
