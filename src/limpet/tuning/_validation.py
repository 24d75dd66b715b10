"""Read the arguments of a sweep.

Errors name the expected value, the received value and a correction.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._format import truncate
from limpet.datasets import Stream
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.learners import Learner
from limpet.tuning.grid import Setting

MAX_REPR_CHARS = 200


def to_list(name: str, values: Any) -> list[Any]:
    """Return the members of a list, tuple, array or generator.

    A single stream is a list of one.

    >>> to_list("settings", (n for n in range(3)))
    [0, 1, 2]
    """
    if isinstance(values, Stream):
        return [values]
    if isinstance(values, str | bytes | Mapping):
        raise InvalidInputError(
            f"{name}: must be a list, got {short_repr(values)}. Write [{name[:-1]}] for a single {name[:-1]}."
        )
    try:
        members = iter(values)
    except TypeError:
        raise InvalidInputError(f"{name}: must be a list, got {short_repr(values)}.") from None
    items = list(members)
    if not items:
        raise InvalidInputError(f"{name}: must have at least one {name[:-1]}, got none.")
    return items


def to_settings(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings of a learner, each a dict."""
    if isinstance(settings, Mapping):
        received = short_repr(settings)
        raise InvalidInputError(
            f"settings: must be a list of dicts, got the dict {received}. Write grid(…) or [setting]."
        )
    items = to_list("settings", settings)
    for index, setting in enumerate(items):
        if not isinstance(setting, Mapping):
            received = f"{short_repr(setting)} at index {index}"
            raise InvalidInputError(f"settings: must be dicts, got {received}. Use grid(gamma=[1.0, 3.0]).")
    return items


def to_streams(streams: Iterable[Stream] | Stream) -> list[Stream]:
    """Return the streams to tune on, each a Stream."""
    advice = "Build a stream from data with Stream(y, change_points=[…]) or Stream(y, labels=…)."
    if isinstance(streams, str | Mapping) or not isinstance(streams, Iterable | Stream):
        raise InvalidInputError(f"streams: must be a list of Stream, got {type(streams).__name__}. {advice}")
    items = to_list("streams", streams)
    for index, stream in enumerate(items):
        if not isinstance(stream, Stream):
            is_array_like = hasattr(streams, "__array__")  # an array or a dataframe, not a list of them
            received = type(streams).__name__ if is_array_like else f"{type(stream).__name__} at index {index}"
            raise InvalidInputError(f"streams: must be a list of Stream, got {received}. {advice}")
    return items


def to_value(result: Any) -> npt.NDArray[np.float64]:
    """Return the result of an evaluation as an array.

    >>> to_value(3)
    array(3.)
    """
    try:
        value = np.asarray(result)
    except ValueError:  # rows of unequal length
        value = np.asarray(None)
    if value.dtype.kind not in "biuf":
        raise InvalidInputError(f"evaluate: must return a number or an array of numbers, got {short_repr(result)}.")
    return value.astype(np.float64, copy=False)


def check_function(name: str, function: Any, arguments: str) -> None:
    """Raise an error if a function is not callable."""
    if not callable(function):
        raise InvalidInputError(f"{name}: must be a function {arguments}, got {short_repr(function)}.")


def check_learner(learner: Any) -> None:
    """Raise an error if `learner` does not make learners: an instance, a name."""
    if isinstance(learner, Learner):
        advice = f"Pass {type(learner).__name__}, and its arguments as settings."
        raise InvalidInputError(
            f"learner: must be a class or a function, got the learner {short_repr(learner)}. {advice}"
        )
    if not callable(learner):
        constraint = "must be a class such as SRA, or a function that makes a learner from a setting"
        raise InvalidInputError(f"learner: {constraint}, got {short_repr(learner)}.")


def check_objective(objective: Any) -> None:
    """Raise an error if an objective is not callable or has no `maximize`."""
    if isinstance(objective, type):
        name = objective.__name__
        raise InvalidInputError(f"objective: must be an object, got the class {name}. Write {name}(…).")
    if not callable(objective) or not isinstance(getattr(objective, "maximize", None), bool | np.bool_):
        raise InvalidInputError(
            "objective: must be BenefitAUC(tolerance), MeanError(), LabelAUC(), or an object with "
            f"`maximize`, True or False, and __call__(learner, stream), got {short_repr(objective)}."
        )


def check_seeds(learner: Callable[..., Any], settings: Iterable[Setting]) -> None:
    """Raise an error if restarts would all be the same, or if a setting has a seed."""
    if not accepts_seed(learner):
        raise InvalidTypeError(f"learner: must accept seed=, or all restarts would be the same, got {learner!r}.")
    if any("seed" in setting for setting in settings):
        raise InvalidInputError("settings: must not have a seed if restarts > 1, got one. Each restart is a seed.")


def accepts_seed(learner: Callable[..., Any]) -> bool:
    """Return whether a function accepts `seed`; True if it has no signature.

    >>> accepts_seed(lambda rho: rho), accepts_seed(lambda **setting: setting)
    (False, True)
    """
    try:
        parameters = inspect.signature(learner).parameters.values()
    except (TypeError, ValueError):  # implemented in C
        return True
    return any(
        parameter.kind is parameter.VAR_KEYWORD
        or (parameter.name == "seed" and parameter.kind is not parameter.POSITIONAL_ONLY)
        for parameter in parameters
    )


def short_repr(value: Any) -> str:
    """Return the representation of a value, truncated for an error message.

    >>> short_repr("mean"), len(short_repr(list(range(1000))))
    ("'mean'", 201)
    """
    return truncate(repr(value), MAX_REPR_CHARS)
