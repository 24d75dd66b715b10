"""Expert ensemble: one mixture with several step sizes, weighted by trust.

A point is rejected, and not learned from, if experts with more than half of the trust reject it. Otherwise the trust of
each expert is multiplied by its likelihood of the point (Bayes' rule, with a bounded ratio), a small share is
redistributed so that no expert vanishes (Herbster and Warmuth's fixed share), and all experts are updated: slow ones
give a stable estimate in stationary periods, fast ones dominate after a change. If a fast expert has predicted better
than the slowest for long, the slow ones copy its estimate and restart their averages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from limpet._jit.compile import kernel
from limpet._jit.math import averaging_step, exp, log, maximum
from limpet._jit.simd import LANES
from limpet._jit.simd_transpose import load_lanes, load_lanes_unaligned, store_lanes
from limpet.auto.reinitialization import CONTAMINATION
from limpet.core.memory_profile import COUNTER_WRAP_POINTS, MemoryProfile
from limpet.core.state import Layout, Vector
from limpet.models._mixture_kernels import MixtureKernels
from limpet.models.components.base import Component
from limpet.models.components.gaussian_full import MIN_VARIANCE

SLOWEST_EXPERT = 0  # its likelihood is compared with that of a fast expert to detect a small shift
MAX_POINT_GAIN_NATS = 4.0  # bound of the log-likelihood ratio of two experts at one point
FIXED_SHARE = 0.002  # of the trust, redistributed at every point
LEAD_THRESHOLD_NATS = 16.0  # cumulative lead of the fast expert over the slowest …
MAX_LEAD_STEP_NATS = 2.0  # … with steps of at most this
REVIEW_INTERVAL_POINTS, MIN_TRUST = 64.0, 0.01  # of the check for experts that lost their trust
TAKEOVER_COUNT_POINTS = 16.0  # effective sample size of an expert that copied another's estimate

GAUSSIAN_TAIL_SCALE_SQUARED = 2.0  # M² of a Gaussian: P(|H| > z) = exp(−z²/M²)
TAIL_STEP_SIZE = 0.001

# settings = [ γ² | β if the step is tied to γ by Corollary 1, else 0 | γ² for streams with many outliers: under a large
# γ a mixture accepts some of them, gets wider, and accepts more ].
GAMMA_SQUARED, BETA, STRICT_GAMMA_SQUARED, N_SETTINGS = 0, 1, 2, 3
COMMON_REJECTED_SHARE = 0.04  # contamination from which the strict γ applies


def ensemble_fields(mixture: MixtureKernels, profile: MemoryProfile) -> dict[str, tuple[int, ...]]:
    """Return the fields of theta."""
    n = len(profile.step_sizes)
    experts = {"experts": (n, mixture.layout.size), "counts": (n,), "trust": (n,)}
    return {**experts, "lead": (1,), "tail_scale_squared": (1,)}


class ExpertEnsemble(NamedTuple):
    """Compiled functions of an ensemble; `work` is a separate workspace."""

    work_size: int
    # (theta, point, settings, work, missing) → (whether γ rejects the point, its squared distance averaged by trust).
    # Stores in `work` what `learn` needs.
    check_rejection: Callable[..., Any]
    # (theta, point, settings, work, missing) → whether the slow experts have just copied the fast one: update trust and
    # every expert
    learn: Callable[..., Any]
    compute_means: Callable[..., Any]  # (theta, out): the means of the statistics averaged over the experts by trust
    best_expert: Callable[..., Any]  # (theta) → the expert with the most trust
    # (theta, i, work) → center and spread of coordinate i, by the expert with the most trust
    location_scale: Callable[..., Any]


def make_ensemble_kernels(
    component: Component, mixture: MixtureKernels, layout: Layout, K: int, d: int, profile: MemoryProfile
) -> ExpertEnsemble:
    """Return an ensemble of this (prestandardized) mixture for a layout of theta."""
    step_sizes, fast_expert, is_float32 = profile.step_sizes, profile.fast_expert, profile.is_float32
    n_experts, expert_size, expert_work_size = len(step_sizes), mixture.layout.size, mixture.work_size
    experts, counts, trust, lead, tail = map(layout.offset, ensemble_fields(mixture, profile))
    weigh, advance, whitened = mixture.compute_densities, mixture.advance, mixture.norms["whitened"]
    log_share = mixture.log_coefficient
    weights, components = mixture.layout.offset("weights"), mixture.layout.offset("components")
    size, add_variances = mixture.layout.fields["components"][1], component.add_variances
    contamination = layout.offset("reinitialization") + CONTAMINATION
    losses = n_experts * expert_work_size  # one per expert, padded to the number of lanes
    gains = losses + LANES
    assert n_experts <= LANES

    @kernel
    def check_rejection(
        theta: Vector, point: Vector, settings: Vector, work: Vector, missing: bool
    ) -> tuple[bool, float]:
        is_strict = theta[contamination] > COMMON_REJECTED_SHARE
        gamma_squared = settings[STRICT_GAMMA_SQUARED if is_strict else GAMMA_SQUARED]
        rejecting_trust, distance = 0.0, 0.0
        for e in range(n_experts):
            expert, scratch = theta[experts + e * expert_size :], work[e * expert_work_size :]
            work[losses + e], work[gains + e] = weigh(expert, point, settings, scratch, missing)
            q = whitened(expert, point, settings, scratch, missing)
            distance += theta[trust + e] * q
            rejecting_trust += theta[trust + e] if q > gamma_squared else 0.0
        log_gains = log(load_lanes_unaligned(work, gains))
        store_lanes(work, losses, load_lanes_unaligned(work, losses) - log_share * log_gains)
        seen = distance if distance < gamma_squared else gamma_squared
        theta[tail] += TAIL_STEP_SIZE * (seen * (2.0 / d) - theta[tail])
        return rejecting_trust > 0.5, distance

    @kernel
    def best_expert(theta: Vector) -> int:
        best = 0
        for e in range(1, n_experts):
            best = e if theta[trust + e] > theta[trust + best] else best
        return best

    @kernel
    def copy_expert(theta: Vector, source: int, target: int) -> None:
        for i in range(expert_size):
            theta[experts + target * expert_size + i] = theta[experts + source * expert_size + i]

    @kernel
    def tied_step(theta: Vector, settings: Vector) -> float:
        """Return ρ = β·exp(−γ²/M²)/(2γ), with γ in sd and M estimated from the stream."""
        gamma_squared = settings[GAMMA_SQUARED]
        rho = settings[BETA] * exp(-gamma_squared / theta[tail]) / (2.0 * math.sqrt(gamma_squared))
        return rho if rho < 1.0 else 1.0

    @kernel
    def learn(theta: Vector, point: Vector, settings: Vector, work: Vector, missing: bool) -> bool:
        min_loss = work[losses]
        for e in range(1, n_experts):
            min_loss = work[losses + e] if work[losses + e] < min_loss else min_loss
        store_lanes(work, gains, exp(maximum(min_loss - load_lanes(work, losses), -MAX_POINT_GAIN_NATS)))
        total = 0.0
        for e in range(n_experts):
            theta[trust + e] *= work[gains + e]
            total += theta[trust + e]
        scaling = (1.0 - FIXED_SHARE) / total
        for e in range(n_experts):
            theta[trust + e] = theta[trust + e] * scaling + FIXED_SHARE / n_experts
            n = theta[counts + e] + 1.0
            theta[counts + e] = n - COUNTER_WRAP_POINTS if is_float32 and n >= 2.0 * COUNTER_WRAP_POINTS else n
            min_step = tied_step(theta, settings) if settings[BETA] > 0.0 else step_sizes[e]
            rho = averaging_step(theta[counts + e], min_step)
            advance(theta[experts + e * expert_size :], point, settings, work[e * expert_work_size :], rho, missing)
        n_reviews = theta[counts + SLOWEST_EXPERT] * (1.0 / REVIEW_INTERVAL_POINTS)
        if n_reviews == math.floor(n_reviews):  # an integer; a remainder of floats would call the C library
            best = best_expert(theta)
            for e in range(n_experts):  # a fast mixture sooner or later has a component on very few points
                if theta[trust + e] < MIN_TRUST:
                    copy_expert(theta, best, e)
        lead_gain = work[losses + SLOWEST_EXPERT] - work[losses + fast_expert]
        lead_gain = MAX_LEAD_STEP_NATS if lead_gain > MAX_LEAD_STEP_NATS else maximum(lead_gain, -MAX_LEAD_STEP_NATS)
        theta[lead] = maximum(theta[lead] + lead_gain, 0.0)
        if theta[lead] <= LEAD_THRESHOLD_NATS:
            return False
        theta[lead] = 0.0
        for e in range(fast_expert):
            copy_expert(theta, fast_expert, e)
            theta[counts + e] = TAKEOVER_COUNT_POINTS
        return True

    @kernel
    def compute_means(theta: Vector, out: Vector) -> None:
        # Factors 1.0 force 64 bits: the same from compiled code and from Python.
        for k in range(K):
            mass = 0.0
            for e in range(n_experts):
                mass += 1.0 * theta[trust + e] * theta[experts + e * expert_size + weights + k]
            for i in range(d):
                mean = 0.0
                for e in range(n_experts):
                    offset = experts + e * expert_size
                    share = 1.0 * theta[trust + e] * theta[offset + weights + k]
                    mean += share * theta[offset + components + k * size + i]
                out[k * d + i] = mean / mass

    @kernel
    def location_scale(theta: Vector, i: int, work: Vector) -> tuple[float, float]:
        offset = experts + best_expert(theta) * expert_size
        center, spread = 0.0, 0.0
        for k in range(K):
            center += theta[offset + weights + k] * theta[offset + components + k * size + i]
        for k in range(K):
            for j in range(d):
                work[j] = 0.0
            add_variances(theta, offset + components + k * size, d, work, 1.0)
            deviation = theta[offset + components + k * size + i] - center
            spread += theta[offset + weights + k] * (work[i] + deviation * deviation)
        return center, math.sqrt(maximum(spread, MIN_VARIANCE))

    return ExpertEnsemble(gains + LANES, check_rejection, learn, compute_means, best_expert, location_scale)
