"""Online EM of a mixture, for components of any family.

theta = [ reference (d) | scale (d) | 1/scale (d) | log_unit | starved | weights (K) | components (K · size) ]

Reference and scale of each variable are estimated from the first points: all arithmetic is done on
(y − reference)/scale, so that neither offsets nor units matter. `starved` counts the updates that found a component
with (almost) no weight left. The rest is the centered form of the paper's statistics: s1 = weight, s2/s1 = mean, …

A *prestandardized* mixture has only weights and components: its points are standardized by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from limpet._jit.compile import kernel
from limpet._jit.math import NEGATIVE_ZERO, exp, fma, log, maximum, minimum
from limpet._jit.simd import any_lane, select
from limpet.core.model_kernels import ModelKernels, accept_all
from limpet.core.state import Layout, Vector
from limpet.models._initialization import init_mixtures
from limpet.models._standardization import clip_coordinate
from limpet.models.components.base import Component
from limpet.models.priors import PRIOR_WEIGHT

MIN_WEIGHT = 1e-10

# hyper = [ smoothing | penalty … ]
HYPER_SMOOTHING, HYPER_PENALTY = 0, 1


@dataclass(frozen=True, eq=False, kw_only=True)
class MixtureKernels(ModelKernels):
    """Functions of Algorithm 1 for a mixture, and its M-step."""

    # (theta, y, hyper, work, missing) → (a, b) with −log f = a − log_coefficient·log b
    compute_densities: Callable[[Vector, Vector, Vector, Vector, bool], tuple[float, float]]
    log_coefficient: float
    # (theta, hyper, out): write the parameters θ̄(ŝ) under the penalty to `out`, in the layout of theta
    m_step: Callable[[Vector, Vector, Vector], None]
    # Where `evaluate` stores 1/|Σ| = precision·exp(2·factor) and q of each component in `work`
    precision_offset: int
    factor_offset: int
    distance_offset: int


def make_mixture_kernels(
    component: Component,
    K: int,
    d: int,
    log_normalizer: float,
    is_standardized: bool,
    smoothed: bool,
    penalized: bool,
    is_valid: Callable[[Vector], bool] = accept_all,
    is_prestandardized: bool = False,
    handles_missing: bool = True,
) -> MixtureKernels:
    """Return the functions of Algorithm 1 for a mixture of K components.

    `log_normalizer` is the term of −log f per variable besides the scale (½·log 2π for a Gaussian). If
    `is_standardized`, which counts are not, reference and scale are estimated from the data. If `is_prestandardized`,
    points and −log f are in standardized units, and only the whitened norm is meaningful. Unless `handles_missing`,
    points have all coordinates, and the kernels can also be compiled for lanes (`limpet._jit.simd`).
    """
    size = component.n_parameters(d)
    standardization = {"reference": (d,), "scale": (d,), "inverse_scale": (d,), "log_unit": (1,), "starved": (1,)}
    parameter_fields = {"weights": (K,), "components": (K, size)}
    layout = Layout(parameter_fields if is_prestandardized else {**standardization, **parameter_fields})
    reference, scale, inverse_scale, log_normalizer_offset, starved = (
        -1 if is_prestandardized else layout.offset(name) for name in standardization
    )
    weights, components = layout.offset("weights"), layout.offset("components")
    # Offsets in the workspace.
    point = 0  # the standardized point
    share = d  # weight times density of each component, unnormalized …
    total = share + K  # … and their sum
    inverse = total + 1  # 1/total
    distance = inverse + 1  # q of each component
    exponent = distance + K
    precision = exponent + K
    factor = precision + K  # the exponent without −q/2
    imputed = factor + K  # the point with missing coordinates imputed by each component
    parameters = imputed + K * size  # the result of the M-step under a penalty
    scratch = parameters + components + K * size
    work_size = scratch + component.work_size(d)

    component_evaluate, component_impute = component.evaluate, component.impute
    component_advance, component_m_step = component.advance, component.m_step
    higher_order_norm, elliptical = component.higher_order_norm, component.elliptical
    log_coefficient = 0.5 if K == 1 else 1.0

    @kernel
    def m_step(theta: Vector, hyper: Vector, out: Vector) -> None:
        penalty = hyper[HYPER_PENALTY:]
        a = penalty[PRIOR_WEIGHT]
        for k in range(K):
            w, offset = theta[weights + k], components + k * size
            out[weights + k] = (w + a) / (1.0 + K * a)
            component_m_step(theta, offset, w, d, penalty, theta, out, offset)

    @kernel
    def compute_densities(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> tuple[float, float]:
        """Store weighted densities and distances; responsibilities are share/total."""
        log_normalizer_sum = d * log_normalizer if is_prestandardized else theta[log_normalizer_offset]
        for i in range(d):
            x = y[i]
            if not is_prestandardized:
                x = clip_coordinate((x - theta[reference + i]) * theta[inverse_scale + i])
            work[point + i] = x
            if handles_missing and missing and math.isnan(y[i]):
                work[point + i] = math.nan
                log_normalizer_sum -= log_normalizer if is_prestandardized else log(theta[scale + i]) + log_normalizer
        source = theta
        if penalized:
            source = work[parameters:]
            m_step(theta, hyper, source)
        max_exponent = 0.0
        for k in range(K):
            offset = components + k * size
            if handles_missing and d > 1 and missing:
                e, p, q = component_impute(source, offset, work, point, d, work, scratch, work, imputed + k * size)
            else:
                e, p, q = component_evaluate(source, offset, work, point, d, work, scratch)
            work[factor + k] = e
            e = e - 0.5 * q if elliptical else e
            work[exponent + k], work[precision + k], work[distance + k] = e, p, q
            max_exponent = e if k == 0 else maximum(e, max_exponent)
        if K == 1:  # all responsibility is its own
            work[share] = work[total] = work[inverse] = 1.0
            return log_normalizer_sum - max_exponent, work[precision]
        sum_of_shares = NEGATIVE_ZERO
        # Of two, one is the best: exp(0) = 1.
        runner_up = exp(-abs(work[exponent] - work[exponent + 1])) if K == 2 else 0.0
        for k in range(K):
            relative = (
                select(work[exponent + k] < max_exponent, runner_up, 1.0)
                if K == 2
                else exp(work[exponent + k] - max_exponent)
            )
            s = source[weights + k] * math.sqrt(work[precision + k]) * relative
            work[share + k] = s
            sum_of_shares += s
        work[total] = sum_of_shares
        work[inverse] = 1.0 / sum_of_shares
        return log_normalizer_sum - max_exponent, sum_of_shares

    @kernel
    def evaluate(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """Return −log f(y; θ̄(ŝ)); stores in `work` the same as `compute_densities`."""
        linear_term, log_argument = compute_densities(theta, y, hyper, work, missing)
        return linear_term - log_coefficient * log(log_argument)

    @kernel
    def whitened(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """Return Σ_k r_k q_k, the squared distance in sd from the responsible components."""
        if K == 1:
            return work[distance]
        result = 0.0
        for k in range(K):
            result += work[share + k] * work[distance + k]
        return result * work[inverse]

    @kernel
    def mean(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """Return ‖ŝ2 − s̄2‖² over the mean statistics, in units of the data."""
        result = 0.0
        for k in range(K):
            w, r = theta[weights + k], work[share + k] * work[inverse]
            offset = imputed + k * size if missing else point
            for i in range(d):
                h = w * (theta[reference + i] + theta[scale + i] * theta[components + k * size + i])
                h -= r * (theta[reference + i] + theta[scale + i] * work[offset + i])
                result += h * h
        return result

    @kernel
    def full(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """Return ‖ŝ − s̄‖² over all statistics, as in the paper's equations."""
        result = mean(theta, y, hyper, work, missing)
        for k in range(K):
            w, r = theta[weights + k], work[share + k] * work[inverse]
            offset = imputed + k * size if missing else point
            result += (w - r) * (w - r)
            result += higher_order_norm(theta, components + k * size, w, r, work, offset, d, theta, missing)
        return result

    @kernel
    def advance(theta: Vector, y: Vector, hyper: Vector, work: Vector, rho: float, missing: bool) -> None:
        """Apply ŝ ← ŝ − ρ(ŝ − s̄(y)): component k moves by a = ρr/s1' to the point."""
        if K == 1:
            component_advance(theta, components, work, imputed if missing else point, d, rho, missing)
            return
        sum_of_shares = work[total]
        for k in range(K):
            s = work[share + k]
            if smoothed:  # SDEM: r ← (1 − αρ)r + αρ/K
                uniform_share = minimum(hyper[HYPER_SMOOTHING] * rho, 1.0)
                s = (1.0 - uniform_share) * s + uniform_share * sum_of_shares / K
            gain = rho * s
            w = fma((1.0 - rho) * theta[weights + k], sum_of_shares, gain)
            a = gain / w
            w *= work[inverse]
            if any_lane(w < MIN_WEIGHT):
                if not is_prestandardized:
                    theta[starved] += select(w < MIN_WEIGHT, 1.0, 0.0)
                w = maximum(w, MIN_WEIGHT)
            theta[weights + k] = w
            offset = imputed + k * size if missing else point
            component_advance(theta, components + k * size, work, offset, d, a, missing)

    @kernel
    def estimate(theta: Vector, hyper: Vector, work: Vector, out: Vector) -> None:
        """Write the means, in the units of the data."""
        source = theta
        if penalized:
            source = work[parameters:]
            m_step(theta, hyper, source)
        for k in range(K):
            for i in range(d):
                out[k * d + i] = theta[reference + i] + theta[scale + i] * source[components + k * size + i]

    def init_batch(points: Vector, thetas: Vector, hyper: Vector, seed: int) -> None:
        init_mixtures(component, K, points, thetas, log_normalizer, is_standardized, seed)

    def init(points: Vector, theta: Vector, hyper: Vector, seed: int) -> None:
        init_batch(points[None], theta[None], hyper, seed)

    return MixtureKernels(
        layout=layout,
        width=d,
        work_size=work_size,
        evaluate=evaluate,
        norms={"whitened": whitened, "mean": mean, "full": full},
        advance=advance,
        init=init,
        init_batch=init_batch,
        is_valid=is_valid,
        estimate=estimate,
        estimate_shape=(K, d),
        handles_missing=handles_missing,
        health_index=starved,
        n_fixed=0 if is_prestandardized else starved,
        compute_densities=compute_densities,
        log_coefficient=log_coefficient,
        m_step=m_step,
        precision_offset=precision,
        factor_offset=factor,
        distance_offset=distance,
    )
