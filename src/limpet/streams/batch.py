"""What a source gives: some points in the order in which they came, and where it goes on after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.core.state import Vector
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet._key_index import StrKeys
from limpet.streams.rejects import RejectLog
from limpet.streams.timestamps import NUMBER_FORMAT, TEXT_FORMAT, Times, infer_time_format, parse_time, to_time_array

Integers = npt.NDArray[np.int64]


@dataclass(eq=False)
class Batch:
    """Some points of a source.

    values: (n, d) numbers, NaN where one is missing; (n,) for a single variable.
    position: where the source goes on after these points: anything that JSON can hold.
    names: of the d variables.
    keys: of which stream each point is, as texts; None if there is one stream only.
    times: when each point was; numbers, datetime64, or texts in ISO 8601 or any other form.
    channels: where the variables of one record are streams of their own, which variable each point is.
    n_records, places: how many records were read, refused ones included, and which of them each point is; by default
        each point is one.
    refused: the records that could not be read.
    behind: how much is still waiting to be read, as far as is known, in records or, with `behind_in`, something else.
    zoned: whether times have a zone; they are those of UTC then.
    urgent: that the source cannot go on for long before what it has given has been committed.

    >>> batch = Batch([1.0, 2.0], position=2)
    >>> len(batch), batch.values.shape, batch.places
    (2, (2, 1), array([0, 1]))
    """

    values: Vector
    position: Any = None
    names: tuple[str, ...] | None = None
    keys: StrKeys | None = None
    times: Times | None = None
    variable_names: StrKeys | None = None
    n_records: int = -1
    record_index: Integers | None = None
    rejects: RejectLog = field(default_factory=RejectLog)
    lag: int | None = None
    lag_unit: str = "records"
    tz_aware: bool = False
    urgent: bool = False

    def __post_init__(self) -> None:
        values = np.asarray(self.values, np.float64)
        self.values = values.reshape(-1, 1) if values.ndim == 1 else values
        if self.values.ndim != 2:
            raise InvalidInputError(f"a batch has values of shape (n,) or (n, d), got {np.shape(values)}")
        if self.keys is not None and not isinstance(self.keys, StrKeys):
            self.keys = StrKeys([None if key is None else str(key) for key in self.keys])
        if self.times is not None:
            self.times = _normalize_times(self.times)
        if self.record_index is None:
            self.record_index = np.arange(len(self.values))
        if self.n_records < 0:
            self.n_records = len(self.values)
        for name, column in (("keys", self.keys), ("times", self.times), ("places", self.record_index)):
            if column is not None and len(column) != len(self.values):
                raise InvalidInputError(
                    f"a batch has as many {name} as points, got {len(column)} and {len(self.values)}"
                )

    def __len__(self) -> int:
        return len(self.values)

    def filter(self, mask: npt.NDArray[np.bool_]) -> Batch:
        """The same with some of its points."""
        assert self.record_index is not None
        indexes = np.flatnonzero(mask)
        return replace(
            self,
            values=self.values[mask],
            keys=None if self.keys is None else self.keys.take(indexes),
            times=None if self.times is None else self.times[mask],
            variable_names=None if self.variable_names is None else self.variable_names.take(indexes),
            record_index=self.record_index[mask],
        )


def _normalize_times(times: Any) -> Times:
    """Times in one of the three forms."""
    array = times if isinstance(times, np.ndarray) else np.asarray(times)
    if array.dtype.kind == "M":
        return array.astype("datetime64[ns]")
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    if array.dtype == object and isinstance(times, np.ndarray):
        return times
    values: Sequence[Any] = list(times)
    kind = infer_time_format(values[:100]) or TEXT_FORMAT
    parsed = [parse_time(value, kind) for value in values]
    if None in parsed and values:
        raise InvalidInputError(f"times: expected numbers, or texts in ISO 8601, got {values[parsed.index(None)]!r}")
    return to_time_array(parsed, kind if values else NUMBER_FORMAT)


# Positions that a checkpoint brings back: whether they are of the source that is to go on.


def position_field(position: Any, name: str, kind: type) -> Any:
    """A part of a position; None without a position."""
    if position is None:
        return None
    if not isinstance(position, dict) or not isinstance(position.get(name), kind):
        raise InvalidInputError(f"the position {position!r:.80} is not one of this source: it has no {name!r}")
    return position[name]


def check_same_position_field(position: Any, name: str, current: str, label: str) -> None:
    """That a position is of the same topic, or whatever it is, as now.

    >>> require_same_part({"topic": "a"}, "topic", "b", "kafka topic")
    Traceback (most recent call last):
    ...
    limpet.exceptions.CheckpointError: the checkpoint is of kafka topic a, now it is b: give another --checkpoint folder
    """
    stored = position_field(position, name, str)
    if stored is not None and stored != current:
        raise CheckpointError(
            f"the checkpoint is of {label} {stored}, now it is {current}: give another --checkpoint folder"
        )
