"""Grids of settings, and sweeps of them over streams and restarts on all cores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from limpet._format import truncate
from limpet._parallel import n_threads
from limpet._validation import FloatArray, check_int, invalid_param_error
from limpet.datasets import Stream
from limpet.exceptions import InvalidInputError, LimpetError, LimpetWarning

Setting = dict[str, Any]
Result = TypeVar("Result")
Item = TypeVar("Item")


def grid(**choices: Any) -> list[Setting]:
    """Return every combination of some choices, the last one varying fastest.

    Parameters
    ----------
    **choices
        Each a list or another iterable of values. A string, a mapping or an object that is not iterable is one value.

    Examples
    --------
    >>> grid(gamma=[1.0, 3.0], M=[5.0, 10.0])
    [{'gamma': 1.0, 'M': 5.0}, {'gamma': 1.0, 'M': 10.0}, {'gamma': 3.0, 'M': 5.0}, {'gamma': 3.0, 'M': 10.0}]
    >>> grid(norm="mean", gamma=(1.0, 3.0))
    [{'norm': 'mean', 'gamma': 1.0}, {'norm': 'mean', 'gamma': 3.0}]
    """
    values = [_choice_values(name, choice) for name, choice in choices.items()]
    return [dict(zip(choices, combination, strict=True)) for combination in product(*values)]


def _choice_values(name: str, choice: Any) -> list[Any]:
    if isinstance(choice, str | bytes | Mapping) or not np.iterable(choice):
        return [choice]
    values = list(choice)
    if not values:
        raise InvalidInputError(f"{name}: must be at least one value, got {choice!r}. Leave it out for the default.")
    return values


@dataclass(frozen=True, eq=False)
class FailedRun:
    """The error of one of many runs; the others continue."""

    error: BaseException


def run_safely(function: Callable[..., Result], argument: Any, *others: Any) -> Result | FailedRun:
    """Call a function and return its result or error; return a failed argument."""
    if isinstance(argument, FailedRun):
        return argument
    try:
        return function(argument, *others)
    except BaseException as error:  # raised later, in the order of the runs
        return FailedRun(error)


def unwrap(result: Result | FailedRun) -> Result:
    """Return a result, or raise its error."""
    if isinstance(result, FailedRun):
        raise result.error
    return result


class CannotRunError(LimpetError):
    """Raised by an evaluation to exclude a setting from a sweep."""


@dataclass(frozen=True, eq=False)
class SweepResult:
    """Results of a sweep.

    Attributes
    ----------
    settings : sequence
    values : array of shape (settings, streams, restarts, …)
        NaN for settings that cannot run.
    cannot_run : dict of int to str
        By the index of a setting, the reason why it cannot run.
    """

    settings: Sequence[Any]
    values: FloatArray
    cannot_run: dict[int, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.values.shape))
        return f"SweepResult({shape} values, {len(self.cannot_run)} settings cannot run)"


def sweep(
    settings: Iterable[Any],
    streams: Iterable[Item],
    evaluate: Callable[[Any, Item, int], npt.ArrayLike],
    *,
    restarts: int = 1,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SweepResult:
    """Evaluate every setting on every stream, `restarts` times.

    Threads share the work; kernels release the interpreter lock. Results do not depend on the number of workers, to
    the last bit. Warnings about the data (`LimpetWarning`) are ignored meanwhile.

    Parameters
    ----------
    settings, streams : iterables
        Objects that `evaluate` accepts.
    evaluate : function (setting, stream, restart) → number or array
        The restart, 0, 1, …, may serve as a seed. All arrays must have one shape. `CannotRunError` excludes the
        setting; any other error ends the sweep, with a note that names setting, stream and restart.
    restarts : int
        How often each setting is evaluated on each stream.
    workers : int, optional
        Number of threads. Default: the cores that this process may use.
    progress : function (done, total), optional
        Called from this thread after each evaluation. total: settings × streams × restarts.

    Examples
    --------
    >>> sweep([2.0, 3.0], [10.0, 20.0], lambda setting, stream, restart: setting * stream).values[:, :, 0]
    array([[20., 40.],
           [30., 60.]])
    """
    _check_function("evaluate", evaluate, "(setting, stream, restart) → number")

    def evaluate_group(group: Sequence[Any], stream: Item, restart: int) -> list[npt.ArrayLike | FailedRun]:
        return [run_safely(evaluate, setting, stream, restart) for setting in group]

    return sweep_in_groups(settings, streams, evaluate_group, 1, restarts, workers, progress)


def sweep_in_groups(
    settings: Iterable[Any],
    streams: Iterable[Item],
    evaluate: Callable[[Sequence[Any], Item, int], Sequence[npt.ArrayLike | FailedRun]],
    size: int,
    restarts: int,
    workers: int | None,
    progress: Callable[[int, int], None] | None,
) -> SweepResult:
    """Run a sweep whose `evaluate` takes up to `size` settings at a time.

    It raises the error that a sweep of single settings would meet first, and reports progress like one.
    """
    settings, streams = to_list("settings", settings), to_list("streams", streams)
    if progress is not None:
        _check_function("progress", progress, "(done, total)")
    restarts = check_int("restarts", restarts, 1)
    threads = n_threads() if workers is None else check_int("workers", workers, 1)
    groups = [settings[first : first + size] for first in range(0, len(settings), size)]
    n_requested = [len(group) for group in groups]  # number of settings of each group before an error
    jobs = list(product(range(len(groups)), range(len(streams)), range(restarts)))
    total = len(settings) * len(streams) * restarts
    results: dict[tuple[int, int, int], FloatArray | None] = {}
    cannot_run: dict[int, str] = {}
    first_error: BaseException | None = None

    def evaluate_group(g: int, i: int, r: int) -> list[FloatArray | FailedRun]:
        return [run_safely(_to_value, result) for result in evaluate(groups[g][: n_requested[g]], streams[i], r)]

    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        warnings.simplefilter("ignore", LimpetWarning)
        futures = [pool.submit(evaluate_group, *job) for job in jobs]
        try:
            for (g, i, r), future in zip(jobs, futures, strict=True):
                for s, result in enumerate(future.result()[: n_requested[g]], start=g * size):
                    if not isinstance(result, FailedRun):
                        results[s, i, r] = result
                    elif isinstance(result.error, CannotRunError):
                        results[s, i, r] = None
                        cannot_run.setdefault(s, str(result.error))
                    else:
                        first_error, n_requested[g] = result.error, s - g * size
                        if isinstance(first_error, Exception):
                            location = f"{describe_stream(streams[i], i)}, restart {r}"
                            first_error.add_note(f"settings[{s}] = {short_repr(settings[s])}, {location}")
                        break
                    if progress is not None:
                        progress(len(results), total)
                is_last = (i, r) == (len(streams) - 1, restarts - 1)
                if first_error is not None and (is_last or not n_requested[g]):  # no earlier setting can fail any more
                    raise first_error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    shapes = {value.shape for value in results.values() if value is not None}
    if len(shapes) > 1:
        raise InvalidInputError(f"evaluate: must always return the same shape, got {sorted(shapes)}.")
    values = np.full((len(settings), len(streams), restarts, *next(iter(shapes), ())), np.nan)
    for index, value in results.items():
        if value is not None and index[0] not in cannot_run:
            values[index] = value
    return SweepResult(settings, values, dict(sorted(cannot_run.items())))


def describe_stream(stream: object, index: int) -> str:
    """Return the index of a stream and, if it has one, its name."""
    return f"streams[{index}] {stream.name!r}" if isinstance(stream, Stream) else f"streams[{index}]"


def to_list(name: str, values: Any) -> list[Any]:
    """Return the members of an iterable; a single stream is a list of one."""
    if isinstance(values, Stream):
        return [values]
    if isinstance(values, str | bytes | Mapping):
        raise invalid_param_error(name, "must be a list", values, f"Write [{name[:-1]}] for a single {name[:-1]}.")
    if not np.iterable(values):
        raise invalid_param_error(name, "must be a list", values)
    items = list(values)
    if not items:
        raise InvalidInputError(f"{name}: must have at least one {name[:-1]}, got none.")
    return items


def _to_value(result: Any) -> FloatArray:
    try:
        value = np.asarray(result)
    except ValueError:  # rows of unequal length
        value = np.asarray(None)
    if value.dtype.kind not in "biuf":
        raise invalid_param_error("evaluate", "must return a number or an array of numbers", result)
    return value.astype(np.float64, copy=False)


def _check_function(name: str, function: Any, arguments: str) -> None:
    if not callable(function):
        raise invalid_param_error(name, f"must be a function {arguments}", function)


def short_repr(value: Any) -> str:
    """Return the representation of a value, truncated for an error message."""
    return truncate(repr(value), 200)
