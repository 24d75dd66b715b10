"""Where the scored rows go, and how each format holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.cli.spark.counts import RowCounts, observe_counts
from holdfast.cli.spark.errors import convert_job_errors
from holdfast.errors import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMESTAMP_FORMATS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
SINK_METADATA_DIR = "_spark_metadata"  # which batches are in a folder, as Spark keeps it


def check_output_owner(spark: SparkSession, checkpoint: str, out: str) -> None:
    """Refuses to begin a checkpoint on a folder that another one has written to: Spark would take its first batches for
    those that are there already, and pass over them."""
    from holdfast.engines.spark.folder import RemoteDirectory

    if RemoteDirectory(spark, out).list_names(SINK_METADATA_DIR) and not RemoteDirectory(spark, checkpoint).list_names(
        "offsets"
    ):
        raise InvalidInputError(
            f"--out: {out} was written with another checkpoint than {checkpoint}, which has nothing yet: give another "
            "folder, or that checkpoint"
        )


def prepare_for_format(scored: DataFrame, format_name: str) -> DataFrame:
    """The frame as a format can hold it: separated values have no lists, so alarms become JSON."""
    from pyspark.sql import functions as F

    if format_name != "csv":
        return scored
    nested = [name for name, kind in scored.dtypes if kind.startswith(("array", "struct", "map"))]
    return scored.withColumns({name: F.to_json(F.col(f"`{name}`")) for name in nested})


def write_table(scored: DataFrame, values: Mapping[str, Any]) -> RowCounts:
    """A table, all at once."""
    from pyspark.sql import Observation

    observation, counts = Observation("holdfast"), RowCounts()
    counted = observe_counts(scored, values["prefix"], observation)
    writer = (
        prepare_for_format(counted, values["to"])
        .write.format(values["to"])
        .options(**make_writer_options(values["to"]))
    )
    with convert_job_errors(values["spark_log"]):
        writer.save(values["out"])
    counts.add(observation.get)
    return counts


def make_writer_options(format_name: str) -> dict[str, str]:
    """Of a writer: times to the microsecond, and separated values as most others write them."""
    options = {"csv": {"header": "true", "escape": '"', **TIMESTAMP_FORMATS}, "json": TIMESTAMP_FORMATS}
    return options.get(format_name, {})
