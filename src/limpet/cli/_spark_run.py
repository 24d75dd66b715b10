"""The command `limpet spark status`: what a checkpoint tells without any of its states."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from limpet.cli._spark_io import RowCounts, make_writer_options, observe_counts, prepare_for_format
from limpet.exceptions import InvalidInputError
from limpet.spark._errors import convert_job_errors, friendly_spark_errors
from limpet.spark.filesystem import may_be_remote, to_absolute_uri, to_local_path
from limpet.spark.session import session_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from limpet.spark.filesystem import ReadableDirectory
    from limpet.spark.job_spec import JobSpec


# A query while it runs: a line for each micro-batch, until it ends or somebody says stop.

log = logging.getLogger("limpet.spark")
POLL_INTERVAL_S = 0.25  # seconds


def run_query(scored: DataFrame, values: Mapping[str, Any], stop: threading.Event) -> RowCounts:
    """Runs a query to its end, and counts."""
    counted = observe_counts(scored, values["prefix"], "limpet")
    writer = (
        prepare_for_format(counted, values["output_format"])
        .writeStream.outputMode("append")
        .format(values["output_format"])
    )
    writer = _set_trigger(writer.options(**make_writer_options(values["output_format"])), values)
    with tempfile.TemporaryDirectory(prefix="limpet-") as temp_dir:  # for a socket: files cannot do without
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
    """Set how often Spark looks for more rows."""
    if not values["follow"]:
        return writer.trigger(availableNow=True)
    if values["checkpoint_interval"] is None:
        return writer
    milliseconds = max(round(1000 * values["checkpoint_interval"]), 1)
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
            metrics = progress.observedMetrics.get("limpet")
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


def run_status(checkpoint: str, format_name: str, values: Mapping[str, Any]) -> None:
    """Prints it."""
    if format_name not in ("text", "json"):
        raise InvalidInputError(f"--format: expected one of text, json, got {format_name!r}")
    spec = read_local_spec(checkpoint, values)
    if spec is None:
        with friendly_spark_errors(), session_for(values) as spark:
            from limpet.spark.filesystem import RemoteDirectory

            directory = RemoteDirectory(spark, to_absolute_uri(checkpoint))
            status = _read_status(directory, read_spec(directory, checkpoint))
    else:
        from limpet.spark.filesystem import LocalDirectory

        status = _read_status(LocalDirectory(to_local_path(checkpoint) or ""), spec)
    if format_name == "json":
        sys.stdout.write(json.dumps(status) + "\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for word, meaning in format_status(status):
        grid.add_row(Text(word, style="dim"), Text(meaning))
    Console().print(grid)


def read_local_spec(checkpoint: str, values: Mapping[str, Any]) -> JobSpec | None:
    """What a checkpoint was begun with, as far as this machine tells; None where it may be elsewhere, for Spark to say.

    values: the settings of Spark.
    """
    from limpet.spark.checkpoint import METADATA_DIR
    from limpet.spark.filesystem import LocalDirectory

    path = to_local_path(checkpoint)
    if path is None or (may_be_remote(checkpoint, values) and not LocalDirectory(path).list_names(METADATA_DIR)):
        return None
    return read_spec(LocalDirectory(path), checkpoint)


def read_spec(directory: ReadableDirectory, checkpoint: str) -> JobSpec:
    """What a checkpoint was begun with."""
    from limpet.spark.checkpoint import read_spec

    spec = read_spec(directory)
    if spec is None:
        raise InvalidInputError(f"{checkpoint} is no checkpoint of `limpet spark score`: nothing of limpet is in it")
    return spec


def _read_status(directory: ReadableDirectory, spec: JobSpec) -> dict[str, Any]:
    """What there is to say."""
    committed_batches = [int(name) for name in directory.list_names("commits") if name.isdigit()]
    started_batches = [int(name) for name in directory.list_names("offsets") if name.isdigit()]
    metadata = _read_batch_metadata(directory, max(started_batches)) if started_batches else {}
    return {
        "key": spec.key,
        "values": list(spec.values),
        "time": spec.time,
        "watermark": spec.watermark,
        "idle": spec.idle,
        "buckets": spec.n_buckets,
        "generation": spec.generation,
        "model": repr(spec.make_learner()),
        "last_batch": max(committed_batches, default=None),
        "unfinished": bool(started_batches) and max(started_batches) > max(committed_batches, default=-1),
        "last_begun": metadata.get("batchTimestampMs"),
        "event_time": metadata.get("batchWatermarkMs") or None,
    }


def _read_batch_metadata(directory: ReadableDirectory, batch: int) -> dict[str, Any]:
    """What Spark notes of a batch when it begins: the second line of a file of its own."""
    lines = directory.read_text(f"offsets/{batch}").splitlines()
    try:
        metadata = json.loads(lines[1])
    except (IndexError, ValueError):
        return {}
    return metadata if isinstance(metadata, dict) else {}


def format_status(status: dict[str, Any]) -> list[tuple[str, str]]:
    """In words."""
    from limpet.cli.status import format_age

    batch = "none yet" if status["last_batch"] is None else f"number {status['last_batch']:,}"
    if status["unfinished"]:
        batch += "; one more was begun, which is done again when it goes on"
    pairs = [
        ("key", status["key"]),
        ("learns from", ", ".join(status["values"])),
        ("time", status["time"] or "none"),
        ("model", status["model"]),
        ("buckets", f"{status['buckets']:,}, generation {status['generation']}"),
        ("last batch", batch),
    ]
    if status["last_begun"] is not None:
        pairs.append(("begun", format_age(max(time.time() - status["last_begun"] / 1000, 0.0))))
    if status["watermark"] is not None:
        seen = "" if status["event_time"] is None else f", now at {_format_time(status['event_time'])}"
        pairs.append(("watermark", f"{_format_watermark(status['watermark'])}{seen}"))
    if status["idle"] is not None:
        timed = format_duration(status["idle"]) if status["watermark"] else f"{status['idle']:,}"
        pairs.append(("forgets after", timed))
    return pairs


def _format_watermark(watermark: str) -> str:
    from limpet.spark.schema import parse_duration

    return format_duration(parse_duration("watermark", watermark, "us", minimum=0) or 0)


def format_duration(microseconds: int) -> str:
    """A duration as people write it, and all of it.

    >>> in_units(600_000_000), in_units(86_401_500_000), in_units(0)
    ('10 min', '1 d 1 s 500 ms', '0 s')
    """
    units = {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}
    parts = []
    for name, size in units.items():
        n, microseconds = divmod(microseconds, size)
        parts += [f"{n:,} {name}"] if n else []
    return " ".join(parts) or "0 s"


def _format_time(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(milliseconds / 1000))
