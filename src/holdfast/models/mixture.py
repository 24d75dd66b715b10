"""The online EM of a mixture, for components of any family.

theta = [ frame | log_unit | starved | weights (K) | components (K · size) ]

The frame is a reference point and a scale for each variable, taken from the first points: all arithmetic is done on
(y − reference)/scale, so that neither offsets nor units matter. `starved` counts the updates that found a component
with (almost) no weight left. The rest is the centred form of the paper's statistics: s1 = weight, s2/s1 = mean, …

A *bare* mixture has only weights and components: its points come in the coordinates of a frame that several share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.models.component import Component
from holdfast.models.frame import limited
from holdfast.models.mixture_start import start_mixtures
from holdfast.models.penalty import WEIGHT
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import NOTHING, at_least, at_most, exp, fma, log
from holdfast.scheme.functions import Functions, any_point
from holdfast.scheme.lanes import any_of, where
from holdfast.scheme.state import Layout, Vector

SMALLEST_WEIGHT = 1e-10

# hyper = [ smoothing | penalty … ]
SMOOTHING, PENALTY = 0, 1


@dataclass(frozen=True, eq=False, kw_only=True)
class MixtureFunctions(Functions):
    """Algorithm 1's functions for a mixture, and its M-step."""

    weigh: Callable[[Vector, Vector, Vector, Vector, bool], tuple[float, float]]
    log_share: float
    """`evaluate` but for a logarithm: (theta, y, hyper, work, missing) → (a, b) with −log f = a − log_share·log b."""

    maximise: Callable[[Vector, Vector, Vector], None]
    """(theta, hyper, out): the parameters θ̄(ŝ) under the penalty, laid out in `out` as theta is."""

    precision_at: int
    factor_at: int
    distance_at: int
    """Where `evaluate` leaves 1/|Σ| = precision·exp(2·factor) and q of each component in `work`."""


def mixture_layout(component: Component, K: int, d: int, bare: bool = False) -> Layout:
    """The fields of theta."""
    frame = {"reference": (d,), "scale": (d,), "inverse_scale": (d,), "log_unit": (1,), "starved": (1,)}
    return Layout({**({} if bare else frame), "weights": (K,), "components": (K, component.size(d))})


