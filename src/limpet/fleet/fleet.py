"""Learn many keyed streams, with states as rows of one matrix."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from limpet import learners
from limpet._validation import Options, check_int, check_param
from limpet.core.state import CONSECUTIVE_REJECTIONS, N_INVALID, N_REJECTED, N_SEEN, Vector
from limpet.detection.alarm import Alarm
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet._dataframes import is_frame_iterable, process_frame
from limpet.fleet._executor import FleetExecutor
from limpet.fleet._key_index import NO_ROW, Integers, Key, normalize_key
from limpet.fleet._key_input import read_keys
from limpet.fleet._membership import Membership, StreamSnapshot
from limpet.fleet._spill import Spill
from limpet.learners.base import Learner, learner_from_config
from limpet.learners.results import Trace
from limpet.learners.serialization import BytesLike, atomic_write, pack_container, read_header


def check_learner(learner: Any) -> None:
    """Raise an error if a learner cannot be that of many streams."""
    if not isinstance(learner, Learner):
        raise InvalidInputError(f"learner: must be a learner such as Detector(), got {learner!r}.")
    if learner.n_seen:
        raise InvalidInputError(
            f"learner: must not have been updated, got n_seen={learner.n_seen}. Each stream is initialized from its "
            "first points; pass learner.clone()."
        )
    if getattr(learner, "n_components", 1) == "auto":
        raise InvalidInputError("n_components: must be an integer for a fleet, got 'auto'.")
    if learner.model.supervised:
        raise InvalidInputError(f"learner: must not need targets in a fleet, got {type(learner.model).__name__}.")


class Fleet:
    """One learner for each of many keyed streams: sensors, machines, accounts.

    Each stream learns as if it were alone, to the last bit, however the points are batched into calls. A new key starts
    a new stream, which is initialized from its first points. Several threads may use a fleet; calls are serialized.

    Parameters
    ----------
    learner : Learner
        A learner that has not been updated. Its parameters are those of every stream.
    max_keys : int, optional
        Maximum number of streams in memory. When a new key exceeds it, the least recently seen stream is evicted: it
        is dropped or, with `spill`, stored.
    spill : path, optional
        The file for evicted streams; a stream is restored when its key returns. An existing file of an equal fleet
        continues to be used.

    Attributes
    ----------
    learner : Learner
        A copy of the learner, without a state.
    alarms : list of Alarm
        The alarms of the last call, in the order of its rows.

    Examples
    --------
    >>> import numpy as np
    >>> from limpet import SRA, Fleet
    >>> fleet = Fleet(SRA(gamma=4.0, rho=0.01))
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(200):
    ...     trace = fleet.update(["oil", "water"], rng.normal([90.0, 20.0], 0.5))
    >>> trace = fleet.update(["water", "oil"], [90.0, 90.0])
    >>> trace.rejected, fleet["oil"].means.round()
    (array([ True, False]), array([[90.]]))
    """

    def __init__(
        self, learner: Learner, *, max_keys: int | None = None, spill: str | os.PathLike[str] | None = None
    ) -> None:
        check_learner(learner)
        self.learner = learner.clone()
        self.max_keys = None if max_keys is None else check_int("max_keys", max_keys, 1)
        if spill is not None and max_keys is None:
            raise InvalidInputError(f"spill: requires max_keys, got spill={spill!r} without it.")
        self._membership = Membership(self.max_keys, None if spill is None else Spill(spill, repr(self.learner)))
        self._executor = FleetExecutor(self.learner, self._membership)
        self.alarms: list[Alarm] = []

    # Learning

    def update(self, keys: Any, X: Any) -> Trace:
        """Learn one point per key, in order; a key may occur several times.

        An invalid point, or one without a key, is counted and not used (`counts`, `n_missing_keys`). If the keys equal
        those of the last call, they are not looked up again.

        Parameters
        ----------
        keys : sequence of str or int
            A list, an array or a column of a dataframe.
        X : array-like of shape (n,) or (n, d), dataframe or list of dict
            One point per key.

        Returns
        -------
        Trace
            One entry per point.
        """
        trace = self._executor.update(keys, X)
        self.alarms = trace.alarms
        return trace

    def process(self, frame: Any, key: str, values: Any = None, time: str | None = None, prefix: str = "") -> Any:
        """Learn a long dataframe, and return it with result columns.

        Parameters
        ----------
        frame : dataframe or iterable of dataframes
            Of pandas, polars, pyarrow or another library that narwhals supports. For an iterable, an iterator of
            results is returned.
        key : str
            The column of keys.
        values : str or list of str, optional
            The columns to learn. Default: all other numeric columns.
        time : str, optional
            The column to sort by. Default: rows are learned in order. A row without a time is invalid.
        prefix : str
            Prefix of the result columns: `score`, `rejected` and `invalid`, and for `Detector` also `p_value`,
            `change_score`, `anomaly` and `change`.

        Returns
        -------
        dataframe or iterator of dataframes
            Of the same library. `alarms` has the alarms of the last frame.
        """
        if is_frame_iterable(frame):
            return (self.process(part, key, values, time, prefix) for part in frame)
        with self._executor.exclusive_call():
            result, self.alarms = process_frame(self._executor, frame, key, values, time, prefix)
            return result

    # For the packages that build on fleets

    def row_indices(self, keys: Any) -> Integers:
        """Return the row of each key, −1 if unknown; fixed while the stream is in memory."""
        with self._executor.lock:
            lookup = self._membership.key_index.look_up(read_keys(keys))
            self._membership.key_index.discard_pending(lookup.unknown_keys)
            return np.maximum(lookup.rows, NO_ROW)

    def suppress_warning(self, code: str) -> None:
        """Suppress warnings with this code: "invalid" or "locked_out"."""
        self._executor.warnings.issued_topics.add(code)

    def config(self) -> dict[str, Any]:
        """Return parameters, width and feature_names; both None before the first points."""
        return {
            "learner": self.learner,
            "width": self._executor.width,
            "feature_names": self._executor.feature_names,
            "max_keys": self.max_keys,
            "spill": None if self._membership.spill is None else self._membership.spill.path,
        }

    # The streams

    def __len__(self) -> int:
        return len(self._membership.key_index)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._membership.key_index)

    def keys(self) -> list[Key]:
        """Return the keys of all streams in memory."""
        return list(self._membership.key_index)

    def __contains__(self, key: object) -> bool:
        spill, normalized = self._membership.spill, normalize_key(key)
        in_memory = self._membership.key_index.get_row(normalized) is not None
        return in_memory or (spill is not None and normalized is not None and normalized in spill)

    def __getitem__(self, key: Key) -> Learner:
        """Return the learner of one stream, which shares its state with the fleet.

        This counts as seeing the stream. When the stream is evicted or dropped, the learner keeps a copy of the state.
        """
        normalized = normalize_key(key)
        with self._executor.lock:
            if normalized is None or normalized not in self:
                raise KeyError(key)
            ((_, rows),) = self._membership.admit_in_chunks(read_keys([normalized]))  # restores a spilled stream
            return self._learner_at_row(int(rows[0]))

    def drop(self, key: Key) -> None:
        """Remove a stream. A learner of it keeps a copy of the state."""
        normalized = normalize_key(key)
        with self._executor.lock:
            row = self._membership.key_index.get_row(normalized)
            if row is not None:
                self._membership.remove(row)
            elif normalized is None or self._membership.spill is None or not self._membership.spill.remove(normalized):
                raise KeyError(key)

    __delitem__ = drop

    def _learner_at_row(self, row: int) -> Learner:
        backend = self._executor.backend
        assert backend is not None
        learner = self.learner.clone()
        engine = learner._make_engine(backend.width)
        engine.buffer = self._membership.state_matrix.get_buffer_view(row, backend.make_buffer_view)
        learner._set_engine(engine)
        learner._names = engine.names = self._executor.feature_names
        return learner

    def counts(self) -> dict[str, Any]:
        """Return the counters of the streams in memory as columns of a table.

        Returns
        -------
        dict
            `key`, `n_seen`, `n_rejected`, `n_invalid` and `consecutive_rejections`.
        """
        entries = {
            "n_seen": N_SEEN,
            "n_rejected": N_REJECTED,
            "n_invalid": N_INVALID,
            "consecutive_rejections": CONSECUTIVE_REJECTIONS,
        }
        with self._executor.lock:
            rows, read_counter = self._membership.key_index.rows, self._membership.state_matrix.read_counter
            counters = {name: np.maximum(read_counter(entry, rows), 0) for name, entry in entries.items()}
            return {"key": self.keys(), **counters}

    def estimates(self, name: str, keys: Iterable[Key]) -> list[Vector | None]:
        """Return an estimate, such as "means", of each of these streams.

        The estimate is None for streams that have not started. Faster than `fleet[key]`, and does not count as seeing
        the streams.

        >>> from limpet import SRA
        >>> fleet = Fleet(SRA(gamma=4.0, rho=0.01))
        >>> _ = fleet.update(["oil"] * 20 + ["water"], [90.0, 91.0] * 10 + [20.0])
        >>> oil, water = fleet.estimates("means", ["oil", "water"])
        >>> oil.round(), water
        (array([[90.]]), None)
        """
        check_param("name", name, Options(*self.learner.model.estimates))
        with self._executor.lock:
            rows = [self._membership.key_index.get_row(normalize_key(key)) for key in keys]
            if None in rows:
                raise KeyError(list(keys)[rows.index(None)])
            backend, states = self._executor.backend, self._membership.state_matrix.states
            assert backend is not None or not rows
            return [backend.estimate(states[row], name) for row in rows]  # type: ignore[union-attr]

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the variables, if the data had any."""
        return self._executor.feature_names

    @property
    def is_auto(self) -> bool:
        """Whether the streams are automatic, as those of `Detector`."""
        return self.learner.is_auto

    @property
    def n_missing_keys(self) -> int:
        """Number of points without a key."""
        return self._executor.n_missing_keys

    @property
    def n_seen(self) -> int:
        """Number of points of the streams in memory."""
        return int(self.counts()["n_seen"].sum())

    @property
    def n_rejected(self) -> int:
        """Number of them that the threshold rejected."""
        return int(self.counts()["n_rejected"].sum())

    @property
    def n_invalid(self) -> int:
        """Number of them that are invalid."""
        return int(self.counts()["n_invalid"].sum())

    # Serialization

    def to_bytes(self) -> bytes:
        """Return the fleet as bytes; `limpet.from_bytes` restores it."""
        with self._executor.lock:
            return b"".join(iter_chunks(self))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fleet and its spilled streams atomically to a file for `limpet.load`."""
        with self._executor.lock:
            atomic_write(path, iter_chunks(self))

    def close(self) -> None:
        """Close the file of spilled streams, so that another fleet can use it."""
        if self._membership.spill is not None:
            self._membership.spill.close()

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        if self._membership.spill is not None:
            raise InvalidInputError(
                "spill: a fleet with a spill file cannot be copied or pickled. Save it, and load it with another file."
            )
        return fleet_from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        limit = f", max_keys={self.max_keys}" if self.max_keys else ""
        return f"Fleet({self.learner!r}{limit}): {len(self)} streams"


# Fleets as bytes and files, in the container of `limpet.learners.serialization`:
#
#     header (parameters of the learner, number of streams, …) | states | start buffers | last seen | keys
#
# Keys are integers of 8 bytes, or strings as a JSON list.


def iter_chunks(fleet: Fleet) -> Iterator[BytesLike]:
    """Yield the parts of a serialized fleet."""
    streams = fleet._membership.all_streams()
    has_str_keys = any(isinstance(key, str) for key in streams.keys[:1])
    keys = json.dumps(streams.keys).encode() if has_str_keys else np.array(streams.keys, "<i8").tobytes()
    header: dict[str, Any] = fleet.learner.config(fleet._executor.width, fleet._executor.feature_names)
    header["fleet"] = {
        "streams": len(streams.keys),
        "state_size": streams.states.shape[1],
        "not_started": len(streams.start_buffers),
        "has_str_keys": has_str_keys,
        "max_keys": fleet.max_keys,
        "spills": fleet._membership.spill is not None,
        "n_missing_keys": fleet.n_missing_keys,
    }
    arrays = (streams.states, streams.start_buffers, streams.last_seen)
    views = (np.ascontiguousarray(array).data.cast("B") for array in arrays if array.size)
    yield from pack_container(header, (*views, keys))


def read_fleet(header: dict[str, Any], body: memoryview, spill: str | os.PathLike[str] | None) -> Fleet:
    """Restore a fleet from header and body."""
    section = header["fleet"]
    n, max_keys = section["streams"], section["max_keys"]
    if section["spills"] and spill is None:
        raise InvalidInputError(
            f"spill: required for a fleet that spills all but {max_keys} streams, got None. Pass spill=FILE."
        )
    fleet = Fleet(learner_from_config(header), max_keys=max_keys, spill=spill)
    fleet._executor.n_missing_keys = section["n_missing_keys"]
    if header["width"] is None:
        return fleet
    fleet._executor.set_width(header["width"], tuple(header["names"]) if header["names"] else None)
    matrix = fleet._membership.state_matrix
    if matrix.states.shape[1] != section["state_size"]:
        raise CheckpointError(f"state_size: must be {matrix.states.shape[1]}, got {section['state_size']}.")
    start_shape = (section["not_started"], *matrix.start_buffers.shape[1:])
    shapes = ((n, section["state_size"]), start_shape, (0 if max_keys is None else n,))
    arrays, offset = [], 0
    for shape, dtype in zip(shapes, ("<f8", "<f8", "<i8"), strict=True):
        count = math.prod(shape)
        arrays.append(np.frombuffer(body, dtype, count, offset).reshape(shape))
        offset += 8 * count
    keys = json.loads(bytes(body[offset:])) if section["has_str_keys"] else np.frombuffer(body[offset:], "<i8").tolist()
    fleet._membership.restore(StreamSnapshot(keys, *arrays))
    return fleet


def fleet_from_bytes(data: bytes) -> Fleet:
    """Restore a fleet from the bytes of `Fleet.to_bytes`."""
    return read_fleet(*read_header(bytearray(data)), None)


def from_bytes(data: BytesLike, spill: str | os.PathLike[str] | None = None) -> Learner | Fleet:
    """Restore a learner or a fleet from the bytes of `to_bytes`.

    Parameters
    ----------
    data : bytes
    spill : path, optional
        The file for evicted streams, for a fleet that had one; see `Fleet`.

    Returns
    -------
    Learner or Fleet
    """
    header, body = read_header(data)
    if "fleet" in header:
        return read_fleet(header, body if not body.readonly else memoryview(bytearray(body)), spill)
    if spill is not None:
        raise InvalidInputError(f"spill: must be None for a learner, got {spill!r}.")
    return learners.from_bytes(bytes(data))


def load(path: str | os.PathLike[str], spill: str | os.PathLike[str] | None = None) -> Learner | Fleet:
    """Restore the learner or the fleet saved to a file; see `from_bytes`."""
    data = bytearray(Path(path).stat().st_size)
    with open(path, "rb") as file:
        file.readinto(data)
    return from_bytes(data, spill)
