"""sEM: the stochastic EM algorithm."""

from __future__ import annotations

from holdfast.learners.stochastic_approximation import StochasticApproximation
from holdfast.models.gaussian_mixture import GaussianMixture
from holdfast.models.penalty import ConjugatePrior
from holdfast.scheme.step_sizes import Constant


class SEM(StochasticApproximation):
    """The online EM algorithm [1]_ with a constant step and no threshold: follows every change, and every outlier.

    n_components: K. rho: the step size. covariance: "full" or "diagonal". penalty: a prior for the M-step.

    >>> import numpy as np
    >>> model = SEM(1, rho=0.05)
    >>> _ = model.process(np.random.default_rng(0).normal(3.0, 1.0, 500))
    >>> model.means.round(0)
    array([[3.]])

    .. [1] Cappé, O. and Moulines, E. (2009). On-line expectation-maximization algorithm for latent data models.
       Journal of the Royal Statistical Society B 71(3).
    """

    def __init__(
        self,
        n_components: int = 1,
        rho: float = 0.01,
        *,
        covariance: str = "full",
        penalty: ConjugatePrior | None = None,
        n_init: int = 10,
        seed: int = 0,
        on_invalid: str = "skip",
    ) -> None:
        self.n_components, self.rho, self.covariance, self.penalty = n_components, rho, covariance, penalty
        model = GaussianMixture(n_components, penalty, covariance=covariance)
        super().__init__(model, Constant(rho), n_init=n_init, seed=seed, on_invalid=on_invalid)

    @property
    def mutable_params(self) -> tuple[str, ...]:
        """The step size is none of the state's."""
        return ("rho", "on_invalid")
