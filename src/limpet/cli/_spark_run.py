"""Run `limpet spark` `score` (query or table), `status`, `repartition`, `export`."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from limpet._format import format_duration
from limpet.cli._logging import configure_logging, stop_on_signals
from limpet.cli._spark_io import (
    WRITER_OPTIONS,
    SparkSource,
    check_output_owner,
    check_package,
    count_rows,
    format_counts,
    parse_source,
    read_counts,
    read_frame,
    write_table,
)
from limpet.cli.options import make_learner
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.learners import Learner
from limpet.spark._errors import convert_job_errors, friendly_spark_errors
from limpet.spark.checkpoint import METADATA_DIR, last_batch, last_committed_batch, read_spec
from limpet.spark.filesystem import (
    LocalDirectory,
    ReadableDirectory,
    RemoteDirectory,
    may_be_remote,
    to_absolute_uri,
    to_local_path,
)
from limpet.spark.migrate import export_fleet, repartition
from limpet.spark.schema import parse_duration
from limpet.spark.session import check_spark_installed, open_session, parse_pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


log = logging.getLogger("limpet.spark")
INTERRUPTED_EXIT_CODE = 130  # as of shells
POLL_INTERVAL_S = 0.25
DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def run_score(source_name: str, values: dict[str, Any]) -> None:
    """Score a source to its end, or until a signal."""
    configure_logging(values["log_format"])
    check_options(values)
    learner = make_learner(values)
    source = parse_source(source_name, values, parse_pairs("--option", values["option"]))
    check_folders(source, values)
    values |= {name: to_absolute_uri(values[name]) for name in ("out", "checkpoint") if values[name]}
    properties = make_spark_properties(values)
    check_spark_installed()
    stop = threading.Event()
    stop_on_signals(stop)
    log.info("starting Spark at %s", values["master"])
    with friendly_spark_errors(), open_session(values["master"], properties, values["spark_log"]) as spark:
        stop_on_signals(stop)  # Spark has replaced the handlers
        score = _score_table if values["batch"] else _score_stream
        counts = score(spark, source, values, learner, stop)
    outcome = "stopped" if stop.is_set() and not values["batch"] else "ended"
    log.info("%s after %s", outcome, format_counts(counts), extra={"fields": counts})


def make_spark_properties(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties of Spark from the options of a command."""
    properties = {"spark.driver.memory": values.get("driver_memory", "4g")}
    if values.get("packages"):
        properties["spark.jars.packages"] = values["packages"]
    if values.get("output_format") == "delta":
        properties |= DELTA_CONF
    return properties | parse_pairs("--conf", values["conf"])


def check_options(values: Mapping[str, Any]) -> None:
    """Check that required options are given, and that no two exclude each other."""
    for name, meaning in (("key", "the column with the key of each row"), ("out", "the folder for the scored rows")):
        if not values[name]:
            raise InvalidInputError(f"--{name}: is required. Give {meaning}.")
    if not values["batch"] and not values["checkpoint"]:
        raise InvalidInputError("--checkpoint: is required without --batch. Give a folder to resume from.")
    given = {"--no-follow": not values["follow"], "--checkpoint-interval": values["checkpoint_interval"] is not None}
    modes = [flag for flag, is_given in {**given, "--batch": values["batch"]}.items() if is_given]
    if len(modes) > 1:
        raise InvalidInputError(f"{modes[0]}: must not be given with {modes[1]}.")
    for name in ("checkpoint", "buckets", "watermark", "initial", "files_per_batch") if values["batch"] else ():
        if values[name] is not None:
            raise InvalidInputError(f"--{name.replace('_', '-')}: must not be given with --batch.")
    if values["initial"] is not None and not values["initial"].is_file():
        raise InvalidInputError(f"--initial: must be an existing file, got {values['initial']}.")


def check_folders(source: SparkSource, values: Mapping[str, Any]) -> None:
    """Check that the folders of source, output and checkpoint do not overlap."""
    folders = {f"--{name}": values[name] for name in ("out", "checkpoint") if values[name]}
    paths = {name: to_local_path(folder) for name, folder in folders.items()}
    local = {name: os.path.realpath(path) for name, path in paths.items() if path is not None}
    source_path = to_local_path(source.location) if source.has_files else None
    for name, path in local.items():
        if source_path is not None and (path + os.sep).startswith(os.path.realpath(source_path) + os.sep):
            raise InvalidInputError(f"{name}: must not be in the folder of the source, got {folders[name]}.")
        if os.path.isfile(path):
            raise InvalidInputError(f"{name}: must be a folder, got the file {folders[name]}.")
    if len(local) == 2 and len(set(local.values())) == 1:
        raise InvalidInputError(f"--out: must not be the folder of --checkpoint, got {values['out']}.")
    if values["batch"] and "--out" in local and os.path.isdir(local["--out"]) and os.listdir(local["--out"]):
        raise InvalidInputError(f"--out: must be a new or empty folder, got {values['out']}.")


