"""Points that come late, and points that come twice: by the times of each stream."""

from __future__ import annotations

import json
import logging
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.errors import BadInputError
from holdfast.fleet.keys import Texts
from holdfast.scheme.state import Vector
from holdfast.streams.batch import Batch, Integers
from holdfast.streams.separate import stream_keys
from holdfast.streams.times import comparable

log = logging.getLogger("holdfast.streams")
SKIP, LEARN = "skip", "learn"
POLICIES = (SKIP, LEARN)
NEW_CLOCK = 100  # late points in a row, in order among themselves, that make their times those of the stream
TOLD = 5  # times that this is said


class Lateness:
    """Sorts out points that are older than the last one of their stream, and exact repetitions of it.

    A learner goes by the order of points, so what comes late cannot be put where it belongs. Points of equal times that
    differ are learnt. Without times, or with times that have no order, all points are taken as they come. One wrong
    time does not make a stream deaf: when a hundred points in a row have been late, but in order among themselves, the
    clock has been set back, and the stream goes by it from there on.

    most: how many streams are remembered. When an eighth more have come, those that have been silent for longest are
    forgotten, and what comes of them then is new.

    >>> sieve = Lateness()
    >>> batch, late, repeated = sieve.sift(Batch([1.0, 2.0, 3.0, 2.0], times=[10, 20, 15, 20]))
    >>> batch.values.ravel(), late, repeated
    (array([1., 2.]), 1, 1)
    """

    def __init__(self, policy: str = SKIP, most: int | None = None) -> None:
        if policy not in POLICIES:
            raise BadInputError(f"late: expected one of {', '.join(POLICIES)}, got {policy!r}")
        if most is not None and most < 1:
            raise BadInputError(f"expected to remember at least one stream, got {most}")
        self.policy, self.most = policy, most
        self._rows: dict[str, int] = {}
        self._known = np.zeros(0, np.bool_)  # whether a stream has had a point
        self._times: npt.NDArray[Any] = np.zeros(0)
        self._values: Vector = np.zeros((0, 1))
        self._runs: dict[str, tuple[int, Any]] = {}  # late points in a row, and the time of the last of them
        self._n_set_back = 0
        self._n_points = 0
        self._came: Integers = np.zeros(0, np.int64)  # how many points had come when the last one of a stream came

    def sift(self, batch: Batch) -> tuple[Batch, int, int]:
        """The batch without them; how many were late, and how many repeated."""
        times = batch.times
        moments = None if times is None or self.policy == LEARN else comparable(times)
        if times is None or moments is None or not len(batch):
            return batch, 0, 0
        rows = self._rows_of(stream_keys(batch) or Texts([""], np.zeros(len(batch), np.int64)), batch.values.shape[1])
        if self._times.dtype != moments.dtype:
            if self._known.any():
                raise BadInputError("times are given as numbers and as dates in turn")
            self._times = self._times.astype(moments.dtype)
        order = np.flatnonzero(~np.isnan(times))  # those that have no time are taken as they come
        if rows.any():
            small = len(self._rows) <= np.iinfo(np.int16).max  # which are sorted ten times as fast
            order = order[np.argsort(rows[order].astype(np.int16) if small else rows[order], kind="stable")]
        if not len(order):
            return batch, 0, 0
        in_turn = rows[order], moments[order], batch.values[order]
        late, repeated = self._look(*in_turn)
        kept = ~(late | repeated)
        all_kept = bool(kept.all())
        self._note(*(in_turn if all_kept else (part[kept] for part in in_turn)))
        self._forget(rows)
        if all_kept:
            return batch, 0, 0
        there = np.ones(len(rows), np.bool_)
        there[order] = kept
        return batch.only(there), int(late.sum()), int(repeated.sum())

    def _look(self, rows: Integers, moments: Vector, values: Vector) -> tuple[Any, Any]:
        """Which points, in the order of their streams, are late, and which are repetitions."""
        begins = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
        before = np.append(moments[:1], moments[:-1])  # the time of the point before, in the same stream
        former = np.concatenate([values[:1], values[:-1]])
        known = self._known[rows[begins]]
        before[begins] = np.where(known, self._times[rows[begins]], moments[begins])
        former[begins] = self._values[rows[begins]]
        late = moments < before
        if late.any() or self._runs:  # then the latest time so far counts, and not that of the point before
            names, ends = list(self._rows), np.append(begins[1:], len(rows))
            found = set((np.searchsorted(begins, np.flatnonzero(late), side="right") - 1).tolist())
            for stream, row in enumerate(rows[begins].tolist()) if self._runs else ():
                if stream not in found:
                    self._runs.pop(names[row], None)
            for stream in sorted(found):
                own = slice(begins[stream], ends[stream])
                name = names[int(rows[begins[stream]])]
                self._look_one_by_one(name, moments[own], values[own], late[own], before[own], former[own])
        same = (values == former) | (np.isnan(values) & np.isnan(former))
        first = np.zeros(len(rows), np.bool_)
        first[begins] = ~known
        return late, ~late & ~first & (moments == before) & same.all(axis=1)

    def _look_one_by_one(
        self, name: str, moments: Vector, values: Vector, late: Any, before: Vector, former: Vector
    ) -> None:
        """The same for one stream in which there are late points: they are marked, and what comes before the others."""
        latest, previous = before[0], former[0].copy()
        run, last = self._runs.pop(name, (0, latest))
        for i, moment in enumerate(moments):
            late[i] = moment < latest
            run = 0 if not late[i] else run + 1 if run and moment >= last else 1
            last = moment
            if run == NEW_CLOCK:
                self._tell_of_new_clock(name)
                late[i], run = False, 0
            if not late[i]:
                before[i], former[i] = latest, previous
                latest, previous = moment, values[i]
        if run:
            self._runs[name] = (run, last.item())

    def _tell_of_new_clock(self, name: str) -> None:
        self._n_set_back += 1
        if self._n_set_back <= TOLD:
            which = f" of {name}" if name else ""
            log.warning(
                "%d points in a row%s were late: its clock was set back, and is gone by from now on", NEW_CLOCK, which
            )

    def _rows_of(self, keys: Texts, width: int) -> Integers:
        """The row of each stream; those that are new get one."""
        names = list(keys.values) if keys.codes is not None else list(dict.fromkeys(keys.values))
        rows = [self._rows.setdefault(name, len(self._rows)) for name in names]
        more = len(self._rows) - len(self._times)
        if more > 0:
            self._times = np.append(self._times, np.zeros(more, self._times.dtype))
            old = self._values if len(self._values) else np.zeros((0, width))
            self._values = np.concatenate([old, np.zeros((more, width))])
            self._known = np.append(self._known, np.zeros(more, np.bool_))
            self._came = np.append(self._came, np.zeros(more, np.int64))
        if keys.codes is not None:
            return np.array(rows, np.int64)[keys.codes]
        return np.array([self._rows[name] for name in keys.values], np.int64)

    def _note(self, rows: Integers, moments: Vector, values: Vector) -> None:
        if len(rows):
            last = np.flatnonzero(np.append(rows[1:] != rows[:-1], True))
            self._times[rows[last]] = moments[last]
            self._values[rows[last]], self._known[rows[last]] = values[last], True

    def _forget(self, rows: Integers) -> None:
        """The points of these rows have come; if streams are too many, those silent for longest go."""
        if self.most is None:
            return
        self._came[rows] = self._n_points + np.arange(len(rows))  # of a stream with several the last one stays
        self._n_points += len(rows)
        if len(self._rows) > self.most + self.most // 8:
            kept = np.sort(np.argsort(self._came, kind="stable")[-self.most :])
            keys = list(self._rows)
            self._rows = {keys[row]: place for place, row in enumerate(kept.tolist())}
            self._times, self._values = self._times[kept], self._values[kept]
            self._known, self._came = self._known[kept], self._came[kept]

    def to_bytes(self) -> bytes:
        """What is known of the streams."""
        told: dict[str, Any] = {
            "keys": list(self._rows),
            "width": self._values.shape[1],
            "whole": self._times.dtype.kind == "i",
            "runs": self._runs,
        }
        arrays: tuple[npt.NDArray[Any], ...] = (self._times, self._values, self._known)
        if self.most is not None:
            told["n_points"], arrays = self._n_points, (*arrays, self._came)
        return json.dumps(told).encode() + b"\n" + b"".join(array.tobytes() for array in arrays)

    def restore(self, data: bytes) -> None:
        """What `to_bytes` gave."""
        text, _, numbers = data.partition(b"\n")
        told = json.loads(text)
        n = len(told["keys"])
        self._rows = {key: row for row, key in enumerate(told["keys"])}
        self._times = np.frombuffer(numbers, np.int64 if told["whole"] else np.float64, n).copy()
        self._values = np.frombuffer(numbers, np.float64, n * told["width"], 8 * n).reshape(n, told["width"]).copy()
        self._known = np.frombuffer(numbers, np.bool_, n, 8 * n * (1 + told["width"])).copy()
        self._runs = {key: (count, moment) for key, (count, moment) in told["runs"].items()}
        self._n_points, self._came = told.get("n_points", 0), np.zeros(n, np.int64)
        if "n_points" in told:
            self._came = np.frombuffer(numbers, np.int64, n, 8 * n * (1 + told["width"]) + n).copy()
