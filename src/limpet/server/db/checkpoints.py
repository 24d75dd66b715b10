"""Checkpoints of what has been learnt, in pieces, so that nobody waits long while one is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from limpet.server.db.blocks import Integers
from limpet.server.db.engine import bulk_insert
from limpet.server.db.schema import CHECKPOINT_CHUNKS_TABLE, CHECKPOINTS_TABLE

CHECKPOINT_CHUNK_BYTES = 1 << 20  # bytes written at a time


class CheckpointWriter:
    """A checkpoint on its way into the store: it counts once it is whole, and then the one before it goes.

    If one of its pieces could not be written it is of no use any more.

    bodies: the bytes of the fleets by their number of variables. learnt: (n, 2), how many rows of which stream are in
    them.
    """

    def __init__(self, checkpoint_id: int, bodies: dict[int, bytes], row_counts: Integers) -> None:
        self.checkpoint_id, self.row_counts = checkpoint_id, row_counts
        self._header = {
            "fleets": [[width, len(body)] for width, body in bodies.items()],
            "piece": CHECKPOINT_CHUNK_BYTES,
        }
        self._chunks = self._split(bodies)
        self._n_chunks = 0

    def write_next_chunk(self, connection: Connection) -> bool:
        """Writes the next piece; whether that was the last thing to do."""
        if self._n_chunks == 0:
            _delete_incomplete(connection)
        chunk = next(self._chunks, None)
        if chunk is not None:
            bulk_insert(connection, CHECKPOINT_CHUNKS_TABLE, [(self.checkpoint_id, self._n_chunks, chunk)])
            self._n_chunks += 1
            return False
        header = json.dumps(self._header)
        bulk_insert(
            connection, CHECKPOINTS_TABLE, [(self.checkpoint_id, header, self.row_counts.astype("<i8").tobytes())]
        )
        connection.execute(CHECKPOINTS_TABLE.delete().where(CHECKPOINTS_TABLE.c.id < self.checkpoint_id))
        connection.execute(
            CHECKPOINT_CHUNKS_TABLE.delete().where(CHECKPOINT_CHUNKS_TABLE.c.checkpoint < self.checkpoint_id)
        )
        return True

    @staticmethod
    def _split(bodies: dict[int, bytes]) -> Iterator[bytes]:
        for body in bodies.values():
            for first in range(0, len(body), CHECKPOINT_CHUNK_BYTES):
                yield body[first : first + CHECKPOINT_CHUNK_BYTES]


def read_checkpoint(connection: Connection) -> tuple[int, dict[int, bytes], Integers] | None:
    """The number of the last whole one, its fleets and what they have learnt; None if there is none."""
    row = connection.execute(select(CHECKPOINTS_TABLE).order_by(CHECKPOINTS_TABLE.c.id.desc()).limit(1)).first()
    if row is None:
        return None
    header: dict[str, Any] = json.loads(row.header)
    query = (
        select(CHECKPOINT_CHUNKS_TABLE.c.body)
        .where(CHECKPOINT_CHUNKS_TABLE.c.checkpoint == row.id)
        .order_by(CHECKPOINT_CHUNKS_TABLE.c.part)
    )
    chunks = (bytes(body) for body in connection.execute(query).scalars())
    bodies = {}
    for width, size in header["fleets"]:
        n_chunks = -(-size // header["piece"])
        bodies[int(width)] = b"".join(next(chunks, b"") for _ in range(n_chunks))
    return int(row.id), bodies, np.frombuffer(bytes(row.learnt), "<i8").reshape(-1, 2).astype(np.int64)


def _delete_incomplete(connection: Connection) -> None:
    """Removes pieces of checkpoints that never became whole."""
    newest = connection.execute(select(func.max(CHECKPOINTS_TABLE.c.id))).scalar()
    connection.execute(
        CHECKPOINT_CHUNKS_TABLE.delete().where(
            CHECKPOINT_CHUNKS_TABLE.c.checkpoint != (-1 if newest is None else newest)
        )
    )
