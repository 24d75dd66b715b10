"""The commands `holdfast spark rebucket` and `holdfast spark export`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from holdfast.cli.spark.addresses import to_absolute_uri
from holdfast.cli.spark.errors import friendly_spark_errors
from holdfast.cli.spark.opening import session_for
from holdfast.cli.spark.status import read_local_spec
from holdfast.errors import InvalidInputError


def run_rebucket(checkpoint: str, buckets: int, values: Mapping[str, Any]) -> None:
    """Moves a checkpoint."""
    read_local_spec(checkpoint, values)  # says that there is none before Spark is begun, where that can be seen
    with friendly_spark_errors(), session_for(values) as spark:
        from holdfast.engines.spark.moving import repartition

        repartition(spark, to_absolute_uri(checkpoint), buckets)
    typer.echo(f"{checkpoint} has {buckets} buckets now; the next `holdfast spark score` on it goes on with them.")


def run_export(checkpoint: str, path: Path, force: bool, values: Mapping[str, Any]) -> None:
    """Writes the file of a fleet."""
    if path.exists() and not force:
        raise InvalidInputError(f"{path} is there already: give another name, or --force")
    if not path.absolute().parent.is_dir():
        raise InvalidInputError(f"{path} cannot be written: there is no folder {path.parent}")
    read_local_spec(checkpoint, values)  # says that there is none before Spark is begun, where that can be seen
    with friendly_spark_errors(), session_for(values) as spark:
        from holdfast.engines.spark.moving import export_fleet

        fleet = export_fleet(spark, to_absolute_uri(checkpoint))
    fleet.save(path)
    typer.echo(f"Written: {path}, {len(fleet):,} streams of {fleet.learner!r}. Then: hf.load({str(path)!r})")
