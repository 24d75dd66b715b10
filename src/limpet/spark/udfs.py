"""What runs on the executors: functions that Spark calls with rows, and with the state of a bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from limpet._parallel import set_max_threads
from limpet.fleet.partition import split
from limpet.spark.arrow_ipc import concat_tables, pack_batches, to_ipc_chunks, unpack_batches
from limpet.spark.checkpoint import StatesFile
from limpet.spark.event_time import NO_TIME
from limpet.spark.job_spec import JobSpec
from limpet.spark.partition_state import PartitionState, StateValue, from_state_value, to_state_value

ORDER_COLUMN = "__limpet_order__"  # of rows of equal times, while they are sorted
FLEET_CHUNK_STREAMS = 10_000  # that come back as one value


@dataclass(frozen=True)
class SparkTask:
    """A function with its plan, as text: it is sent to other processes, which may have another limpet.

    columns: the names of the columns that it gets, which come under other ones.
    """

    spec_json: str
    columns: tuple[str, ...] = ()

    def load_spec(self) -> JobSpec:
        """The plan, where the task runs: beside other tasks on the same machine, one for each core."""
        set_max_threads(1)
        spec = JobSpec.from_json(self.spec_json)
        for module in spec.get_modules():
            import_module(module)
        return spec

    def restore_names(self, batch: Any) -> Any:
        """The columns by their own names; what comes after them keeps the one it has."""
        return batch.rename_columns([*self.columns, *batch.schema.names[len(self.columns) :]])


class Pack(SparkTask):
    """For mapInArrow: rows → a value for each bucket."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Batches of the columns PACKED."""
        from pyspark import TaskContext

        context = TaskContext.get()
        yield from pack_batches(
            map(self.restore_names, batches), self.load_spec(), context.partitionId() if context else 0
        )


class Unpack(SparkTask):
    """For mapInArrow: values → the rows in them."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Batches of the input's columns and those of the answers."""
        yield from unpack_batches(batches)


class StatefulTask(SparkTask):
    """For applyInPandasWithState: the rows of a bucket, and what it has learnt before."""

    def __call__(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """Frames of one column, PACKED's rows with the answers beside them."""
        import pandas

        packed_rows = pandas.concat(list(frames)).sort_values("place", kind="stable")
        table, value = self.process_partition(int(key[0]), concat_tables(packed_rows["rows"]), state)
        state.update(value)
        for rows in to_ipc_chunks(table):
            yield pandas.DataFrame({"rows": [rows]})

    def process_partition(self, number: int, table: Any, state: Any) -> tuple[Any, StateValue]:
        """The rows of a bucket with the answers beside them, and what is to be kept of it."""
        spec = self.load_spec()
        bucket = self.load_partition(spec, number, state)
        return bucket.process(table, _get_watermark_us(spec, state)), to_state_value(bucket)

    def load_partition(self, spec: JobSpec, number: int, state: Any) -> PartitionState:
        """As it was, or as its generation began."""
        partition = from_state_value(state.get, spec) if state.exists else None
        if partition is None and spec.states is not None:
            from pyspark import SparkFiles

            partition = StatesFile(SparkFiles.get(spec.states)).read_partition(number, spec)
        return partition or PartitionState.empty(spec)


class SortedStreamsTask(SparkTask):
    """For mapInArrow: rows of whole streams, in the order of their times."""

    def process_batches(self, bucket: PartitionState, batches: Iterable[Any]) -> Iterator[Any]:
        """What batches come to, one after another."""
        import pyarrow

        for batch in batches:
            if batch.num_rows:
                yield bucket.process(
                    pyarrow.Table.from_batches([self.restore_names(batch)]).drop_columns([ORDER_COLUMN])
                )


class ScoreSortedStreams(SortedStreamsTask):
    """Rows → the same with the answers beside them."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same batches with the answers beside them."""
        for table in self.process_batches(PartitionState.empty(self.load_spec()), batches):
            yield from table.combine_chunks().to_batches()


class CollectFleets(SortedStreamsTask):
    """Rows → fleets that have learnt them, as bytes."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """A row for each so many streams: a value of Spark's holds 2 GB."""
        import pyarrow

        bucket = PartitionState.empty(self.load_spec())
        for _ in self.process_batches(bucket, batches):
            pass
        chunk_index = np.arange(len(bucket.fleet)) // FLEET_CHUNK_STREAMS
        for fleet in split(bucket.fleet, chunk_index).values() if len(chunk_index) else ():
            yield pyarrow.RecordBatch.from_pydict({"fleet": pyarrow.array([fleet.to_bytes()], pyarrow.binary())})


def _get_watermark_us(spec: JobSpec, state: Any) -> int:
    """In microseconds; NEVER where there is none yet."""
    milliseconds = state.getCurrentWatermarkMs() if spec.watermark is not None else 0
    return 1000 * milliseconds if milliseconds > 0 else NO_TIME
