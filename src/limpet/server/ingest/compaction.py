"""Room in the store: it does not grow faster than it shrinks."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from limpet.server.db.history import COMPACT_CHUNK_ROWS, compact_stream, needs_compaction
from limpet.server.db.points import merge_blocks
from limpet.server.ingest.processor import GroupProcessor
from limpet.server.ingest.stream_registry import StreamInfo

LOOSE_BLOCKS_THRESHOLD = 128  # short blocks of a stream that are made long ones together


class Compactor:
    """Which streams may have too many points, or too many short blocks. keep: points that are kept in full."""

    def __init__(self, max_full_points: int) -> None:
        self.max_full_points = max_full_points
        self._candidates: dict[int, None] = {}
        self._n_new_points = 0  # points since the last look

    @property
    def has_candidates(self) -> bool:
        """Whether there is something to look at."""
        return bool(self._candidates)

    def add_candidates(self, stream_ids: Iterable[int], n_points: int) -> None:
        """Streams are worth a look, since so many points have come."""
        self._candidates |= dict.fromkeys(stream_ids)
        self._n_new_points += n_points

    def compact(self, processor: GroupProcessor) -> None:
        """Looks at some streams, and condenses twice as many points as have come, if there are, in one transaction."""
        n_done, budget, due = -1, 2 * self._n_new_points, list[StreamInfo]()
        while self._candidates and n_done < budget:
            stream_id = next(iter(self._candidates))
            del self._candidates[stream_id]
            n_done += 1
            stream = processor.registry.find_by_id(stream_id)
            if stream is not None and (
                stream.n_loose_blocks >= LOOSE_BLOCKS_THRESHOLD or self._needs_compaction(stream)
            ):
                due.append(stream)
                n_done += max(
                    stream.n_loose_blocks,
                    min(stream.n_points - stream.first_row - self.max_full_points, COMPACT_CHUNK_ROWS),
                )
        self._n_new_points = 0
        if due:
            with processor.store.write_transaction() as connection:
                for stream in due:
                    self._compact_stream(connection, stream, processor.checkpointed_rows.get(stream.entry.id, 0))

    def _needs_compaction(self, stream: StreamInfo) -> bool:
        return needs_compaction(stream.n_points - stream.first_row, self.max_full_points)

    def _compact_stream(self, connection: Connection, stream: StreamInfo, checkpointed_rows: int) -> None:
        """Short blocks become long ones, and the oldest points buckets, if there are too many of either.

        learnt: rows that are in a checkpoint.
        """
        stream_id, width = stream.entry.id, stream.entry.width
        if stream.n_loose_blocks >= LOOSE_BLOCKS_THRESHOLD:
            merge_blocks(connection, stream_id, stream.packed_until, stream.n_points, width)
            stream.packed_until, stream.n_loose_blocks = stream.n_points, 0
        if self._needs_compaction(stream):
            first = compact_stream(
                connection,
                stream_id,
                width,
                stream.first_row,
                min(stream.n_points, checkpointed_rows),
                self.max_full_points,
            )
            if first > stream.first_row:
                stream.first_row, stream.packed_until = first, max(first, stream.packed_until)
                self._candidates[stream_id] = None  # there may be more
