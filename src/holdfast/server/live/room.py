"""Room in the store: it does not grow faster than it shrinks."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from holdfast.server.live.board import Known
from holdfast.server.live.desk import Desk
from holdfast.server.store.condensing import AT_ONCE, condense, is_due
from holdfast.server.store.points import pack

LOOSE = 128  # short blocks of a stream that are made long ones together


class Room:
    """Which streams may have too many points, or too many short blocks. keep: points that are kept in full."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self._crowded: dict[int, None] = {}
        self._came = 0  # points since the last look

    @property
    def is_wanted(self) -> bool:
        """Whether there is something to look at."""
        return bool(self._crowded)

    def note(self, streams: Iterable[int], n_points: int) -> None:
        """Streams are worth a look, since so many points have come."""
        self._crowded |= dict.fromkeys(streams)
        self._came += n_points

    def make(self, desk: Desk) -> None:
        """Looks at some streams, and condenses twice as many points as have come, if there are, in one transaction."""
        gone, room, due = -1, 2 * self._came, list[Known]()
        while self._crowded and gone < room:
            number = next(iter(self._crowded))
            del self._crowded[number]
            gone += 1
            known = desk.board.find(number)
            if known is not None and (known.loose >= LOOSE or self._is_due(known)):
                due.append(known)
                gone += max(known.loose, min(known.n_points - known.first_row - self.keep, AT_ONCE))
        self._came = 0
        if due:
            with desk.store.writing() as connection:
                for known in due:
                    self._condense(connection, known, desk.learnt.get(known.entry.number, 0))

    def _is_due(self, known: Known) -> bool:
        return is_due(known.n_points - known.first_row, self.keep)

    def _condense(self, connection: Connection, known: Known, learnt: int) -> None:
        """Short blocks become long ones, and the oldest points buckets, if there are too many of either.

        learnt: rows that are in a checkpoint.
        """
        number, width = known.entry.number, known.entry.width
        if known.loose >= LOOSE:
            pack(connection, number, known.packed, known.n_points, width)
            known.packed, known.loose = known.n_points, 0
        if self._is_due(known):
            first = condense(connection, number, width, known.first_row, min(known.n_points, learnt), self.keep)
            if first > known.first_row:
                known.first_row, known.packed = first, max(first, known.packed)
                self._crowded[number] = None  # there may be more
