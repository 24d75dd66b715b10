"""Algorithm 1, compiled for one model, one norm and one step size.

    score ← −log f(y; θ)
    θ ← θ − ρ_t·H(y)   if ‖H(y)‖ ≤ γ or t ≤ warm-up;   otherwise the point is dropped and θ stays.

With a patience, which the paper does not have, so many points dropped in a row lift the threshold: as many points as
the warm-up has are learnt whatever they are. Then it acts again.

The functions below know nothing of classes: they take the flat state, the point, the settings and a working area.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.errors import BadInputError
from holdfast.scheme.compiling import compiled, fingerprint, is_kernel, kernel
from holdfast.scheme.functions import Functions
from holdfast.scheme.state import BAD, DROPPED, HEADER, HELD, RUN, SEEN, Vector

# settings = [ γ² | warm-up | patience, 0 for none | step size's parameters (4) | the model's fixed numbers … ]
GAMMA_SQUARED, WARMUP, PATIENCE, STEP, HYPER = 0, 1, 2, 3, 7

LARGEST = 1e150  # beyond, a square overflows: such a number is as good as infinite

# What became of a point (the last two bits), and what it told (further bits).
LEARNT, REJECTED, UNUSABLE, HELD_FOR_START = 0, 1, 2, 3
FATE = 3
ANOMALOUS, CHANGED, LOOK = 4, 8, 16


@dataclass(frozen=True, eq=False)
class Turn:
    """One turn of Algorithm 1 in pieces (`@kernel`), for the entry points here and in `scheme.many`."""

    missing_coordinates: Callable[[Vector], int]
    """(y) → how many coordinates are NaN, −1 for a point that cannot be used; also for use from Python."""

    judge: Callable[..., Any]
    """(theta, t, run, y, settings, work, missing) → (score, whether the threshold rejects the point).

    run: points dropped in a row before; below 0 the threshold is lifted."""

    learn: Callable[..., Any]
    """(theta, t, y, settings, work, missing): right after `judge`, moves θ by ρ_t·H."""

    step: Callable[..., Any]
    """(state, y, settings, work, missing) → (score, fate): a point that can be used, with its bookkeeping."""

    take: Callable[..., Any]
    """(state, y, settings, work) → (score, fate): any point; one that cannot be used is counted."""

    stamp: str
    """For Numba's cache: see `compiling.fingerprint`."""


@dataclass(frozen=True)
class Algorithm:
    """The entry points for one kind of stream, compiled at their first call."""

    work_size: int

    run: Callable[..., Any]
    """(state, rows, settings, work, scores, fates, estimates): learns row after row."""

    update: Callable[..., Any]
    """(cell, y) → the score of a point that was learnt; NaN for any other: see `learn_usable`."""

    assess: Callable[..., Any]
    """(state, rows, settings, work, scores, fates): −log f and fate of each row, if it came next; learns nothing."""

    first_unusable: Callable[..., Any]
    """(rows) → the first row that cannot be used, −1 if there is none."""

    missing_coordinates: Callable[[Vector], int]
    """(y) → how many coordinates are NaN, −1 for a point that cannot be used; for use from Python."""


@kernel
def points_used(state: Vector) -> float:
    """How many points have been used, those of the start included."""
    return state[SEEN] - state[BAD] + state[HELD] + 1.0


