"""Score the residual after season and autocorrelation; update diagnostics.

The residual of each point has a separate density scorer. The model of season and autocorrelation, the change score and
the residual diagnostics learn from each point. The compact memory profile omits all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from limpet._jit.compile import kernel
from limpet.auto import ar1, change_score, residual_diagnostics
from limpet.auto.density_scorer import DensityScorer, make_density_scorer
from limpet.auto.seasonal_ar import make_seasonal_ar, seasonal_ar_fields
from limpet.core.memory_profile import MemoryProfile
from limpet.core.state import Layout, Vector

RESIDUAL_SCORE_SHARE = 0.25  # of the score


class ResidualScorer(NamedTuple):
    """Compiled functions; `point` and `residual` have d numbers."""

    scorer: DensityScorer
    share: float  # of the residual in the score
    work_size: int
    deseason: Callable[..., Any]  # (theta, point): subtract the seasonal profile from the point, before everything else
    # (theta, point, residual, settings, work, has_missing, observed) → (score, surprise, squared distance)
    score_residual: Callable[..., Any]
    score_isolated_residual: Callable[..., Any]  # The same for a point with unknown predecessors
    # (theta, point, residual, settings, work, residual_out_of_core, out_of_core, has_missing) → the change score
    learn: Callable[..., Any]
    # (theta, point, work): right after `score_residual`, for a point that is not learned from
    observe_only: Callable[..., Any]
    tick: Callable[..., Any]  # (theta): count an invalid point


def residual_fields(
    covariance: str, d: int, lags: int, season: int, profile: MemoryProfile
) -> dict[str, tuple[int, ...]]:
    """Return the fields of theta."""
    if not profile.is_full:
        return {}
    return {
        "residual_scorer": (make_density_scorer(covariance, 1, d).layout.size,),
        **(seasonal_ar_fields(d, lags, season) if lags else {"ar1": (ar1.VALUES_PER_VARIABLE * d + 1,)}),
        "change_score": (change_score.VALUES_PER_VARIABLE * d + 2,),
        "residual_autocorrelation": (residual_diagnostics.VALUES_PER_VARIABLE * d + 2,),
    }


def make_residual_scorer(
    layout: Layout, covariance: str, d: int, lags: int, season: int, profile: MemoryProfile
) -> ResidualScorer:
    """Return the residual scorer for a layout of theta."""
    scorer = make_density_scorer(covariance, 1, d)
    if not profile.is_full:
        return make_null_scorer(scorer)
    residual_model = make_seasonal_ar(layout, d, lags, season) if lags else ar1.make_ar1(layout, d)
    residual_offset, scorer_work_size = layout.offset("residual_scorer"), scorer.work_size
    score_density, learn_residual, swap = scorer.score, scorer.learn, scorer.swap_core
    observe_model = residual_model.observe
    learn_change_score = change_score.make_change_score_kernel(layout, d)
    learn_diagnostics = residual_diagnostics.make_diagnostics_kernel(layout, d)

    def make_score(compute_residual: Callable[..., Any]) -> Callable[..., Any]:
        @kernel
        def score_residual(
            theta: Vector, point: Vector, residual: Vector, settings: Vector, work: Vector, missing: bool, observed: int
        ) -> tuple[float, float, float]:
            compute_residual(theta, point, residual, work[scorer_work_size:])
            return score_density(theta[residual_offset:], residual, settings, work, missing, observed)

        return score_residual

    @kernel
    def learn(
        theta: Vector,
        point: Vector,
        residual: Vector,
        settings: Vector,
        work: Vector,
        residual_out_of_core: bool,
        out_of_core: bool,
        has_missing: bool,
    ) -> float:
        if learn_residual(theta[residual_offset:], residual, settings, work, residual_out_of_core, has_missing):
            swap(theta[residual_offset:])
        observe_model(theta, point, out_of_core, False, work[scorer_work_size:])
        learn_diagnostics(theta, residual)
        return learn_change_score(theta, point)

    @kernel
    def observe_only(theta: Vector, point: Vector, work: Vector) -> None:
        observe_model(theta, point, True, True, work[scorer_work_size:])

    return ResidualScorer(
        scorer,
        RESIDUAL_SCORE_SHARE,
        scorer_work_size + residual_model.work_size,
        residual_model.deseason,
        make_score(residual_model.compute_residual),
        make_score(residual_model.compute_isolated_residual),
        learn,
        observe_only,
        residual_model.tick,
    )


def make_null_scorer(scorer: DensityScorer) -> ResidualScorer:
    """Return functions that do nothing, for the compact memory profile."""

    @kernel
    def score_residual(
        theta: Vector, point: Vector, residual: Vector, settings: Vector, work: Vector, missing: bool, observed: int
    ) -> tuple[float, float, float]:
        return 0.0, 0.0, 0.0

    @kernel
    def learn(
        theta: Vector,
        point: Vector,
        residual: Vector,
        settings: Vector,
        work: Vector,
        residual_out_of_core: bool,
        out_of_core: bool,
        has_missing: bool,
    ) -> float:
        return 0.0

    @kernel
    def observe_only(theta: Vector, point: Vector, work: Vector) -> None:
        pass

    functions = (ar1.noop_deseason, score_residual, score_residual, learn, observe_only, ar1.noop_tick)
    return ResidualScorer(scorer, 0.0, 0, *functions)
