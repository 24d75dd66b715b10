"""The threshold and the step size that minimise the bound of Theorem 2 together."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.tradeoff.constants import Constants
from holdfast.tradeoff.profile import local_minima, profile_step
from holdfast.tradeoff.stationarity import best_step
from holdfast.tradeoff.theorem2 import bound


@dataclass(frozen=True, slots=True)
class Optimum:
    """Where the bound of Theorem 2 is least: see :func:`optimum`."""

    gamma: float
    rho: float
    bound: float
    kind: Literal["interior", "boundary", "infinity"]
    explanation: str


def optimum(constants: Constants) -> Optimum:
    """Minimise the bound of Theorem 2 over every γ (inf too) and every constant ρ that the theorem admits.

    ``kind`` tells where the least value lies:

    - ``"interior"``: both slopes are zero, so that Corollary 1 and :func:`best_step` agree on ρ;
    - ``"boundary"``: ρ is at :func:`admissible_step`. Steps must stay below it, so that ``bound`` is
      approached and not reached;
    - ``"infinity"``: no threshold does better than none, γ is inf and the bound that of Corollary 2 (ρ may be
      at the limit here too). With ``V = 0`` it is so, and ρ is 0.0: the smaller the step, the better.

    The finite candidates come from :func:`~holdfast.tradeoff.profile.local_minima`, and are compared with
    γ = inf. Corollary 1 alone does not find the optimum: it only ties one knob to the other.

    Examples
    --------
    >>> best = optimum(Constants(c1=0.01, L=2000.0, M=5.0, U=20.0, V=1.0, n=10_000))
    >>> best.kind, round(best.gamma, 4), round(best.rho, 7), round(best.bound, 6)
    ('interior', 9.3364, 0.0001639, 0.025873)
    """
    if constants.V == 0.0:
        reason = "With V = 0 there is nothing to learn: the bound is least without threshold and as rho goes to 0."
        return Optimum(math.inf, 0.0, 2.0 * constants.c0, "infinity", reason)
    unbiased = replace(constants, c0=0.0)  # 2 c0 is in every bound and must not blur the comparison
    gamma = min(
        [*local_minima(constants), math.inf],
        key=lambda gamma: bound(gamma, profile_step(gamma, constants), unbiased),
    )
    rho = profile_step(gamma, constants)
    value = bound(gamma, rho, constants)
    is_at_limit = rho < best_step(gamma, constants)
    if math.isinf(gamma):
        step = f"{rho:.4g}, the admissible limit" if is_at_limit else f"{rho:.4g}"
        reason = f"No threshold lowers the bound: use none, with a step of {step}."
        return Optimum(gamma, rho, value, "infinity", reason)
    if is_at_limit:
        reason = f"Larger steps would lower the bound further, but Theorem 2 only admits rho below {rho:.4g}."
        return Optimum(gamma, rho, value, "boundary", reason)
    reason = f"A threshold below {gamma:.4g} cuts off too much of the data, one above lets in too much noise."
    return Optimum(gamma, rho, value, "interior", reason)
