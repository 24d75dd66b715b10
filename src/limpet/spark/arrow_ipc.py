"""Rows on their way to their bucket and back: many as one, in Arrow's own form, so that each value stays what it is.

A shuffle that moves rows one by one costs more than all the learning. Here a task deals its rows to the buckets, and
what it has for a bucket travels as one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from limpet.spark.arrow import read_time_column
from limpet.spark.event_time import NO_TIME
from limpet.spark.job_spec import JobSpec
from limpet.spark.partitioner import partition_of

PACKED_SCHEMA = "bucket int, place long, latest timestamp, rows binary"
ROWS_SCHEMA = "rows binary"
ARROW_CHUNK_BYTES = 1 << 26  # bytes of rows that are dealt out at a time
ARROW_CHUNK_ROWS = 1 << 17  # rows that go back as one value, if they are not large
MAX_TIME_US = np.datetime64("2262-01-01", "us").astype(
    np.int64
)  # pandas, by way of which Spark hands them on, ends there
MIN_TIME_US = -MAX_TIME_US


def to_ipc_bytes(table: Any) -> bytes:
    """A table as one value."""
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def to_ipc_chunks(table: Any) -> Iterator[bytes]:
    """A table as one value or, where it is large, as several."""
    row_bytes = table.nbytes // max(len(table), 1) + 1
    chunk_rows = min(max(ARROW_CHUNK_BYTES // row_bytes, 1), ARROW_CHUNK_ROWS)
    for first in range(0, len(table), chunk_rows):
        yield to_ipc_bytes(table.slice(first, chunk_rows))


def from_ipc_bytes(data: Any) -> Any:
    """The table that `as_bytes` was given; it lies in the same memory."""
    import pyarrow

    return pyarrow.ipc.open_stream(data).read_all()


def pack_batches(batches: Iterable[Any], spec: JobSpec, task: int) -> Iterator[Any]:
    """The rows of a task, dealt to their buckets: a row for each bucket and each so many bytes, of the columns PACKED.

    place: puts what came from all tasks in one order, whichever comes first. latest: the latest time among the rows.
    """
    pending: list[Any] = []
    n_bytes = n_packed = 0
    for batch in batches:
        pending.append(batch)
        n_bytes += batch.nbytes
        if n_bytes >= ARROW_CHUNK_BYTES:
            yield _pack_rows(pending, spec, (task << 32) + n_packed)
            pending, n_bytes, n_packed = [], 0, n_packed + 1
    if any(batch.num_rows for batch in pending):
        yield _pack_rows(pending, spec, (task << 32) + n_packed)


def _pack_rows(batches: list[Any], spec: JobSpec, sequence_number: int) -> Any:
    import pyarrow

    table = pyarrow.Table.from_batches(batches).combine_chunks()
    keys = table[spec.key].combine_chunks()
    buckets = partition_of(keys, spec.n_buckets).astype(np.int16 if spec.n_buckets < 1 << 15 else np.int64)
    order = np.argsort(buckets, kind="stable")
    table, buckets = table.take(pyarrow.array(order)).combine_chunks(), buckets[order]
    starts = np.flatnonzero(np.append(True, buckets[1:] != buckets[:-1])).tolist()
    pieces = [table.slice(start, end - start) for start, end in zip(starts, [*starts[1:], len(buckets)], strict=True)]
    latest = None
    if spec.watermark is not None and spec.time is not None:
        times = read_time_column(table[spec.time])
        latest_times = np.maximum.reduceat(times, starts)
        latest = pyarrow.array(np.clip(latest_times, MIN_TIME_US, MAX_TIME_US), mask=latest_times == NO_TIME).cast(
            pyarrow.timestamp("us", "UTC")
        )
    return pyarrow.RecordBatch.from_pydict(
        {
            "bucket": pyarrow.array(buckets[starts].astype(np.int32)),
            "place": pyarrow.array(np.full(len(starts), sequence_number)),
            "latest": pyarrow.nulls(len(starts), pyarrow.timestamp("us", "UTC")) if latest is None else latest,
            "rows": pyarrow.array([to_ipc_bytes(piece) for piece in pieces], pyarrow.binary()),
        }
    )


def unpack_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """The rows of tables that travelled as values."""
    for batch in batches:
        for value in batch.column("rows"):
            yield from from_ipc_bytes(value.as_buffer()).to_batches()


def concat_tables(values: Iterable[Any]) -> Any:
    """One table of several that travelled as values."""
    import pyarrow

    return pyarrow.concat_tables([from_ipc_bytes(value) for value in values]).combine_chunks()
