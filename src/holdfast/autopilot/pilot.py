"""One point through the autopilot: scored by two slow views, then learnt by the bank, under the eyes of the rescue."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from holdfast.autopilot import bank
from holdfast.autopilot.bank import bank_fields, bank_functions
from holdfast.autopilot.moving import LARGEST, Moving, moving_functions
from holdfast.autopilot.rescue import rescue_fields, rescue_functions
from holdfast.autopilot.rest import rest_fields, rest_functions
from holdfast.autopilot.sizes import FULL, Sizes
from holdfast.autopilot.view import View, view_functions
from holdfast.models.component import Component
from holdfast.models.frame import LARGEST_COORDINATE
from holdfast.models.gaussian_mixture import COMPONENTS, bare_mixture
from holdfast.models.mixture import MixtureFunctions
from holdfast.scheme.compiling import compiled, fingerprint, kernel
from holdfast.scheme.elementary import log
from holdfast.scheme.state import Layout, Vector

# What the pilot is told, in `settings`: what the bank is told, and the squared distance beyond which the views reject.
CORE_SQUARED, SETTINGS = bank.SETTINGS, bank.SETTINGS + 1
FEW_VARIABLES = 8  # of which the surprises, in nats, lie well within the bins that they are counted in


@dataclass(frozen=True, eq=False)
class Pilot:
    """The compiled functions of the autopilot for one kind of stream."""

    K: int
    lags: int
    season: int
    sizes: Sizes
    component: Component
    mixture: MixtureFunctions
    view: View
    residual_view: View
    layout: Layout
    work_size: int

    assess: Callable[..., Any]
    """(theta, y, settings, work, missing) → (score, surprise): what `step` would say; learns nothing."""

    assess_alone: Callable[..., Any]
    """The same for a point of which it is not known what came before it."""

    step: Callable[..., Any]
    """(theta, y, settings, work, missing) → (score, change score, surprise, nearest, rejected, look): learns.

    missing: how many coordinates are NaN. surprise: the score in excess of the best, in nats up to d = 8; with more
    variables all points are further out, and it is counted in units that grow with them. nearest: the squared distance
    from the estimate. look: whether the rescue has to look at its ring."""

    rejects: Callable[..., Any]
    """(theta, y, settings, work, missing) → whether the bank would drop the point, and `nearest`; learns nothing but
    how far out points are."""

    pass_by: Callable[..., Any]
    """(theta, work): right after `assess`, takes note of a point that is not learnt from."""

    tick: Callable[..., Any]
    """(theta): a point has passed that could not be used."""

    means: Callable[..., Any]
    """(theta, out): the means the bank has, in the frame's coordinates."""

    frame: Callable[..., Any]
    """(theta, i, work) → centre and spread of variable i, in the frame's coordinates."""

    moving: Moving
    """Of the frame itself."""

    carrier: Callable[..., Any]
    """(theta, work) → ±(1 + the coordinate of the point that is furthest out), + if it is above what is expected."""

    point_at: int
    """Where `step` leaves the point in `work`, in the frame's coordinates …"""

    residual_at: int
    """… and what of it the past did not tell."""

    look_over: Callable[..., Any]
    """(fits (m, …), points (m, n, d), work, losses (m, n), distances (m, n)): an entry point; −log density and q of
    each point, given in the frame."""

    def judge(self, fit: Vector, points: Vector) -> tuple[Vector, Vector]:
        """−log density and squared distance of each point, given in the frame's coordinates, under a fit."""
        losses, distances = self.judge_all(fit[None], points[None])
        return losses[0], distances[0]

    def judge_all(self, fits: Vector, points: Vector) -> tuple[Vector, Vector]:
        """(m, n): the same for m streams, each with its fit; points (m, n, d)."""
        losses, distances = np.empty(points.shape[:2]), np.empty(points.shape[:2])
        self.look_over(fits, np.ascontiguousarray(points), np.empty(self.work_size), losses, distances)
        return losses, distances


