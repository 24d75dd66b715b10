"""Algorithm 1, compiled for one model, one norm and one step size.

    score ← −log f(y; θ)
    θ ← θ − ρ_t·H(y)   if ‖H(y)‖ ≤ γ or t ≤ warm-up;   otherwise the point is rejected and θ stays.

With a patience, which the paper does not have, that many consecutive rejections lift the threshold for as many points
as the warm-up has.

The functions take the flat state, the point, the settings and a workspace.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntFlag
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import is_kernel, jit_entry_point, kernel
from limpet.core.model_kernels import ModelKernels
from limpet.core.state import CONSECUTIVE_REJECTIONS, HEADER_SIZE, N_BUFFERED, N_INVALID, N_REJECTED, N_SEEN, Vector
from limpet.exceptions import InvalidInputError

# settings = [ γ² | warm-up | patience, 0 for none | parameters of the step size (4) | hyperparameters of the model … ]
GAMMA_SQUARED, N_WARMUP, N_PATIENCE, STEP_PARAMETERS, HYPERPARAMETERS = 0, 1, 2, 3, 7

MAX_ABS_VALUE = 1e150  # squares of larger numbers overflow: they count as infinite


class Outcome(IntFlag):
    """What happened to a point: one flag per row in `Trace.outcomes`.

    The database of the server stores the same flags.

    >>> Outcome(9)
    <Outcome.REJECTED|ANOMALY: 9>
    """

    ACCEPTED = 0
    """The model learned from it."""

    REJECTED = 1
    """Beyond the threshold: the model did not learn from it."""

    INVALID = 2
    """Not usable: NaN in all variables, infinite, or outside the model's support."""

    BUFFERED = 4
    """Stored for the initialization of the model."""

    ANOMALY = 8
    """An anomaly, at the false-alarm rate of the learner."""

    CHANGE = 16
    """A change alarm was raised."""

    NEEDS_REINIT = 32
    """The automatic learner tried a re-initialization from the latest points."""


# The same as plain integers, which compiled functions can close over.
OUTCOME_ACCEPTED = int(Outcome.ACCEPTED)
OUTCOME_REJECTED = int(Outcome.REJECTED)
OUTCOME_INVALID = int(Outcome.INVALID)
OUTCOME_BUFFERED = int(Outcome.BUFFERED)
OUTCOME_ANOMALY = int(Outcome.ANOMALY)
OUTCOME_CHANGE = int(Outcome.CHANGE)
OUTCOME_NEEDS_REINIT = int(Outcome.NEEDS_REINIT)


class StepKernels(NamedTuple):
    """Kernels of one step of Algorithm 1, for the entry points of streams."""

    # (y) → number of NaN coordinates, −1 for an invalid point; also for use from Python
    count_missing: Callable[[Vector], int]
    # (theta, t, consecutive_rejections, y, settings, work, missing) → (score, whether the threshold rejects y).
    # consecutive_rejections: before this point; below 0 the threshold is lifted.
    evaluate_point: Callable[..., Any]
    # (theta, t, y, settings, work, missing): move θ by ρ_t·H, right after `evaluate_point`
    apply_update: Callable[..., Any]
    # (state, y, settings, work, missing) → (score, outcome) of a valid point; updates the header
    process_valid_point: Callable[..., Any]
    # (state, y, settings, work) → (score, outcome) of any point; invalid points are counted
    process_point: Callable[..., Any]


class StreamKernels(NamedTuple):
    """Entry points for one type of stream, compiled at their first call."""

    work_size: int
    run: Callable[..., Any]  # (state, rows, settings, work, scores, outcomes, estimates): process rows in order
    update: Callable[..., Any]  # (buffer, y) → the score of an accepted point, NaN otherwise: see `update_or_nan`
    # (state, rows, settings, work, scores, outcomes): score each row as the next one, without learning
    score_rows: Callable[..., Any]
    first_invalid: Callable[..., Any]  # (rows) → the first invalid row, −1 if all are valid
    # (y) → number of NaN coordinates, −1 for an invalid point; for use from Python
    count_missing: Callable[[Vector], int]


