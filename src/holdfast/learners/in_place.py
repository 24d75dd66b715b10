"""One point after another at the same place in memory: for callers in other libraries, who ask in a tight loop.

A `Step` for each point, and the questions of what kind of point it is, cost more than the kernel does. Here the caller
puts numbers where the compiled code reads them, and reads what it wrote.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.scheme.compiling import direct
from holdfast.scheme.state import Vector

Call = tuple[Callable[..., Any], tuple[Any, ...]]


class InPlace:
    """Where a point is put, what is done with it, and where the answer is.

    put(*numbers): the point, as many numbers as there are variables; not a number is an error of `struct`.
    learn(): learns it; `fate[0]` is what became of it. Unless that is 0, `follow_up` of the learner is to be called.
    assess(): looks at it, and learns nothing: `score[0]`, and on autopilot its p-value, `score[1]`.
    certainty(): on autopilot, how near to an alarm of a change the last point has come; see `SRA.certainty`.
    """

    __slots__ = ("assess", "certainty", "fate", "learn", "put", "score")

    def __init__(
        self,
        row: Vector,
        score: Vector,
        fate: npt.NDArray[np.int8],
        learn: Call,
        assess: Call,
        certainty: Call | None = None,
    ) -> None:
        self.put: Callable[..., None] = partial(Struct(f"={row.size}d").pack_into, row.data.cast("B"), 0)
        self.score, self.fate = score.data, fate.data
        self.learn, self.assess = bound(learn), bound(assess)
        self.certainty: Callable[[], float] = (lambda: -math.inf) if certainty is None else bound(certainty)


def bound(call: Call) -> Callable[[], Any]:
    """An entry point with its arguments, compiled for them."""
    entry, arguments = call
    return partial(direct(entry, *arguments), *arguments)
