"""Online, incremental and sequentially discounting EM, with their own parameters."""

from __future__ import annotations

from limpet.core.step_sizes import Constant, InverseTime
from limpet.learners.stochastic_approximation import StochasticApproximation
from limpet.models.mixture import GaussianMixture
from limpet.models.priors import ConjugatePrior


class SEM(StochasticApproximation):
    """Online EM [1]_, constant step, no threshold: follows changes and outliers.

    Parameters
    ----------
    n_components : int
        K, the number of Gaussians.
    rho : float
        The step size.
    covariance : {"full", "diagonal"}
        Form of the covariance matrices.
    penalty : ConjugatePrior, optional
        A prior for the M-step.
    n_init, seed, on_invalid
        See `SRA`.

    References
    ----------
    .. [1] Cappé, O. and Moulines, E. (2009). On-line expectation-maximization algorithm for latent data models.
       Journal of the Royal Statistical Society B 71(3).

    Examples
    --------
    >>> import numpy as np
    >>> learner = SEM(1, rho=0.05)
    >>> _ = learner.process(np.random.default_rng(0).normal(3.0, 1.0, 500))
    >>> learner.means.round(0)
    array([[3.]])
    """

    mutable_params = ("rho", "on_invalid")

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


class IEM(StochasticApproximation):
    """Incremental EM [1]_ on a stream: SDEM with r = 1/t, equal weights of points.

    Parameters
    ----------
    n_components : int
        K, the number of Gaussians.
    alpha : float
        The smoothing of SDEM, which fades as 1/t does.
    covariance : {"full", "diagonal"}
        Form of the covariance matrices.
    penalty : ConjugatePrior, optional
        A prior for the M-step.
    n_init, seed, on_invalid
        See `SRA`.

    References
    ----------
    .. [1] Neal, R. and Hinton, G. (1999). A view of the EM algorithm that justifies incremental, sparse, and other
       variants. In Learning in Graphical Models, MIT Press.

    Examples
    --------
    >>> import numpy as np
    >>> learner = IEM(1)
    >>> _ = learner.process(np.random.default_rng(0).normal(3.0, 1.0, 5000))
    >>> learner.means.round(1)
    array([[3.]])
    """

    mutable_params = ("on_invalid",)

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
        self.n_components, self.alpha, self.covariance, self.penalty = n_components, alpha, covariance, penalty
        model = GaussianMixture(n_components, penalty, alpha, covariance)
        super().__init__(model, InverseTime(), n_init=n_init, seed=seed, on_invalid=on_invalid)


class SDEM(StochasticApproximation):
    """Sequentially discounting EM [1]_: constant step r, smoothed responsibilities.

    Parameters
    ----------
    n_components : int
        K, the number of Gaussians.
    r : float
        The discounting parameter, which is the step size.
    alpha : float
        The smoothing of responsibilities p, to (1 − αr)·p + αr/K.
    covariance : {"full", "diagonal"}
        Form of the covariance matrices.
    penalty : ConjugatePrior, optional
        A prior for the M-step.
    n_init, seed, on_invalid
        See `SRA`.

    References
    ----------
    .. [1] Yamanishi, K., Takeuchi, J., Williams, G. and Milne, P. (2004). On-line unsupervised outlier detection using
       finite mixtures with discounting learning algorithms. Data Mining and Knowledge Discovery 8(3).

    Examples
    --------
    >>> import numpy as np
    >>> learner = SDEM(1, r=0.02)
    >>> _ = learner.process(np.random.default_rng(0).normal(3.0, 1.0, 500))
    >>> learner.means.round(0)
    array([[3.]])
    """

    mutable_params = ("r", "on_invalid")

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
