"""Batches of points and malformed records of sources, and checks of positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._format import truncate
from limpet.core.state import Vector
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet._key_index import StrKeys
from limpet.streams.schema import Schema
from limpet.streams.timestamps import NUMBER_FORMAT, TEXT_FORMAT, Times, infer_time_format, parse_time, to_time_array

Integers = npt.NDArray[np.int64]
KEY_SEPARATOR = " / "  # between key and variable
MAX_KEPT_ERRORS = 5  # records
MAX_ERROR_CHARS = 80


@dataclass(frozen=True)
class InputError:
    """A malformed record or invalid point: reason, record index, and its beginning."""

    reason: str
    index: int
    text: str

    def __str__(self) -> str:
        return f"record {self.index}: {self.reason}: {self.text}"


@dataclass
class InputErrorLog:
    """Counts of malformed records or invalid points by reason, and the first few.

    >>> malformed = InputErrorLog()
    >>> malformed.add("not JSON", 7, b'{"a": ')
    >>> malformed.total, str(malformed.first[0])
    (1, 'record 7: not JSON: {"a": ')
    """

    counts: Counter[str] = field(default_factory=Counter)
    first: list[InputError] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Number of records or points."""
        return self.counts.total()

    @property
    def remaining_capacity(self) -> int:
        """Number of further records that are kept."""
        return MAX_KEPT_ERRORS - len(self.first)

    def add(self, reason: str, index: int, record: Any) -> None:
        """Count a record, and keep it if it is one of the first."""
        self.count(reason)
        self.keep(reason, index, record)

    def count(self, reason: str, n: int = 1) -> None:
        """Count `n` records without keeping them."""
        if n:
            self.counts[reason] += n

    def keep(self, reason: str, index: int, record: Any) -> None:
        """Keep a counted record, on one line and shortened, if it is one of the first."""
        if self.remaining_capacity:
            if isinstance(record, bytes | bytearray | memoryview):
                record = bytes(record[: 4 * MAX_ERROR_CHARS]).decode("utf-8", "replace")
            text = truncate(record if isinstance(record, str) else repr(record), MAX_ERROR_CHARS)
            self.first.append(InputError(reason, index, text))

    def merge(self, others: InputErrorLog, first_record: int) -> None:
        """Add those of the next batch, whose first record has the index `first_record`."""
        self.counts.update(others.counts)
        new = others.first[: self.remaining_capacity]
        self.first += [replace(error, index=first_record + error.index) for error in new]

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold."""
        return {"counts": dict(self.counts), "first": [list(astuple(error)) for error in self.first]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> InputErrorLog:
        """Restore a log from `to_dict`."""
        return cls(Counter(data["counts"]), [InputError(*fields) for fields in data["first"]])


@dataclass(eq=False)
class Batch:
    """Points of a source in order of arrival, and the position after them.

    Attributes
    ----------
    values : array of shape (n, d) or (n,)
        The values of each point, NaN where one is missing.
    position : object
        Where the source continues after these points: any value that JSON can hold.
    names : tuple of str, optional
        Names of the d variables.
    keys : sequence of str, optional
        The stream of each point; by default all points belong to one stream.
    times : array, optional
        The time of each point: numbers, datetime64, ISO 8601 or any other strings.
    schema : Schema, optional
        The columns of the records, as far as they are known.
    variable_names : StrKeys, optional
        The variable of each point, where the variables of a record are separate streams.
    n_records : int
        Records read, malformed ones included; by default one per point.
    record_index : array of int
        The record of each point; by default one after the other.
    malformed : InputErrorLog
        Malformed records.
    lag : int, optional
        What is still to be read, as far as it is known, in the unit `lag_unit`.
    tz_aware : bool
        Whether the times were given with a time zone; they are in UTC then.
    urgent : bool
        Whether the source cannot continue for long until this batch is committed.

    Examples
    --------
    >>> batch = Batch([1.0, 2.0], position=2)
    >>> len(batch), batch.values.shape, batch.record_index
    (2, (2, 1), array([0, 1]))
    """

    values: Vector
    position: Any = None
    names: tuple[str, ...] | None = None
    keys: StrKeys | None = None
    times: Times | None = None
    schema: Schema | None = None
    variable_names: StrKeys | None = None
    n_records: int = -1
    record_index: Integers | None = None
    malformed: InputErrorLog = field(default_factory=InputErrorLog)
    lag: int | None = None
    lag_unit: str = "records"
    tz_aware: bool = False
    urgent: bool = False

    def __post_init__(self) -> None:
        values = np.asarray(self.values, np.float64)
        self.values = values.reshape(-1, 1) if values.ndim == 1 else values
        if self.values.ndim != 2:
            raise InvalidInputError(f"values: must be of shape (n,) or (n, d), got {np.shape(values)}.")
        if self.keys is not None and not isinstance(self.keys, StrKeys):
            self.keys = StrKeys([None if key is None else str(key) for key in self.keys])
        if self.times is not None:
            self.times = _normalize_times(self.times)
        if self.record_index is None:
            self.record_index = np.arange(len(self.values))
        if self.n_records < 0:
            self.n_records = len(self.values)
        for name, column in (("keys", self.keys), ("times", self.times), ("record_index", self.record_index)):
            if column is not None and len(column) != len(self.values):
                raise InvalidInputError(f"{name}: must have one entry per point, got {len(column)} for {len(self)}.")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables, by default x0, x1 …"""
        return self.names or tuple(f"x{i}" for i in range(self.values.shape[1]))

    def filter(self, mask: npt.NDArray[np.bool_]) -> Batch:
        """Return the batch with the points selected by a mask."""
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
    """Convert times to datetime64[ns], float64 or strings (object)."""
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
        raise InvalidInputError(f"times: must be numbers or ISO 8601 strings, got {values[parsed.index(None)]!r}.")
    return to_time_array(parsed, kind if values else NUMBER_FORMAT)


