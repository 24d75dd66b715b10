"""Calls to a fleet: points find their streams, are learnt, and what they came to is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.errors import BadInputError
from holdfast.fleet.crew import Answers, Crew
from holdfast.fleet.crews import crew_of
from holdfast.fleet.found import NOBODY, Integers
from holdfast.fleet.keys import Numbers, Texts
from holdfast.fleet.latest import Latest
from holdfast.fleet.reading import read_keys, read_points
from holdfast.fleet.roster import Roster
from holdfast.fleet.store import Store
from holdfast.fleet.telling import FleetTeller
from holdfast.fleet.turns import Turns
from holdfast.learners.stochastic_approximation import StochasticApproximation
from holdfast.learners.trace import Trace
from holdfast.scheme.state import Vector

AT_ONCE = 1 << 20  # points that are sorted by stream at a time: they and their answers stay near the processor


class Calls:
    """What learns the points of a fleet, one call after another.

    model: whose settings all streams have. roster: who they are.
    """

    def __init__(self, model: StochasticApproximation, roster: Roster) -> None:
        self.lock = threading.RLock()
        self.crew: Crew | None = None
        self.names: tuple[str, ...] | None = None
        self.n_keyless = 0
        self._model, self._roster = model, roster
        self.teller = FleetTeller()
        self._latest: Latest | None = None
        if roster.spill is not None and (width := roster.spill.width) is not None:
            self.open(width, None)
            self._keep_to_kind()

    def update(self, keys: Any, X: Any) -> Trace:
        """See `Fleet.update`."""
        with self.one():
            latest = self._latest if self._latest and self._latest.is_for(keys, self._roster.version) else None
            asked = latest.asked if latest else read_keys(keys)
            points, names = read_points(X, len(asked), self.width, self.names)
            self.open(points.shape[1], names)
            if not latest:
                return self.learn(asked, points, keys)
            answers = self._answers(asked, points)
            answers.refuse(latest.keyless)
            self.n_keyless += len(latest.keyless)
            self._run(latest.turns, points, answers)
            self._roster.note(latest.rows)
            return self._told(answers)

    @contextmanager
    def one(self) -> Iterator[None]:
        """One call after another. The first stream to join decides how many variables there are, and what keys are."""
        with self.lock:
            undecided = self.crew is None
            try:
                yield
            finally:
                if undecided and self.crew is not None:
                    if len(self._roster.keys):
                        self._keep_to_kind()
                    else:
                        self.crew, self.names, self._latest = None, None, None
                        self._roster.begin_anew()

    def _keep_to_kind(self) -> None:
        """What is spilled has states of this fleet's kind."""
        if self._roster.spill is not None and self.crew is not None:
            self._roster.spill.keep_to(self.crew.width, self.crew.state_size)

    def learn(self, asked: Numbers | Texts, points: Vector, keys: Any = None, order: Integers | None = None) -> Trace:
        """Learns all points of a call, in this order; what is told is in the order in which they came."""
        answers = self._answers(asked, points)
        if order is not None:
            asked, points = asked.take(order), points[order]
        for piece, rows in self._roster.segments(asked):
            if (keyless := rows == NOBODY).any():
                self.n_keyless += int(np.count_nonzero(keyless))
                answers.of(piece).refuse(keyless)
            for first in range(0, len(rows), AT_ONCE):
                own = slice(piece.start + first, min(piece.start + first + AT_ONCE, piece.stop))
                turns = Turns.of(rows[first : first + AT_ONCE], self._roster.keys.n_rows)
                self._run(turns, points[own], answers.of(own))
        if keys is not None and 0 < len(points) <= AT_ONCE and len(rows) == len(points):
            self._latest = Latest.of(keys, asked, rows, np.flatnonzero(rows == NOBODY), turns, self._roster.version)
        if order is None:
            return self._told(answers)
        trace = self._told(answers.put_back(order))
        return replace(trace, points_of_alarms=[int(order[point]) for point in trace.raised_at])

    def _run(self, turns: Turns, points: Vector, answers: Answers) -> None:
        """Holds the first points of streams, starts those that can start, and runs the others."""
        assert self.crew is not None
        crew, store = self.crew, self._roster.store
        assert not len(turns) or turns.streams[-1] < len(store.states)  # they are in order; compiled code does not ask
        if store.n_waiting:
            waiting = store.waiting(turns.streams)
            young, turns = turns.some(waiting), turns.some(~waiting)
            slots = store.slots(young.streams)
            taken, due = crew.hold(store.states, store.starts, slots, young, points, answers)
            if due.any():
                crew.start(store.states, young.streams[due], store.starts[slots[due]])
                store.have_started(slots[due])
                turns = turns.and_also(young.after(taken))
        told = len(answers.alarms)
        crew.run(store.states, turns, points, answers)
        for i in range(told, len(answers.alarms)):
            at, alarm = answers.alarms[i]
            answers.alarms[i] = at, replace(alarm, key=self._roster.keys.of_row(int(alarm.key or 0)))

    def _answers(self, asked: Numbers | Texts, points: Vector) -> Answers:
        """Room for the answers to these points, if they are all to be learnt from."""
        assert self.crew is not None
        if self._model.on_bad == "raise":
            self.crew.engine.refuse_bad(points)
            if (first := asked.first_missing()) >= 0:
                raise BadInputError(f"row {first} has no key; nothing of this call was learnt")
        return Answers.to(len(points), self.crew.n_results)

    def _told(self, answers: Answers) -> Trace:
        assert self.crew is not None
        trace = self.crew.trace(answers)
        self.teller.look_at(answers.fates, self.crew.engine.rescues, self._roster)
        return trace

    def open(self, width: int, names: tuple[str, ...] | None) -> None:
        """The first points show how many variables there are."""
        if self.crew is None:
            self.crew = crew_of(self._model._make_engine(width))
            self._roster.store = Store(self.crew.state_size, self.crew.n_init, width)
        elif width != self.crew.width:
            raise BadInputError(f"the streams of this fleet have {self.crew.width} variables, got {width}")
        self.names = self.names or names
        self.crew.engine.names = self.names

    @property
    def on_autopilot(self) -> bool:
        """Whether the streams run on autopilot."""
        return getattr(self._model, "_on_autopilot", False)

    @property
    def width(self) -> int | None:
        """How many variables there are, None if that is open."""
        return None if self.crew is None else self.crew.width
