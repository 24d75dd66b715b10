"""Where the scored rows go, and how each format holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.cli.spark.counts import Counts, observed
from holdfast.cli.spark.errors import while_it_runs
from holdfast.errors import BadInputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOMENTS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}
SINK_LOG = "_spark_metadata"  # which batches are in a folder, as Spark keeps it


def refuse_foreign_output(spark: SparkSession, checkpoint: str, out: str) -> None:
    """Refuses to begin a checkpoint on a folder that another one has written to: Spark would take its first batches for
    those that are there already, and pass over them."""
    from holdfast.engines.spark.folder import Folder

    if Folder(spark, out).names(SINK_LOG) and not Folder(spark, checkpoint).names("offsets"):
        raise BadInputError(
            f"--out: {out} was written with another checkpoint than {checkpoint}, which has nothing yet: give another "
            "folder, or that checkpoint"
        )


def as_written(scored: DataFrame, form: str) -> DataFrame:
    """The frame as a format can hold it: separated values have no lists, so alarms become JSON."""
    from pyspark.sql import functions as F

    if form != "csv":
        return scored
    nested = [name for name, kind in scored.dtypes if kind.startswith(("array", "struct", "map"))]
    return scored.withColumns({name: F.to_json(F.col(f"`{name}`")) for name in nested})


def table_written(scored: DataFrame, values: Mapping[str, Any]) -> Counts:
    """A table, all at once."""
    from pyspark.sql import Observation

    observation, counts = Observation("holdfast"), Counts()
    counted = observed(scored, values["prefix"], observation)
    writer = as_written(counted, values["to"]).write.format(values["to"]).options(**options_of(values["to"]))
    with while_it_runs(values["spark_log"]):
        writer.save(values["out"])
    counts.add(observation.get)
    return counts


def options_of(form: str) -> dict[str, str]:
    """Of a writer: times to the microsecond, and separated values as most others write them."""
    told = {"csv": {"header": "true", "escape": '"', **MOMENTS}, "json": MOMENTS}
    return told.get(form, {})
