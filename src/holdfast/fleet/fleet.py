"""Many streams, one learner each: a row of one matrix."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from holdfast.alarms.alarm import Alarm
from holdfast.checks import require_whole
from holdfast.errors import BadInputError
from holdfast.fleet import checkpoint
from holdfast.fleet.calls import Calls
from holdfast.fleet.found import NOBODY, Integers
from holdfast.fleet.frames import is_several, process_frame
from holdfast.fleet.keys import Key, as_key
from holdfast.fleet.reading import read_keys
from holdfast.fleet.roster import Roster
from holdfast.fleet.spill import Spill
from holdfast.learners.checkpoint import write
from holdfast.learners.stochastic_approximation import StochasticApproximation
from holdfast.learners.trace import Trace
from holdfast.scheme.state import BAD, DROPPED, RUN, SEEN, Vector


def check_model(model: Any) -> None:
    """Refuses what cannot be the model of many streams."""
    if not isinstance(model, StochasticApproximation):
        raise BadInputError(f"model: expected a learner such as SRA(), got {model!r}")
    if model.n_seen:
        raise BadInputError("model: expected a learner that has seen nothing: every stream starts from its own points")
    if getattr(model, "n_components", 1) == "auto":
        raise BadInputError("a fleet needs to know the number of components: n_components='auto' is for single streams")
    if model.model.supervised:
        raise BadInputError(f"a fleet learns from points alone; {type(model.model).__name__} learns from pairs (x, y)")


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
    >>> from holdfast import SRA, Fleet
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
        model: StochasticApproximation,
        *,
        max_keys: int | None = None,
        spill: str | os.PathLike[str] | None = None,
    ) -> None:
        check_model(model)
        self.model = model.clone()
        self.max_keys = None if max_keys is None else require_whole("max_keys", max_keys, 1)
        if spill is not None and max_keys is None:
            raise BadInputError("spill says where streams go that have to leave: give max_keys as well")
        self._roster = Roster(self.max_keys, None if spill is None else Spill(spill, repr(self.model)))
        self._calls = Calls(self.model, self._roster)
        self.alarms: list[Alarm] = []
        """What the last call raised, in the order of its rows."""

    # Learning

    def update(self, keys: Any, X: Any) -> Trace:
        """Learns one point for each of many keys, in order; a key may come several times.

        keys: texts or whole numbers. X: (n,), (n, d), a dataframe or a list of dicts. Returns one entry a point. A
        point that cannot be used or has no key is skipped and counted (`counts()`, `n_keyless`); the others are not
        touched by it. A call with the keys of the call before does not look them up again.
        """
        trace = self._calls.update(keys, X)
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
        if is_several(frame):
            return (self.process(one, key, values, time, prefix) for one in frame)
        with self._calls.one():
            result, self.alarms = process_frame(self._calls, frame, key, values, time, prefix)
            return result

    def _rows_of(self, keys: Any) -> Integers:
        """The row of each key's stream, which it keeps while it is here; −1 where there is none."""
        with self._calls.lock:
            found = self._roster.keys.look_up(read_keys(keys))
            self._roster.keys.forget(found.unknown)
            return np.maximum(found.rows, NOBODY)

    def _is_told_elsewhere(self, topic: str) -> None:
        """No warning on this topic: the caller tells of it himself."""
        self._calls.teller.is_told_elsewhere(topic)

    # The streams

    def __len__(self) -> int:
        return len(self._roster.keys)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._roster.keys)

    def keys(self) -> list[Key]:
        """The keys of all streams that are there."""
        return list(self._roster.keys)

    def __contains__(self, key: object) -> bool:
        spill, asked = self._roster.spill, as_key(key)
        here = self._roster.keys.row_of(asked) is not None
        return here or (spill is not None and asked is not None and asked in spill)

    def __getitem__(self, key: Key) -> StochasticApproximation:
        """The learner of one stream: what it learns, the fleet has learnt, and the other way round.

        To ask for it is to see the stream. When the stream has to leave, or is dropped, the learner goes on by itself.
        """
        asked = as_key(key)
        with self._calls.lock:
            if asked is None or asked not in self:
                raise KeyError(key)
            ((_, rows),) = self._roster.segments(read_keys([asked]))  # which fetches it, if it had to leave
            return self._member(int(rows[0]))

    def drop(self, key: Key) -> None:
        """Forgets a stream. A learner of it that someone still holds goes on by itself."""
        asked = as_key(key)
        with self._calls.lock:
            row = self._roster.keys.row_of(asked)
            if row is not None:
                self._roster.remove(row)
            elif asked is None or self._roster.spill is None or not self._roster.spill.drop(asked):
                raise KeyError(key)

    __delitem__ = drop

    def _member(self, row: int) -> StochasticApproximation:
        crew = self._calls.crew
        assert crew is not None
        learner = self.model.clone()
        engine = learner._make_engine(crew.width)
        engine.cell = self._roster.store.cell(row, crew.cell)
        learner._open(engine)
        learner._names = engine.names = self._calls.names
        return learner

    def counts(self) -> dict[str, Any]:
        """For each stream its key, how many points it has seen, dropped and could not use, and how many it has dropped
        in a row by now: columns of a table. Streams that had to leave are not in it."""
        entries = {"n_seen": SEEN, "n_dropped": DROPPED, "n_bad": BAD, "dropped_in_a_row": RUN}
        with self._calls.lock:
            rows, count = self._roster.keys.rows, self._roster.store.count
            return {"key": self.keys(), **{name: np.maximum(count(entry, rows), 0) for name, entry in entries.items()}}

    def estimates(self, name: str, keys: Iterable[Key]) -> list[Vector | None]:
        """The same estimate, such as "means", of each of these streams; None for those that have not started.

        Quicker than to ask for the learner of each, and it does not count as having seen them.

        >>> from holdfast import SRA
        >>> fleet = Fleet(SRA(gamma=4.0, rho=0.01))
        >>> _ = fleet.update(["oil"] * 20 + ["water"], [90.0, 91.0] * 10 + [20.0])
        >>> oil, water = fleet.estimates("means", ["oil", "water"])
        >>> oil.round(), water
        (array([[90.]]), None)
        """
        with self._calls.lock:
            rows = [self._roster.keys.row_of(as_key(key)) for key in keys]
            if None in rows:
                raise KeyError(list(keys)[rows.index(None)])
            crew, states = self._calls.crew, self._roster.store.states
            assert crew is not None or not rows
            return [crew.estimate(states[row], name) for row in rows]  # type: ignore[union-attr]

    @property
    def variables(self) -> tuple[str, ...] | None:
        """The names of the variables, if the data had any."""
        return self._calls.names

    @property
    def on_autopilot(self) -> bool:
        """Whether the streams run on autopilot."""
        return self._calls.on_autopilot

    @property
    def n_keyless(self) -> int:
        """Points that came without a key."""
        return self._calls.n_keyless

    @property
    def n_seen(self) -> int:
        """How many points have come for the streams that are there."""
        return int(self.counts()["n_seen"].sum())

    @property
    def n_dropped(self) -> int:
        """How many of them the threshold rejected."""
        return int(self.counts()["n_dropped"].sum())

    @property
    def n_bad(self) -> int:
        """How many of them could not be used."""
        return int(self.counts()["n_bad"].sum())

    # Keeping

    def to_bytes(self) -> bytes:
        """The fleet with all it has learnt, as bytes; `holdfast.from_bytes` makes it again."""
        with self._calls.lock:
            return b"".join(checkpoint.parts_of(self))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fleet to one file, whole or not at all; `holdfast.load` reads it. Spilled streams are in it."""
        with self._calls.lock:
            write(path, checkpoint.parts_of(self))

    def close(self) -> None:
        """Lets go of the file of spilled streams, for another fleet to use; there is nothing else to close."""
        if self._roster.spill is not None:
            self._roster.spill.close()

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        if self._roster.spill is not None:
            raise BadInputError("a fleet that spills cannot be copied: save it, and load it with a spill of its own")
        return checkpoint.fleet_of, (self.to_bytes(),)

    def __repr__(self) -> str:
        room = f", max_keys={self.max_keys}" if self.max_keys else ""
        return f"Fleet({self.model!r}{room}): {len(self)} streams"
