"""Rows on their way to their bucket and back: many as one, in Arrow's own form, so that each value stays what it is.

A shuffle that moves rows one by one costs more than all the learning. Here a task deals its rows to the buckets, and
what it has for a bucket travels as one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from holdfast.engines.spark.clock import NEVER
from holdfast.engines.spark.columns import times_of
from holdfast.engines.spark.hashing import buckets_of
from holdfast.engines.spark.plan import Plan

PACKED = "bucket int, place long, latest timestamp, rows binary"
ROWS = "rows binary"
AT_ONCE = 1 << 26  # bytes of rows that are dealt out at a time
ROWS_AT_ONCE = 1 << 17  # rows that go back as one value, if they are not large
LATEST = np.datetime64("2262-01-01", "us").astype(np.int64)  # pandas, by way of which Spark hands them on, ends there
EARLIEST = -LATEST


def as_bytes(table: Any) -> bytes:
    """A table as one value."""
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def as_values(table: Any) -> Iterator[bytes]:
    """A table as one value or, where it is large, as several."""
    size = table.nbytes // max(len(table), 1) + 1
    at_once = min(max(AT_ONCE // size, 1), ROWS_AT_ONCE)
    for first in range(0, len(table), at_once):
        yield as_bytes(table.slice(first, at_once))


def as_table(data: Any) -> Any:
    """The table that `as_bytes` was given; it lies in the same memory."""
    import pyarrow

    return pyarrow.ipc.open_stream(data).read_all()


def packed(batches: Iterable[Any], plan: Plan, task: int) -> Iterator[Any]:
    """The rows of a task, dealt to their buckets: a row for each bucket and each so many bytes, of the columns PACKED.

    place: puts what came from all tasks in one order, whichever comes first. latest: the latest time among the rows.
    """
    waiting: list[Any] = []
    n_bytes = n_dealt = 0
    for batch in batches:
        waiting.append(batch)
        n_bytes += batch.nbytes
        if n_bytes >= AT_ONCE:
            yield _dealt(waiting, plan, (task << 32) + n_dealt)
            waiting, n_bytes, n_dealt = [], 0, n_dealt + 1
    if any(batch.num_rows for batch in waiting):
        yield _dealt(waiting, plan, (task << 32) + n_dealt)


def _dealt(batches: list[Any], plan: Plan, place: int) -> Any:
    import pyarrow

    table = pyarrow.Table.from_batches(batches).combine_chunks()
    keys = table[plan.key].combine_chunks()
    buckets = buckets_of(keys, plan.n_buckets).astype(np.int16 if plan.n_buckets < 1 << 15 else np.int64)
    order = np.argsort(buckets, kind="stable")
    table, buckets = table.take(pyarrow.array(order)).combine_chunks(), buckets[order]
    edges = np.flatnonzero(np.append(True, buckets[1:] != buckets[:-1])).tolist()
    pieces = [table.slice(begin, end - begin) for begin, end in zip(edges, [*edges[1:], len(buckets)], strict=True)]
    latest = None
    if plan.watermark is not None and plan.time is not None:
        times = times_of(table[plan.time])
        found = np.maximum.reduceat(times, edges)
        latest = pyarrow.array(np.clip(found, EARLIEST, LATEST), mask=found == NEVER).cast(
            pyarrow.timestamp("us", "UTC")
        )
    return pyarrow.RecordBatch.from_pydict(
        {
            "bucket": pyarrow.array(buckets[edges].astype(np.int32)),
            "place": pyarrow.array(np.full(len(edges), place)),
            "latest": pyarrow.nulls(len(edges), pyarrow.timestamp("us", "UTC")) if latest is None else latest,
            "rows": pyarrow.array([as_bytes(piece) for piece in pieces], pyarrow.binary()),
        }
    )


def unpacked(batches: Iterable[Any]) -> Iterator[Any]:
    """The rows of tables that travelled as values."""
    for batch in batches:
        for value in batch.column("rows"):
            yield from as_table(value.as_buffer()).to_batches()


def joined_tables(values: Iterable[Any]) -> Any:
    """One table of several that travelled as values."""
    import pyarrow

    return pyarrow.concat_tables([as_table(value) for value in values]).combine_chunks()
