"""Checkpoints of what has been learnt, in pieces, so that nobody waits long while one is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from holdfast.server.store.blocks import Integers
from holdfast.server.store.many import insert_many
from holdfast.server.store.tables import CHECKPOINTS, STATES

PIECE = 1 << 20  # bytes written at a time


class Writing:
    """A checkpoint on its way into the store: it counts once it is whole, and then the one before it goes.

    If one of its pieces could not be written it is of no use any more.

    bodies: the bytes of the fleets by their number of variables. learnt: (n, 2), how many rows of which stream are in
    them.
    """

    def __init__(self, number: int, bodies: dict[int, bytes], learnt: Integers) -> None:
        self.number, self.learnt = number, learnt
        self._header = {"fleets": [[width, len(body)] for width, body in bodies.items()], "piece": PIECE}
        self._pieces = self._cut(bodies)
        self._n_pieces = 0

    def go_on(self, connection: Connection) -> bool:
        """Writes the next piece; whether that was the last thing to do."""
        if self._n_pieces == 0:
            _forget_halves(connection)
        piece = next(self._pieces, None)
        if piece is not None:
            insert_many(connection, STATES, [(self.number, self._n_pieces, piece)])
            self._n_pieces += 1
            return False
        header = json.dumps(self._header)
        insert_many(connection, CHECKPOINTS, [(self.number, header, self.learnt.astype("<i8").tobytes())])
        connection.execute(CHECKPOINTS.delete().where(CHECKPOINTS.c.id < self.number))
        connection.execute(STATES.delete().where(STATES.c.checkpoint < self.number))
        return True

    @staticmethod
    def _cut(bodies: dict[int, bytes]) -> Iterator[bytes]:
        for body in bodies.values():
            for first in range(0, len(body), PIECE):
                yield body[first : first + PIECE]


def newest_checkpoint(connection: Connection) -> tuple[int, dict[int, bytes], Integers] | None:
    """The number of the last whole one, its fleets and what they have learnt; None if there is none."""
    found = connection.execute(select(CHECKPOINTS).order_by(CHECKPOINTS.c.id.desc()).limit(1)).first()
    if found is None:
        return None
    header: dict[str, Any] = json.loads(found.header)
    parts = select(STATES.c.body).where(STATES.c.checkpoint == found.id).order_by(STATES.c.part)
    pieces = (bytes(body) for body in connection.execute(parts).scalars())
    bodies = {}
    for width, size in header["fleets"]:
        n_pieces = -(-size // header["piece"])
        bodies[int(width)] = b"".join(next(pieces, b"") for _ in range(n_pieces))
    return int(found.id), bodies, np.frombuffer(bytes(found.learnt), "<i8").reshape(-1, 2).astype(np.int64)


def _forget_halves(connection: Connection) -> None:
    """Removes pieces of checkpoints that never became whole."""
    newest = connection.execute(select(func.max(CHECKPOINTS.c.id))).scalar()
    connection.execute(STATES.delete().where(STATES.c.checkpoint != (-1 if newest is None else newest)))
