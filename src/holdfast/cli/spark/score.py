"""The command `holdfast spark score`."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from holdfast.cli.arrangement import learner_of
from holdfast.cli.logs import set_up_logs
from holdfast.cli.signals import stop_on_signals
from holdfast.cli.spark.addresses import local_path, whole
from holdfast.cli.spark.counts import Counts
from holdfast.cli.spark.errors import told_plainly
from holdfast.cli.spark.opening import pairs, session_for, settings_of_spark
from holdfast.cli.spark.reading import frame_of, require_source
from holdfast.cli.spark.running import cancelled_on, follow
from holdfast.cli.spark.sink import refuse_foreign_output, table_written
from holdfast.cli.spark.source import Place, place_of
from holdfast.errors import BadInputError, WrongTypeError
from holdfast.learners import SRA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("holdfast.spark")
INTERRUPTED = 130  # as shells have it


def run_score(source: str, values: dict[str, Any]) -> None:
    """Scores until the source ends, or somebody says stop."""
    from holdfast.engines.spark.session import require_spark

    set_up_logs(values["log_format"])
    check_settings(values)
    learner = learner_of(values)
    place = place_of(source, values, pairs("--option", values["option"]))
    check_folders(place, values)
    values |= {name: whole(values[name]) for name in ("out", "checkpoint") if values[name]}
    settings_of_spark(values)  # what is wrong with them is told before Spark is begun
    require_spark()
    stop = threading.Event()
    stop_on_signals(stop)
    log.info("starting Spark at %s", values["master"])
    with told_plainly(), session_for(values) as spark:
        stop_on_signals(stop)  # Spark has put its own in their place
        if values["batch"]:
            counts = _all_or_nothing(spark, place, values, learner, stop)
        else:
            counts = _scored(spark, place, values, learner, stop)
    stopped = stop.is_set() and not values["batch"]
    log.info("%s after %s", "stopped" if stopped else "ended", counts.told, extra={"fields": counts.as_dict()})


def _all_or_nothing(
    spark: SparkSession, place: Place, values: Mapping[str, Any], learner: SRA, stop: threading.Event
) -> Counts:
    """A table; whoever says stop gets none."""
    try:
        with cancelled_on(stop, spark):
            return _scored(spark, place, values, learner, stop)
    except Exception:
        if not stop.is_set():
            raise
    path = local_path(values["out"])
    if path is not None and os.path.isdir(path) and not os.listdir(path):
        os.rmdir(path)  # which would be in the way of the next attempt
    log.info("interrupted: there is no table at %s", values["out"])
    raise typer.Exit(INTERRUPTED)


def check_settings(values: dict[str, Any]) -> None:
    """Refuses settings that do not go together; names that mean nothing become None."""
    if values["key"] in (None, "none"):
        raise BadInputError("--key is missing: the column that names the stream of each row")
    values["time"] = None if values["time"] == "none" else values["time"]
    if not values["out"]:
        raise BadInputError("--out is missing: the folder for the scored rows")
    ways = [f"--{name}" for name in ("once", "every", "batch") if values[name]]
    if len(ways) > 1:
        raise BadInputError(f"{' and '.join(ways)} do not go together")
    if values["batch"]:
        for name in ("checkpoint", "buckets", "watermark", "initial", "files_per_batch"):
            if values[name] is not None:
                raise BadInputError(f"--{name.replace('_', '-')} is for a stream: it does not go with --batch")
    if values["every"] is not None:
        from holdfast.engines.spark.schema import duration

        duration("--every", values["every"], "us")
    if values["initial"] is not None and not values["initial"].is_file():
        raise BadInputError(f"--initial: there is no file {values['initial']}")


def check_folders(place: Place, values: Mapping[str, Any]) -> None:
    """Refuses folders that would get into each other's way."""
    if not values["checkpoint"] and not values["batch"] and place.form != "socket":
        raise BadInputError("--checkpoint is missing: the folder that it goes on from, after a crash or a restart")
    folders = {f"--{name}": values[name] for name in ("out", "checkpoint") if values[name]}
    local = {name: os.path.realpath(path) for name, one in folders.items() if (path := local_path(one)) is not None}
    address = local_path(place.address) if place.is_files else None
    read = None if address is None else os.path.realpath(address)
    for name, path in local.items():
        if read is not None and (path == read or path.startswith(read + os.sep)):
            raise BadInputError(f"{name}: {folders[name]} is in the folder that is read: give another one")
        if os.path.isfile(path):
            raise BadInputError(f"{name}: {folders[name]} is a file: expected a folder")
    if len(local) == 2 and len(set(local.values())) == 1:
        raise BadInputError("--out and --checkpoint are the same folder: give each one of its own")
    if values["batch"] and "--out" in local and os.path.isdir(local["--out"]) and os.listdir(local["--out"]):
        raise BadInputError(f"--out: {values['out']} is there already, and is not empty: give another one")


