"""Constants of the paper's theorems, in one checked and immutable object."""

import math
from dataclasses import dataclass, fields
from typing import Any, Self

from limpet._validation import check_int, check_positive, invalid_param_error
from limpet.tradeoff.corollary1 import beta_from


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of Theorems 1 and 2.

    Notation: V(θ) is the Lyapunov function, h(θ) the mean field, the average of the update H.

    Parameters
    ----------
    c0, c1
        Assumption 1 (a): ``c0 + c1 <∇V, h> >= |h|²``. ``c0`` is a bias no setting removes; for plain
        gradient steps ``c0 = 0`` and ``c1 = 1``.
    d0, d1
        Assumption 1 (b): ``d0 + d1 |h| >= |∇V|``. The paper prints Theorem 2 with ``d1 = 1``.
    L
        Assumption 1 (c): ∇V is L-Lipschitz.
    sigma0, sigma1
        Assumption 2: the noise of H on clean data has a second moment of at most ``sigma0² + sigma1² |h|²``.
    alpha
        Share of clean points; ``1 - alpha`` is the share of outliers.
    U, dim
        Assumption 3: outliers are uniform on ``[-U, U]^dim``.
    M
        Lemma 1: ``P(|H| >= z) <= exp(-z²/M²)``.
    V
        V_{0,n}, the expected decrease of V over the run.
    n
        The run has steps ρ_1 … ρ_{n+1}. Only used for a constant step size.

    Examples
    --------
    >>> constants = Constants.from_beta(beta=0.1, M=5.0, alpha=0.99, U=20.0)
    >>> round(constants.L, 6), round(constants.beta, 6), constants.outlier_radius
    (2000.0, 0.1, 20.0)
    """

    c0: float = 0.0
    c1: float = 1.0
    d0: float = 1.0
    d1: float = 1.0
    L: float = 1.0
    sigma0: float = 1.0
    sigma1: float = 1.0
    alpha: float = 0.99
    U: float = 20.0
    dim: int = 1
    M: float = 5.0
    V: float = 1.0
    n: int = 10_000

    def __post_init__(self) -> None:
        for name in ("c1", "d1", "L", "U", "M"):
            check_positive(name, getattr(self, name))
        for name in ("c0", "d0", "sigma0", "sigma1", "V"):
            check_positive(name, getattr(self, name), allow_zero=True)
        check_positive("alpha", self.alpha, allow_zero=True, maximum=1.0)
        for name in ("dim", "n"):
            check_int(name, getattr(self, name), 1)

    @classmethod
    def from_beta(cls, beta: float, M: float, alpha: float = 0.99, **other_fields: Any) -> Self:
        """Return constants for which β of Corollary 1 is ``beta``, by the choice of L.

        ``other_fields`` are any further fields except ``L``.

        Examples
        --------
        >>> round(Constants.from_beta(0.5, 10.0, alpha=0.9, d1=2.0).L, 12)
        60.0
        """
        allowed = {field.name for field in fields(cls)} - {"L", "M", "alpha"}
        unknown = sorted(other_fields.keys() - allowed)
        if unknown:
            raise invalid_param_error("other_fields", f"must be among {sorted(allowed)}", unknown)
        check_positive("beta", beta)
        if not check_positive("alpha", alpha, allow_zero=True, maximum=1.0) < 1.0:
            raise invalid_param_error("alpha", "must be below 1", alpha, "Without outliers beta is infinite.")
        unscaled = cls(M=M, alpha=alpha, **other_fields)
        return cls(L=(unscaled.d0 + unscaled.d1) / (beta * (1.0 - alpha)), M=M, alpha=alpha, **other_fields)

    @property
    def beta(self) -> float:
        """Return β of Corollary 1, ``(d0 + d1) / (L (1 - alpha))``."""
        return math.inf if self.alpha == 1.0 else beta_from(self.d0, self.L, self.alpha, self.d1)

    @property
    def outlier_radius(self) -> float:
        """Return ``sqrt(dim) U``, the largest outlier."""
        return math.sqrt(self.dim) * self.U
