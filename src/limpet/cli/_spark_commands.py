"""The command `limpet spark score`."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from limpet.cli._logging import configure_logging, stop_on_signals
from limpet.cli._spark_io import (
    RowCounts,
    SparkSource,
    check_output_owner,
    check_source_available,
    parse_source,
    read_frame,
    write_table,
)
from limpet.cli._spark_run import cancel_jobs_on, read_local_spec, run_query
from limpet.cli.options import make_learner
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.learners import Learner
from limpet.spark._errors import friendly_spark_errors
from limpet.spark.filesystem import to_absolute_uri, to_local_path
from limpet.spark.session import make_spark_conf, parse_pairs, session_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# The commands `limpet spark rebucket` and `limpet spark export`.


def run_rebucket(checkpoint: str, buckets: int, values: Mapping[str, Any]) -> None:
    """Moves a checkpoint."""
    read_local_spec(checkpoint, values)  # says that there is none before Spark is begun, where that can be seen
    with friendly_spark_errors(), session_for(values) as spark:
        from limpet.spark.migrate import repartition

        repartition(spark, to_absolute_uri(checkpoint), buckets)
    typer.echo(f"{checkpoint} has {buckets} buckets now; the next `limpet spark score` on it goes on with them.")


def run_export(checkpoint: str, path: Path, force: bool, values: Mapping[str, Any]) -> None:
    """Writes the file of a fleet."""
    if path.exists() and not force:
        raise InvalidInputError(f"{path} is there already: give another name, or --force")
    if not path.absolute().parent.is_dir():
        raise InvalidInputError(f"{path} cannot be written: there is no folder {path.parent}")
    read_local_spec(checkpoint, values)  # says that there is none before Spark is begun, where that can be seen
    with friendly_spark_errors(), session_for(values) as spark:
        from limpet.spark.migrate import export_fleet

        fleet = export_fleet(spark, to_absolute_uri(checkpoint))
    fleet.save(path)
    typer.echo(f"Written: {path}, {len(fleet):,} streams of {fleet.learner!r}. Then: lp.load({str(path)!r})")


log = logging.getLogger("limpet.spark")
EXIT_INTERRUPTED = 130  # as shells have it


def run_score(source_name: str, values: dict[str, Any]) -> None:
    """Scores until the source ends, or somebody says stop."""
    from limpet.spark.session import check_spark_installed

    configure_logging(values["log_format"])
    check_settings(values)
    learner = make_learner(values)
    source = parse_source(source_name, values, parse_pairs("--option", values["option"]))
    check_folders(source, values)
    values |= {name: to_absolute_uri(values[name]) for name in ("out", "checkpoint") if values[name]}
    make_spark_conf(values)  # what is wrong with them is told before Spark is begun
    check_spark_installed()
    stop = threading.Event()
    stop_on_signals(stop)
    log.info("starting Spark at %s", values["master"])
    with friendly_spark_errors(), session_for(values) as spark:
        stop_on_signals(stop)  # Spark has put its own in their place
        if values["batch"]:
            counts = _score_table(spark, source, values, learner, stop)
        else:
            counts = _score(spark, source, values, learner, stop)
    stopped = stop.is_set() and not values["batch"]
    log.info("%s after %s", "stopped" if stopped else "ended", counts.summary, extra={"fields": counts.to_dict()})


def _score_table(
    spark: SparkSession, source: SparkSource, values: Mapping[str, Any], learner: Learner, stop: threading.Event
) -> RowCounts:
    """A table; whoever says stop gets none."""
    try:
        with cancel_jobs_on(stop, spark):
            return _score(spark, source, values, learner, stop)
    except Exception:
        if not stop.is_set():
            raise
    path = to_local_path(values["out"])
    if path is not None and os.path.isdir(path) and not os.listdir(path):
        os.rmdir(path)  # which would be in the way of the next attempt
    log.info("interrupted: there is no table at %s", values["out"])
    raise typer.Exit(EXIT_INTERRUPTED)


def check_settings(values: dict[str, Any]) -> None:
    """Refuses settings that do not go together; names that mean nothing become None."""
    if not values["key"]:
        raise InvalidInputError("--key is missing: the column that names the stream of each row")
    if not values["out"]:
        raise InvalidInputError("--out is missing: the folder for the scored rows")
    modes = {"--no-follow": not values["follow"], "--checkpoint-interval": values["checkpoint_interval"] is not None}
    modes = [flag for flag, is_given in {**modes, "--batch": values["batch"]}.items() if is_given]
    if len(modes) > 1:
        raise InvalidInputError(f"{' and '.join(modes)} do not go together")
    if values["batch"]:
        for name in ("checkpoint", "buckets", "watermark", "initial", "files_per_batch"):
            if values[name] is not None:
                raise InvalidInputError(f"--{name.replace('_', '-')} is for a stream: it does not go with --batch")
    if values["initial"] is not None and not values["initial"].is_file():
        raise InvalidInputError(f"--initial: there is no file {values['initial']}")


def check_folders(source: SparkSource, values: Mapping[str, Any]) -> None:
    """Refuses folders that would get into each other's way."""
    if not values["checkpoint"] and not values["batch"] and source.format_name != "socket":
        raise InvalidInputError("--checkpoint is missing: the folder that it goes on from, after a crash or a restart")
    folders = {f"--{name}": values[name] for name in ("out", "checkpoint") if values[name]}
    local = {
        name: os.path.realpath(path) for name, folder in folders.items() if (path := to_local_path(folder)) is not None
    }
    address = to_local_path(source.location) if source.is_files else None
    source_path = None if address is None else os.path.realpath(address)
    for name, path in local.items():
        if source_path is not None and (path == source_path or path.startswith(source_path + os.sep)):
            raise InvalidInputError(f"{name}: {folders[name]} is in the folder that is read: give another one")
        if os.path.isfile(path):
            raise InvalidInputError(f"{name}: {folders[name]} is a file: expected a folder")
    if len(local) == 2 and len(set(local.values())) == 1:
        raise InvalidInputError("--out and --checkpoint are the same folder: give each one of its own")
    if values["batch"] and "--out" in local and os.path.isdir(local["--out"]) and os.listdir(local["--out"]):
        raise InvalidInputError(f"--out: {values['out']} is there already, and is not empty: give another one")


