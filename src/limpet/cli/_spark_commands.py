"""Run `limpet spark status`, `repartition` and `export`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from limpet._format import format_duration
from limpet.cli._spark_run import make_spark_properties
from limpet.exceptions import InvalidInputError
from limpet.spark._errors import friendly_spark_errors
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
from limpet.spark.session import open_session

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession


def run_repartition(checkpoint: str, buckets: int, values: Mapping[str, Any]) -> None:
    """Change the number of buckets of a checkpoint."""
    find_local(checkpoint, values)
    with friendly_spark_errors(), _open_session(values) as spark:
        repartition(spark, to_absolute_uri(checkpoint), buckets)
    typer.echo(f"{checkpoint}: {buckets} buckets. The next `limpet spark score` resumes with them.")


def run_export(checkpoint: str, path: Path, force: bool, values: Mapping[str, Any]) -> None:
    """Write the streams of a checkpoint to a fleet file."""
    if path.exists() and not force:
        raise InvalidInputError(f"FLEET_FILE: must be a new file, got {path}. --force overwrites it.")
    if not path.absolute().parent.is_dir():
        raise InvalidInputError(f"FLEET_FILE: must be in an existing folder, got {path}.")
    find_local(checkpoint, values)
    with friendly_spark_errors(), _open_session(values) as spark:
        fleet = export_fleet(spark, to_absolute_uri(checkpoint))
    fleet.save(path)
    typer.echo(f"{path}: {len(fleet):,} streams of {fleet.learner!r}. Read it by lp.load({str(path)!r}).")


def run_status(checkpoint: str, values: Mapping[str, Any]) -> None:
    """Print the status of a checkpoint, without Spark if it is on this machine."""
    directory: ReadableDirectory | None = find_local(checkpoint, values)
    if directory is not None:
        status = read_status(directory, checkpoint)
    else:
        with friendly_spark_errors(), _open_session(values) as spark:
            status = read_status(RemoteDirectory(spark, to_absolute_uri(checkpoint)), checkpoint)
    if values["output_format"] == "json":
        typer.echo(json.dumps(status))
        return
    for name, value in status.items():
        if value is not None:
            typer.echo(f"{name.replace('_', ' '):<14}{', '.join(value) if isinstance(value, list) else value}")


def find_local(checkpoint: str, values: Mapping[str, Any]) -> LocalDirectory | None:
    """Return the folder of a checkpoint on this machine; None if it may be elsewhere.

    Raises
    ------
    InvalidInputError
        If it is on this machine and is not a checkpoint of `limpet spark score`.
    """
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


def _open_session(values: Mapping[str, Any]) -> AbstractContextManager[SparkSession]:
    return open_session(values["master"], make_spark_properties(values), None)