def _score_frame(spark: SparkSession, source: SparkSource, values: Mapping[str, Any], learner: Learner) -> DataFrame:
    from limpet.spark.score import score

    if values["output_format"] == "delta":
        check_package(spark, "delta")
    frame = read_frame(spark, source, values)
    if values["checkpoint"]:
        check_output_owner(spark, values["checkpoint"], values["out"])
    stream_params = ("buckets", "watermark", "checkpoint", "initial")
    params = {} if values["batch"] else {name: values[name] for name in stream_params}
    idle_timeout = values["idle_timeout"]
    if idle_timeout is not None and idle_timeout.isdigit():
        idle_timeout = int(idle_timeout)  # where times are integers
    columns = (values["key"], values["columns"] or None, values["time"], learner)
    try:
        return score(frame, *columns, idle_timeout=idle_timeout, prefix=values["prefix"], **params)
    except InvalidTypeError as error:
        if values["schema"] or source.format_name == "parquet":
            raise
        raise InvalidTypeError(f"{error} --schema or --option (nanValue=…, timestampFormat=…) sets types.") from None


def _score_table(
    spark: SparkSession, source: SparkSource, values: Mapping[str, Any], learner: Learner, stop: threading.Event
) -> dict[str, int]:
    """Write a table; none if `stop` is set before it is complete."""
    try:
        with cancel_jobs_on(stop, spark):
            return write_table(_score_frame(spark, source, values, learner), values)
    except Exception:
        if not stop.is_set():
            raise
    path = to_local_path(values["out"])
    if path is not None and os.path.isdir(path) and not os.listdir(path):
        os.rmdir(path)  # a later attempt would be refused
    log.info("interrupted: no table was written to %s", values["out"])
    raise typer.Exit(INTERRUPTED_EXIT_CODE)


@contextmanager
def cancel_jobs_on(stop: threading.Event, spark: SparkSession) -> Iterator[None]:
    """Cancel Spark's jobs when `stop` is set, so that they raise an error."""
    done = threading.Event()

    def poll() -> None:
        while not done.wait(POLL_INTERVAL_S):
            if stop.is_set():  # repeatedly: another job may follow
                with suppress(Exception):
                    spark.sparkContext.cancelAllJobs()

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _score_stream(
    spark: SparkSession, source: SparkSource, values: Mapping[str, Any], learner: Learner, stop: threading.Event
) -> dict[str, int]:
    """Run a query until its source ends or `stop` is set."""
    scored = _score_frame(spark, source, values, learner)
    spec = read_spec(RemoteDirectory(spark, values["checkpoint"]))
    if spec is not None:
        job = (", ".join(spec.values), spec.key, source.location, spec.make_learner(), spec.n_buckets)
        log.info("learning %s by %s from %s with %r, %d buckets", *job)
    format_name, interval_s = values["output_format"], values["checkpoint_interval"]
    writer = count_rows(scored, values, "limpet").writeStream.outputMode("append").format(format_name)
    writer = writer.options(**WRITER_OPTIONS.get(format_name, {}))
    if not values["follow"]:
        writer = writer.trigger(availableNow=True)
    elif interval_s is not None:
        writer = writer.trigger(processingTime=f"{max(round(1000 * interval_s), 1)} milliseconds")
    query = writer.option("checkpointLocation", values["checkpoint"]).start(values["out"])
    batches = BatchLogger()
    with convert_job_errors(values["spark_log"]):
        try:
            while not query.awaitTermination(POLL_INTERVAL_S) and not stop.is_set():
                batches.log_new_batches(query)
        finally:
            if query.isActive:
                query.stop()
            batches.log_new_batches(query)
    return dict(batches.total)


class BatchLogger:
    """Log the micro-batches of a query, and sum up their counts."""

    def __init__(self) -> None:
        self.total = Counter(read_counts({}))
        self._last_batch_id = -1

    def log_new_batches(self, query: StreamingQuery) -> None:
        """Log the micro-batches completed since the last call."""
        newest = query.lastProgress
        if newest is None or newest.batchId <= self._last_batch_id:
            return
        for progress in query.recentProgress:
            metrics = progress.observedMetrics.get("limpet")
            # Spark also reports while it is idle.
            if progress.batchId <= self._last_batch_id or not progress.numInputRows or metrics is None:
                continue
            self._last_batch_id = progress.batchId
            counts, rate = read_counts(metrics), progress.processedRowsPerSecond
            self.total.update(counts)
            fields = {"batch": progress.batchId, "rows_per_second": round(rate, 1), **counts}
            text = format_counts(counts).replace(" rows:", f" rows, {rate:,.0f} rows/s:", 1)
            log.info("batch %d: %s", progress.batchId, text, extra={"fields": fields})


