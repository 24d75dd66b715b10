"""What runs on the executors: functions that Spark calls with rows, and with the state of a bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from holdfast.engines.spark.bucket import Bucket
from holdfast.engines.spark.clock import NEVER
from holdfast.engines.spark.packing import as_values, joined_tables, packed, unpacked
from holdfast.engines.spark.plan import Plan
from holdfast.engines.spark.state import Value, bucket_of, value_of
from holdfast.engines.spark.states_file import StatesFile
from holdfast.fleet.parts import split
from holdfast.threads import use_at_most

ORDER = "__holdfast_order__"  # of rows of equal times, while they are sorted
STREAMS_AT_ONCE = 10_000  # that come back as one value


@dataclass(frozen=True)
class Task:
    """A function with its plan, as text: it is sent to other processes, which may have another holdfast.

    columns: the names of the columns that it gets, which come under other ones.
    """

    plan: str
    columns: tuple[str, ...] = ()

    def opened(self) -> Plan:
        """The plan, where the task runs: beside other tasks on the same machine, one for each core."""
        use_at_most(1)
        plan = Plan.of_json(self.plan)
        for module in plan.modules():
            import_module(module)
        return plan

    def named(self, batch: Any) -> Any:
        """The columns by their own names; what comes after them keeps the one it has."""
        return batch.rename_columns([*self.columns, *batch.schema.names[len(self.columns) :]])


class Pack(Task):
    """For mapInArrow: rows → a value for each bucket."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Batches of the columns PACKED."""
        from pyspark import TaskContext

        context = TaskContext.get()
        yield from packed(map(self.named, batches), self.opened(), context.partitionId() if context else 0)


class Unpack(Task):
    """For mapInArrow: values → the rows in them."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Batches of the input's columns and those of the answers."""
        yield from unpacked(batches)


class LearnWithState(Task):
    """For applyInPandasWithState: the rows of a bucket, and what it has learnt before."""

    def __call__(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """Frames of one column, PACKED's rows with the answers beside them."""
        import pandas

        packed_rows = pandas.concat(list(frames)).sort_values("place", kind="stable")
        table, value = self.learnt(int(key[0]), joined_tables(packed_rows["rows"]), state)
        state.update(value)
        for rows in as_values(table):
            yield pandas.DataFrame({"rows": [rows]})

    def learnt(self, number: int, table: Any, state: Any) -> tuple[Any, Value]:
        """The rows of a bucket with the answers beside them, and what is to be kept of it."""
        plan = self.opened()
        bucket = self.bucket(plan, number, state)
        return bucket.learn(table, _watermark(plan, state)), value_of(bucket)

    def bucket(self, plan: Plan, number: int, state: Any) -> Bucket:
        """As it was, or as its generation began."""
        known = bucket_of(state.get, plan) if state.exists else None
        if known is None and plan.states is not None:
            from pyspark import SparkFiles

            known = StatesFile(SparkFiles.get(plan.states)).bucket(number, plan)
        return known or Bucket.empty(plan)


class WholeStreams(Task):
    """For mapInArrow: rows of whole streams, in the order of their times."""

    def learnt(self, bucket: Bucket, batches: Iterable[Any]) -> Iterator[Any]:
        """What batches come to, one after another."""
        import pyarrow

        for batch in batches:
            if batch.num_rows:
                yield bucket.learn(pyarrow.Table.from_batches([self.named(batch)]).drop_columns([ORDER]))


class Learn(WholeStreams):
    """Rows → the same with the answers beside them."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same batches with the answers beside them."""
        for table in self.learnt(Bucket.empty(self.opened()), batches):
            yield from table.combine_chunks().to_batches()


class Gather(WholeStreams):
    """Rows → fleets that have learnt them, as bytes."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """A row for each so many streams: a value of Spark's holds 2 GB."""
        import pyarrow

        bucket = Bucket.empty(self.opened())
        for _ in self.learnt(bucket, batches):
            pass
        owners = np.arange(len(bucket.fleet)) // STREAMS_AT_ONCE
        for fleet in split(bucket.fleet, owners).values() if len(owners) else ():
            yield pyarrow.RecordBatch.from_pydict({"fleet": pyarrow.array([fleet.to_bytes()], pyarrow.binary())})


def _watermark(plan: Plan, state: Any) -> int:
    """In microseconds; NEVER where there is none yet."""
    milliseconds = state.getCurrentWatermarkMs() if plan.watermark is not None else 0
    return 1000 * milliseconds if milliseconds > 0 else NEVER