@kernel
def n_accepted(state: Vector) -> float:
    """Return the number of valid points, those of the initialization included."""
    return state[N_SEEN] - state[N_INVALID] + state[N_BUFFERED] + 1.0


def make_validity_kernel(width: int, valid: Callable[[Vector], bool], handles_missing: bool) -> Callable[[Vector], int]:
    """Return the kernel (y) → number of NaN coordinates, −1 for an invalid point."""

    @kernel
    def count_missing(y: Vector) -> int:
        missing = 0
        for i in range(width):
            if abs(y[i]) > MAX_ABS_VALUE:
                return -1
            if math.isnan(y[i]):
                missing += 1
        if missing == width or (missing > 0 and not handles_missing) or not valid(y):
            return -1
        return missing

    return count_missing


def are_valid(rows: Vector) -> npt.NDArray[np.bool_]:
    """Return which rows the kernel accepts: a value, none beyond `MAX_ABS_VALUE`."""
    is_missing = np.isnan(rows)
    return np.asarray((is_missing | (np.abs(rows) <= MAX_ABS_VALUE)).all(axis=1) & ~is_missing.all(axis=1))


def make_first_invalid(count_missing: Callable[[Vector], int]) -> Callable[..., Any]:
    """Return an entry point (rows) → the first invalid row, −1 if all are valid."""

    def first_invalid(rows):  # type: ignore[no-untyped-def]
        for i in range(len(rows)):
            if count_missing(rows[i]) < 0:
                return i
        return -1

    return jit_entry_point(first_invalid)


@cache
def make_step_kernels(kernels: ModelKernels, norm: str, rule: Callable[[float, Vector], float]) -> StepKernels:
    """Return the kernels of one step of Algorithm 1."""
    width, theta_end = kernels.width, HEADER_SIZE + kernels.layout.size
    evaluate, advance, valid, squared_norm = kernels.evaluate, kernels.advance, kernels.is_valid, kernels.norms[norm]
    used_kernels: list[Callable[..., Any]] = [evaluate, advance, valid, squared_norm, kernels.estimate, rule]
    for function in used_kernels:
        if not is_kernel(function):
            raise InvalidInputError(f"{function.__qualname__}: must be a kernel. Decorate it with @kernel.")

    count_missing = make_validity_kernel(width, valid, kernels.handles_missing)

    @kernel
    def evaluate_point(
        theta: Vector, t: float, consecutive_rejections: float, y: Vector, settings: Vector, work: Vector, missing: bool
    ) -> tuple[float, bool]:
        hyper = settings[HYPERPARAMETERS:]
        score = evaluate(theta, y, hyper, work, missing)
        exceeds_gamma = squared_norm(theta, y, hyper, work, missing) > settings[GAMMA_SQUARED]
        return score, exceeds_gamma & (t > settings[N_WARMUP]) & (consecutive_rejections >= 0.0)

    @kernel
    def apply_update(theta: Vector, t: float, y: Vector, settings: Vector, work: Vector, missing: bool) -> None:
        advance(theta, y, settings[HYPERPARAMETERS:], work, rule(t, settings[STEP_PARAMETERS:HYPERPARAMETERS]), missing)

    @kernel
    def evaluate_and_update(
        theta: Vector, t: float, consecutive_rejections: float, y: Vector, settings: Vector, work: Vector, missing: bool
    ) -> tuple[float, bool]:
        score, rejected = evaluate_point(theta, t, consecutive_rejections, y, settings, work, missing)
        if not rejected:
            apply_update(theta, t, y, settings, work, missing)
        return score, rejected

    @kernel
    def process_valid_point(
        state: Vector, y: Vector, settings: Vector, work: Vector, missing: int
    ) -> tuple[float, int]:
        theta = state[HEADER_SIZE:theta_end]
        state[N_SEEN] += 1.0
        t, consecutive_rejections = n_accepted(state), state[CONSECUTIVE_REJECTIONS]
        if width > 1 and missing > 0:
            score, rejected = evaluate_and_update(theta, t, consecutive_rejections, y, settings, work, True)
        else:
            score, rejected = evaluate_and_update(theta, t, consecutive_rejections, y, settings, work, False)
        if not rejected:
            state[CONSECUTIVE_REJECTIONS] = consecutive_rejections + 1.0 if consecutive_rejections < 0.0 else 0.0
            return score, OUTCOME_ACCEPTED
        patience_exhausted = (settings[N_PATIENCE] > 0.0) & (consecutive_rejections + 1.0 >= settings[N_PATIENCE])
        state[CONSECUTIVE_REJECTIONS] = -settings[N_WARMUP] if patience_exhausted else consecutive_rejections + 1.0
        state[N_REJECTED] += 1.0
        return score, OUTCOME_REJECTED

    @kernel
    def process_point(state: Vector, y: Vector, settings: Vector, work: Vector) -> tuple[float, int]:
        missing = count_missing(y)
        if missing >= 0:
            return process_valid_point(state, y, settings, work, missing)
        state[N_SEEN] += 1.0
        state[N_INVALID] += 1.0
        return math.nan, OUTCOME_INVALID

    return StepKernels(count_missing, evaluate_point, apply_update, process_valid_point, process_point)


