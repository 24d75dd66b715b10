"""Where a group of posts becomes knowledge: admitted, learnt, kept, and only then answered."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from holdfast.learners import SRA
from holdfast.server.errors import Refused
from holdfast.server.live.admission import Admitted, admit
from holdfast.server.live.board import Board, Known
from holdfast.server.live.fleets import Fleets, require_same_settings
from holdfast.server.live.learning import learn_pieces
from holdfast.server.live.posts import Post
from holdfast.server.live.recovery import recover
from holdfast.server.store import Store
from holdfast.server.store.alarms import newest_number, write_alarms
from holdfast.server.store.many import insert_many
from holdfast.server.store.opening import set_about
from holdfast.server.store.points import write_blocks
from holdfast.server.store.states import Writing
from holdfast.server.store.streams import Entry, add_streams, remove_stream
from holdfast.server.store.tables import POSTS, SOURCES

log = logging.getLogger("holdfast.server")
REFERENCE = 100  # points that a change is seen against
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
        with self.store.reading() as connection, self.board.lock:
            found = recover(connection, self.fleets, self.board)
            self._checkpoint, self.learnt = found.checkpoint, found.learnt
            self._next_alarm = newest_number(connection) + 1
        self._next_alarm = max(self._next_alarm, int(self.store.about("next_alarm") or 1))
        self._next_stream = int(self.store.about("next_stream") or 1)
        if found.relearnt:
            log.info("relearnt %d points that the last checkpoint did not have", found.relearnt)

    # Posts

    def take(self, posts: Sequence[Post]) -> tuple[list[Any], Told]:
        """Learns and keeps what these posts hold, in order; for each an answer, or the error that it is refused with.

        If this raises, nothing of the group is in the store; what is in memory has to be recovered.
        """
        now, told = time.time(), Told()
        answers: list[Any] = [None] * len(posts)
        own: dict[int, list[Admitted]] = {}
        named: dict[str, int] = {}
        with self.store.writing() as connection, self.board.lock:
            first_new = self._next_stream
            for place, post in enumerate(posts):
                try:
                    if post.name in named:
                        require_same_post(post.digest, posts[named[post.name]].digest)
                        continue  # sent twice at once: it gets the answer to the first
                    answers[place] = self._answered_before(connection, post)
                    if answers[place] is None:
                        own[place] = self._admitted(post)
                        named |= {post.name: place} if post.name is not None else {}
                except Refused as refusal:
                    answers[place] = refusal
            if self._next_stream > first_new:
                add_streams(connection, [self.board.of_number(n).entry for n in range(first_new, self._next_stream)])
                set_about(connection, "next_stream", self._next_stream)
            self._learn(connection, [piece for pieces in own.values() for piece in pieces], now, told)
            for place, pieces in own.items():
                answers[place] = [piece.answer() for piece in pieces]
                self._remember(connection, posts[place], answers[place], now)
        for place, post in enumerate(posts):
            if answers[place] is None and post.name is not None:
                answers[place] = answers[named[post.name]]
        return answers, told

    def _admitted(self, post: Post) -> list[Admitted]:
        """The parts of a post: all of them or none, but of a source those that fit."""
        if post.position is None:
            return admit(post.parts, self.board, self.most, self._new_stream)
        admitted: list[Admitted] = []
        for part in post.parts:
            try:
                admitted += admit([part], self.board, self.most, self._new_stream)
            except Refused as refusal:
                post.left_out.append((part, refusal))
        return admitted

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
        require_same_post(post.digest, found.digest)
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
        changed = {piece.known.entry.number: piece.known for piece in admitted if len(piece.values)}
        for width in sorted({known.entry.width for known in changed.values()}):
            own = [piece for piece in admitted if len(piece.values) and piece.known.entry.width == width]
            learnt = learn_pieces(self.fleets, width, own, now)
            write_blocks(connection, learnt.blocks)
            raised = list(learnt.alarms(self._next_alarm))
            self._next_alarm += len(raised)
            write_alarms(connection, raised, [self.board.number_of(alarm["stream"]) for alarm in raised])
            told.alarms += raised
        if changed:
            self.board.note(changed.values())
            self.board.n_points += sum(len(piece.values) for piece in admitted)
            told.streams |= changed.keys()
        if told.alarms:
            self.board.reorder()

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
                set_about(connection, "next_alarm", self._next_alarm)  # so that no number is used again
            self.fleets.drop(number)
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


def require_same_post(digest: str, before: str) -> None:
    """Refuses a post that has the name of another one."""
    if digest != before:
        raise Refused("other_post", "another post has had this Idempotency-Key")
