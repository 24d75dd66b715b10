"""A query while it runs: a line for each micro-batch, until it ends or somebody says stop."""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from holdfast.cli.spark.counts import RowCounts, observe_counts
from holdfast.cli.spark.errors import convert_job_errors
from holdfast.cli.spark.sink import make_writer_options, prepare_for_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

log = logging.getLogger("holdfast.spark")
POLL_INTERVAL_S = 0.25  # seconds


def run_query(scored: DataFrame, values: Mapping[str, Any], stop: threading.Event) -> RowCounts:
    """Runs a query to its end, and counts."""
    counted = observe_counts(scored, values["prefix"], "holdfast")
    writer = prepare_for_format(counted, values["to"]).writeStream.outputMode("append").format(values["to"])
    writer = _set_trigger(writer.options(**make_writer_options(values["to"])), values)
    with tempfile.TemporaryDirectory(prefix="holdfast-") as temp_dir:  # for a socket: files cannot do without
        query = writer.option("checkpointLocation", values["checkpoint"] or temp_dir).start(values["out"])
        with convert_job_errors(values["spark_log"]):
            return _await_query(query, stop)


@contextmanager
def cancel_jobs_on(stop: threading.Event, spark: SparkSession) -> Iterator[None]:
    """What Spark does inside is given up when somebody says stop, and ends with an error."""
    done = threading.Event()

    def poll() -> None:
        while not done.wait(POLL_INTERVAL_S):
            if stop.is_set():  # again and again: one job may follow another
                with suppress(Exception):
                    spark.sparkContext.cancelAllJobs()

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _set_trigger(writer: DataStreamWriter, values: Mapping[str, Any]) -> DataStreamWriter:
    """With how often it looks for more."""
    from holdfast.engines.spark.schema import parse_duration

    if values["once"]:
        return writer.trigger(availableNow=True)
    if values["every"] is None:
        return writer
    milliseconds = max((parse_duration("--every", values["every"], "us") or 0) // 1000, 1)
    return writer.trigger(processingTime=f"{milliseconds} milliseconds")


def _await_query(query: StreamingQuery, stop: threading.Event) -> RowCounts:
    """Tells of batches until the query ends, or somebody says stop."""
    batches = BatchLogger()
    try:
        while not query.awaitTermination(POLL_INTERVAL_S):
            batches.log_new_batches(query)
            if stop.is_set():
                break
    finally:
        if query.isActive:
            query.stop()
        batches.log_new_batches(query)
    return batches.total


class BatchLogger:
    """The batches that have been told of, and what they come to."""

    def __init__(self) -> None:
        self.total = RowCounts()
        self._last_batch_id = -1

    def log_new_batches(self, query: StreamingQuery) -> None:
        """Tells of the batches that have been finished since."""
        newest = query.lastProgress
        if newest is None or newest.batchId <= self._last_batch_id:
            return
        for progress in query.recentProgress:
            metrics = progress.observedMetrics.get("holdfast")
            if (
                progress.batchId <= self._last_batch_id or not progress.numInputRows or metrics is None
            ):  # what is idle reports as well
                continue
            self._last_batch_id = progress.batchId
            batch = RowCounts()
            batch.add(metrics)
            self.total.add(metrics)
            rate = progress.processedRowsPerSecond
            fields = {"batch": progress.batchId, "rows_per_second": round(rate, 1), **batch.to_dict()}
            message = batch.summary.replace(" rows:", f" rows, {rate:,.0f} rows/s:", 1)
            log.info("batch %d: %s", progress.batchId, message, extra={"fields": fields})
