"""Store checkpoints of learners in chunks, which bounds the delay of ingestion."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from limpet.server.db.engine import bulk_insert
from limpet.server.db.points import Integers
from limpet.server.db.schema import CHECKPOINTS_TABLE, CHUNKS_TABLE

CHECKPOINT_CHUNK_BYTES = 1 << 20


class CheckpointWriter:
    """Write a checkpoint chunk by chunk; once complete, it replaces the one before.

    A checkpoint of which a chunk could not be written must be abandoned. The bodies are the serialized fleets by number
    of variables; `row_counts`, (n, 2), has stream ids and the numbers of rows that the fleets have learned.
    """

    def __init__(self, checkpoint_id: int, bodies: dict[int, bytes], row_counts: Integers) -> None:
        self.checkpoint_id, self.row_counts = checkpoint_id, row_counts
        sizes = [[width, len(body)] for width, body in bodies.items()]
        self._header = json.dumps({"sizes": sizes, "chunk_bytes": CHECKPOINT_CHUNK_BYTES})
        self._n_chunks = 0
        self._chunks = (
            body[first : first + CHECKPOINT_CHUNK_BYTES]
            for body in bodies.values()
            for first in range(0, len(body), CHECKPOINT_CHUNK_BYTES)
        )

    def write_next_chunk(self, connection: Connection) -> bool:
        """Write the next chunk; return whether the checkpoint is complete."""
        if self._n_chunks == 0:  # delete checkpoints that were never completed
            newest = connection.execute(select(func.max(CHECKPOINTS_TABLE.c.id))).scalar()
            complete_id = -1 if newest is None else newest
            connection.execute(CHUNKS_TABLE.delete().where(CHUNKS_TABLE.c.checkpoint != complete_id))
        chunk = next(self._chunks, None)
        if chunk is not None:
            bulk_insert(connection, CHUNKS_TABLE, [(self.checkpoint_id, self._n_chunks, chunk)])
            self._n_chunks += 1
            return False
        row_counts = self.row_counts.astype("<i8").tobytes()
        bulk_insert(connection, CHECKPOINTS_TABLE, [(self.checkpoint_id, self._header, row_counts)])
        connection.execute(CHECKPOINTS_TABLE.delete().where(CHECKPOINTS_TABLE.c.id < self.checkpoint_id))
        connection.execute(CHUNKS_TABLE.delete().where(CHUNKS_TABLE.c.checkpoint < self.checkpoint_id))
        return True


def read_checkpoint(connection: Connection) -> tuple[int, dict[int, bytes], Integers]:
    """Return id (−1 if none), fleets and row counts of the last complete checkpoint."""
    row = connection.execute(select(CHECKPOINTS_TABLE).order_by(CHECKPOINTS_TABLE.c.id.desc()).limit(1)).first()
    if row is None:
        return -1, {}, np.zeros((0, 2), np.int64)
    header: dict[str, Any] = json.loads(row.header)
    query = select(CHUNKS_TABLE.c.body).where(CHUNKS_TABLE.c.checkpoint == row.id).order_by(CHUNKS_TABLE.c.chunk)
    chunks = (bytes(body) for body in connection.execute(query).scalars())
    bodies = {}
    for width, size in header["sizes"]:
        n_chunks = -(-size // header["chunk_bytes"])
        bodies[int(width)] = b"".join(next(chunks, b"") for _ in range(n_chunks))
    return int(row.id), bodies, np.frombuffer(bytes(row.row_counts), "<i8").reshape(-1, 2).astype(np.int64)
