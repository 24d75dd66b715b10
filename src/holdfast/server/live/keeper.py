"""The one thread that learns and writes: it takes all posts that wait, as one group, so that they share one commit."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from holdfast.server.errors import Refused
from holdfast.server.live.desk import Desk, Told
from holdfast.server.live.posts import Post
from holdfast.server.live.room import Room
from holdfast.server.store.states import Writing

log = logging.getLogger("holdfast.server")
AT_ONCE = 20_000  # points of a group, so that nobody waits long
WAITING = 400_000  # points that may wait in all
EVERY = 30.0  # seconds between checkpoints
OFTEN = 500_000  # points after which one is due anyway: as many are relearnt in some seconds
SELDOM = 3600.0  # seconds between looks at what is not needed any more
PATIENCE = 0.25  # seconds without posts, after which there is time for something else


@dataclass(eq=False)
class Task:
    """Something else that is done between groups, and where its result goes."""

    work: Callable[[], Any]
    result: Future[Any] = field(default_factory=Future)


class Keeper:
    """Works at a desk until it is stopped.

    keep: points of a stream that are kept in full. on_told: is called after each group with what has happened.
    """

    def __init__(self, desk: Desk, keep: int, on_told: Callable[[Told], None], every: float = EVERY) -> None:
        self.desk, self.every = desk, every
        self._on_told = on_told
        self._waiting: queue.Queue[Post | Task | None] = queue.Queue()
        self._lock = threading.Lock()
        self.n_waiting = 0  # points
        self._stopped = False
        self._is_sound = True  # what is in memory is what is in the store
        self._writing: Writing | None = None
        self._checkpoint_due, self._since_checkpoint, self._look_due = time.monotonic() + every, 0, 0.0
        self._room = Room(keep)
        self._thread = threading.Thread(target=self._work, name="holdfast keeper", daemon=True)
        self._thread.start()

    def submit(self, post: Post) -> Future[list[dict[str, Any]]]:
        """Takes a post; its answer comes once all of it is kept."""
        with self._lock:
            self._refuse_if_stopped()
            if self.n_waiting and self.n_waiting + post.n_points > WAITING:
                message = f"{self.n_waiting} points are waiting to be learnt; send again later"
                raise Refused("overloaded", message, headers={"Retry-After": "1"})
            self.n_waiting += post.n_points
            self._waiting.put(post)
        return post.answer

    def call(self, work: Callable[[], Any]) -> Future[Any]:
        """Does something between two groups."""
        task = Task(work)
        with self._lock:
            self._refuse_if_stopped()
            self._waiting.put(task)
        return task.result

    def _refuse_if_stopped(self) -> None:
        if self._stopped:
            raise Refused("stopping", "the server is stopping", headers={"Retry-After": "5"})

    def stop(self) -> None:
        """What waits is done, a checkpoint is written, and that is all."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            try:
                posts, task, ended = self._next()
                if posts:
                    self._take(posts)
                if task is not None:
                    self._do(task)
                if ended:
                    self._finish()
                    return
                self._tidy()
            except Exception as error:
                log.error("what is done between posts could not be done, and will be tried again: %s", error)
                self._is_sound = False  # memory may be ahead of the store
                self._recover()
                time.sleep(PATIENCE)

    def _next(self) -> tuple[list[Post], Task | None, bool]:
        """Posts that wait, a task after them, and whether that is the end."""
        posts: list[Post] = []
        n_points = 0
        try:
            one = self._waiting.get(timeout=0.0 if self._writing is not None or self._room.is_wanted else PATIENCE)
            while isinstance(one, Post):
                posts.append(one)
                n_points += one.n_points
                if n_points >= AT_ONCE:
                    return posts, None, False
                one = self._waiting.get_nowait()
        except queue.Empty:
            return posts, None, False
        return posts, one, one is None

    def _take(self, posts: list[Post]) -> None:
        n_points = sum(post.n_points for post in posts)
        try:
            self._learn([post for post in posts if post.answer.set_running_or_notify_cancel()], n_points)
        finally:
            with self._lock:
                self.n_waiting -= n_points

    def _learn(self, posts: list[Post], n_points: int) -> None:
        if not self._is_sound:
            self._recover()
        if not self._is_sound:
            _refuse(posts, "the store cannot be read")
            return
        try:
            answers, told = self.desk.take(posts)
        except Exception as error:
            log.error("a group of %d points is lost to its senders, who are told: %s", n_points, error)
            self._is_sound = False
            self._recover()
            _refuse(posts, str(error))
        else:
            for post, answer in zip(posts, answers, strict=True):
                if isinstance(answer, Refused):
                    post.answer.set_exception(answer)
                else:
                    post.answer.set_result(answer)
            self._since_checkpoint += n_points
            self._room.note(told.streams, n_points)
            if told.streams:
                self._on_told(told)

    def _recover(self) -> None:
        """What is in memory becomes what is in the store; if that cannot be read now, it is tried again later."""
        self._writing = None
        try:
            self.desk.recover()
            self._is_sound = True
        except Exception as error:
            log.error("the store cannot be read, trying again: %s", error)

    # Between groups

    def _tidy(self) -> None:
        """A little of what has to be done; after a group, enough for the store not to grow faster than it shrinks."""
        now = time.monotonic()
        if not self._is_sound:
            time.sleep(PATIENCE)
            self._recover()
            return
        if self._writing is not None:
            self._write_piece()
        elif self._since_checkpoint and (now >= self._checkpoint_due or self._since_checkpoint >= OFTEN):
            self._writing, self._since_checkpoint = self.desk.begin_checkpoint(), 0
            self._checkpoint_due = now + self.every
        elif now >= self._look_due:
            self.desk.forget_posts()
            self._look_due = now + SELDOM
        if self._room.is_wanted:
            self._room.make(self.desk)

    def _write_piece(self) -> None:
        writing, self._writing = self._writing, None  # one that fails is given up: it would lack a piece
        assert writing is not None
        try:
            with self.desk.store.writing() as connection:
                done = writing.go_on(connection)
        except Exception:
            self._since_checkpoint += 1  # so that the next one is due in time
            raise
        if done:
            self.desk.end_checkpoint(writing)
            self._room.note(self.desk.learnt, 0)  # what had to wait for it may be condensed now
        else:
            self._writing = writing

    def _do(self, task: Task) -> None:
        if not task.result.set_running_or_notify_cancel():
            return
        try:
            if not self._is_sound:
                raise Refused("store_unavailable", "the store cannot be read", headers={"Retry-After": "5"})
            task.result.set_result(task.work())
        except BaseException as error:
            task.result.set_exception(error)

    def _finish(self) -> None:
        if not self._is_sound:
            return
        try:
            self._writing = self.desk.begin_checkpoint()
            while self._writing is not None:
                self._write_piece()
        except Exception as error:
            log.error("the last checkpoint could not be written; its points will be learnt again: %s", error)


def _refuse(posts: list[Post], why: str) -> None:
    """Tells the senders that nothing of it was stored."""
    for post in posts:
        refusal = Refused("store_unavailable", f"nothing was stored: {why}", headers={"Retry-After": "5"})
        post.answer.set_exception(refusal)