def _scored(
    spark: SparkSession, place: Place, values: Mapping[str, Any], learner: SRA, stop: threading.Event
) -> Counts:
    """Does it, and counts."""
    key, time = values["key"], values["time"]
    if values["to"] == "delta":
        require_source(spark, "delta")
    frame = frame_of(spark, place, values, (key, time))
    if values["checkpoint"]:
        refuse_foreign_output(spark, values["checkpoint"], values["out"])
    scored = _with_answers(frame, values, learner, guessed=place.form in ("csv", "json") and not values["schema"])
    for word, meaning in understood(place, frame, values, learner):
        log.info("%s: %s", word, meaning)
    return table_written(scored, values) if values["batch"] else follow(scored, values, stop)


def _with_answers(frame: DataFrame, values: Mapping[str, Any], learner: SRA, guessed: bool) -> DataFrame:
    """The frame with what each row comes to. guessed: whether the types of columns were found out from texts."""
    from holdfast.engines.spark.scoring import score

    more = {name: values[name] for name in ("buckets", "watermark", "checkpoint", "initial") if not values["batch"]}
    idle = values["idle"]
    try:
        return score(
            frame,
            values["key"],
            values["columns"] or None,
            values["time"],
            learner,
            idle=int(idle) if idle is not None and idle.isdigit() else idle,  # a whole number, where times are
            prefix=values["prefix"],
            **more,
        )
    except WrongTypeError as error:
        if not guessed:
            raise
        hint = "if the files were misread, --schema or --option (nanValue=…, timestampFormat=…) says how to read them"
        raise WrongTypeError(f"{error}; {hint}") from None


def understood(place: Place, frame: DataFrame, values: Mapping[str, Any], learner: SRA) -> list[tuple[str, str]]:
    """What was understood, in pairs of words."""
    from holdfast.engines.spark.schema import values_in

    types, key, time = dict(frame.dtypes), values["key"], values["time"]
    columns = ", ".join(f"{one} ({types[one]})" for one in values_in(types, values["columns"] or None, [key, time]))
    pairs_ = [
        ("source", place.told),
        ("learning from", columns),
        ("key", f"{key} ({types[key]}): one stream for each"),
        ("time", "none: rows are taken as they come" if time is None else f"{time} ({types[time]})"),
        ("model", repr(learner)),
        ("goes to", f"{values['out']}, {values['to']}"),
    ]
    if values["checkpoint"]:
        pairs_.append(("checkpoint", f"{values['checkpoint']}, {n_buckets(frame, values['checkpoint'])} buckets"))
    return pairs_


def n_buckets(frame: DataFrame, checkpoint: str) -> int | str:
    """As the checkpoint has them, which has been begun by now."""
    from holdfast.engines.spark.folder import Folder
    from holdfast.engines.spark.generations import latest

    plan = latest(Folder(frame.sparkSession, checkpoint))
    return "?" if plan is None else plan.n_buckets
