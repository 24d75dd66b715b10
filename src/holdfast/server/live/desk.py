"""Where a group of posts becomes knowledge: admitted, learnt, kept, and only then answered."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from holdfast.learners import SRA
from holdfast.learners.trace import Trace
from holdfast.server.errors import Refused
from holdfast.server.live.admission import Admitted, admit
from holdfast.server.live.board import Board, Known
from holdfast.server.live.fleets import Fleets, require_same_settings
from holdfast.server.live.posts import Post
from holdfast.server.live.recovery import recover
from holdfast.server.store import Store
from holdfast.server.store.alarms import newest_number, write_alarms
from holdfast.server.store.many import insert_many
from holdfast.server.store.opening import set_about
from holdfast.server.store.points import Written, as_time, known
from holdfast.server.store.states import Writing
from holdfast.server.store.streams import Entry, add_streams, remove_stream
from holdfast.server.store.tables import POSTS, SOURCES

log = logging.getLogger("holdfast.server")
REFERENCE = 100  # points that a change is seen against
EVERY = 8  # rows: how often at least the estimate is kept
REMEMBERED = 86_400.0  # seconds that a post is known again by its name


@dataclass(eq=False)
class Told:
    """What has happened in a group: the streams that have new points, and alarms as the API tells them."""

    streams: set[int] = field(default_factory=set)
    alarms: list[dict[str, Any]] = field(default_factory=list)


class Desk:
    """All that is known of all streams, in memory and in the store. One thread works here.

    learner: whose settings all streams have. most: streams, at most.
    """

    def __init__(self, store: Store, learner: SRA, most: int) -> None:
        self.store, self.most = store, most
        self.fleets = Fleets(learner)
        self.board = Board(learner.n_init + REFERENCE)
        self.learnt: dict[int, int] = {}
        """How many rows of each stream are in the checkpoint of the store."""
        settings = require_same_settings(learner, store.about("learner"))
        with store.writing() as connection:
            set_about(connection, "learner", settings)
        self.recover()

    def recover(self) -> None:
        """All as the store has it: after the start, and after a group that could not be written."""
        with self.store.writing() as connection, self.board.lock:
            found = recover(connection, self.fleets, self.board)
            self._checkpoint, self.learnt = found.checkpoint, found.learnt
            self._next_alarm = newest_number(connection) + 1
        self._next_stream = int(self.store.about("next_stream") or 1)
        if found.relearnt:
            log.info("relearnt %d points that the last checkpoint did not have", found.relearnt)

    # Posts

    def take(self, posts: Sequence[Post]) -> tuple[list[Any], Told]:
        """Learns and keeps what these posts hold, in order; for each an answer, or the error that it is refused with.

        If this raises, nothing of the group is in the store; what is in memory has to be recovered.
        """
        now, told = time.time(), Told()
        answers: list[Any] = []
        admitted: list[Admitted] = []
        with self.store.writing() as connection, self.board.lock:
            first_new = self._next_stream
            for post in posts:
                try:
                    repeated = self._answered_before(connection, post)
                    own = [] if repeated is not None else admit(post.parts, self.board, self.most, self._new_stream)
                except Refused as refusal:
                    answers.append(refusal)
                    continue
                admitted += own
                answers.append(own if repeated is None else repeated)
            if self._next_stream > first_new:
                new = [self.board.of_number(n).entry for n in range(first_new, self._next_stream)]
                add_streams(connection, new)
                set_about(connection, "next_stream", self._next_stream)
            self._learn(connection, admitted, now, told)
            for place, post in enumerate(posts):
                if isinstance(answers[place], list) and all(isinstance(one, Admitted) for one in answers[place]):
                    answers[place] = [one.answer() for one in answers[place]]
                    self._remember(connection, post, answers[place], now)
        return answers, told

    def _new_stream(self, key: str, width: int, names: tuple[str, ...] | None) -> Known:
        known = self.board.add(Entry(self._next_stream, key, width, names, time.time()))
        self._next_stream += 1
        return known

    def _answered_before(self, connection: Connection, post: Post) -> list[dict[str, Any]] | None:
        """The answer that the same post has had already."""
        if post.name is None:
            return None
        found = connection.execute(select(POSTS).where(POSTS.c.name == post.name)).first()
        if found is None:
            return None
        if found.digest != post.digest:
            raise Refused("other_post", "another post has had this Idempotency-Key")
        answer: list[dict[str, Any]] = json.loads(found.answer)
        return answer

    def _remember(self, connection: Connection, post: Post, answer: list[dict[str, Any]], now: float) -> None:
        if post.name is not None:
            insert_many(connection, POSTS, [(post.name, now, post.digest, json.dumps(answer))])
        if post.position is not None:
            name, position = post.position
            connection.execute(SOURCES.delete().where(SOURCES.c.name == name))
            insert_many(connection, SOURCES, [(name, json.dumps(position))])

    def _learn(self, connection: Connection, admitted: list[Admitted], now: float, told: Told) -> None:
        arrived = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        pieces = [one for one in admitted if len(one.values)]
        for width in sorted({piece.values.shape[1] for piece in pieces}):
            self._learn_width(connection, width, [p for p in pieces if p.values.shape[1] == width], arrived, now, told)
        if pieces:
            changed = {piece.known.entry.number: piece.known for piece in pieces}
            self.board.note(changed.values())
            told.streams |= changed.keys()
        if told.alarms:
            self.board.reorder()

    def _learn_width(
        self, connection: Connection, width: int, pieces: list[Admitted], arrived: str, now: float, told: Told
    ) -> None:
        """All points of one number of variables, in one call."""
        counts = np.array([len(piece.values) for piece in pieces])
        numbers = np.repeat([piece.known.entry.number for piece in pieces], counts)
        values = np.concatenate([piece.values for piece in pieces])
        given = [time for piece in pieces for time in piece.times]
        times, timed = [arrived if time is None else time for time in given], np.array([t is not None for t in given])
        ends = np.cumsum(counts)
        trace = self.fleets.learn(width, numbers, values)
        rows = np.empty(len(values), np.int64)
        due: dict[int, int] = {}  # streams whose estimate is kept, and the place of the point it is kept with
        dropped, p_values = trace.dropped, trace.p_value
        for piece, end, count in zip(pieces, ends.tolist(), counts.tolist(), strict=True):
            stream, own = piece.known, slice(end - count, end)
            piece.first_row = stream.n_points
            rows[own] = np.arange(count) + stream.n_points
            if (stream.n_points + count) // EVERY > stream.n_points // EVERY:
                due[stream.entry.number] = end - 1
            listed = [known(point) for point in values[own]] if width > 1 else [[v] for v in known(values[own, 0])]
            stream.note_points(listed, dropped[own].tolist(), known(p_values[end - 1 : end])[0])
            stream.last_time, stream.last_seen = as_time(times[end - 1]), now
            self.board.n_points += count
        estimates = dict(zip(due.values(), self.fleets.estimates(width, due), strict=True))
        kept = {place: text for place, text in estimates.items() if text is not None}
        Written(numbers, rows, times, timed, values, trace, kept).write(connection)
        self._raise_alarms(connection, trace, pieces, ends, times, now, told)

    def _raise_alarms(
        self,
        connection: Connection,
        trace: Trace,
        pieces: list[Admitted],
        ends: Any,
        times: list[str],
        now: float,
        told: Told,
    ) -> None:
        """Alarms are numbered, kept, and told to those whose points raised them."""
        rows = []
        for at, alarm in zip(trace.raised_at, trace.alarms, strict=True):
            piece = pieces[int(np.searchsorted(ends, at, side="right"))]
            stream, names = piece.known, piece.known.names
            variables = [names[int(variable)] for variable in alarm.variables]
            named = alarm.with_names(variables if stream.entry.names else None)
            row = {
                "id": self._next_alarm,
                "stream": stream.entry.number,
                "kind": alarm.kind,
                "row": alarm.row,
                "onset": alarm.onset,
                "size": alarm.size if math.isfinite(alarm.size) else None,
                "direction": alarm.direction,
                "variables": json.dumps(variables),
                "p_value": alarm.p_value,
                "time": times[at],
                "message": named.what,
                "raised_at": now,
                "acknowledged_at": None,
                "note": "",
            }
            self._next_alarm += 1
            rows.append(row)
            shown = {**row, "stream": stream.entry.key, "variables": variables, "time": as_time(times[at])}
            piece.alarms.append(shown)
            told.alarms.append(shown)
            stream.n_alarms += 1
            stream.open_alarms += 1
            stream.last_alarm = {name: shown[name] for name in ("id", "kind", "row", "time", "message")}
        write_alarms(connection, rows)

    # What else changes

    def remove(self, key: str) -> int:
        """A stream with all that is known of it; its number."""
        with self.board.lock:
            stream = self.board.get(key)
            if stream is None:
                raise unknown_stream(key)
            number = stream.entry.number
            with self.store.writing() as connection:
                remove_stream(connection, number)
            self.fleets.drop(stream.entry.width, number)
            self.board.remove(stream)
            self.learnt.pop(number, None)
        return number

    def begin_checkpoint(self) -> Writing:
        """All that has been learnt by now, to be written piece by piece."""
        self._checkpoint += 1
        counts = self.fleets.counts()
        learnt = np.array([(number, seen) for number, (seen, _) in counts.items()], np.int64).reshape(-1, 2)
        return Writing(self._checkpoint, self.fleets.to_bytes(), learnt)

    def end_checkpoint(self, written: Writing) -> None:
        """The store has it."""
        self.learnt = dict(written.learnt.tolist())

    def forget_posts(self) -> None:
        """Posts of long ago are not known again by their names."""
        with self.store.writing() as connection:
            connection.execute(POSTS.delete().where(POSTS.c.at < time.time() - REMEMBERED))


def unknown_stream(key: str) -> Refused:
    """There is none of this key."""
    return Refused("unknown_stream", f"there is no stream {key!r:.80}")