@cache
def make_turn(functions: Functions, norm: str, rule: Callable[[float, Vector], float]) -> Turn:
    """One turn of Algorithm 1 with these functions in place."""
    width, handles_missing = functions.width, functions.handles_missing
    theta_end = HEADER + functions.layout.size
    evaluate, advance, valid, squared_norm = (
        functions.evaluate,
        functions.advance,
        functions.valid,
        functions.norms[norm],
    )
    pieces: list[Callable[..., Any]] = [evaluate, advance, valid, squared_norm, functions.estimate, rule]
    for piece in pieces:
        if not is_kernel(piece):
            raise BadInputError(f"{piece.__qualname__} must be a compiled function: put @kernel before it")

    @kernel
    def missing_coordinates(y: Vector) -> int:
        missing = 0
        for i in range(width):
            if abs(y[i]) > LARGEST:
                return -1
            if math.isnan(y[i]):
                missing += 1
        if missing == width or (missing > 0 and not handles_missing) or not valid(y):
            return -1
        return missing

    @kernel
    def judge(
        theta: Vector, t: float, run: float, y: Vector, settings: Vector, work: Vector, missing: bool
    ) -> tuple[float, bool]:
        hyper = settings[HYPER:]
        score = evaluate(theta, y, hyper, work, missing)
        far_out = squared_norm(theta, y, hyper, work, missing) > settings[GAMMA_SQUARED]
        return score, far_out & (t > settings[WARMUP]) & (run >= 0.0)

    @kernel
    def learn(theta: Vector, t: float, y: Vector, settings: Vector, work: Vector, missing: bool) -> None:
        advance(theta, y, settings[HYPER:], work, rule(t, settings[STEP:HYPER]), missing)

    @kernel
    def turn(
        theta: Vector, t: float, run: float, y: Vector, settings: Vector, work: Vector, missing: bool
    ) -> tuple[float, bool]:
        score, rejected = judge(theta, t, run, y, settings, work, missing)
        if not rejected:
            learn(theta, t, y, settings, work, missing)
        return score, rejected

    @kernel
    def step(state: Vector, y: Vector, settings: Vector, work: Vector, missing: int) -> tuple[float, int]:
        theta = state[HEADER:theta_end]
        state[SEEN] += 1.0
        t, run = points_used(state), state[RUN]
        if width > 1 and missing > 0:
            score, rejected = turn(theta, t, run, y, settings, work, True)
        else:
            score, rejected = turn(theta, t, run, y, settings, work, False)
        if not rejected:
            state[RUN] = run + 1.0 if run < 0.0 else 0.0
            return score, LEARNT
        lost = (settings[PATIENCE] > 0.0) & (run + 1.0 >= settings[PATIENCE])
        state[RUN] = -settings[WARMUP] if lost else run + 1.0
        state[DROPPED] += 1.0
        return score, REJECTED

    @kernel
    def take(state: Vector, y: Vector, settings: Vector, work: Vector) -> tuple[float, int]:
        missing = missing_coordinates(y)
        if missing >= 0:
            return step(state, y, settings, work, missing)
        state[SEEN] += 1.0
        state[BAD] += 1.0
        return math.nan, UNUSABLE

    return Turn(missing_coordinates, judge, learn, step, take, fingerprint(pieces))


@cache
def bind(functions: Functions, norm: str, rule: Callable[[float, Vector], float], n_settings: int) -> Algorithm:
    """Algorithm 1 with these functions in place."""
    width, theta_end = functions.width, HEADER + functions.layout.size
    scalar_at = n_settings + functions.work_size  # for a point that is one number
    fate_at, score_at = scalar_at + 1, scalar_at + 2  # what became of a point, and its score
    state_at = score_at + 1
    estimate, trouble_at = functions.estimate, functions.trouble_at
    turn = make_turn(functions, norm, rule)
    missing_coordinates, judge, stamp = turn.missing_coordinates, turn.judge, turn.stamp
    step, take = turn.step, turn.take

    def run(state, rows, settings, work, scores, fates, estimates):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        recording = len(estimates) > 0
        for i in range(len(rows)):
            scores[i], fates[i] = take(state, rows[i], settings, work)
            if recording:
                estimate(state[HEADER:theta_end], settings[HYPER:], work, estimates[i])

    @kernel
    def learn_usable(cell: Vector, y: Vector) -> float:
        """The score of a point that was learnt and nothing more is to be said of.

        For any other NaN; the last two working entries then hold its fate and its score. A point that cannot be used is
        left alone, not even counted.
        """
        state = cell[state_at:]
        missing = missing_coordinates(y)
        if missing < 0:
            cell[fate_at], cell[score_at] = UNUSABLE, math.nan
            return math.nan
        trouble = state[HEADER + trouble_at] if trouble_at >= 0 else 0.0
        score, fate = step(state, y, cell[:n_settings], cell[n_settings:state_at], missing)
        cell[fate_at], cell[score_at] = fate, score
        if fate == LEARNT and (trouble_at < 0 or trouble > 0.0 or state[HEADER + trouble_at] == 0.0):
            return score
        return math.nan

    def update_scalar(cell, x):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        cell[scalar_at] = x
        return learn_usable(cell, cell[scalar_at:fate_at])

    def update_vector(cell, y):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        return learn_usable(cell, y)

    def assess(state, rows, settings, work, scores, fates):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        for i in range(len(rows)):
            missing = missing_coordinates(rows[i])
            scores[i], fates[i] = math.nan, UNUSABLE
            if missing >= 0:
                t = points_used(state) + 1.0
                scores[i], rejected = judge(
                    state[HEADER:theta_end], t, state[RUN], rows[i], settings, work, missing > 0
                )
                fates[i] = REJECTED if rejected else LEARNT

    def first_unusable(rows):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        for i in range(len(rows)):
            if missing_coordinates(rows[i]) < 0:
                return i
        return -1

    update = update_scalar if width == 1 else update_vector
    return Algorithm(
        functions.work_size + 3,
        compiled(run, releases_gil=True),
        compiled(update),
        compiled(assess, releases_gil=True),
        compiled(first_unusable),
        missing_coordinates,
    )
