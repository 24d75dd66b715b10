"""The commands `holdfast spark rebucket` and `holdfast spark export`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from holdfast.cli.spark.addresses import whole
from holdfast.cli.spark.errors import told_plainly
from holdfast.cli.spark.opening import session_for
from holdfast.cli.spark.status import plan_here
from holdfast.errors import BadInputError


def run_rebucket(checkpoint: str, buckets: int, values: Mapping[str, Any]) -> None:
    """Moves a checkpoint."""
    plan_here(checkpoint, values)  # says that there is none before Spark is begun, where that can be seen
    with told_plainly(), session_for(values) as spark:
        from holdfast.engines.spark.moving import rebucket

        rebucket(spark, whole(checkpoint), buckets)
    typer.echo(f"{checkpoint} has {buckets} buckets now; the next `holdfast spark score` on it goes on with them.")


def run_export(checkpoint: str, path: Path, force: bool, values: Mapping[str, Any]) -> None:
    """Writes the file of a fleet."""
    if path.exists() and not force:
        raise BadInputError(f"{path} is there already: give another name, or --force")
    if not path.absolute().parent.is_dir():
        raise BadInputError(f"{path} cannot be written: there is no folder {path.parent}")
    plan_here(checkpoint, values)  # says that there is none before Spark is begun, where that can be seen
    with told_plainly(), session_for(values) as spark:
        from holdfast.engines.spark.moving import export

        fleet = export(spark, whole(checkpoint))
    fleet.save(path)
    typer.echo(f"Written: {path}, {len(fleet):,} streams of {fleet.model!r}. Then: hf.load({str(path)!r})")
