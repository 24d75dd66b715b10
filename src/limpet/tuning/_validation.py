"""Reading what is given to a sweep, with errors that say what was expected, what came and what to write instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.datasets import Stream
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.learners import StochasticApproximation
from limpet.tuning.grid import Setting

MAX_REPR_CHARACTERS = 200  # characters of a value that an error shows


def to_list(name: str, values: Any) -> list[Any]:
    """The members of a list, tuple, array or generator; a single stream is a list of one.

    >>> as_list("settings", (n for n in range(3)))
    [0, 1, 2]
    """
    if isinstance(values, Stream):
        return [values]
    if isinstance(values, str | bytes | Mapping):
        raise InvalidInputError(
            f"{name}: expected a list, got {short_repr(values)}; of a single one make a list: [{name[:-1]}]"
        )
    try:
        members = iter(values)
    except TypeError:
        raise InvalidInputError(f"{name}: expected a list, got {short_repr(values)}") from None
    items = list(members)
    if not items:
        raise InvalidInputError(f"{name}: expected at least one {name[:-1]}, got none")
    return items


def to_settings(settings: Iterable[Setting]) -> list[Setting]:
    """The settings of a learner, each a dict."""
    if isinstance(settings, Mapping):
        received = short_repr(settings)
        raise InvalidInputError(
            f"settings: expected a list of dicts, got the dict {received}; write grid(…) or [setting]"
        )
    items = to_list("settings", settings)
    for index, setting in enumerate(items):
        if not isinstance(setting, Mapping):
            received = f"{short_repr(setting)} at place {index}"
            raise InvalidInputError(f"settings: expected dicts, as grid(gamma=[1.0, 3.0]) makes them, got {received}")
    return items


def to_streams(streams: Iterable[Stream] | Stream) -> list[Stream]:
    """The streams to tune on, each a Stream."""
    advice = "make one of your data: Stream(y, change_points=[…]) or Stream(y, labels=…)"
    if isinstance(streams, str | Mapping) or not isinstance(streams, Iterable | Stream):
        raise InvalidInputError(f"streams: expected a list of Stream, got {type(streams).__name__}; {advice}")
    items = to_list("streams", streams)
    for index, stream in enumerate(items):
        if not isinstance(stream, Stream):
            is_array_like = hasattr(streams, "__array__")  # an array or a dataframe, not a list of them
            received = type(streams).__name__ if is_array_like else f"{type(stream).__name__} at place {index}"
            raise InvalidInputError(f"streams: expected a list of Stream, got {received}; {advice}")
    return items


def to_value(result: Any) -> npt.NDArray[np.float64]:
    """What an evaluation came to.

    >>> as_value(3)
    array(3.)
    """
    try:
        value = np.asarray(result)
    except ValueError:  # rows of unequal length
        value = np.asarray(None)
    if value.dtype.kind not in "biuf":
        expected = "a number or an array of numbers from every evaluation"
        raise InvalidInputError(f"expected {expected}, got {short_repr(result)}")
    return value.astype(np.float64, copy=False)


def check_function(name: str, function: Any, arguments: str) -> None:
    """Refuses what cannot be called."""
    if not callable(function):
        raise InvalidInputError(f"{name}: expected a function {arguments}, got {short_repr(function)}")


def check_learner(learner: Any) -> None:
    """Refuses what makes no learners: a learner that is already made, a name."""
    if isinstance(learner, StochasticApproximation):
        advice = f"write {type(learner).__name__}; what it is made with belongs in the settings"
        raise InvalidInputError(
            f"learner: expected a class or a function, got the learner {short_repr(learner)}; {advice}"
        )
    if not callable(learner):
        expected = "a class such as SRA, or a function that makes a learner of a setting"
        raise InvalidInputError(f"learner: expected {expected}, got {short_repr(learner)}")


def check_objective(objective: Any) -> None:
    """Refuses what does not tell how well a learner does and whether more is better."""
    if isinstance(objective, type):
        name = objective.__name__
        raise InvalidInputError(f"objective: expected an object, got the class {name}; write {name}(…)")
    if not callable(objective) or not isinstance(getattr(objective, "maximize", None), bool | np.bool_):
        raise InvalidInputError(
            "objective: expected BenefitAUC(tolerance), MeanError(), LabelAUC(), or an object of your own with "
            f"`largest`, True or False, and __call__(learner, stream), got {short_repr(objective)}"
        )


def check_seeds(learner: Callable[..., Any], settings: Iterable[Setting]) -> None:
    """Refuses restarts that would all be the same, or whose seed a setting has taken."""
    if not accepts_seed(learner):
        raise InvalidTypeError(f"{learner!r} takes no seed: restarts would all be the same")
    if any("seed" in setting for setting in settings):
        raise InvalidInputError(
            "settings: expected no seed in them, since each restart is a seed; got one. Leave it out"
        )


def accepts_seed(learner: Callable[..., Any]) -> bool:
    """Whether it may be called with `seed`; what does not show its arguments is given the benefit of the doubt.

    >>> takes_seed(lambda rho: rho), takes_seed(lambda **setting: setting)
    (False, True)
    """
    try:
        parameters = inspect.signature(learner).parameters.values()
    except (TypeError, ValueError):  # compiled, in C
        return True
    return any(
        parameter.kind is parameter.VAR_KEYWORD
        or (parameter.name == "seed" and parameter.kind is not parameter.POSITIONAL_ONLY)
        for parameter in parameters
    )


def short_repr(value: Any) -> str:
    """A value as an error shows it.

    >>> shown("mean"), len(shown(list(range(1000))))
    ("'mean'", 200)
    """
    text = repr(value)
    return text if len(text) <= MAX_REPR_CHARACTERS else text[: MAX_REPR_CHARACTERS - 1] + "…"
