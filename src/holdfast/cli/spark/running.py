"""A query while it runs: a line for each micro-batch, until it ends or somebody says stop."""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from holdfast.cli.spark.counts import Counts, observed
from holdfast.cli.spark.errors import while_it_runs
from holdfast.cli.spark.sink import as_written, options_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

log = logging.getLogger("holdfast.spark")
LOOK_EVERY = 0.25  # seconds


def follow(scored: DataFrame, values: Mapping[str, Any], stop: threading.Event) -> Counts:
    """Runs a query to its end, and counts."""
    counted = observed(scored, values["prefix"], "holdfast")
    writer = as_written(counted, values["to"]).writeStream.outputMode("append").format(values["to"])
    writer = _triggered(writer.options(**options_of(values["to"])), values)
    with tempfile.TemporaryDirectory(prefix="holdfast-") as room:  # for a socket: files cannot do without
        query = writer.option("checkpointLocation", values["checkpoint"] or room).start(values["out"])
        with while_it_runs(values["spark_log"]):
            return _to_the_end(query, stop)


@contextmanager
def cancelled_on(stop: threading.Event, spark: SparkSession) -> Iterator[None]:
    """What Spark does inside is given up when somebody says stop, and ends with an error."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(LOOK_EVERY):
            if stop.is_set():  # again and again: one job may follow another
                with suppress(Exception):
                    spark.sparkContext.cancelAllJobs()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _triggered(writer: DataStreamWriter, values: Mapping[str, Any]) -> DataStreamWriter:
    """With how often it looks for more."""
    from holdfast.engines.spark.schema import duration

    if values["once"]:
        return writer.trigger(availableNow=True)
    if values["every"] is None:
        return writer
    milliseconds = max((duration("--every", values["every"], "us") or 0) // 1000, 1)
    return writer.trigger(processingTime=f"{milliseconds} milliseconds")


def _to_the_end(query: StreamingQuery, stop: threading.Event) -> Counts:
    """Tells of batches until the query ends, or somebody says stop."""
    told = Told()
    try:
        while not query.awaitTermination(LOOK_EVERY):
            told.look(query)
            if stop.is_set():
                break
    finally:
        if query.isActive:
            query.stop()
        told.look(query)
    return told.all


class Told:
    """The batches that have been told of, and what they come to."""

    def __init__(self) -> None:
        self.all = Counts()
        self._last = -1

    def look(self, query: StreamingQuery) -> None:
        """Tells of the batches that have been finished since."""
        newest = query.lastProgress
        if newest is None or newest.batchId <= self._last:
            return
        for one in query.recentProgress:
            found = one.observedMetrics.get("holdfast")
            if one.batchId <= self._last or not one.numInputRows or found is None:  # what is idle reports as well
                continue
            self._last = one.batchId
            batch = Counts()
            batch.add(found)
            self.all.add(found)
            rate = one.processedRowsPerSecond
            fields = {"batch": one.batchId, "rows_per_second": round(rate, 1), **batch.as_dict()}
            told = batch.told.replace(" rows:", f" rows, {rate:,.0f} rows/s:", 1)
            log.info("batch %d: %s", one.batchId, told, extra={"fields": fields})