# The commands on a checkpoint


def run_repartition(checkpoint: str, buckets: int, values: Mapping[str, Any]) -> None:
    """Change the number of buckets of a checkpoint."""
    find_local(checkpoint, values)
    with _open_session(values) as spark:
        repartition(spark, to_absolute_uri(checkpoint), buckets)
    typer.echo(f"{checkpoint}: {buckets} buckets. The next `limpet spark score` resumes with them.")


def run_export(checkpoint: str, path: Path, force: bool, values: Mapping[str, Any]) -> None:
    """Write the streams of a checkpoint to a fleet file."""
    if path.exists() and not force:
        raise InvalidInputError(f"FLEET_FILE: must be a new file, got {path}. --force overwrites it.")
    if not path.absolute().parent.is_dir():
        raise InvalidInputError(f"FLEET_FILE: must be in an existing folder, got {path}.")
    find_local(checkpoint, values)
    with _open_session(values) as spark:
        fleet = export_fleet(spark, to_absolute_uri(checkpoint))
    fleet.save(path)
    typer.echo(f"{path}: {len(fleet):,} streams of {fleet.learner!r}. Read it by lp.load({str(path)!r}).")


def run_status(checkpoint: str, values: Mapping[str, Any]) -> None:
    """Print the status of a checkpoint, without Spark if it is on this machine."""
    directory = find_local(checkpoint, values)
    if directory is not None:
        status = read_status(directory, checkpoint)
    else:
        with _open_session(values) as spark:
            status = read_status(RemoteDirectory(spark, to_absolute_uri(checkpoint)), checkpoint)
    if values["output_format"] == "json":
        typer.echo(json.dumps(status))
        return
    for name, value in status.items():
        if value is not None:
            typer.echo(f"{name.replace('_', ' '):<14}{', '.join(value) if isinstance(value, list) else value}")


def find_local(checkpoint: str, values: Mapping[str, Any]) -> LocalDirectory | None:
    """Return the local folder of a checkpoint, or raise; None if it may be remote."""
    path = to_local_path(checkpoint)
    directory = None if path is None else LocalDirectory(path)
    if directory is None or directory.list_names(METADATA_DIR):
        return directory
    if may_be_remote(checkpoint, values):
        return None
    raise _not_a_checkpoint(checkpoint)


def read_status(directory: ReadableDirectory, checkpoint: str) -> dict[str, Any]:
    """Return the job of a checkpoint and its progress."""
    spec = read_spec(directory)
    if spec is None:
        raise _not_a_checkpoint(checkpoint)
    started, committed = last_batch(directory, "offsets"), last_committed_batch(directory)
    metadata = _read_batch_metadata(directory, started) if started >= 0 else {}
    delay_us = parse_duration("watermark", spec.watermark, "us", minimum=0)
    idle_timeout: Any = spec.idle_timeout
    if idle_timeout is not None and spec.time_unit:
        idle_timeout = format_duration(idle_timeout / 1e6)
    return {
        "key": spec.key,
        "values": list(spec.values),
        "time": spec.time,
        "learner": repr(spec.make_learner()),
        "buckets": spec.n_buckets,
        "generation": spec.generation,
        "last_batch": committed if committed >= 0 else None,
        "pending_batch": started if started > committed else None,
        "last_started": _format_time(metadata.get("batchTimestampMs")),
        "watermark": None if delay_us is None else format_duration(delay_us / 1e6),
        "event_time": _format_time(metadata.get("batchWatermarkMs")),
        "idle_timeout": idle_timeout,
    }


def _read_batch_metadata(directory: ReadableDirectory, batch: int) -> dict[str, Any]:
    """Return Spark's metadata of a batch: the second line of a file."""
    lines = directory.read_text(f"offsets/{batch}").splitlines()
    try:
        metadata = json.loads(lines[1])
    except (IndexError, ValueError):
        return {}
    return metadata if isinstance(metadata, dict) else {}


def _format_time(milliseconds: int | None) -> str | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds") if milliseconds else None


def _not_a_checkpoint(checkpoint: str) -> InvalidInputError:
    return InvalidInputError(f"CHECKPOINT: must be a checkpoint of `limpet spark score`, got {checkpoint}.")


@contextmanager
def _open_session(values: Mapping[str, Any]) -> Iterator[SparkSession]:
    with friendly_spark_errors(), open_session(values["master"], make_spark_properties(values), None) as spark:
        yield spark