def _score(
    spark: SparkSession, source: SparkSource, values: Mapping[str, Any], learner: Learner, stop: threading.Event
) -> RowCounts:
    """Does it, and counts."""
    key, time = values["key"], values["time"]
    if values["output_format"] == "delta":
        check_source_available(spark, "delta")
    frame = read_frame(spark, source, values, (key, time))
    if values["checkpoint"]:
        check_output_owner(spark, values["checkpoint"], values["out"])
    scored = _score_frame(
        frame, values, learner, is_inferred=source.format_name in ("csv", "json") and not values["schema"]
    )
    for word, meaning in describe_job(source, frame, values, learner):
        log.info("%s: %s", word, meaning)
    return write_table(scored, values) if values["batch"] else run_query(scored, values, stop)


def _score_frame(frame: DataFrame, values: Mapping[str, Any], learner: Learner, is_inferred: bool) -> DataFrame:
    """The frame with what each row comes to. guessed: whether the types of columns were found out from texts."""
    from limpet.spark.score import score

    options = {name: values[name] for name in ("buckets", "watermark", "checkpoint", "initial") if not values["batch"]}
    idle_timeout = values["idle"]
    try:
        return score(
            frame,
            values["key"],
            values["columns"] or None,
            values["time"],
            learner,
            idle=int(idle_timeout)
            if idle_timeout is not None and idle_timeout.isdigit()
            else idle_timeout,  # a whole number, where times are
            prefix=values["prefix"],
            **options,
        )
    except InvalidTypeError as error:
        if not is_inferred:
            raise
        hint = "if the files were misread, --schema or --option (nanValue=…, timestampFormat=…) says how to read them"
        raise InvalidTypeError(f"{error}; {hint}") from None


def describe_job(
    source: SparkSource, frame: DataFrame, values: Mapping[str, Any], learner: Learner
) -> list[tuple[str, str]]:
    """What was understood, in pairs of words."""
    from limpet.spark.schema import resolve_value_columns

    types, key, time = dict(frame.dtypes), values["key"], values["time"]
    columns = ", ".join(
        f"{name} ({types[name]})" for name in resolve_value_columns(types, values["columns"] or None, [key, time])
    )
    entries = [
        ("source", source.description),
        ("learning from", columns),
        ("key", f"{key} ({types[key]}): one stream for each"),
        ("time", "none: rows are taken as they come" if time is None else f"{time} ({types[time]})"),
        ("model", repr(learner)),
        ("goes to", f"{values['out']}, {values['to']}"),
    ]
    if values["checkpoint"]:
        entries.append(("checkpoint", f"{values['checkpoint']}, {read_n_buckets(frame, values['checkpoint'])} buckets"))
    return entries


def read_n_buckets(frame: DataFrame, checkpoint: str) -> int | str:
    """As the checkpoint has them, which has been begun by now."""
    from limpet.spark.checkpoint import read_spec
    from limpet.spark.filesystem import RemoteDirectory

    spec = read_spec(RemoteDirectory(frame.sparkSession, checkpoint))
    return "?" if spec is None else spec.n_buckets
