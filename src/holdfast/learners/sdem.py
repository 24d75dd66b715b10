"""SDEM: sequentially discounting EM."""

from __future__ import annotations

from holdfast.learners.stochastic_approximation import StochasticApproximation
from holdfast.models.gaussian_mixture import GaussianMixture
from holdfast.models.penalty import ConjugatePrior
from holdfast.scheme.step_sizes import Constant


class SDEM(StochasticApproximation):
    """The sequentially discounting EM algorithm [1]_: discount r, responsibilities smoothed to (1 − αr)·γ + αr/K.

    n_components: K. r: the discounting parameter. alpha: the smoothing.
    covariance: "full" or "diagonal". penalty: a prior for the M-step.

    >>> import numpy as np
    >>> model = SDEM(1, r=0.02)
    >>> _ = model.process(np.random.default_rng(0).normal(3.0, 1.0, 500))
    >>> model.means.round(0)
    array([[3.]])

    .. [1] Yamanishi, K., Takeuchi, J., Williams, G. and Milne, P. (2004). On-line unsupervised outlier detection using
       finite mixtures with discounting learning algorithms. Data Mining and Knowledge Discovery 8(3).
    """

    def __init__(
        self,
        n_components: int = 1,
        r: float = 0.01,
        alpha: float = 1.0,
        *,
        covariance: str = "full",
        penalty: ConjugatePrior | None = None,
        n_init: int = 10,
        seed: int = 0,
        on_invalid: str = "skip",
    ) -> None:
        self.n_components, self.r, self.alpha = n_components, r, alpha
        self.covariance, self.penalty = covariance, penalty
        model = GaussianMixture(n_components, penalty, alpha, covariance)
        super().__init__(model, Constant(r), n_init=n_init, seed=seed, on_invalid=on_invalid)
