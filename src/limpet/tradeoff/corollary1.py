"""Corollary 1: the step size for a threshold, and the threshold for a step size."""

from limpet._validation import check_positive, invalid_param_error
from limpet.tradeoff._numeric import TAIL_CUTOFF_M, Gamma, bisect_first_true, check_gamma, exceedance_bound, match_form


def step_size(gamma: Gamma, beta: float, M: float) -> Gamma:
    """Return the step size of Corollary 1, ``ρ = β exp(-γ²/M²) / (2γ)``.

    It solves ``∂b/∂γ = 0`` for ρ, where b is the bound of Theorem 2 and γ < √d·U. The paper states that this ρ
    minimizes the bound; it does not (:func:`best_step` does). The converse is exact: γ is the best threshold below
    √d·U for this ρ, because b is convex in γ there. The derivation in the paper's appendix has a spurious factor c1
    in ρ; the statement of the corollary is correct.

    Parameters
    ----------
    gamma
        Threshold, a finite number above 0 or an array of them.
    beta
        ``(d0 + d1) / (L (1 - α))``, see :func:`beta_from`.
    M
        Scale of the tail of ``|H|``.

    Examples
    --------
    >>> round(step_size(3.0, beta=0.1, M=5.0), 5)
    0.01163
    """
    beta, values = check_positive("beta", beta), check_gamma(gamma, require_finite=True)
    return match_form(gamma, beta * exceedance_bound(values, M) / (2.0 * values))


def threshold(rho: float, beta: float, M: float) -> float:
    """Return the threshold γ whose :func:`step_size` is ``rho``, by bisection.

    If it is below √d·U, it minimizes the bound of Theorem 2 over these γ for the given ρ.

    Examples
    --------
    >>> round(threshold(step_size(3.0, beta=0.1, M=5.0), beta=0.1, M=5.0), 12)
    3.0
    """
    rho, beta, M = check_positive("rho", rho), check_positive("beta", beta), check_positive("M", M)
    high = min(beta / (2.0 * rho), TAIL_CUTOFF_M * M)
    return bisect_first_true(lambda gamma: step_size(gamma, beta, M) <= rho, 0.0, high)


def beta_from(d0: float, L: float, alpha: float, d1: float = 1.0) -> float:
    """Return β of Corollary 1, ``(d0 + d1) / (L (1 - α))``.

    The paper prints ``d0 + 1``, which is this with ``d1 = 1``; its proof of Theorem 2 gives ``d0 + d1``.

    Examples
    --------
    >>> round(beta_from(d0=1.0, L=2000.0, alpha=0.99), 12)
    0.1
    """
    d0, d1, L = check_positive("d0", d0, allow_zero=True), check_positive("d1", d1), check_positive("L", L)
    if not check_positive("alpha", alpha, allow_zero=True, maximum=1.0) < 1.0:
        raise invalid_param_error("alpha", "must be below 1", alpha, "Without outliers beta is infinite.")
    return (d0 + d1) / (L * (1.0 - alpha))
