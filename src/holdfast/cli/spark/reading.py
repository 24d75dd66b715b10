"""The rows of a source: their columns, and how many a micro-batch takes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.cli.spark.addresses import local_path, whole
from holdfast.cli.spark.errors import sensible_line
from holdfast.cli.spark.source import Place, files_in
from holdfast.errors import BadInputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOOKED_AT = 8  # files, for the types of columns
BYTES_AT_ONCE = 256 << 20  # of files that a micro-batch takes
MESSAGES_AT_ONCE = 1_000_000  # of Kafka: else the first micro-batch is the whole topic
FILE_AGE = "36500d"  # against the newest; by default Spark passes over what is a week older, such as a file moved in
UNREAD = "_corrupt_record"  # as Spark calls it


def frame_of(spark: SparkSession, place: Place, values: Mapping[str, Any], others: tuple[str | None, ...]) -> DataFrame:
    """The rows of a source: streaming, or all at once. others: columns that are not learnt from."""
    from pyspark.sql import functions as F

    told = values["schema"] and _columns_of(values["schema"])
    reader = spark.read if values["batch"] else spark.readStream
    limits = {} if values["batch"] else limits_of(place, values["files_per_batch"])
    reader = reader.format(place.form).options(**limits, **place.options)
    if not place.is_files:
        require_source(spark, place.form)
        rows = F.from_json(
            F.col("value").cast("string"), with_unread(told, UNREAD), {"columnNameOfCorruptRecord": UNREAD}
        )
        return reader.load().select(rows.alias("row")).select("row.*")
    schema = told or _looked_at(spark, place, values, others)
    if place.form == "json":
        schema = with_unread(schema, _said(place.options, "columnNameOfCorruptRecord") or UNREAD)
    frame = reader.schema(schema).load(whole(place.address))
    # What is null in all files has no type, which neither Parquet nor Delta can write.
    voids = {name: F.col(f"`{name}`").cast("string") for name, kind in frame.dtypes if kind == "void"}
    return frame.withColumns(voids) if voids else frame


def _columns_of(schema: str) -> Any:
    """Columns and their types, as they are told on the command line."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        return StructType.fromDDL(schema)
    except PySparkException as error:
        expected = "expected columns such as 'sensor string, ts timestamp, flow double'"
        raise BadInputError(f"--schema: {expected}, got {schema!r}: {sensible_line(str(error))}") from None


def limits_of(place: Place, n_files: int | None) -> dict[str, str]:
    """What a micro-batch takes, at most, and of what age; what was said with --option goes before it."""
    if place.form == "socket":
        return {}
    if place.form == "kafka":
        limits = {"maxOffsetsPerTrigger": str(MESSAGES_AT_ONCE)}
    else:
        limits = {"maxBytesPerTrigger": str(BYTES_AT_ONCE)} if n_files is None else {"maxFilesPerTrigger": str(n_files)}
    if any(re.fullmatch("max.*pertrigger", name.lower()) for name in place.options):
        limits = {}
    if place.is_files and _said(place.options, "maxFileAge") is None:
        limits["maxFileAge"] = FILE_AGE
    return limits


def _said(options: Mapping[str, str], name: str) -> str | None:
    """An option, in whatever case its name was written: Spark makes no difference."""
    return next((value for one, value in options.items() if one.lower() == name.lower()), None)


def with_unread(schema: Any, name: str) -> Any:
    """The columns, and one with the text of what is no JSON, unless one of them has its name."""
    from pyspark.sql.types import StringType, StructField, StructType

    there = name.lower() in (one.name.lower() for one in schema.fields)
    return schema if there else StructType([*schema.fields, StructField(name, StringType())])


def _looked_at(spark: SparkSession, place: Place, values: Mapping[str, Any], others: tuple[str | None, ...]) -> Any:
    """The columns of files that are there. Numbers of texts are read as such that have room for all others: the whole
    ones of today are followed by broken ones tomorrow."""
    from pyspark.sql.types import DoubleType, IntegralType, StructField, StructType

    reader = spark.read.format(place.form).options(**place.options)
    if place.form == "csv":
        reader = reader.option("inferSchema", "true")
    path = local_path(place.address)
    found = [] if path is None else files_in(path)
    if len(found) > LOOKED_AT and not any("=" in os.path.dirname(file) for file in found):
        newest = sorted(found, key=os.path.getmtime)[-LOOKED_AT:]
        schema = reader.load(
            [whole(file) if path == place.address else f"file:{os.path.abspath(file)}" for file in newest]
        ).schema
    else:
        schema = reader.load(whole(place.address)).schema
    if place.form == "parquet":
        return schema
    learnt = values["columns"]
    wide = [
        StructField(one.name, DoubleType())
        if isinstance(one.dataType, IntegralType) and one.name not in others and (not learnt or one.name in learnt)
        else one
        for one in schema.fields
    ]
    return StructType(wide)


PACKAGES = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
    "delta": "io.delta:delta-spark_2.13:VERSION, of a VERSION that is made for Spark {version}",
}


def require_source(spark: SparkSession, name: str) -> None:
    """Says what is missing where Spark does not know Kafka or Delta."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    conf = spark._jsparkSession.sessionState().conf()
    try:
        spark._jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(name, conf)
    except (PySparkException, Py4JJavaError):
        if name not in PACKAGES:
            raise
        package = PACKAGES[name].format(version=spark.version)
        raise BadInputError(f"Spark lacks its package for {name.capitalize()}: give --packages {package}") from None
