"""Functions that Spark calls on its executors: pack, learn and unpack rows.

A shuffle that moves rows one by one costs more than learning them. Here the rows of a task and a bucket are packed as
one value in Arrow's stream format, which preserves all types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from limpet._parallel import set_max_threads
from limpet.fleet.partition import split
from limpet.spark.arrow import read_time_column
from limpet.spark.checkpoint import StatesFile
from limpet.spark.job_spec import JobSpec
from limpet.spark.partition_state import PartitionState, StateValue, from_state_value, to_state_value
from limpet.spark.partitioner import partition_of
from limpet.streams.event_time import NO_TIME

PACKED_SCHEMA = "bucket int, sequence long, latest timestamp, rows binary"
ROWS_SCHEMA = "rows binary"
ARROW_CHUNK_BYTES = 1 << 26  # of rows packed together
ARROW_CHUNK_ROWS = 1 << 17  # at most in one value of results
# Spark converts `latest` by way of pandas, whose nanoseconds end in 2262.
MAX_TIME_US = np.datetime64("2262-01-01", "us").astype(np.int64)
FLEET_CHUNK_STREAMS = 10_000  # in one value of `CollectFleets`


@dataclass(frozen=True)
class SparkTask:
    """A function with its job specification as JSON."""

    spec_json: str
    columns: tuple[str, ...] = ()  # the names of the columns, which arrive with other names

    def load_spec(self) -> JobSpec:
        """Parse the specification, import its modules, and use one thread per task."""
        set_max_threads(1)
        spec = JobSpec.from_json(self.spec_json)
        for module in spec.get_modules():
            import_module(module)
        return spec

    def restore_names(self, batch: Any) -> Any:
        """Return the columns of the input with their original names."""
        return batch.select(range(len(self.columns))).rename_columns(list(self.columns))

    def process_batches(self, partition: PartitionState, batches: Iterable[Any]) -> Iterator[Any]:
        """Learn batches of rows sorted by time; yield them with the result columns."""
        import pyarrow

        for batch in batches:
            if batch.num_rows:
                yield partition.process(pyarrow.Table.from_batches([self.restore_names(batch)]))


class Pack(SparkTask):
    """For mapInArrow: pack rows by bucket."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield batches of the columns `PACKED_SCHEMA`."""
        from pyspark import TaskContext

        context = TaskContext.get()
        task = context.partitionId() if context else 0
        yield from pack_batches(map(self.restore_names, batches), self.load_spec(), task)


class StatefulTask(SparkTask):
    """For applyInPandasWithState: learn the rows of a bucket from its state."""

    def __call__(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """Yield frames of one column: the packed rows with the result columns."""
        import pandas

        packed_rows = pandas.concat(list(frames)).sort_values("sequence", kind="stable")
        table, value = self.process_partition(int(key[0]), concat_tables(packed_rows["rows"]), state)
        state.update(value)
        for rows in to_ipc_chunks(table):
            yield pandas.DataFrame({"rows": [rows]})

    def process_partition(self, number: int, table: Any, state: Any) -> tuple[Any, StateValue]:
        """Return the rows of a bucket with the result columns, and the new state."""
        spec = self.load_spec()
        partition = self.load_partition(spec, number, state)
        watermark_ms = state.getCurrentWatermarkMs() if spec.watermark is not None else 0
        results = partition.process(table, 1000 * watermark_ms if watermark_ms > 0 else NO_TIME)
        return results, to_state_value(partition)

    def load_partition(self, spec: JobSpec, number: int, state: Any) -> PartitionState:
        """Return the state of a bucket, from Spark or the file of the generation."""
        partition = from_state_value(state.get, spec) if state.exists else None
        if partition is None and spec.states_file is not None:
            from pyspark import SparkFiles

            partition = StatesFile(SparkFiles.get(spec.states_file)).read_partition(number, spec)
        return partition or PartitionState.empty(spec)


class ScoreSortedStreams(SparkTask):
    """For mapInArrow: add the result columns to the rows of whole streams."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches with the result columns."""
        for table in self.process_batches(PartitionState.empty(self.load_spec()), batches):
            yield from table.combine_chunks().to_batches()


class CollectFleets(SparkTask):
    """For mapInArrow: learn the rows of whole streams, and yield fleets as bytes."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield a row per `FLEET_CHUNK_STREAMS`, as a value has at most 2 GB."""
        import pyarrow

        partition = PartitionState.empty(self.load_spec())
        for _ in self.process_batches(partition, batches):
            pass
        chunk_index = np.arange(len(partition.fleet)) // FLEET_CHUNK_STREAMS
        for fleet in split(partition.fleet, chunk_index).values() if len(chunk_index) else ():
            yield pyarrow.RecordBatch.from_pydict({"fleet": pyarrow.array([fleet.to_bytes()], pyarrow.binary())})


# Rows as values in Arrow's stream format


def to_ipc_bytes(table: Any) -> bytes:
    """Return a table as one value."""
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


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
