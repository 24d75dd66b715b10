"""Grids: every combination of some choices."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from limpet.exceptions import InvalidInputError

Setting = dict[str, Any]


def grid(**choices: Any) -> list[Setting]:
    """Return every combination of some choices, the last one varying fastest.

    Parameters
    ----------
    **choices
        Each a list or another iterable of values. A string, a mapping or an object that is not iterable is one value.

    Returns
    -------
    list of dict

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
    if isinstance(choice, str | bytes | Mapping):
        return [choice]
    try:
        members = iter(choice)
    except TypeError:
        return [choice]
    values = list(members)
    if not values:
        raise InvalidInputError(f"{name}: must be at least one value, got {choice!r}. Leave it out for the default.")
    return values
