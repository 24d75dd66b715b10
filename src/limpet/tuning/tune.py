"""Select the best setting of a learner for some streams."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from limpet._validation import check_int, invalid_param_error
from limpet.datasets import Stream
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.learners import Learner
from limpet.tuning._batched import BATCH_THRESHOLD_POINTS, GRID_CHUNK_LEARNERS, evaluate_all
from limpet.tuning.objectives import Objective, TraceObjective
from limpet.tuning.sweep import Setting, SweepResult, describe_stream, short_repr, sweep, sweep_in_groups, to_list


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
