"""Every combination of some choices."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from limpet.exceptions import InvalidInputError

Setting = dict[str, Any]


def grid(**choices: Any) -> list[Setting]:
    """Returns every combination, the last choice varying fastest.

    A choice is a list of values, or anything else to go through; a number, a string or whatever else has no members is
    one value.

    >>> grid(gamma=[1.0, 3.0], M=[5.0, 10.0])
    [{'gamma': 1.0, 'M': 5.0}, {'gamma': 1.0, 'M': 10.0}, {'gamma': 3.0, 'M': 5.0}, {'gamma': 3.0, 'M': 10.0}]
    >>> grid(norm="mean", gamma=(1.0, 3.0))
    [{'norm': 'mean', 'gamma': 1.0}, {'norm': 'mean', 'gamma': 3.0}]
    """
    values = [_choice_values(name, choice) for name, choice in choices.items()]
    return [dict(zip(choices, combination, strict=True)) for combination in product(*values)]


def _choice_values(name: str, choice: Any) -> list[Any]:
    if isinstance(choice, str | bytes | Mapping):
        return [choice]
    try:
        members = iter(choice)
    except TypeError:
        return [choice]
    values = list(members)
    if not values:
        raise InvalidInputError(f"{name}: expected at least one value, got {choice!r}; leave it out for the default")
    return values
