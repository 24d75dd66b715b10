"""Learners that differ in their settings only, on the same points: rows of one matrix, in the lanes of a register."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.learners import StochasticApproximation, Trace
from holdfast.learners.plain_engine import PlainEngine
from holdfast.scheme.algorithm import LARGEST
from holdfast.scheme.compiling import announced
from holdfast.scheme.lanes import LANES
from holdfast.scheme.many import bind_grid, padded_size
from holdfast.scheme.state import HEADER, Vector

WORTH_COMPILING = 1_000_000  # points in all; with fewer, one learner after another is done before that is compiled
AT_ONCE = 8 * LANES  # learners


def process_all(learners: Sequence[StochasticApproximation], points: Vector) -> list[Trace]:
    """What `process` of each of these new learners gives, to the bit; side by side where they are of one kind."""
    head = max(learner.n_init for learner in learners)
    first = [learner.process(points[:head]) for learner in learners]
    rest = points[head:]
    whole = bool((np.abs(rest) <= LARGEST).all())  # nothing missing, nothing that cannot be used
    if whole and of_one_kind(learners):
        second = _run(learners, np.ascontiguousarray(rest, np.float64))
    else:
        second = [learner.process(rest) for learner in learners]
    return [joined(*both) for both in zip(first, second, strict=True)]


def of_one_kind(learners: Sequence[StochasticApproximation]) -> bool:
    """Whether they have started, and differ in nothing but numbers."""
    engines = [learner._engine for learner in learners]
    if not all(isinstance(engine, PlainEngine) and engine.started for engine in engines):
        return False
    kinds = {(e.functions, e.norm, e.rule, len(e.cell.settings)) for e in engines if isinstance(e, PlainEngine)}
    return len(kinds) == 1 and next(iter(kinds))[0].whole is not None


def _run(learners: Sequence[StochasticApproximation], points: Vector) -> list[Trace]:
    """The rest of the points, and the learners as they are afterwards."""
    engines = [learner._open_engine for learner in learners]
    first = engines[0]
    assert isinstance(first, PlainEngine)
    size, n = HEADER + len(first.cell.theta), len(points)
    states = np.zeros((len(engines), padded_size(size)))
    states[:, :size] = [engine.cell.state[:size] for engine in engines]
    settings = np.array([engine.cell.settings for engine in engines])
    bound = bind_grid(first.functions, first.norm, first.rule, settings.shape[1])
    assert bound is not None
    block_size, run = bound
    scores, fates = np.empty((len(engines), n)), np.empty((len(engines), n), np.int8)
    rows, begins, counts = np.arange(len(engines)), np.zeros(len(engines), np.int64), np.full(len(engines), n)
    with announced(f"{first.title}, a grid of settings"):
        room = (np.empty(block_size), np.empty(LANES, np.int64))
        run(states, rows, begins, counts, np.arange(n), points, settings, *room, False, scores, fates)
    for engine, state in zip(engines, states, strict=True):
        engine.cell.state[:size] = state[:size]
    return [Trace(*answers) for answers in zip(scores, fates, strict=True)]


def joined(first: Trace, second: Trace) -> Trace:
    """One trace after another."""
    watched = None
    if first.watched is not None and second.watched is not None:
        watched = tuple(np.concatenate(both) for both in zip(first.watched, second.watched, strict=True))
    return Trace(
        np.concatenate([first.score, second.score]),
        np.concatenate([first.fates, second.fates]),
        watched=watched,  # type: ignore[arg-type]
        alarms=first.alarms + second.alarms,
        first_row=first.first_row,
    )


def groups_of(n: int) -> list[slice]:
    """n learners in groups whose traces are kept at the same time."""
    return [slice(first, min(first + AT_ONCE, n)) for first in range(0, n, AT_ONCE)]
