"""What is done with a point besides scoring its value and learning it: the view of what the past did not tell.

The residual of each point is scored by a view of its own; the memory that it comes from, the change score and the test
of whiteness learn from the point. A lean stream has no room for any of this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.autopilot.change_score import change_fields, change_functions
from holdfast.autopilot.memory import lag_fields, lag_memory, no_clock, no_season
from holdfast.autopilot.regression import regression_fields, regression_memory
from holdfast.autopilot.sizes import Sizes
from holdfast.autopilot.view import View, view_functions
from holdfast.autopilot.whiteness import whiteness_fields, whiteness_functions
from holdfast.scheme.compiling import kernel
from holdfast.scheme.state import Layout, Vector

RESIDUALS_SHARE = 0.25  # of the score


@dataclass(frozen=True, eq=False)
class Rest:
    """The compiled functions; `point` and `rest` (its residual) are vectors of d numbers, `work` is their own area."""

    view: View
    share: float
    """Of the score."""

    work_size: int

    deseason: Callable[..., Any]
    """(theta, point): takes out of the point what the time of the season tells; before everything else."""

    look: Callable[..., Any]
    """(theta, point, rest, settings, work, gaps, observed) → (score, surprise, squared distance) of the residual."""

    look_alone: Callable[..., Any]
    """The same for a point of which it is not known what came before."""

    learn: Callable[..., Any]
    """(theta, point, rest, settings, work, distant, out_of_core, gaps) → the change score. distant: the residual is."""

    pass_by: Callable[..., Any]
    """(theta, point, work): right after `look`, for a point that is not learnt from."""

    tick: Callable[..., Any]
    """(theta): a point has passed that could not be used."""


def rest_fields(covariance: str, d: int, lags: int, season: int, sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """What is kept."""
    if not sizes.whole:
        return {}
    return {
        "residual": (view_functions(covariance, 1, d).layout.size,),
        **(regression_fields(d, lags, season) if lags else lag_fields(d)),
        **change_fields(d),
        **whiteness_fields(d),
    }


def rest_functions(layout: Layout, covariance: str, d: int, lags: int, season: int, sizes: Sizes) -> Rest:
    """For a stream whose fields lie in theta as `layout` says."""
    view = view_functions(covariance, 1, d)
    return watchful(layout, view, d, lags, season) if sizes.whole else idle(view)


def watchful(layout: Layout, view: View, d: int, lags: int, season: int) -> Rest:
    """All of it."""
    memory = regression_memory(layout, d, lags, season) if lags else lag_memory(layout, d)
    residual, area = layout.at("residual"), view.work_size
    assess, learn_residual, swap = view.assess, view.learn, view.swap
    find_residual, learn_memory, pass_memory_by = memory.residual, memory.learn, memory.pass_by
    find_residual_alone = memory.residual_alone
    learn_change, learn_whiteness = change_functions(layout, d).learn, whiteness_functions(layout, d).learn

    @kernel
    def look(
        theta: Vector, point: Vector, rest: Vector, settings: Vector, work: Vector, gaps: bool, observed: int
    ) -> tuple[float, float, float]:
        find_residual(theta, point, rest, work[area:])
        score, surprise, q = assess(theta[residual:], rest, settings, work, gaps, observed)
        return score, surprise, q

    @kernel
    def look_alone(
        theta: Vector, point: Vector, rest: Vector, settings: Vector, work: Vector, gaps: bool, observed: int
    ) -> tuple[float, float, float]:
        find_residual_alone(theta, point, rest)
        score, surprise, q = assess(theta[residual:], rest, settings, work, gaps, observed)
        return score, surprise, q

    @kernel
    def learn(
        theta: Vector,
        point: Vector,
        rest: Vector,
        settings: Vector,
        work: Vector,
        distant: bool,
        out_of_core: bool,
        gaps: bool,
    ) -> float:
        if learn_residual(theta[residual:], rest, settings, work, distant, gaps):
            swap(theta[residual:])
        learn_memory(theta, point, out_of_core, work[area:])
        learn_whiteness(theta, rest)
        return learn_change(theta, point)

    @kernel
    def pass_by(theta: Vector, point: Vector, work: Vector) -> None:
        pass_memory_by(theta, point, work[area:])

    work_size = area + memory.work_size
    return Rest(view, RESIDUALS_SHARE, work_size, memory.deseason, look, look_alone, learn, pass_by, memory.tick)


def idle(view: View) -> Rest:
    """Nothing of it."""

    @kernel
    def look(
        theta: Vector, point: Vector, rest: Vector, settings: Vector, work: Vector, gaps: bool, observed: int
    ) -> tuple[float, float, float]:
        return 0.0, 0.0, 0.0

    @kernel
    def learn(
        theta: Vector,
        point: Vector,
        rest: Vector,
        settings: Vector,
        work: Vector,
        distant: bool,
        out_of_core: bool,
        gaps: bool,
    ) -> float:
        return 0.0

    @kernel
    def pass_by(theta: Vector, point: Vector, work: Vector) -> None:
        pass

    return Rest(view, 0.0, 0, no_season, look, look, learn, pass_by, no_clock)
