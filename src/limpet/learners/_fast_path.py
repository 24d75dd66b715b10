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

from limpet._jit.compile import unchecked_entry_point
from limpet.core.state import Vector

BoundCall = tuple[Callable[..., Any], tuple[Any, ...]]


class FastPath:
    """Where a point is put, what is done with it, and where the answer is.

    put(*numbers): the point, as many numbers as there are variables; not a number is an error of `struct`.
    learn(): learns it; `fate[0]` is what became of it. Unless that is 0, `follow_up` of the learner is to be called.
    assess(): looks at it, and learns nothing: `score[0]`, and on autopilot its p-value, `score[1]`.
    certainty(): on autopilot, how near to an alarm of a change the last point has come; see `SRA.certainty`.
    """

    __slots__ = ("learn", "log_evidence_margin", "outcome", "score", "score_only", "write_point")

    def __init__(
        self,
        row: Vector,
        score: Vector,
        outcome: npt.NDArray[np.int8],
        learn: BoundCall,
        score_only: BoundCall,
        log_evidence_margin: BoundCall | None = None,
    ) -> None:
        self.write_point: Callable[..., None] = partial(Struct(f"={row.size}d").pack_into, row.data.cast("B"), 0)
        self.score, self.outcome = score.data, outcome.data
        self.learn, self.score_only = bind_entry_point(learn), bind_entry_point(score_only)
        self.log_evidence_margin: Callable[[], float] = (
            (lambda: -math.inf) if log_evidence_margin is None else bind_entry_point(log_evidence_margin)
        )


def bind_entry_point(call: BoundCall) -> Callable[[], Any]:
    """An entry point with its arguments, compiled for them."""
    entry, arguments = call
    return partial(unchecked_entry_point(entry, *arguments), *arguments)
