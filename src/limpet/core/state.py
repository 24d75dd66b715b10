"""The flat state: one float64 vector per stream, with views of its parts.

    [ header | theta | start ]

`header` has counts, `theta` the parameters (the model declares their fields), and `start` buffers the first points
until the model is initialized and is unused afterwards: a fleet stores only `header` and `theta`.

For calls of compiled functions, settings, workspace and state are in one buffer `[ settings | work | state ]`, because
each array argument costs about 80 ns per call.
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
N_SEEN = 0  # points of any kind
N_REJECTED = 1  # points the threshold rejected
N_INVALID = 2  # invalid points: NaN, infinite, outside the model's support
CONSECUTIVE_REJECTIONS = 3  # up to the last point; below 0: minus the points for which the threshold is still lifted
N_BUFFERED = 4  # points in `start`; after the start of the model −1 − the number of valid points before the buffer
HEADER_SIZE = 5

MISSING_SENTINEL = -np.finfo(np.float64).max  # a missing coordinate in `start`: states never hold NaN


@dataclass(frozen=True)
class Layout:
    """Fields of theta: name → shape, in order."""

    fields: Mapping[str, tuple[int, ...]]

    @cached_property
    def size(self) -> int:
        """Number of entries of theta."""
        return sum(prod(shape) for shape in self.fields.values())

    def view(self, theta: Vector, name: str) -> Vector:
        """Return the field `name` of theta, as a view in its shape.

        >>> layout = Layout({"weights": (2,), "means": (2, 3)})
        >>> layout.view(np.arange(8.0), "means")
        array([[2., 3., 4.],
               [5., 6., 7.]])
        """
        shape, offset = self.fields[name], self.offset(name)
        return theta[offset : offset + prod(shape)].reshape(shape)

    def offset(self, name: str) -> int:
        """Return the index in theta at which the field `name` begins.

        >>> Layout({"weights": (2,), "means": (2, 3)}).offset("means")
        2
        """
        return self._offsets[name]

    @cached_property
    def _offsets(self) -> dict[str, int]:
        sizes = [prod(shape) for shape in self.fields.values()]
        return dict(zip(self.fields, accumulate([0, *sizes]), strict=False))


def n_float64_slots(n: int, dtype: type[np.floating[Any]]) -> int:
    """Return the float64 slots of n numbers of this type.

    >>> n_float64_slots(5, np.float64), n_float64_slots(5, np.float32)
    (5, 3)
    """
    return -(-n * np.dtype(dtype).itemsize // 8)


class StreamBuffer:
    """Settings, workspace and state of one stream in one vector.

    theta has `theta_size` entries of type `dtype`, of which float32 takes half the memory.
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
        """Clear the buffer of first points after the start of the model."""
        self.start[:] = 0.0


class StreamBufferView(StreamBuffer):
    """Buffer of a stream of a fleet: views of its rows."""

    def __init__(self, template: StreamBuffer, row: Vector, start: Vector) -> None:
        self.vector = np.zeros(0)  # not contiguous
        self.settings, self.work = template.settings.copy(), np.zeros_like(template.work)
        self._theta_end, self._dtype = HEADER_SIZE + len(template.theta.view(np.float64)), template.theta.dtype
        self.on_started: Callable[[], None] | None = None
        self.set_row(row, start)

    def set_row(self, row: Vector, start: Vector) -> None:
        """Set views of other rows."""
        self.state, self.start = row, start
        self.header, self.theta = row[:HEADER_SIZE], row[HEADER_SIZE : self._theta_end].view(self._dtype)

    @property
    def flat(self) -> Vector:
        """Return a copy of the flat state; theta is 0 before the start."""
        theta = self.theta if self.header[N_BUFFERED] < 0.0 else np.zeros_like(self.theta)
        return np.concatenate([self.header, theta.view(np.float64), self.start.reshape(-1)])

    def release_start_buffer(self) -> None:
        """Clear the buffer of first points and notify its owner."""
        super().release_start_buffer()
        if self.on_started is not None:
            self.on_started()
            self.on_started = None
