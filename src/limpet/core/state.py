"""The flat state: one float64 vector a stream, of which everything else is a view.

    [ header | theta | start ]

`header` counts, `theta` is what the model learns (the model declares its fields), `start` holds the first points
until the model is started from them and is dead weight afterwards: whoever keeps a million states keeps
only `header` and `theta`.

For a call, settings, a working area and the state lie in one *cell* `[ settings | work | state ]`, because every array
that is handed to a compiled function costs the call about 80 ns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from limpet._jit.compile import Vector as Vector

# The header. Counts are exact in a float64 up to 2^53 points.
N_SEEN = 0  # points that came, of any kind
N_REJECTED = 1  # points the threshold rejected
N_INVALID = 2  # points that could not be used: not a number, infinite, outside the model's support
CONSECUTIVE_REJECTIONS = (
    3  # points dropped in a row, up to the last one; below 0, points yet to come for which the threshold is lifted
)
N_BUFFERED = 4  # points held in `start`; once the model has started, −1 − the usable points before the first one held
HEADER_SIZE = 5

MISSING_SENTINEL = -np.finfo(np.float64).max  # a missing coordinate in `start`: no state ever holds a NaN


@dataclass(frozen=True)
class Layout:
    """Where each field of `theta` lies: name → shape, in order."""

    fields: Mapping[str, tuple[int, ...]]

    @cached_property
    def size(self) -> int:
        """How many numbers `theta` has."""
        return sum(prod(shape) for shape in self.fields.values())

    def view(self, theta: Vector, name: str) -> Vector:
        """The field `name` of `theta`, as a view in its shape.

        >>> layout = Layout({"weights": (2,), "means": (2, 3)})
        >>> layout.view(np.arange(8.0), "means")
        array([[2., 3., 4.],
               [5., 6., 7.]])
        """
        shape, offset = self.fields[name], self.offset(name)
        return theta[offset : offset + prod(shape)].reshape(shape)

    def offset(self, name: str) -> int:
        """The index in `theta` at which the field `name` begins.

        >>> Layout({"weights": (2,), "means": (2, 3)}).at("means")
        2
        """
        return self._offsets[name]

    @cached_property
    def _offsets(self) -> dict[str, int]:
        sizes = [prod(shape) for shape in self.fields.values()]
        return dict(zip(self.fields, accumulate([0, *sizes]), strict=False))


def n_float64_slots(n: int, dtype: type[np.floating[Any]]) -> int:
    """Places of a state that n numbers of this type take.

    >>> places_of(5, np.float64), places_of(5, np.float32)
    (5, 3)
    """
    return -(-n * np.dtype(dtype).itemsize // 8)


class StreamBuffer:
    """The memory of one stream: settings, working area and state, laid out in one vector.

    theta_size: how many numbers theta has, of the type `number`: float32 takes half of the room.
    """

    def __init__(
        self,
        settings: Vector,
        work_size: int,
        theta_size: int,
        start_shape: tuple[int, int],
        dtype: type[np.floating[Any]] = np.float64,
    ) -> None:
        work_offset = len(settings)
        state_offset = work_offset + work_size
        theta_offset = state_offset + HEADER_SIZE
        start_offset = theta_offset + n_float64_slots(theta_size, dtype)
        self.vector: Vector = np.zeros(start_offset + prod(start_shape))
        self.vector[:work_offset] = settings
        self.settings: Vector = self.vector[:work_offset]
        self.work: Vector = self.vector[work_offset:state_offset]
        self.state: Vector = self.vector[state_offset:]
        self.header: Vector = self.vector[state_offset:theta_offset]
        self.theta: Vector = self.vector[theta_offset:start_offset].view(dtype)
        self.start: Vector = self.vector[start_offset:].reshape(start_shape)

    @property
    def flat(self) -> Vector:
        """The flat state."""
        return self.state

    def release_start_buffer(self) -> None:
        """The model has started, and the first points are not needed any more."""
        self.start[:] = 0.0


class StreamBufferView(StreamBuffer):
    """The memory of one stream among many: a row of the matrix of states and, until it starts, one of the starts."""

    def __init__(self, template: StreamBuffer, row: Vector, start: Vector) -> None:
        self.vector = np.zeros(0)  # it does not lie in one piece
        self.settings, self.work = template.settings.copy(), np.zeros_like(template.work)
        self._theta_end, self._dtype = HEADER_SIZE + len(template.theta.view(np.float64)), template.theta.dtype
        self.on_started: Callable[[], None] | None = None
        self.set_row(row, start)

    def set_row(self, row: Vector, start: Vector) -> None:
        """The row is elsewhere now."""
        self.state, self.start = row, start
        self.header, self.theta = row[:HEADER_SIZE], row[HEADER_SIZE : self._theta_end].view(self._dtype)

    @property
    def flat(self) -> Vector:
        """A copy of the flat state; before the start there is nothing in theta yet."""
        theta = self.theta if self.header[N_BUFFERED] < 0.0 else np.zeros_like(self.theta)
        return np.concatenate([self.header, theta.view(np.float64), self.start.reshape(-1)])

    def release_start_buffer(self) -> None:
        """Whoever has lent the first points their place is told."""
        super().release_start_buffer()
        if self.on_started is not None:
            self.on_started()
            self.on_started = None
