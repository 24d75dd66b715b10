"""Many streams, one learner each: a row of one matrix."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from limpet import learners
from limpet._validation import check_int
from limpet.core.state import CONSECUTIVE_REJECTIONS, N_INVALID, N_REJECTED, N_SEEN, Vector
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError
from limpet.fleet import serialization
from limpet.fleet._dataframes import is_frame_iterable, process_frame
from limpet.fleet._executor import FleetExecutor
from limpet.fleet._key_index import NO_ROW, Integers, Key, normalize_key
from limpet.fleet._key_input import read_keys
from limpet.fleet._membership import Membership
from limpet.fleet._spill import Spill
from limpet.fleet.serialization import read_fleet
from limpet.learners.base import StochasticApproximation
from limpet.learners.results import Trace
from limpet.learners.serialization import BytesLike, atomic_write, read_header


def check_learner(learner: Any) -> None:
    """Refuses what cannot be the model of many streams."""
    if not isinstance(learner, StochasticApproximation):
        raise InvalidInputError(f"model: expected a learner such as SRA(), got {learner!r}")
    if learner.n_seen:
        raise InvalidInputError(
            "model: expected a learner that has seen nothing: every stream starts from its own points"
        )
    if getattr(learner, "n_components", 1) == "auto":
        raise InvalidInputError(
            "a fleet needs to know the number of components: n_components='auto' is for single streams"
        )
    if learner.model.supervised:
        raise InvalidInputError(
            f"a fleet learns from points alone; {type(learner.model).__name__} learns from pairs (x, y)"
        )


class Fleet:
    """One learner for each of many keyed streams: sensors, machines, accounts.

    Each stream learns as if it were alone, to the last bit, whatever comes in between and however it is cut into calls.
    A key that has not been seen before joins with a stream of its own, which starts from its own first points.

    model: a learner that has seen nothing; every stream gets one with its settings.
    max_keys: how many streams are kept at most. When a further key comes, the stream that has not been seen for longest
        leaves: it is forgotten or, with `spill`, the name of a file, kept there until its key comes again. A file that
        is there already is gone on with.

    Several threads may use a fleet; they take turns.

    >>> import numpy as np
    >>> from limpet import SRA, Fleet
    >>> fleet = Fleet(SRA(gamma=4.0, rho=0.01))
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(200):
    ...     trace = fleet.update(["oil", "water"], rng.normal([90.0, 20.0], 0.5))
    >>> trace = fleet.update(["water", "oil"], [90.0, 90.0])  # too warm for water
    >>> trace.dropped, fleet["oil"].means.round()
    (array([ True, False]), array([[90.]]))
    """

    def __init__(
        self,
        learner: StochasticApproximation,
        *,
        max_keys: int | None = None,
        spill: str | os.PathLike[str] | None = None,
    ) -> None:
        check_learner(learner)
        self.learner = learner.clone()
        self.max_keys = None if max_keys is None else check_int("max_keys", max_keys, 1)
        if spill is not None and max_keys is None:
            raise InvalidInputError("spill says where streams go that have to leave: give max_keys as well")
        self._membership = Membership(self.max_keys, None if spill is None else Spill(spill, repr(self.learner)))
        self._executor = FleetExecutor(self.learner, self._membership)
        self.alarms: list[Alarm] = []
        """What the last call raised, in the order of its rows."""

    # Learning

    def update(self, keys: Any, X: Any) -> Trace:
        """Learns one point for each of many keys, in order; a key may come several times.

        keys: texts or whole numbers. X: (n,), (n, d), a dataframe or a list of dicts. Returns one entry a point. A
        point that cannot be used or has no key is skipped and counted (`counts()`, `n_missing_keys`); the others are not
        touched by it. A call with the keys of the call before does not look them up again.
        """
        trace = self._executor.update(keys, X)
        self.alarms = trace.alarms
        return trace

    def process(self, frame: Any, key: str, values: Any = None, time: str | None = None, prefix: str = "") -> Any:
        """Learns a long dataframe, a row a point, and returns it with the answers as further columns.

        frame: of pandas, polars, pyarrow, or whatever narwhals knows; or an iterator of such frames, for what is larger
            than memory: then an iterator of results comes back, a frame at a time.
        key: the column with the keys. values: the columns to learn from, by default all others that hold numbers.
        time: a column to sort by; without it rows are taken as they come. A row without a time is skipped.
        prefix: of the names of the new columns: score, dropped and bad; on autopilot also change_score, p_value,
            anomaly and change. `alarms` has what was raised.
        """
        if is_frame_iterable(frame):
            return (self.process(part, key, values, time, prefix) for part in frame)
        with self._executor.exclusive_call():
            result, self.alarms = process_frame(self._executor, frame, key, values, time, prefix)
            return result

    def row_indices(self, keys: Any) -> Integers:
        """The row of each key's stream, which it keeps while it is here; −1 where there is none."""
        with self._executor.lock:
            lookup = self._membership.key_index.look_up(read_keys(keys))
            self._membership.key_index.discard_pending(lookup.unknown_keys)
            return np.maximum(lookup.rows, NO_ROW)

    def _suppress_warning(self, topic: str) -> None:
        """No warning on this topic: the caller tells of it himself."""
        self._executor.warnings.suppress(topic)

    # The streams

    def __len__(self) -> int:
        return len(self._membership.key_index)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._membership.key_index)

    def keys(self) -> list[Key]:
        """The keys of all streams that are there."""
        return list(self._membership.key_index)

    def __contains__(self, key: object) -> bool:
        spill, normalized = self._membership.spill, normalize_key(key)
        in_memory = self._membership.key_index.get_row(normalized) is not None
        return in_memory or (spill is not None and normalized is not None and normalized in spill)

    def __getitem__(self, key: Key) -> StochasticApproximation:
        """The learner of one stream: what it learns, the fleet has learnt, and the other way round.

        To ask for it is to see the stream. When the stream has to leave, or is dropped, the learner goes on by itself.
        """
        normalized = normalize_key(key)
        with self._executor.lock:
            if normalized is None or normalized not in self:
                raise KeyError(key)
            ((_, rows),) = self._membership.admit_in_chunks(
                read_keys([normalized])
            )  # which fetches it, if it had to leave
            return self._learner_at_row(int(rows[0]))

    def drop(self, key: Key) -> None:
        """Forgets a stream. A learner of it that someone still holds goes on by itself."""
        normalized = normalize_key(key)
        with self._executor.lock:
            row = self._membership.key_index.get_row(normalized)
            if row is not None:
                self._membership.remove(row)
            elif normalized is None or self._membership.spill is None or not self._membership.spill.remove(normalized):
                raise KeyError(key)

    __delitem__ = drop

    def _learner_at_row(self, row: int) -> StochasticApproximation:
        backend = self._executor.backend
        assert backend is not None
        learner = self.learner.clone()
        engine = learner._make_engine(backend.width)
        engine.buffer = self._membership.state_matrix.get_buffer_view(row, backend.make_buffer_view)
        learner._set_engine(engine)
        learner._names = engine.names = self._executor.feature_names
        return learner

    def counts(self) -> dict[str, Any]:
        """For each stream its key, how many points it has seen, dropped and could not use, and how many it has dropped
        in a row by now: columns of a table. Streams that had to leave are not in it."""
        entries = {
            "n_seen": N_SEEN,
            "n_rejected": N_REJECTED,
            "n_invalid": N_INVALID,
            "consecutive_rejections": CONSECUTIVE_REJECTIONS,
        }
        with self._executor.lock:
            rows, read_counter = self._membership.key_index.rows, self._membership.state_matrix.read_counter
            return {
                "key": self.keys(),
                **{name: np.maximum(read_counter(entry, rows), 0) for name, entry in entries.items()},
            }

    def estimates(self, name: str, keys: Iterable[Key]) -> list[Vector | None]:
        """The same estimate, such as "means", of each of these streams; None for those that have not started.

        Quicker than to ask for the learner of each, and it does not count as having seen them.

        >>> from limpet import SRA
        >>> fleet = Fleet(SRA(gamma=4.0, rho=0.01))
        >>> _ = fleet.update(["oil"] * 20 + ["water"], [90.0, 91.0] * 10 + [20.0])
        >>> oil, water = fleet.estimates("means", ["oil", "water"])
        >>> oil.round(), water
        (array([[90.]]), None)
        """
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
        """Whether the streams run on autopilot."""
        return self._executor.is_auto

    @property
    def n_missing_keys(self) -> int:
        """Points that came without a key."""
        return self._executor.n_missing_keys

    @property
    def n_seen(self) -> int:
        """How many points have come for the streams that are there."""
        return int(self.counts()["n_seen"].sum())

    @property
    def n_rejected(self) -> int:
        """How many of them the threshold rejected."""
        return int(self.counts()["n_rejected"].sum())

    @property
    def n_invalid(self) -> int:
        """How many of them could not be used."""
        return int(self.counts()["n_invalid"].sum())

    # Keeping

    def to_bytes(self) -> bytes:
        """The fleet with all it has learnt, as bytes; `limpet.from_bytes` makes it again."""
        with self._executor.lock:
            return b"".join(serialization.iter_chunks(self))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fleet to one file, whole or not at all; `limpet.load` reads it. Spilled streams are in it."""
        with self._executor.lock:
            atomic_write(path, serialization.iter_chunks(self))

    def close(self) -> None:
        """Lets go of the file of spilled streams, for another fleet to use; there is nothing else to close."""
        if self._membership.spill is not None:
            self._membership.spill.close()

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        if self._membership.spill is not None:
            raise InvalidInputError(
                "a fleet that spills cannot be copied: save it, and load it with a spill of its own"
            )
        return serialization.fleet_from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        limit = f", max_keys={self.max_keys}" if self.max_keys else ""
        return f"Fleet({self.learner!r}{limit}): {len(self)} streams"


# Fleets and learners from bytes and files.


def from_bytes(data: BytesLike, spill: str | os.PathLike[str] | None = None) -> StochasticApproximation | Fleet:
    """The learner or the fleet that `to_bytes` was called on, ready to go on where it was.

    spill: of a fleet with max_keys, the file for streams that have to leave; see `Fleet`.
    """
    header, body = read_header(data)
    if "fleet" in header:
        return read_fleet(header, body if not body.readonly else memoryview(bytearray(body)), spill)
    if spill is not None:
        raise InvalidInputError("spill is for a fleet; these are the bytes of a learner")
    return learners.from_bytes(bytes(data))


def load(path: str | os.PathLike[str], spill: str | os.PathLike[str] | None = None) -> StochasticApproximation | Fleet:
    """The learner or the fleet that was saved to this file. spill: as in `from_bytes`."""
    size = Path(path).stat().st_size
    data = bytearray(size)
    with open(path, "rb") as file:
        file.readinto(data)
    return from_bytes(data, spill)
