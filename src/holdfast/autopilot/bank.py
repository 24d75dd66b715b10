"""The bank: the same mixture learnt with several step sizes at once, each trusted as far as it predicts.

A point is rejected if experts that hold most of the trust reject it; then nothing is learnt. Otherwise the trust in
each expert grows with the likelihood it gave the point (Bayes' rule, the ratio limited), a small share of it is
handed round so that none is ever forgotten (Herbster and Warmuth's fixed share), and all experts learn: the slow ones
give a quiet estimate in calm, the quick ones take over after a change. When a quick expert has been predicting better
than the slowest for long, the slow ones take over what it has learnt and begin to average anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.autopilot.rescue import CONTAMINATION
from holdfast.autopilot.sizes import Sizes
from holdfast.models.component import Component
from holdfast.models.gaussian_full import SMALLEST_VARIANCE
from holdfast.models.mixture import MixtureFunctions
from holdfast.scheme.abreast import gathered, lanes_at, put_lanes
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import at_least, exp, log, step_of
from holdfast.scheme.lanes import LANES
from holdfast.scheme.state import Layout, Vector

SLOW = 0  # the slowest expert, whose likelihood and that of a quick one tell of a small shift
LIMIT = 4.0  # nats by which a single point can tell two experts apart
SHARE = 0.002  # of the trust, handed round at every point
LEAD = 16.0  # nats by which the quick one has to be ahead of the slow one …
STRIDE = 2.0  # … in strides of at most this
REVIEW, LOST = 64.0, 0.01  # points between two looks at who has lost all trust, and what is left of it then
FRESH = 16.0  # points that an expert which takes over another's estimate goes by
LONG = 2.0**22  # points: in 32 bits one is still added to twice as many

USUAL_TAIL = 2.0  # M² of a Gaussian: P(|H| > z) = exp(−z²/M²)
TAILS_STEP = 0.001

FIELDS = ("experts", "counts", "trust", "lead", "tail")

# What the bank is told, in `settings`: γ²; β if the step is tied to γ by Corollary 1 (else 0); γ² for where outliers
# are common: a mixture with a wide gate takes some of them in, gets wider, and takes in more.
GAMMA_SQUARED, BETA, STRICT_SQUARED, SETTINGS = 0, 1, 2, 3
COMMON = 0.04  # share of rejected points


def bank_fields(mixture: MixtureFunctions, sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """What the bank keeps."""
    n = len(sizes.steps)
    return {
        "experts": (n, mixture.layout.size),
        "counts": (n,),
        "trust": (n,),
        "lead": (1,),
        "tail": (1,),
    }


@dataclass(frozen=True, eq=False)
class Bank:
    """The compiled functions of a bank; `work` is its own area."""

    work_size: int

    rejects: Callable[..., Any]
    """(theta, point, settings, work, missing) → (whether γ rejects the point, its squared distance by trust).

    Leaves in `work` what `learn` needs."""

    learn: Callable[..., Any]
    """(theta, point, settings, work, missing) → whether the slow experts have just taken over from the quick one:
    shares out trust, and moves every expert."""

    means: Callable[..., Any]
    """(theta, out): the means of the statistics averaged over the experts by their trust."""

    best_of: Callable[..., Any]
    """(theta) → the expert that is trusted most."""

    frame: Callable[..., Any]
    """(theta, i, work) → centre and spread of coordinate i, by the expert that is trusted most."""


def bank_functions(
    component: Component, mixture: MixtureFunctions, layout: Layout, K: int, d: int, sizes: Sizes
) -> Bank:
    """A bank of this (bare) mixture of such components, whose fields lie in theta as `layout` says."""
    steps, n_experts, quick, short = sizes.steps, len(sizes.steps), sizes.quick, sizes.short
    expert_size, area = mixture.layout.size, mixture.work_size
    experts, counts, trust, lead, tail = (layout.at(name) for name in FIELDS)
    weigh, advance, whitened, log_share = mixture.weigh, mixture.advance, mixture.norms["whitened"], mixture.log_share
    weights, components = mixture.layout.at("weights"), mixture.layout.at("components")
    size, spread_of = mixture.layout.fields["components"][1], component.spread
    contamination = layout.at("rescue") + CONTAMINATION
    losses = n_experts * area  # one an expert, as many as there are lanes; some are of nobody
    gains = losses + LANES
    assert n_experts <= LANES

    @kernel
    def rejects(theta: Vector, point: Vector, settings: Vector, work: Vector, missing: bool) -> tuple[bool, float]:
        gamma_squared = settings[STRICT_SQUARED if theta[contamination] > COMMON else GAMMA_SQUARED]
        against, distance = 0.0, 0.0
        for e in range(n_experts):
            own, scratch = theta[experts + e * expert_size :], work[e * area :]
            work[losses + e], work[gains + e] = weigh(own, point, settings, scratch, missing)
            q = whitened(own, point, settings, scratch, missing)
            distance += theta[trust + e] * q
            against += theta[trust + e] if q > gamma_squared else 0.0
        put_lanes(work, losses, gathered(work, losses) - log_share * log(gathered(work, gains)))
        seen = distance if distance < gamma_squared else gamma_squared
        theta[tail] += TAILS_STEP * (seen * (2.0 / d) - theta[tail])
        return against > 0.5, distance

    @kernel
    def best_of(theta: Vector) -> int:
        """The expert that is trusted most."""
        best = 0
        for e in range(1, n_experts):
            best = e if theta[trust + e] > theta[trust + best] else best
        return best

    @kernel
    def copy(theta: Vector, source: int, target: int) -> None:
        for i in range(expert_size):
            theta[experts + target * expert_size + i] = theta[experts + source * expert_size + i]

    @kernel
    def renew(theta: Vector) -> None:
        """Experts that have lost all trust begin again with the estimate of the one that is trusted most: a quick
        mixture left to itself sooner or later has a component on a handful of points."""
        best = best_of(theta)
        for e in range(n_experts):
            if theta[trust + e] < LOST:
                copy(theta, best, e)

    @kernel
    def tied_step(theta: Vector, settings: Vector) -> float:
        """ρ = β·exp(−γ²/M²)/(2γ), in standard deviations, with the M that the stream shows."""
        rho = settings[BETA] * exp(-settings[GAMMA_SQUARED] / theta[tail]) / (2.0 * math.sqrt(settings[GAMMA_SQUARED]))
        return rho if rho < 1.0 else 1.0

    @kernel
    def learn(theta: Vector, point: Vector, settings: Vector, work: Vector, missing: bool) -> bool:
        least = work[losses]
        for e in range(1, n_experts):
            least = work[losses + e] if work[losses + e] < least else least
        put_lanes(work, gains, exp(at_least(least - lanes_at(work, losses), -LIMIT)))
        total = 0.0
        for e in range(n_experts):
            theta[trust + e] *= work[gains + e]
            total += theta[trust + e]
        scaling = (1.0 - SHARE) / total
        for e in range(n_experts):
            theta[trust + e] = theta[trust + e] * scaling + SHARE / n_experts
            n = theta[counts + e] + 1.0
            theta[counts + e] = n - LONG if short and n >= 2.0 * LONG else n
            least_step = tied_step(theta, settings) if settings[BETA] > 0.0 else steps[e]
            rho = step_of(theta[counts + e], least_step)
            advance(theta[experts + e * expert_size :], point, settings, work[e * area :], rho, missing)
        reviews = theta[counts + SLOW] * (1.0 / REVIEW)
        if reviews == math.floor(reviews):  # whole: a remainder of floats would be a call of the C library
            renew(theta)
        ahead = work[losses + SLOW] - work[losses + quick]
        ahead = STRIDE if ahead > STRIDE else at_least(ahead, -STRIDE)
        theta[lead] = at_least(theta[lead] + ahead, 0.0)
        if theta[lead] <= LEAD:
            return False
        theta[lead] = 0.0
        for e in range(quick):
            copy(theta, quick, e)
            theta[counts + e] = FRESH
        return True

    @kernel
    def means(theta: Vector, out: Vector) -> None:
        """All in 64 bits, which the ones see to: the same from compiled code and from Python."""
        for k in range(K):
            mass = 0.0
            for e in range(n_experts):
                mass += 1.0 * theta[trust + e] * theta[experts + e * expert_size + weights + k]
            for i in range(d):
                mean = 0.0
                for e in range(n_experts):
                    own = experts + e * expert_size
                    share = 1.0 * theta[trust + e] * theta[own + weights + k]
                    mean += share * theta[own + components + k * size + i]
                out[k * d + i] = mean / mass

    @kernel
    def frame(theta: Vector, i: int, work: Vector) -> tuple[float, float]:
        own = experts + best_of(theta) * expert_size
        centre, spread = 0.0, 0.0
        for k in range(K):
            centre += theta[own + weights + k] * theta[own + components + k * size + i]
        for k in range(K):
            for j in range(d):
                work[j] = 0.0
            spread_of(theta, own + components + k * size, d, work, 1.0)
            off = theta[own + components + k * size + i] - centre
            spread += theta[own + weights + k] * (work[i] + off * off)
        return centre, math.sqrt(at_least(spread, SMALLEST_VARIANCE))

    return Bank(gains + LANES, rejects, learn, means, best_of, frame)