@cache
def make_stream_kernels(
    kernels: ModelKernels, norm: str, rule: Callable[[float, Vector], float], n_settings: int
) -> StreamKernels:
    """Return the entry points of Algorithm 1 for one stream."""
    width, theta_end = kernels.width, HEADER_SIZE + kernels.layout.size
    scalar_offset = n_settings + kernels.work_size  # for a point of one variable
    outcome_offset, score_offset = scalar_offset + 1, scalar_offset + 2  # outcome and score of a point
    state_offset = score_offset + 1
    estimate, health_index = kernels.estimate, kernels.health_index
    count_missing, evaluate_point, _, process_valid_point, process_point = make_step_kernels(kernels, norm, rule)

    def run(state, rows, settings, work, scores, outcomes, estimates):  # type: ignore[no-untyped-def]
        recording = len(estimates) > 0
        for i in range(len(rows)):
            scores[i], outcomes[i] = process_point(state, rows[i], settings, work)
            if recording:
                estimate(state[HEADER_SIZE:theta_end], settings[HYPERPARAMETERS:], work, estimates[i])

    @kernel
    def update_or_nan(buffer: Vector, y: Vector) -> float:
        """Return the score if the point is accepted and no warning is due, else NaN.

        The last two entries of the workspace hold outcome and score. An invalid point is not counted.
        """
        state = buffer[state_offset:]
        missing = count_missing(y)
        if missing < 0:
            buffer[outcome_offset], buffer[score_offset] = OUTCOME_INVALID, math.nan
            return math.nan
        health_before = state[HEADER_SIZE + health_index] if health_index >= 0 else 0.0
        score, outcome = process_valid_point(state, y, buffer[:n_settings], buffer[n_settings:state_offset], missing)
        buffer[outcome_offset], buffer[score_offset] = outcome, score
        if outcome == OUTCOME_ACCEPTED and (
            health_index < 0 or health_before > 0.0 or state[HEADER_SIZE + health_index] == 0.0
        ):
            return score
        return math.nan

    def update_scalar(buffer, x):  # type: ignore[no-untyped-def]
        buffer[scalar_offset] = x
        return update_or_nan(buffer, buffer[scalar_offset:outcome_offset])

    def update_vector(buffer, y):  # type: ignore[no-untyped-def]
        return update_or_nan(buffer, y)

    def score_rows(state, rows, settings, work, scores, outcomes):  # type: ignore[no-untyped-def]
        for i in range(len(rows)):
            missing = count_missing(rows[i])
            scores[i], outcomes[i] = math.nan, OUTCOME_INVALID
            if missing >= 0:
                t = n_accepted(state) + 1.0
                scores[i], rejected = evaluate_point(
                    state[HEADER_SIZE:theta_end], t, state[CONSECUTIVE_REJECTIONS], rows[i], settings, work, missing > 0
                )
                outcomes[i] = OUTCOME_REJECTED if rejected else OUTCOME_ACCEPTED

    update = update_scalar if width == 1 else update_vector
    return StreamKernels(
        kernels.work_size + 3,
        jit_entry_point(run, releases_gil=True),
        jit_entry_point(update),
        jit_entry_point(score_rows, releases_gil=True),
        make_first_invalid(count_missing),
        count_missing,
    )
