"""The commands `holdfast spark rebucket` and `holdfast spark export`."""

from __future__ import annotations

from pathlib import Path

import typer

from holdfast.cli.spark.errors import told_plainly
from holdfast.cli.spark.opening import opened_session, whole
from holdfast.cli.spark.status import plan_at
from holdfast.errors import BadInputError


def run_rebucket(checkpoint: str, buckets: int) -> None:
    """Moves a checkpoint."""
    _require(checkpoint)
    with told_plainly(), opened_session() as spark:
        from holdfast.engines.spark.moving import rebucket

        rebucket(spark, whole(checkpoint), buckets)
    typer.echo(f"{checkpoint} has {buckets} buckets now; the next `holdfast spark score` on it goes on with them.")


def run_export(checkpoint: str, path: Path, force: bool) -> None:
    """Writes the file of a fleet."""
    if path.exists() and not force:
        raise BadInputError(f"{path} is there already: give another name, or --force")
    if not path.absolute().parent.is_dir():
        raise BadInputError(f"{path} cannot be written: there is no folder {path.parent}")
    _require(checkpoint)
    with told_plainly(), opened_session() as spark:
        from holdfast.engines.spark.moving import export

        fleet = export(spark, whole(checkpoint))
    fleet.save(path)
    typer.echo(f"Written: {path}, {len(fleet):,} streams of {fleet.model!r}. Then: hf.load({str(path)!r})")


def _require(checkpoint: str) -> None:
    """Says that there is no such checkpoint before Spark is begun, where that can be seen without it."""
    if "://" not in checkpoint:
        plan_at(checkpoint)
