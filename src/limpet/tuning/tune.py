"""Select the best setting of a learner for some streams."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import announce_compilation
from limpet._jit.simd import LANES
from limpet._validation import check_int, invalid_param_error
from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.core.batched_algorithm import make_lane_kernels, padded_row_size
from limpet.core.state import HEADER_SIZE, Vector
from limpet.datasets import Stream
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.learners import Learner, StochasticApproximation, Trace
from limpet.learners._engine import PlainEngine
from limpet.learners.results import concatenate
from limpet.tuning.objectives import Objective, TraceObjective
from limpet.tuning.sweep import (
    FailedRun,
    Setting,
    SweepResult,
    describe_stream,
    run_safely,
    short_repr,
    sweep,
    sweep_in_groups,
    to_list,
    unwrap,
)

BATCH_THRESHOLD_POINTS = 1_000_000  # total; below, single learners finish before the kernel has been compiled
GRID_CHUNK_LEARNERS = 8 * LANES  # learners whose traces are held in memory at the same time


def select_best(values: npt.ArrayLike, maximize: bool = True) -> int:
    """Return the index of the setting with the best average.

    Settings with a NaN are excluded; of equal settings the first is selected.

    Parameters
    ----------
    values : array-like of shape (settings, …)
        As in `SweepResult.values`.
    maximize : bool
        Whether larger values are better.

    Examples
    --------
    >>> select_best([[0.7, 0.9], [0.9, 0.8], [1.0, float("nan")]])
    1
    >>> select_best([[0.2, 0.1], [0.5, 0.1]], maximize=False)
    0
    """
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        message = f"values: must be an array of numbers, as in sweep(…).values, got {type(values).__name__}."
        raise InvalidInputError(message) from error
    if not isinstance(maximize, bool | np.bool_):
        raise InvalidInputError(f"maximize: must be True or False, got {maximize!r}.")
    if table.ndim == 0 or not table.size:
        raise InvalidInputError(f"values: must have one or more for each setting, got shape {table.shape}.")
    averages = table.reshape(len(table), -1).mean(axis=1)
    if np.isnan(averages).all():
        received = f"NaN in each of {len(table)} settings, in {np.isnan(table).sum()} of {table.size} values"
        raise InvalidInputError(f"values: must have a setting with a value for every stream, got {received}.")
    return int(np.nanargmax(averages) if maximize else np.nanargmin(averages))


class TuningResult(NamedTuple):
    """The best setting, its average value, and the whole sweep."""

    setting: Setting
    value: float
    sweep: SweepResult


def tune(
    learner: Callable[..., Learner],
    settings: Iterable[Setting],
    streams: Iterable[Stream] | Stream,
    objective: Objective,
    *,
    restarts: int = 1,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TuningResult:
    """Evaluate every setting on every stream and return the best on average.

    Parameters
    ----------
    learner : class or function
        Makes a learner from a setting: `learner(**setting)`; with several restarts also with `seed`.
    settings : list of dict
        As `grid` returns.
    streams : list of Stream, or Stream
        Your data as `Stream(y, change_points=[…])` or `Stream(y, labels=…)`, or a stream of `limpet.datasets`.
    objective : Objective
        `BenefitAUC(tolerance)`, `MeanError()`, `LabelAUC()`, or a callable (learner, stream) → number with an
        attribute `maximize`, True if larger values are better.
    restarts, workers, progress
        As in `sweep`.

    Examples
    --------
    >>> from limpet import SRA
    >>> from limpet.datasets import make_abrupt
    >>> from limpet.tuning import MeanError, grid
    >>> settings = grid(n_components=[2], norm=["mean"], gamma=[1.0, 3.0, 15.0], beta=[0.1], M=[5.0])
    >>> best = tune(SRA, settings, [make_abrupt(n=4000, seed=seed) for seed in range(3)], MeanError())
    >>> best.setting["gamma"]
    3.0
    """
    _check_learner(learner)
    settings, streams = _to_settings(settings), _to_streams(streams)
    _check_objective(objective)
    has_restarts = check_int("restarts", restarts, 1) > 1
    if has_restarts:
        _check_seeds(learner, settings)

    def make(setting: Setting, restart: int) -> Learner:
        return learner(**setting, **({"seed": restart} if has_restarts else {}))

    def evaluate(setting: Setting, stream: Stream, restart: int) -> float:
        return objective(make(setting, restart), stream)

    is_large = len(settings) * restarts * sum(map(len, streams)) >= BATCH_THRESHOLD_POINTS
    if is_large and isinstance(objective, TraceObjective) and type(objective).__call__ is TraceObjective.__call__:
        evaluate_group = partial(evaluate_all, make, objective)
        result = sweep_in_groups(settings, streams, evaluate_group, GRID_CHUNK_LEARNERS, restarts, workers, progress)
    else:
        result = sweep(settings, streams, evaluate, restarts=restarts, workers=workers, progress=progress)
    try:
        best = select_best(result.values, objective.maximize)
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} {_explain_no_best(result, streams)}") from None
    return TuningResult(settings[best], float(result.values[best].mean()), result)


def _explain_no_best(result: SweepResult, streams: list[Stream]) -> str:
    if result.cannot_run:
        index, reason = next(iter(result.cannot_run.items()))
        return f"{len(result.cannot_run)} cannot run, such as {short_repr(result.settings[index])}: {reason}"
    missing = np.isnan(result.values).reshape(*result.values.shape[:2], -1).any(axis=2).all(axis=0)
    if not missing.any():
        return "Each setting lacks a value on another stream."
    first = int(missing.argmax())
    return (
        f"No setting has a value on {missing.sum()} of {len(streams)} streams, such as "
        f"{describe_stream(streams[first], first)}. The rows that the objective scores need changes or anomalies."
    )


def _to_settings(settings: Iterable[Setting]) -> list[Setting]:
    if isinstance(settings, Mapping):
        received = f"the dict {short_repr(settings)}"
        raise InvalidInputError(f"settings: must be a list of dicts, got {received}. Write grid(…) or [setting].")
    items = to_list("settings", settings)
    for index, setting in enumerate(items):
        if not isinstance(setting, Mapping):
            received = f"{short_repr(setting)} at index {index}"
            raise InvalidInputError(f"settings: must be dicts, got {received}. Use grid(gamma=[1.0, 3.0]).")
    return items


def _to_streams(streams: Iterable[Stream] | Stream) -> list[Stream]:
    received, items = type(streams).__name__, list[Any]()
    if not isinstance(streams, str | Mapping) and isinstance(streams, Iterable | Stream):
        items = to_list("streams", streams)
        invalid = next((index for index, item in enumerate(items) if not isinstance(item, Stream)), None)
        if invalid is None:
            return items
        if not hasattr(streams, "__array__"):  # a list of arrays, not an array or a dataframe
            received = f"{type(items[invalid]).__name__} at index {invalid}"
    advice = "Build a stream from data with Stream(y, change_points=[…]) or Stream(y, labels=…)."
    raise InvalidInputError(f"streams: must be a list of Stream, got {received}. {advice}")


def _check_learner(learner: Any) -> None:
    if isinstance(learner, Learner):
        received, advice = f"the learner {short_repr(learner)}", f"Pass {type(learner).__name__}, and its arguments"
        raise InvalidInputError(f"learner: must be a class or a function, got {received}. {advice} as settings.")
    if not callable(learner):
        constraint = "must be a class such as SRA, or a function that makes a learner from a setting"
        raise invalid_param_error("learner", constraint, learner)


def _check_objective(objective: Any) -> None:
    if isinstance(objective, type):
        name = objective.__name__
        raise InvalidInputError(f"objective: must be an object, got the class {name}. Write {name}(…).")
    if not callable(objective) or not isinstance(getattr(objective, "maximize", None), bool | np.bool_):
        examples = "BenefitAUC(tolerance), MeanError(), LabelAUC()"
        constraint = f"must be {examples}, or an object with `maximize`, True or False, and __call__(learner, stream)"
        raise invalid_param_error("objective", constraint, objective)


def _check_seeds(learner: Callable[..., Any], settings: Iterable[Setting]) -> None:
    try:
        inspect.signature(learner).bind_partial(seed=0)
    except TypeError:
        message = f"learner: must accept seed=, or all restarts would be the same, got {learner!r}."
        raise InvalidTypeError(message) from None
    except ValueError:  # no signature: implemented in C
        pass
    if any("seed" in setting for setting in settings):
        raise InvalidInputError("settings: must not have a seed if restarts > 1, got one. Each restart is a seed.")


# Learners that differ only in settings are run as rows of one matrix.


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
    """Return the result of `process` of each new learner, to the bit, or its error."""
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
