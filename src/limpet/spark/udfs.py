"""Functions that Spark calls on its executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from limpet._parallel import set_max_threads
from limpet.fleet.partition import split
from limpet.spark.arrow_ipc import concat_tables, pack_batches, to_ipc_chunks
from limpet.spark.checkpoint import StatesFile
from limpet.spark.job_spec import JobSpec
from limpet.spark.partition_state import PartitionState, StateValue, from_state_value, to_state_value
from limpet.streams.event_time import NO_TIME

ORDER_COLUMN = "__limpet_order__"  # order of rows of equal times, while they are sorted
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


class SortedStreamsTask(SparkTask):
    """For mapInArrow: learn the rows of whole streams, sorted by time."""

    def process_batches(self, partition: PartitionState, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the rows of each batch with the result columns."""
        import pyarrow

        for batch in batches:
            if batch.num_rows:
                yield partition.process(pyarrow.Table.from_batches([self.restore_names(batch)]))


class ScoreSortedStreams(SortedStreamsTask):
    """Add the result columns to rows."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches with the result columns."""
        for table in self.process_batches(PartitionState.empty(self.load_spec()), batches):
            yield from table.combine_chunks().to_batches()


class CollectFleets(SortedStreamsTask):
    """Learn rows, and return the fleets as bytes."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield a row per `FLEET_CHUNK_STREAMS`, as a value has at most 2 GB."""
        import pyarrow

        partition = PartitionState.empty(self.load_spec())
        for _ in self.process_batches(partition, batches):
            pass
        chunk_index = np.arange(len(partition.fleet)) // FLEET_CHUNK_STREAMS
        for fleet in split(partition.fleet, chunk_index).values() if len(chunk_index) else ():
            yield pyarrow.RecordBatch.from_pydict({"fleet": pyarrow.array([fleet.to_bytes()], pyarrow.binary())})
