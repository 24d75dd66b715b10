"""Reading what is given to a sweep, with errors that say what was expected, what came and what to write instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.datasets import Stream
from holdfast.errors import BadInputError, WrongTypeError
from holdfast.learners import StochasticApproximation
from holdfast.tuning.grid import Setting

LONGEST = 200  # characters of a value that an error shows


def as_list(name: str, given: Any) -> list[Any]:
    """The members of a list, tuple, array or generator; a single stream is a list of one.

    >>> as_list("settings", (n for n in range(3)))
    [0, 1, 2]
    """
    if isinstance(given, Stream):
        return [given]
    if isinstance(given, str | bytes | Mapping):
        raise BadInputError(f"{name}: expected a list, got {shown(given)}; of a single one make a list: [{name[:-1]}]")
    try:
        members = iter(given)
    except TypeError:
        raise BadInputError(f"{name}: expected a list, got {shown(given)}") from None
    listed = list(members)
    if not listed:
        raise BadInputError(f"{name}: expected at least one {name[:-1]}, got none")
    return listed


def as_settings(settings: Iterable[Setting]) -> list[Setting]:
    """The settings of a learner, each a dict."""
    if isinstance(settings, Mapping):
        came = shown(settings)
        raise BadInputError(f"settings: expected a list of dicts, got the dict {came}; write grid(…) or [setting]")
    listed = as_list("settings", settings)
    for place, setting in enumerate(listed):
        if not isinstance(setting, Mapping):
            came = f"{shown(setting)} at place {place}"
            raise BadInputError(f"settings: expected dicts, as grid(gamma=[1.0, 3.0]) makes them, got {came}")
    return listed


def as_streams(streams: Iterable[Stream] | Stream) -> list[Stream]:
    """The streams to tune on, each a Stream."""
    advice = "make one of your data: Stream(y, change_points=[…]) or Stream(y, labels=…)"
    if isinstance(streams, str | Mapping) or not isinstance(streams, Iterable | Stream):
        raise BadInputError(f"streams: expected a list of Stream, got {type(streams).__name__}; {advice}")
    listed = as_list("streams", streams)
    for place, stream in enumerate(listed):
        if not isinstance(stream, Stream):
            is_data = hasattr(streams, "__array__")  # an array or a dataframe, not a list of them
            came = type(streams).__name__ if is_data else f"{type(stream).__name__} at place {place}"
            raise BadInputError(f"streams: expected a list of Stream, got {came}; {advice}")
    return listed


def as_value(result: Any) -> npt.NDArray[np.float64]:
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
        raise BadInputError(f"expected {expected}, got {shown(result)}")
    return value.astype(np.float64, copy=False)


def check_function(name: str, given: Any, arguments: str) -> None:
    """Refuses what cannot be called."""
    if not callable(given):
        raise BadInputError(f"{name}: expected a function {arguments}, got {shown(given)}")


def check_learner(learner: Any) -> None:
    """Refuses what makes no learners: a learner that is already made, a name."""
    if isinstance(learner, StochasticApproximation):
        advice = f"write {type(learner).__name__}; what it is made with belongs in the settings"
        raise BadInputError(f"learner: expected a class or a function, got the learner {shown(learner)}; {advice}")
    if not callable(learner):
        expected = "a class such as SRA, or a function that makes a learner of a setting"
        raise BadInputError(f"learner: expected {expected}, got {shown(learner)}")


def check_objective(objective: Any) -> None:
    """Refuses what does not tell how well a learner does and whether more is better."""
    if isinstance(objective, type):
        name = objective.__name__
        raise BadInputError(f"objective: expected an object, got the class {name}; write {name}(…)")
    if not callable(objective) or not isinstance(getattr(objective, "largest", None), bool | np.bool_):
        raise BadInputError(
            "objective: expected BenefitAUC(tolerance), MeanError(), LabelAUC(), or an object of your own with "
            f"`largest`, True or False, and __call__(learner, stream), got {shown(objective)}"
        )


def check_seeds(learner: Callable[..., Any], settings: Iterable[Setting]) -> None:
    """Refuses restarts that would all be the same, or whose seed a setting has taken."""
    if not takes_seed(learner):
        raise WrongTypeError(f"{learner!r} takes no seed: restarts would all be the same")
    if any("seed" in setting for setting in settings):
        raise BadInputError("settings: expected no seed in them, since each restart is a seed; got one. Leave it out")


def takes_seed(learner: Callable[..., Any]) -> bool:
    """Whether it may be called with `seed`; what does not show its arguments is given the benefit of the doubt.

    >>> takes_seed(lambda rho: rho), takes_seed(lambda **setting: setting)
    (False, True)
    """
    try:
        parameters = inspect.signature(learner).parameters.values()
    except (TypeError, ValueError):  # compiled, in C
        return True
    return any(
        one.kind is one.VAR_KEYWORD or (one.name == "seed" and one.kind is not one.POSITIONAL_ONLY)
        for one in parameters
    )


def shown(value: Any) -> str:
    """A value as an error shows it.

    >>> shown("mean"), len(shown(list(range(1000))))
    ("'mean'", 200)
    """
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
