"""Update point by point without a `Step` each, for adapters that call a learner in a tight loop.

Making a `Step` and inspecting the type of a point cost more than the kernel. Here the caller writes numbers to the
memory that the compiled code reads, and reads its results from memory.
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
    """The buffers of one point, and compiled calls on them.

    Attributes
    ----------
    write_point : callable
        ``write_point(*numbers)`` sets the point, one number per variable; anything else is an error of `struct`.
    learn : callable
        Learn the point. Unless ``outcome[0]`` is 0 afterwards, the caller calls `handle_outcome` of the learner.
    score_only : callable
        Score the point without learning: ``score[0]``, and for a Detector its p-value, ``score[1]``.
    log_evidence_margin : callable
        `Detector.change_evidence` after the last point; −∞ for other learners.
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
    """Compile an entry point for its arguments and bind them."""
    entry, arguments = call
    return partial(unchecked_entry_point(entry, *arguments), *arguments)
