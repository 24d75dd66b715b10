"""Every combination of some choices."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

Setting = dict[str, Any]


def grid(**choices: Iterable[Any]) -> list[Setting]:
    """Returns every combination, the last choice varying fastest.

    >>> grid(gamma=[1.0, 3.0], M=[5.0, 10.0])
    [{'gamma': 1.0, 'M': 5.0}, {'gamma': 1.0, 'M': 10.0}, {'gamma': 3.0, 'M': 5.0}, {'gamma': 3.0, 'M': 10.0}]
    """
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
