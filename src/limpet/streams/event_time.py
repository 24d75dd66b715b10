"""Points that come late, and points that come twice: by the times of each stream."""

from __future__ import annotations

import json
import logging
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys
from limpet.streams.batch import Batch, Integers
from limpet.streams.split_columns import composite_keys
from limpet.streams.timestamps import to_comparable

log = logging.getLogger("limpet.streams")
SKIP_LATE, LEARN_LATE = "skip", "learn"
LATE_POLICIES = (SKIP_LATE, LEARN_LATE)
CLOCK_RESET_AFTER = 100  # late points in a row, in order among themselves, that make their times those of the stream
MAX_LOGGED_RESETS = 5  # times that this is said


class EventTimeFilter:
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

    def __init__(self, policy: str = SKIP_LATE, max_streams: int | None = None) -> None:
        if policy not in LATE_POLICIES:
            raise InvalidInputError(f"late: expected one of {', '.join(LATE_POLICIES)}, got {policy!r}")
        if max_streams is not None and max_streams < 1:
            raise InvalidInputError(f"expected to remember at least one stream, got {max_streams}")
        self.policy, self.max_streams = policy, max_streams
        self._rows: dict[str, int] = {}
        self._known = np.zeros(0, np.bool_)  # whether a stream has had a point
        self._times: npt.NDArray[Any] = np.zeros(0)
        self._values: Vector = np.zeros((0, 1))
        self._late_runs: dict[str, tuple[int, Any]] = {}  # late points in a row, and the time of the last of them
        self._n_clock_resets = 0
        self._n_points = 0
        self._last_arrival: Integers = np.zeros(
            0, np.int64
        )  # how many points had come when the last one of a stream came

    def filter(self, batch: Batch) -> tuple[Batch, int, int]:
        """The batch without them; how many were late, and how many repeated."""
        times = batch.times
        moments = None if times is None or self.policy == LEARN_LATE else to_comparable(times)
        if times is None or moments is None or not len(batch):
            return batch, 0, 0
        rows = self._assign_rows(
            composite_keys(batch) or StrKeys([""], np.zeros(len(batch), np.int64)), batch.values.shape[1]
        )
        if self._times.dtype != moments.dtype:
            if self._known.any():
                raise InvalidInputError("times are given as numbers and as dates in turn")
            self._times = self._times.astype(moments.dtype)
        order = np.flatnonzero(~np.isnan(times))  # those that have no time are taken as they come
        if rows.any():
            small = len(self._rows) <= np.iinfo(np.int16).max  # which are sorted ten times as fast
            order = order[np.argsort(rows[order].astype(np.int16) if small else rows[order], kind="stable")]
        if not len(order):
            return batch, 0, 0
        ordered = rows[order], moments[order], batch.values[order]
        late, repeated = self._find_late(*ordered)
        is_accepted = ~(late | repeated)
        all_accepted = bool(is_accepted.all())
        self._store_latest(*(ordered if all_accepted else (part[is_accepted] for part in ordered)))
        self._evict_streams(rows)
        if all_accepted:
            return batch, 0, 0
        mask = np.ones(len(rows), np.bool_)
        mask[order] = is_accepted
        return batch.filter(mask), int(late.sum()), int(repeated.sum())

    def _find_late(self, rows: Integers, moments: Vector, values: Vector) -> tuple[Any, Any]:
        """Which points, in the order of their streams, are late, and which are repetitions."""
        starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
        before = np.append(moments[:1], moments[:-1])  # the time of the point before, in the same stream
        former = np.concatenate([values[:1], values[:-1]])
        known = self._known[rows[starts]]
        before[starts] = np.where(known, self._times[rows[starts]], moments[starts])
        former[starts] = self._values[rows[starts]]
        late = moments < before
        if late.any() or self._late_runs:  # then the latest time so far counts, and not that of the point before
            names, ends = list(self._rows), np.append(starts[1:], len(rows))
            late_streams = set((np.searchsorted(starts, np.flatnonzero(late), side="right") - 1).tolist())
            for stream, row in enumerate(rows[starts].tolist()) if self._late_runs else ():
                if stream not in late_streams:
                    self._late_runs.pop(names[row], None)
            for stream in sorted(late_streams):
                slice_ = slice(starts[stream], ends[stream])
                name = names[int(rows[starts[stream]])]
                self._find_late_sequential(
                    name, moments[slice_], values[slice_], late[slice_], before[slice_], former[slice_]
                )
        same = (values == former) | (np.isnan(values) & np.isnan(former))
        first = np.zeros(len(rows), np.bool_)
        first[starts] = ~known
        return late, ~late & ~first & (moments == before) & same.all(axis=1)

    def _find_late_sequential(
        self, name: str, moments: Vector, values: Vector, late: Any, before: Vector, former: Vector
    ) -> None:
        """The same for one stream in which there are late points: they are marked, and what comes before the others."""
        latest, previous = before[0], former[0].copy()
        run, last = self._late_runs.pop(name, (0, latest))
        for i, moment in enumerate(moments):
            late[i] = moment < latest
            run = 0 if not late[i] else run + 1 if run and moment >= last else 1
            last = moment
            if run == CLOCK_RESET_AFTER:
                self._log_clock_reset(name)
                late[i], run = False, 0
            if not late[i]:
                before[i], former[i] = latest, previous
                latest, previous = moment, values[i]
        if run:
            self._late_runs[name] = (run, last.item())

    def _log_clock_reset(self, name: str) -> None:
        self._n_clock_resets += 1
        if self._n_clock_resets <= MAX_LOGGED_RESETS:
            which = f" of {name}" if name else ""
            log.warning(
                "%d points in a row%s were late: its clock was set back, and is gone by from now on",
                CLOCK_RESET_AFTER,
                which,
            )

    def _assign_rows(self, keys: StrKeys, width: int) -> Integers:
        """The row of each stream; those that are new get one."""
        names = list(keys.values) if keys.codes is not None else list(dict.fromkeys(keys.values))
        rows = [self._rows.setdefault(name, len(self._rows)) for name in names]
        more = len(self._rows) - len(self._times)
        if more > 0:
            self._times = np.append(self._times, np.zeros(more, self._times.dtype))
            old = self._values if len(self._values) else np.zeros((0, width))
            self._values = np.concatenate([old, np.zeros((more, width))])
            self._known = np.append(self._known, np.zeros(more, np.bool_))
            self._last_arrival = np.append(self._last_arrival, np.zeros(more, np.int64))
        if keys.codes is not None:
            return np.array(rows, np.int64)[keys.codes]
        return np.array([self._rows[name] for name in keys.values], np.int64)

    def _store_latest(self, rows: Integers, moments: Vector, values: Vector) -> None:
        if len(rows):
            last = np.flatnonzero(np.append(rows[1:] != rows[:-1], True))
            self._times[rows[last]] = moments[last]
            self._values[rows[last]], self._known[rows[last]] = values[last], True

    def _evict_streams(self, rows: Integers) -> None:
        """The points of these rows have come; if streams are too many, those silent for longest go."""
        if self.max_streams is None:
            return
        self._last_arrival[rows] = self._n_points + np.arange(len(rows))  # of a stream with several the last one stays
        self._n_points += len(rows)
        if len(self._rows) > self.max_streams + self.max_streams // 8:
            retained = np.sort(np.argsort(self._last_arrival, kind="stable")[-self.max_streams :])
            keys = list(self._rows)
            self._rows = {keys[row]: index for index, row in enumerate(retained.tolist())}
            self._times, self._values = self._times[retained], self._values[retained]
            self._known, self._last_arrival = self._known[retained], self._last_arrival[retained]

    def to_bytes(self) -> bytes:
        """What is known of the streams."""
        header: dict[str, Any] = {
            "keys": list(self._rows),
            "width": self._values.shape[1],
            "whole": self._times.dtype.kind == "i",
            "runs": self._late_runs,
        }
        arrays: tuple[npt.NDArray[Any], ...] = (self._times, self._values, self._known)
        if self.max_streams is not None:
            header["n_points"], arrays = self._n_points, (*arrays, self._last_arrival)
        return json.dumps(header).encode() + b"\n" + b"".join(array.tobytes() for array in arrays)

    def restore(self, data: bytes) -> None:
        """What `to_bytes` gave."""
        text, _, numbers = data.partition(b"\n")
        header = json.loads(text)
        n = len(header["keys"])
        self._rows = {key: row for row, key in enumerate(header["keys"])}
        self._times = np.frombuffer(numbers, np.int64 if header["whole"] else np.float64, n).copy()
        self._values = np.frombuffer(numbers, np.float64, n * header["width"], 8 * n).reshape(n, header["width"]).copy()
        self._known = np.frombuffer(numbers, np.bool_, n, 8 * n * (1 + header["width"])).copy()
        self._late_runs = {key: (count, moment) for key, (count, moment) in header["runs"].items()}
        self._n_points, self._last_arrival = header.get("n_points", 0), np.zeros(n, np.int64)
        if "n_points" in header:
            self._last_arrival = np.frombuffer(numbers, np.int64, n, 8 * n * (1 + header["width"]) + n).copy()
