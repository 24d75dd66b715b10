"""Execute fleet updates: route points, run the kernels, collect results."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._format import plural
from limpet._validation import invalid_param_error
from limpet.core.algorithm import OUTCOME_INVALID, OUTCOME_REJECTED
from limpet.core.state import CONSECUTIVE_REJECTIONS, Vector
from limpet.exceptions import InvalidInputError
from limpet.fleet._backends import FleetBackend, PointSchedule, ResultBuffer, backend_for
from limpet.fleet._key_index import NO_ROW, Integers, IntKeys, StrKeys
from limpet.fleet._key_input import read_keys, read_points
from limpet.fleet._membership import Membership, StateMatrix
from limpet.learners._diagnostics import LOCK_OUT_POINTS, WarningOnce
from limpet.learners.base import Learner
from limpet.learners.results import Trace


@dataclass(frozen=True, eq=False)
class KeyCache:
    """The keys of the last call and their rows, to skip the next look-up."""

    keys: Any
    types: set[type]
    parsed_keys: IntKeys | StrKeys
    rows: Integers
    missing_points: Integers
    schedule: PointSchedule
    version: int

    @classmethod
    def from_keys(cls, keys: Any, *lookup: Any) -> KeyCache | None:
        """Make a cache with copied keys; None for a container that may change unnoticed."""
        if type(keys) in (list, np.ndarray):
            return cls(keys.copy(), key_types(keys), *lookup)
        return cls(keys, key_types(keys), *lookup) if type(keys) in (tuple, range) else None

    def matches(self, keys: Any, version: int) -> bool:
        """Return whether these are the same keys, with the same rows."""
        if version != self.version or type(keys) is not type(self.keys) or len(keys) != len(self.keys):
            return False
        try:
            if isinstance(keys, np.ndarray):
                is_equal = keys.dtype == self.keys.dtype and bool(np.array_equal(keys, self.keys))
            else:
                is_equal = bool(keys == self.keys)
        except (TypeError, ValueError):  # pandas' NA, which does not compare; an array among the keys
            return False
        return is_equal and key_types(keys) == self.types  # True is equal to 1, and no key


def key_types(keys: Any) -> set[type]:
    """Return the types of the keys in a container that may have several."""
    may_be_mixed = isinstance(keys, list | tuple) or (isinstance(keys, np.ndarray) and keys.dtype.kind == "O")
    return set(map(type, keys)) if may_be_mixed else set()


SORT_CHUNK_POINTS = 1 << 20  # points sorted by stream at a time, so that they and their results stay in the cache


class FleetExecutor:
    """Learn the points of a fleet, call by call; all streams share the parameters."""

    def __init__(self, learner: Learner, membership: Membership) -> None:
        self.lock = threading.RLock()
        self.backend: FleetBackend | None = None
        self.feature_names: tuple[str, ...] | None = None
        self.n_missing_keys = 0
        self.learner, self._membership = learner, membership
        self.warnings = WarningOnce()
        self._n_rejected = 0  # points since the last search for locked out streams
        self._key_cache: KeyCache | None = None
        if membership.spill is not None and (width := membership.spill.width) is not None:
            self.set_width(width, None)
            self._set_spill_dimensions()

    def update(self, keys: Any, X: Any) -> Trace:
        """Learn one point per key; see `Fleet.update`."""
        with self.exclusive_call():
            cached = self._key_cache
            if cached and not cached.matches(keys, self._membership.version):
                cached = None
            parsed_keys = cached.parsed_keys if cached else read_keys(keys)
            points, names = read_points(X, len(parsed_keys), self.width, self.feature_names)
            self.set_width(points.shape[1], names)
            if not cached:
                return self.learn(parsed_keys, points, keys)
            results = self._allocate_results(parsed_keys, points)
            results.mark_invalid(cached.missing_points)
            self.n_missing_keys += len(cached.missing_points)
            self._run(cached.schedule, points, results)
            self._membership.mark_seen(cached.rows)
            return self._to_trace(results)

    @contextmanager
    def exclusive_call(self) -> Iterator[None]:
        """Serialize calls; without streams, a failed call leaves width, key type unset."""
        with self.lock:
            was_unset = self.backend is None
            try:
                yield
            finally:
                if was_unset and self.backend is not None:
                    if len(self._membership.key_index):
                        self._set_spill_dimensions()
                    else:
                        self.backend, self.feature_names, self._key_cache = None, None, None
                        self._membership.reset()

    def _set_spill_dimensions(self) -> None:
        if self._membership.spill is not None and self.backend is not None:
            self._membership.spill.set_dimensions(self.backend.width, self.backend.state_size)

    def learn(
        self, parsed_keys: IntKeys | StrKeys, points: Vector, keys: Any = None, order: Integers | None = None
    ) -> Trace:
        """Learn points in the given order; return results in the order of the points."""
        results = self._allocate_results(parsed_keys, points)
        if order is not None:
            parsed_keys, points = parsed_keys.take(order), points[order]
        for span, rows in self._membership.admit_in_chunks(parsed_keys):
            if (missing := rows == NO_ROW).any():
                self.n_missing_keys += int(np.count_nonzero(missing))
                results.view(span).mark_invalid(missing)
            for start in range(0, len(rows), SORT_CHUNK_POINTS):
                part = slice(span.start + start, min(span.start + start + SORT_CHUNK_POINTS, span.stop))
                chunk = rows[start : start + SORT_CHUNK_POINTS]
                schedule = PointSchedule.from_rows(chunk, self._membership.key_index.n_rows)
                self._run(schedule, points[part], results.view(part))
        if keys is not None and 0 < len(points) <= SORT_CHUNK_POINTS and len(rows) == len(points):
            missing_points, version = np.flatnonzero(rows == NO_ROW), self._membership.version
            self._key_cache = KeyCache.from_keys(keys, parsed_keys, rows, missing_points, schedule, version)
        if order is None:
            return self._to_trace(results)
        trace = self._to_trace(results.restore_order(order))
        return replace(trace, explicit_alarm_index=[int(order[point]) for point in trace.alarm_index])

    def _run(self, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        """Buffer points of new streams, start those that can start, run the others."""
        assert self.backend is not None
        backend, matrix = self.backend, self._membership.state_matrix
        # Streams are sorted. Compiled code does not check bounds.
        assert not len(schedule) or schedule.streams[-1] < len(matrix.states)
        if matrix.n_not_started:
            not_started = matrix.not_started(schedule.streams)
            pending, schedule = schedule.select(not_started), schedule.select(~not_started)
            slots = matrix.start_slots(pending.streams)
            arguments = (matrix.states, matrix.start_buffers, slots, pending, points, results)
            n_consumed, ready = backend.buffer_points(*arguments)
            if ready.any():
                backend.start(matrix.states, pending.streams[ready], matrix.start_buffers[slots[ready]])
                matrix.release_start_slots(slots[ready])
                schedule = schedule.merge(pending.remaining(n_consumed))
        n_alarms_before = len(results.alarms)
        backend.run(matrix.states, schedule, points, results)
        for i in range(n_alarms_before, len(results.alarms)):
            point, alarm = results.alarms[i]
            results.alarms[i] = point, replace(alarm, key=self._membership.key_index.get_key(int(alarm.key or 0)))

    def _allocate_results(self, parsed_keys: IntKeys | StrKeys, points: Vector) -> ResultBuffer:
        """Allocate results, after a check of all points if the learner raises on invalid."""
        assert self.backend is not None
        if self.learner.on_invalid == "raise":
            self.backend.engine.raise_on_invalid(points)
            if (first_missing := parsed_keys.first_missing()) >= 0:
                message = f"keys: must not be missing, got none in row {first_missing}. No row was learned."
                raise InvalidInputError(message)
        return ResultBuffer.allocate(len(points), self.backend.n_results)

    def _to_trace(self, results: ResultBuffer) -> Trace:
        assert self.backend is not None
        trace = self.backend.to_trace(results)
        self._warn_about(results.outcomes, self.backend.engine.self_recovering)
        return trace

    def set_width(self, width: int, names: tuple[str, ...] | None) -> None:
        """Set the number of variables with the first points; later, check it."""
        if self.backend is None:
            self.backend = backend_for(self.learner._make_engine(width))
            self._membership.state_matrix = StateMatrix(self.backend.state_size, self.backend.n_init, width)
        elif width != self.backend.width:
            requirement = f"must have {plural(self.backend.width, 'variable')}, as this fleet has"
            raise invalid_param_error("X", requirement, width)
        self.feature_names = self.feature_names or names
        self.backend.engine.names = self.feature_names

    @property
    def width(self) -> int | None:
        """The number of variables, None before the first points."""
        return None if self.backend is None else self.backend.width

    # Warnings

    def _warn_about(self, outcomes: npt.NDArray[np.int8], self_recovering: bool) -> None:
        """Warn once of invalid points and locked-out streams (never `self_recovering`)."""
        n_invalid = int(np.count_nonzero(outcomes == OUTCOME_INVALID))
        if n_invalid:
            first = int((outcomes == OUTCOME_INVALID).argmax())
            self._warn(
                "invalid",
                f"{n_invalid} of {plural(len(outcomes), 'point')} are invalid or have no key and were not used, first "
                f"row {first}. Further ones are only counted, in counts() and n_missing_keys.",
                n_invalid=n_invalid,
                n_rows=len(outcomes),
                first_row=first,
            )
        if not self_recovering and "locked_out" not in self.warnings.issued_topics:
            self._n_rejected += int(np.count_nonzero(outcomes == OUTCOME_REJECTED))
            n_between_searches = max(len(self._membership.key_index), LOCK_OUT_POINTS)  # keeps the cost per point low
            if self._n_rejected >= n_between_searches:
                self._n_rejected = 0
                self._warn_about_lock_outs()

    def _warn_about_lock_outs(self) -> None:
        index, states = self._membership.key_index, self._membership.state_matrix.states
        locked_out = np.flatnonzero(states[: index.n_rows, CONSECUTIVE_REJECTIONS] >= LOCK_OUT_POINTS)
        if len(locked_out):
            self._warn(
                "locked_out",
                f"{len(locked_out)} of {plural(len(index), 'stream')}, such as {index.get_key(int(locked_out[0]))!r}, "
                f"rejected at least their last {LOCK_OUT_POINTS} points: they have moved beyond the threshold and no "
                "longer learn. A larger gamma would follow them; limpet.Detector() recovers automatically. "
                "counts() has the consecutive rejections of each stream.",
                n_streams=len(locked_out),
                n_points=LOCK_OUT_POINTS,
            )

    def _warn(self, code: str, message: str, **fields: Any) -> None:
        """Warn at the line that called the fleet."""
        depth = 1
        while (sys._getframe(depth).f_globals.get("__name__") or "").startswith("limpet."):
            depth += 1
        self.warnings.warn_once(code, message, depth + 2, **fields)