def composite_keys(batch: Batch) -> StrKeys | None:
    """Return each point's stream: key, variable or both; None for a single stream."""
    keys, channels = batch.keys, batch.variable_names
    if keys is None or channels is None:
        return keys if channels is None else channels
    if not len(batch):
        return StrKeys([])
    assert channels.codes is not None
    index_by_key: dict[Any, int] = {}
    if keys.codes is None:
        codes = np.array([index_by_key.setdefault(key, len(index_by_key)) for key in keys.values], np.int64)
    else:
        unique_codes, first = np.unique(keys.codes, return_index=True)
        values = (*keys.values, None)  # None has the code −1
        index_by_code = np.zeros(len(values), np.int64)
        for code in unique_codes[np.argsort(first)].tolist():
            index_by_code[code] = index_by_key.setdefault(values[code], len(index_by_key))
        codes = index_by_code[keys.codes]
    labels = [f"{key}{KEY_SEPARATOR}{name}" for key in index_by_key for name in channels.values]
    return StrKeys(labels, codes * len(channels.values) + channels.codes)


def position_field(position: Any, name: str, kind: type) -> Any:
    """Return a field of a position, None without one; raise for another source's."""
    if position is None:
        return None
    if not isinstance(position, dict) or not isinstance(position.get(name), kind):
        raise InvalidInputError(f"position: must have {name!r} for this source, got {position!r:.80}.")
    return position[name]


def check_same_position_field(position: Any, name: str, current: str, label: str) -> None:
    """Raise if a position belongs to another topic, subject or stream.

    >>> check_same_position_field({"topic": "a"}, "topic", "b", "kafka topic")
    Traceback (most recent call last):
    ...
    limpet.exceptions.CheckpointError: kafka topic: the checkpoint has 'a', got 'b'. Use a new checkpoint folder.
    """
    stored = position_field(position, name, str)
    if stored is not None and stored != current:
        raise CheckpointError(f"{label}: the checkpoint has {stored!r}, got {current!r}. Use a new checkpoint folder.")
