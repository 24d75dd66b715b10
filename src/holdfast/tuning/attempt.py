"""An error as an answer: what one of many computations ended with, while the others go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

Params = ParamSpec("Params")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class FailedRun:
    """What was raised in place of an answer."""

    error: BaseException


def run_safely(function: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result | FailedRun:
    """The answer, or the error.

    >>> attempt(int, "3"), attempt(int, "three").error
    (3, ValueError("invalid literal for int() with base 10: 'three'"))
    """
    try:
        return function(*args, **kwargs)
    except BaseException as error:  # it is raised where its turn comes
        return FailedRun(error)


def unwrap(result: Result | FailedRun) -> Result:
    """The answer; raises the error.

    >>> answer_of(attempt(int, "3"))
    3
    """
    if isinstance(result, FailedRun):
        raise result.error
    return result
