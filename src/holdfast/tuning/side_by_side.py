"""Learners that differ in their settings only, on the same points: rows of one matrix, in the lanes of a register."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard

import numpy as np

from holdfast.datasets import Stream
from holdfast.learners import StochasticApproximation, Trace
from holdfast.learners.plain_engine import PlainEngine
from holdfast.learners.trace import in_turn
from holdfast.scheme.algorithm import LARGEST
from holdfast.scheme.compiling import announced
from holdfast.scheme.lanes import LANES
from holdfast.scheme.many import bind_grid, padded_size
from holdfast.scheme.state import HEADER, Vector
from holdfast.tuning.attempt import Failed, answer_of, attempt
from holdfast.tuning.grid import Setting
from holdfast.tuning.objectives import OfTrace

WORTH_COMPILING = 1_000_000  # points in all; with fewer, one learner after another is done before that is compiled
AT_ONCE = 8 * LANES  # learners whose traces are kept at the same time


def evaluate_all(
    make: Callable[[Setting, int], StochasticApproximation],
    objective: OfTrace,
    settings: Sequence[Setting],
    stream: Stream,
    restart: int,
) -> list[float | Failed]:
    """What `objective(make(setting, restart), stream)` gives or raises for each setting."""
    learners = [attempt(make, setting, restart) for setting in settings]
    together = {place: learner for place, learner in enumerate(learners) if can_stand_beside(learner)}
    traces = dict(zip(together, try_all(list(together.values()), stream.y[: objective.stop]), strict=True))
    answers: list[float | Failed] = []
    for place, learner in enumerate(learners):
        if isinstance(learner, Failed):
            answers.append(learner)
        elif place not in traces:
            answers.append(attempt(objective, learner, stream))
        else:
            trace = traces[place]
            answers.append(trace if isinstance(trace, Failed) else attempt(objective.judge, trace, stream))
    return answers


def can_stand_beside(learner: object) -> TypeGuard[StochasticApproximation]:
    """Whether it learns as ours do, with no `process` of its own, and refuses no row of a whole call."""
    return (
        isinstance(learner, StochasticApproximation)
        and getattr(learner.process, "__func__", None) is StochasticApproximation.process
        and learner.on_bad == "skip"
    )


def process_all(learners: Sequence[StochasticApproximation], points: Vector) -> list[Trace]:
    """What `process` of each of these new learners gives, to the bit; side by side where they are of one kind."""
    return [answer_of(trace) for trace in try_all(learners, points)]


def try_all(learners: Sequence[StochasticApproximation], points: Vector) -> list[Trace | Failed]:
    """What `process` of each gives or raises."""
    head = max((learner.n_init for learner in learners), default=0)
    first = [attempt(learner.process, points[:head]) for learner in learners]
    rest = points[head:]
    able = [learner for learner, trace in zip(learners, first, strict=True) if not isinstance(trace, Failed)]
    whole = bool((np.abs(rest) <= LARGEST).all())  # nothing missing, nothing that cannot be used
    if whole and len(rest) and of_one_kind(able):
        second: Iterator[Trace | Failed] = iter(_run(able, np.ascontiguousarray(rest, np.float64)))
    else:
        second = (attempt(learner.process, rest) for learner in able)
    return [trace if isinstance(trace, Failed) else _joined(trace, next(second)) for trace in first]


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


def _joined(first: Trace, second: Trace | Failed) -> Trace | Failed:
    """One trace after another."""
    return second if isinstance(second, Failed) else in_turn([first, second])