def mixture_functions(
    component: Component,
    K: int,
    d: int,
    log_unit: float,
    framed: bool,
    smoothed: bool,
    penalised: bool,
    valid: Callable[[Vector], bool] = any_point,
    bare: bool = False,
    gaps: bool = True,
) -> MixtureFunctions:
    """Algorithm 1's functions for a mixture of K such components in d dimensions.

    log_unit: what a variable adds to −log f besides its scale (½·log 2π for a Gaussian).
    framed: whether the frame is taken from the data; counts are left as they are.
    bare: points come in the coordinates of a frame, and −log f is told in them; norms but the whitened one have no use.
    gaps: whether points may miss coordinates; without, what is compiled also serves lanes (`scheme.lanes`).
    """
    layout = mixture_layout(component, K, d, bare)
    size = component.size(d)
    frame = ("reference", "scale", "inverse_scale", "log_unit", "starved")
    reference, scale, inverse_scale, logs, starved = (-1 if bare else layout.at(name) for name in frame)
    weights, components = layout.at("weights"), layout.at("components")
    # The working area.
    point = 0  # the point in the frame's coordinates
    share = d  # weight times density of each component, unnormalised …
    total = share + K  # … and their sum
    inverse = total + 1  # 1/total
    distance = inverse + 1  # q of each component
    exponent = distance + K
    precision = exponent + K
    factor = precision + K  # what the exponent has besides −q/2
    completed = factor + K  # the point as each component completes it, where coordinates are missing
    parameters = completed + K * size  # the M-step's result, where there is a penalty
    scratch = parameters + components + K * size
    work_size = scratch + component.work(d)

    component_evaluate, component_complete = component.evaluate, component.complete
    component_advance, component_maximise = component.advance, component.maximise
    further_statistics, elliptical = component.further_statistics, component.elliptical
    log_share = 0.5 if K == 1 else 1.0

    @kernel
    def maximise(theta: Vector, hyper: Vector, out: Vector) -> None:
        penalty = hyper[PENALTY:]
        a = penalty[WEIGHT]
        for k in range(K):
            w, at = theta[weights + k], components + k * size
            out[weights + k] = (w + a) / (1.0 + K * a)
            component_maximise(theta, at, w, d, penalty, theta, out, at)

    @kernel
    def weigh(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> tuple[float, float]:
        """Of f(y; θ̄(ŝ)); leaves shares and distances in `work`: the responsibilities r are share/total."""
        unit = d * log_unit if bare else theta[logs]
        for i in range(d):
            work[point + i] = y[i] if bare else limited((y[i] - theta[reference + i]) * theta[inverse_scale + i])
            if gaps and missing and math.isnan(y[i]):
                work[point + i] = math.nan
                unit -= log_unit if bare else log(theta[scale + i]) + log_unit
        source = theta
        if penalised:
            source = work[parameters:]
            maximise(theta, hyper, source)
        best = 0.0
        for k in range(K):
            at = components + k * size
            if gaps and d > 1 and missing:
                e, p, q = component_complete(source, at, work, point, d, work, scratch, work, completed + k * size)
            else:
                e, p, q = component_evaluate(source, at, work, point, d, work, scratch)
            work[factor + k] = e
            e = e - 0.5 * q if elliptical else e
            work[exponent + k], work[precision + k], work[distance + k] = e, p, q
            best = e if k == 0 else at_least(e, best)
        if K == 1:  # there is nothing to share
            work[share] = work[total] = work[inverse] = 1.0
            return unit - best, work[precision]
        sum_of_shares = NOTHING
        # Of two, one is the best: exp(0) = 1.
        behind = exp(-abs(work[exponent] - work[exponent + 1])) if K == 2 else 0.0
        for k in range(K):
            relative = where(work[exponent + k] < best, behind, 1.0) if K == 2 else exp(work[exponent + k] - best)
            s = source[weights + k] * math.sqrt(work[precision + k]) * relative
            work[share + k] = s
            sum_of_shares += s
        work[total] = sum_of_shares
        work[inverse] = 1.0 / sum_of_shares
        return unit - best, sum_of_shares

    @kernel
    def evaluate(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """−log f(y; θ̄(ŝ)); leaves in `work` what `weigh` does."""
        rest, of_log = weigh(theta, y, hyper, work, missing)
        return rest - log_share * log(of_log)

    @kernel
    def whitened(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """Σ_k r_k q_k: the squared distance, in standard deviations, from the components that claim the point."""
        if K == 1:
            return work[distance]
        result = 0.0
        for k in range(K):
            result += work[share + k] * work[distance + k]
        return result * work[inverse]

    @kernel
    def mean(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """‖ŝ2 − s̄2‖²: the mean statistics of all components, in the units of the data and about its origin."""
        result = 0.0
        for k in range(K):
            w, r = theta[weights + k], work[share + k] * work[inverse]
            at = completed + k * size if missing else point
            for i in range(d):
                h = w * (theta[reference + i] + theta[scale + i] * theta[components + k * size + i])
                h -= r * (theta[reference + i] + theta[scale + i] * work[at + i])
                result += h * h
        return result

    @kernel
    def full(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """‖ŝ − s̄‖² over all statistics, as the paper's equations have it."""
        result = mean(theta, y, hyper, work, missing)
        for k in range(K):
            w, r = theta[weights + k], work[share + k] * work[inverse]
            at = completed + k * size if missing else point
            result += (w - r) * (w - r)
            result += further_statistics(theta, components + k * size, w, r, work, at, d, theta, missing)
        return result

    @kernel
    def advance(theta: Vector, y: Vector, hyper: Vector, work: Vector, rho: float, missing: bool) -> None:
        """ŝ ← ŝ − ρ(ŝ − s̄(y)), in the centred form: component k moves by the share a = ρr/s1' towards the point."""
        if K == 1:
            component_advance(theta, components, work, completed if missing else point, d, rho, missing)
            return
        sum_of_shares = work[total]
        for k in range(K):
            s = work[share + k]
            if smoothed:  # SDEM: r ← (1 − αρ)r + αρ/K
                flat = at_most(hyper[SMOOTHING] * rho, 1.0)
                s = (1.0 - flat) * s + flat * sum_of_shares / K
            gain = rho * s
            w = fma((1.0 - rho) * theta[weights + k], sum_of_shares, gain)
            a = gain / w
            w *= work[inverse]
            if any_of(w < SMALLEST_WEIGHT):
                if not bare:
                    theta[starved] += where(w < SMALLEST_WEIGHT, 1.0, 0.0)
                w = at_least(w, SMALLEST_WEIGHT)
            theta[weights + k] = w
            at = completed + k * size if missing else point
            component_advance(theta, components + k * size, work, at, d, a, missing)

    @kernel
    def estimate(theta: Vector, hyper: Vector, work: Vector, out: Vector) -> None:
        """The means, in the units of the data."""
        source = theta
        if penalised:
            source = work[parameters:]
            maximise(theta, hyper, source)
        for k in range(K):
            for i in range(d):
                out[k * d + i] = theta[reference + i] + theta[scale + i] * source[components + k * size + i]

    def start_many(points: Vector, thetas: Vector, hyper: Vector, seed: int) -> None:
        start_mixtures(component, layout, points, thetas, log_unit, framed, seed)

    def start(points: Vector, theta: Vector, hyper: Vector, seed: int) -> None:
        start_many(points[None], theta[None], hyper, seed)

    return MixtureFunctions(
        layout=layout,
        width=d,
        work_size=work_size,
        evaluate=evaluate,
        norms={"whitened": whitened, "mean": mean, "full": full},
        advance=advance,
        start=start,
        start_many=start_many,
        valid=valid,
        estimate=estimate,
        estimate_shape=(K, d),
        handles_missing=gaps,
        trouble_at=starved,
        fixed=0 if bare else starved,
        weigh=weigh,
        log_share=log_share,
        maximise=maximise,
        precision_at=precision,
        factor_at=factor,
        distance_at=distance,
    )
