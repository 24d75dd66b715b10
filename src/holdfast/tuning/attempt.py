"""An error as an answer: what one of many computations ended with, while the others go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class Failed:
    """What was raised in place of an answer."""

    error: BaseException


def attempt(function: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer | Failed:
    """The answer, or the error.

    >>> attempt(int, "3"), attempt(int, "three").error
    (3, ValueError("invalid literal for int() with base 10: 'three'"))
    """
    try:
        return function(*args, **kwargs)
    except BaseException as error:  # it is raised where its turn comes
        return Failed(error)


def answer_of(attempted: Answer | Failed) -> Answer:
    """The answer; raises the error.

    >>> answer_of(attempt(int, "3"))
    3
    """
    if isinstance(attempted, Failed):
        raise attempted.error
    return attempted