@cache
def make_pilot(
    covariance: str, K: int, d: int, lags: int = 0, season: int = 0, own_ring: bool = True, sizes: Sizes = FULL
) -> Pilot:
    """The autopilot for K components in d dimensions, with so long a memory (lags = 0: the lag-1 autoregression).

    own_ring: the latest points are kept for the rescue; if not, somebody else keeps them.
    """
    component, mixture, view = COMPONENTS[covariance], bare_mixture(covariance, K, d), view_functions(covariance, K, d)
    exact = sizes.places_for_exact(d)
    layout = Layout(
        {
            "reference": (exact,),
            "scale": (exact,),
            **({"inverse_scale": (exact,)} if sizes.whole else {}),
            "log_scale": (1,),
            **bank_fields(mixture, sizes),
            **rescue_fields(K, d, own_ring, sizes),
            "value": (view.layout.size,),
            **rest_fields(covariance, d, lags, season, sizes),
        }
    )
    experts_of = bank_functions(component, mixture, layout, K, d, sizes)
    rescue, rest = rescue_functions(layout, K, d, sizes), rest_functions(layout, covariance, d, lags, season, sizes)
    moving = moving_functions(experts_of, component, layout, K, d, sizes)
    reference, scale, whole = layout.at("reference"), layout.at("scale"), sizes.whole
    inverse_scale = layout.at("inverse_scale") if whole else -1
    log_scale, value, experts = (layout.at(name) for name in ("log_scale", "value", "experts"))
    assess_value, learn_value, install, swap_value = view.assess, view.learn, view.install, view.swap
    rejects, learn_bank, count, best_of = experts_of.rejects, experts_of.learn, rescue.count, experts_of.best_of
    deseason, look_at_rest, learn_rest, pass_rest_by = rest.deseason, rest.look, rest.learn, rest.pass_by
    look_alone = rest.look_alone
    expert_size, share, per_nat = layout.fields["experts"][1], rest.share, min(1.0, FEW_VARIABLES / d)
    size, spread, distance_at = component.size(d), component.spread, mixture.distance_at
    largest = LARGEST if sizes.short else LARGEST_COORDINATE
    # The working area.
    point_at, residual_at, value_at = 0, d, 2 * d
    rest_at = value_at + view.work_size
    bank_at = rest_at + rest.work_size
    variances_at = bank_at + experts_of.work_size
    work_size = variances_at + d

    @kernel
    def put_in_frame(theta: Vector, y: Vector, work: Vector, missing: int) -> float:
        """The point in the frame's coordinates, less its season; returns the logarithm of the unit of its density."""
        origin = theta[reference : reference + exact].view(np.float64)
        scales = theta[scale : scale + exact].view(np.float64)
        unit = 1.0 * theta[log_scale]
        for i in range(d):
            x = (y[i] - origin[i]) * theta[inverse_scale + i] if whole else (y[i] - origin[i]) / scales[i]
            work[point_at + i] = max(min(x, largest), -largest)
            if missing > 0 and y[i] != y[i]:
                work[point_at + i] = math.nan
                unit -= log(scales[i])
        deseason(theta, work[point_at : point_at + d])
        return unit

    @kernel
    def look_at(
        theta: Vector, y: Vector, settings: Vector, work: Vector, missing: int
    ) -> tuple[float, float, float, float]:
        unit = put_in_frame(theta, y, work, missing)
        point, rest = work[point_at : point_at + d], work[residual_at : residual_at + d]
        gaps, observed = missing > 0, d - missing
        first, excess, q = assess_value(theta[value:], point, settings, work[value_at:], gaps, observed)
        second, further, p = look_at_rest(theta, point, rest, settings, work[rest_at:], gaps, observed)
        score = first + share * second + (1.0 + share) * unit
        return score, (excess + share * further) * per_nat, q, p

    @kernel
    def assess(theta: Vector, y: Vector, settings: Vector, work: Vector, missing: int) -> tuple[float, float]:
        score, surprise, _, _ = look_at(theta, y, settings, work, missing)
        return score, surprise

    @kernel
    def assess_alone(theta: Vector, y: Vector, settings: Vector, work: Vector, missing: int) -> tuple[float, float]:
        unit = put_in_frame(theta, y, work, missing)
        point, rest = work[point_at : point_at + d], work[residual_at : residual_at + d]
        gaps, observed = missing > 0, d - missing
        first, excess, _ = assess_value(theta[value:], point, settings, work[value_at:], gaps, observed)
        second, further, _ = look_alone(theta, point, rest, settings, work[rest_at:], gaps, observed)
        return first + share * second + (1.0 + share) * unit, (excess + share * further) * per_nat

    @kernel
    def step(
        theta: Vector, y: Vector, settings: Vector, work: Vector, missing: int
    ) -> tuple[float, float, float, float, bool, bool]:
        score, surprise, q, p = look_at(theta, y, settings, work, missing)
        point, rest, gaps = work[point_at : point_at + d], work[residual_at : residual_at + d], missing > 0
        rejected, nearest = rejects(theta, point, settings, work[bank_at:], gaps)
        taken_over = False
        if not rejected:
            taken_over = learn_bank(theta, point, settings, work[bank_at:], gaps)
        look = count(theta, point, rejected, taken_over)
        out_of_core = q > settings[CORE_SQUARED]
        if learn_value(theta[value:], point, settings, work[value_at:], out_of_core, gaps):
            if K == 1:
                swap_value(theta[value:])
            else:
                install(theta[value:], theta[experts + best_of(theta) * expert_size :])
        distant = p > settings[CORE_SQUARED]
        change_score = learn_rest(theta, point, rest, settings, work[rest_at:], distant, out_of_core, gaps)
        return score, change_score, surprise, nearest, rejected, look

    @kernel
    def bank_rejects(theta: Vector, y: Vector, settings: Vector, work: Vector, missing: int) -> tuple[bool, float]:
        put_in_frame(theta, y, work, missing)
        return rejects(theta, work[point_at : point_at + d], settings, work[bank_at:], missing > 0)

    @kernel
    def pass_by(theta: Vector, work: Vector) -> None:
        pass_rest_by(theta, work[point_at : point_at + d], work[rest_at:])

    @kernel
    def carrier(theta: Vector, work: Vector) -> float:
        """By the nearest component of the core."""
        nearest = 0
        for k in range(1, K):
            if work[value_at + distance_at + k] < work[value_at + distance_at + nearest]:
                nearest = k
        variances = work[variances_at : variances_at + d]
        own = value + K + nearest * size
        for i in range(d):
            variances[i] = 0.0
        spread(theta, own, d, variances, 1.0)
        furthest, result = -1.0, 1.0
        for i in range(d):
            delta = work[point_at + i] - theta[own + i]
            if delta * delta / variances[i] > furthest:
                furthest = delta * delta / variances[i]
                result = (1.0 + i) if delta > 0.0 else -(1.0 + i)
        return result

    evaluate, whitened = mixture.evaluate, mixture.norms["whitened"]
    stamp = fingerprint([evaluate, whitened])

    def look_over(fits, points, work, losses, distances):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        for s in range(len(points)):
            fit = fits[s]
            for t in range(points.shape[1]):
                missing = False
                for i in range(d):
                    missing = missing or math.isnan(points[s, t, i])
                losses[s, t] = evaluate(fit, points[s, t], fit, work, missing)
                distances[s, t] = whitened(fit, points[s, t], fit, work, missing)

    return Pilot(
        K,
        lags,
        season,
        sizes,
        component,
        mixture,
        view,
        rest.view,
        layout,
        work_size,
        assess,
        assess_alone,
        step,
        bank_rejects,
        pass_by,
        rest.tick,
        experts_of.means,
        experts_of.frame,
        moving,
        carrier,
        point_at,
        residual_at,
        compiled(look_over, releases_gil=True),
    )
