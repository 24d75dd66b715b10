"""Pack rows for the shuffle, those of a task and a bucket as one value in Arrow's stream format: types are preserved.

A shuffle that moves rows one by one costs more than learning them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from limpet.spark.arrow import read_time_column
from limpet.spark.job_spec import JobSpec
from limpet.spark.partitioner import partition_of
from limpet.streams.event_time import NO_TIME

PACKED_SCHEMA = "bucket int, sequence long, latest timestamp, rows binary"
ROWS_SCHEMA = "rows binary"
ARROW_CHUNK_BYTES = 1 << 26  # of rows packed together
ARROW_CHUNK_ROWS = 1 << 17  # at most in one value of results
# Spark converts `latest` by way of pandas, whose nanoseconds end in 2262.
MAX_TIME_US = np.datetime64("2262-01-01", "us").astype(np.int64)


def to_ipc_bytes(table: Any) -> bytes:
    """Return a table as one value."""
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def to_ipc_chunks(table: Any) -> Iterator[bytes]:
    """Yield a table as one value or, if it is large, as several."""
    row_bytes = table.nbytes // max(len(table), 1) + 1
    chunk_rows = min(max(ARROW_CHUNK_BYTES // row_bytes, 1), ARROW_CHUNK_ROWS)
    for first in range(0, len(table), chunk_rows):
        yield to_ipc_bytes(table.slice(first, chunk_rows))


def from_ipc_bytes(data: Any) -> Any:
    """Return the table of a value of `to_ipc_bytes`, without copying the data."""
    import pyarrow

    return pyarrow.ipc.open_stream(data).read_all()


def pack_batches(batches: Iterable[Any], spec: JobSpec, task: int) -> Iterator[Any]:
    """Pack the rows of a task by bucket, as batches of the columns `PACKED_SCHEMA`.

    `sequence` orders the values of all tasks, in whichever order they arrive. `latest` is the latest time of the rows.
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
    latest_times = np.full(len(starts), NO_TIME)
    if spec.watermark is not None and spec.time is not None:
        latest_times = np.maximum.reduceat(read_time_column(table[spec.time]), starts)
    latest = pyarrow.array(np.clip(latest_times, -MAX_TIME_US, MAX_TIME_US), mask=latest_times == NO_TIME)
    return pyarrow.RecordBatch.from_pydict(
        {
            "bucket": pyarrow.array(buckets[starts].astype(np.int32)),
            "sequence": pyarrow.array(np.full(len(starts), sequence_number)),
            "latest": latest.cast(pyarrow.timestamp("us", "UTC")),
            "rows": pyarrow.array([to_ipc_bytes(piece) for piece in pieces], pyarrow.binary()),
        }
    )


def unpack_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of packed values, as batches."""
    for batch in batches:
        for value in batch.column("rows"):
            yield from from_ipc_bytes(value.as_buffer()).to_batches()


def concat_tables(values: Iterable[Any]) -> Any:
    """Return one table of the rows of several packed values."""
    import pyarrow

    return pyarrow.concat_tables([from_ipc_bytes(value) for value in values]).combine_chunks()
