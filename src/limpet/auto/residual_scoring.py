"""Score the residual after season and autocorrelation; update diagnostics.

The residual of each point has a separate density scorer. The model of season and autocorrelation, the change score and
the residual diagnostics learn from each point. The compact memory profile omits all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from limpet._jit.compile import kernel
from limpet.auto.ar1 import ar1_fields, make_ar1, noop_deseason, noop_tick
from limpet.auto.change_score import change_score_fields, make_change_score_kernel
from limpet.auto.density_scorer import DensityScorer, make_density_scorer
from limpet.auto.residual_diagnostics import diagnostics_fields, make_diagnostics_kernel
from limpet.auto.seasonal_ar import make_seasonal_ar, seasonal_ar_fields
from limpet.core.memory_profile import MemoryProfile
from limpet.core.state import Layout, Vector

RESIDUAL_SCORE_SHARE = 0.25  # of the score


@dataclass(frozen=True, eq=False)
class ResidualScorer:
    """Compiled functions; `point` and `residual` have d numbers."""

    scorer: DensityScorer
    share: float
    """Share of the residual in the score."""

    work_size: int

    deseason: Callable[..., Any]
    """(theta, point): subtract the seasonal profile from the point, before everything else."""

    score_residual: Callable[..., Any]
    """(theta, point, residual, settings, work, has_missing, observed) → (score, surprise, squared distance)."""

    score_isolated_residual: Callable[..., Any]
    """The same for a point with unknown predecessors."""

    learn: Callable[..., Any]
    """(theta, point, residual, settings, work, residual_out_of_core, out_of_core, has_missing) → the change score."""

    observe_only: Callable[..., Any]
    """(theta, point, work): right after `score_residual`, for a point that is not learned from."""

    tick: Callable[..., Any]
    """(theta): count an invalid point."""


def residual_fields(
    covariance: str, d: int, lags: int, season: int, profile: MemoryProfile
) -> dict[str, tuple[int, ...]]:
    """Return the fields of theta."""
    if not profile.is_full:
        return {}
    return {
        "residual_scorer": (make_density_scorer(covariance, 1, d).layout.size,),
        **(seasonal_ar_fields(d, lags, season) if lags else ar1_fields(d)),
        **change_score_fields(d),
        **diagnostics_fields(d),
    }


def make_residual_scorer(
    layout: Layout, covariance: str, d: int, lags: int, season: int, profile: MemoryProfile
) -> ResidualScorer:
    """Return the residual scorer for a layout of theta."""
    scorer = make_density_scorer(covariance, 1, d)
    return make_full_scorer(layout, scorer, d, lags, season) if profile.is_full else make_null_scorer(scorer)


def make_full_scorer(layout: Layout, scorer: DensityScorer, d: int, lags: int, season: int) -> ResidualScorer:
    """Return the functions of the full memory profile."""
    residual_model = make_seasonal_ar(layout, d, lags, season) if lags else make_ar1(layout, d)
    residual_offset, scorer_work_size = layout.offset("residual_scorer"), scorer.work_size
    score_density, learn_residual, swap = scorer.score, scorer.learn, scorer.swap_core
    compute_residual, learn_residual_model, observe_model_only = (
        residual_model.compute_residual,
        residual_model.learn,
        residual_model.observe_only,
    )
    compute_isolated_residual = residual_model.compute_isolated_residual
    learn_change_score, learn_diagnostics = (
        make_change_score_kernel(layout, d).learn,
        make_diagnostics_kernel(layout, d).learn,
    )

    @kernel
    def score_residual(
        theta: Vector, point: Vector, residual: Vector, settings: Vector, work: Vector, has_missing: bool, observed: int
    ) -> tuple[float, float, float]:
        compute_residual(theta, point, residual, work[scorer_work_size:])
        score, surprise, q = score_density(theta[residual_offset:], residual, settings, work, has_missing, observed)
        return score, surprise, q

    @kernel
    def score_isolated_residual(
        theta: Vector, point: Vector, residual: Vector, settings: Vector, work: Vector, has_missing: bool, observed: int
    ) -> tuple[float, float, float]:
        compute_isolated_residual(theta, point, residual)
        score, surprise, q = score_density(theta[residual_offset:], residual, settings, work, has_missing, observed)
        return score, surprise, q

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
        learn_residual_model(theta, point, out_of_core, work[scorer_work_size:])
        learn_diagnostics(theta, residual)
        return learn_change_score(theta, point)

    @kernel
    def observe_only(theta: Vector, point: Vector, work: Vector) -> None:
        observe_model_only(theta, point, work[scorer_work_size:])

    work_size = scorer_work_size + residual_model.work_size
    return ResidualScorer(
        scorer,
        RESIDUAL_SCORE_SHARE,
        work_size,
        residual_model.deseason,
        score_residual,
        score_isolated_residual,
        learn,
        observe_only,
        residual_model.tick,
    )


def make_null_scorer(scorer: DensityScorer) -> ResidualScorer:
    """Return functions that do nothing, for the compact memory profile."""

    @kernel
    def score_residual(
        theta: Vector, point: Vector, residual: Vector, settings: Vector, work: Vector, has_missing: bool, observed: int
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

    return ResidualScorer(scorer, 0.0, 0, noop_deseason, score_residual, score_residual, learn, observe_only, noop_tick)
