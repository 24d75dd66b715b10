"""Run learners that differ only in settings, as rows of one matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard

import numpy as np

from limpet._jit.compile import announce_compilation
from limpet._jit.simd import LANES
from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.core.batched_algorithm import make_lane_kernels, padded_row_size
from limpet.core.state import HEADER_SIZE, Vector
from limpet.datasets import Stream
from limpet.learners import Learner, StochasticApproximation, Trace
from limpet.learners._engine import PlainEngine
from limpet.learners.results import concatenate
from limpet.tuning.objectives import TraceObjective
from limpet.tuning.sweep import FailedRun, Setting, run_safely, unwrap

BATCH_THRESHOLD_POINTS = 1_000_000  # total; below, single learners finish before the kernel has been compiled
GRID_CHUNK_LEARNERS = 8 * LANES  # learners whose traces are held in memory at the same time


def evaluate_all(
    make: Callable[[Setting, int], Learner],
    objective: TraceObjective,
    settings: Sequence[Setting],
    stream: Stream,
    restart: int,
) -> list[float | FailedRun]:
    """Return the value of the objective, or the error, for each setting."""
    learners = [run_safely(make, setting, restart) for setting in settings]
    traces = iter(run_batched([learner for learner in learners if can_batch(learner)], stream.y[: objective.stop]))
    return [
        run_safely(objective.evaluate_trace, next(traces), stream)
        if can_batch(learner)
        else run_safely(objective, learner, stream)
        for learner in learners
    ]


def can_batch(learner: object) -> TypeGuard[StochasticApproximation]:
    """Return whether a learner has the standard `process` and skips invalid rows."""
    return (
        isinstance(learner, StochasticApproximation)
        and getattr(learner.process, "__func__", None) is StochasticApproximation.process
        and learner.on_invalid == "skip"
    )


def run_batched(learners: Sequence[StochasticApproximation], points: Vector) -> list[Trace | FailedRun]:
    """Return what `process` of each of these new learners returns, to the bit, or its error."""
    n_first = max((learner.n_init for learner in learners), default=0)
    first = [run_safely(learner.process, points[:n_first]) for learner in learners]
    rest = points[n_first:]
    runnable = [learner for learner, trace in zip(learners, first, strict=True) if not isinstance(trace, FailedRun)]
    is_complete = bool((np.abs(rest) <= MAX_ABS_VALUE).all())  # no value is missing or invalid
    if is_complete and len(rest) and share_kernels(runnable):
        second: Iterator[Trace | FailedRun] = iter(_run_in_lanes(runnable, np.ascontiguousarray(rest, np.float64)))
    else:
        second = (run_safely(learner.process, rest) for learner in runnable)
    return [run_safely(lambda trace: concatenate((trace, unwrap(next(second)))), trace) for trace in first]


def share_kernels(learners: Sequence[StochasticApproximation]) -> bool:
    """Return whether the learners are initialized and differ only in numbers."""
    configs = {
        (e.functions, e.norm, e.rule, len(e.buffer.settings)) if isinstance(e, PlainEngine) and e.started else None
        for e in (learner._engine for learner in learners)
    }
    config = configs.pop() if len(configs) == 1 else None
    return config is not None and config[0].lane_kernels is not None


def _run_in_lanes(learners: Sequence[StochasticApproximation], points: Vector) -> list[Trace]:
    """Process points in lanes, and write the states back to the learners."""
    engines = [learner._require_engine for learner in learners]
    first = engines[0]
    assert isinstance(first, PlainEngine)
    size, n = HEADER_SIZE + len(first.buffer.theta), len(points)
    states = np.zeros((len(engines), padded_row_size(size)))
    states[:, :size] = [engine.buffer.state[:size] for engine in engines]
    settings = np.array([engine.buffer.settings for engine in engines])
    grid_kernels = make_lane_kernels(first.functions, first.norm, first.rule, settings.shape[1])
    assert grid_kernels is not None
    block_size, run = grid_kernels
    scores, outcomes = np.empty((len(engines), n)), np.empty((len(engines), n), np.int8)
    rows, starts, counts = np.arange(len(engines)), np.zeros(len(engines), np.int64), np.full(len(engines), n)
    with announce_compilation(f"{first.title}, a grid of settings"):
        workspace = (np.empty(block_size), np.empty(LANES, np.int64))
        run(states, rows, starts, counts, np.arange(n), points, settings, *workspace, False, scores, outcomes)
    for engine, state in zip(engines, states, strict=True):
        engine.buffer.state[:size] = state[:size]
    return [Trace(*result) for result in zip(scores, outcomes, strict=True)]
