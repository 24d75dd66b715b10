"""Store checkpoints of the learners in chunks, so that writing one never delays ingestion for long."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from limpet.server.db.engine import bulk_insert
from limpet.server.db.points import Integers
from limpet.server.db.schema import CHECKPOINT_CHUNKS_TABLE, CHECKPOINTS_TABLE

CHECKPOINT_CHUNK_BYTES = 1 << 20


class CheckpointWriter:
    """Writes a checkpoint chunk by chunk; it replaces the one before it once it is complete.

    A checkpoint of which a chunk could not be written must be abandoned.

    Parameters
    ----------
    checkpoint_id : int
        Its id, larger than that of the checkpoint before it.
    bodies : dict of int to bytes
        The serialized fleets by number of variables.
    row_counts : array of shape (n, 2)
        Stream ids, and the number of rows of each that the fleets have learned.
    """

    def __init__(self, checkpoint_id: int, bodies: dict[int, bytes], row_counts: Integers) -> None:
        self.checkpoint_id, self.row_counts = checkpoint_id, row_counts
        sizes = [[width, len(body)] for width, body in bodies.items()]
        self._header = {"sizes": sizes, "chunk_bytes": CHECKPOINT_CHUNK_BYTES}
        self._chunks = self._split(bodies)
        self._n_chunks = 0

    def write_next_chunk(self, connection: Connection) -> bool:
        """Write the next chunk; return whether the checkpoint is complete."""
        if self._n_chunks == 0:
            _delete_incomplete(connection)
        chunk = next(self._chunks, None)
        if chunk is not None:
            bulk_insert(connection, CHECKPOINT_CHUNKS_TABLE, [(self.checkpoint_id, self._n_chunks, chunk)])
            self._n_chunks += 1
            return False
        header, row_counts = json.dumps(self._header), self.row_counts.astype("<i8").tobytes()
        bulk_insert(connection, CHECKPOINTS_TABLE, [(self.checkpoint_id, header, row_counts)])
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
    """Return id, fleets and row counts of the last complete checkpoint; None without one."""
    row = connection.execute(select(CHECKPOINTS_TABLE).order_by(CHECKPOINTS_TABLE.c.id.desc()).limit(1)).first()
    if row is None:
        return None
    header: dict[str, Any] = json.loads(row.header)
    query = (
        select(CHECKPOINT_CHUNKS_TABLE.c.body)
        .where(CHECKPOINT_CHUNKS_TABLE.c.checkpoint == row.id)
        .order_by(CHECKPOINT_CHUNKS_TABLE.c.chunk)
    )
    chunks = (bytes(body) for body in connection.execute(query).scalars())
    bodies = {}
    for width, size in header["sizes"]:
        n_chunks = -(-size // header["chunk_bytes"])
        bodies[int(width)] = b"".join(next(chunks, b"") for _ in range(n_chunks))
    return int(row.id), bodies, np.frombuffer(bytes(row.row_counts), "<i8").reshape(-1, 2).astype(np.int64)


def _delete_incomplete(connection: Connection) -> None:
    """Delete the chunks of checkpoints that were never completed."""
    newest = connection.execute(select(func.max(CHECKPOINTS_TABLE.c.id))).scalar()
    connection.execute(
        CHECKPOINT_CHUNKS_TABLE.delete().where(
            CHECKPOINT_CHUNKS_TABLE.c.checkpoint != (-1 if newest is None else newest)
        )
    )
