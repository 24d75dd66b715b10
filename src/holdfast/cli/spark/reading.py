"""The rows of a source: their columns, and how many a micro-batch takes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.cli.spark.addresses import to_absolute_uri, to_local_path
from holdfast.cli.spark.errors import extract_error_line
from holdfast.cli.spark.source import SparkSource, list_files
from holdfast.errors import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_SCHEMA_FILES = 8  # files, for the types of columns
BATCH_MAX_BYTES = 256 << 20  # of files that a micro-batch takes
BATCH_MAX_MESSAGES = 1_000_000  # of Kafka: else the first micro-batch is the whole topic
MAX_FILE_AGE = (
    "36500d"  # against the newest; by default Spark passes over what is a week older, such as a file moved in
)
CORRUPT_RECORD_COLUMN = "_corrupt_record"  # as Spark calls it


def read_frame(
    spark: SparkSession, source: SparkSource, values: Mapping[str, Any], other_columns: tuple[str | None, ...]
) -> DataFrame:
    """The rows of a source: streaming, or all at once. others: columns that are not learnt from."""
    from pyspark.sql import functions as F

    declared_schema = values["schema"] and _parse_schema(values["schema"])
    reader = spark.read if values["batch"] else spark.readStream
    limits = {} if values["batch"] else make_batch_limits(source, values["files_per_batch"])
    reader = reader.format(source.format_name).options(**limits, **source.options)
    if not source.is_files:
        check_source_available(spark, source.format_name)
        rows = F.from_json(
            F.col("value").cast("string"),
            with_corrupt_record_column(declared_schema, CORRUPT_RECORD_COLUMN),
            {"columnNameOfCorruptRecord": CORRUPT_RECORD_COLUMN},
        )
        return reader.load().select(rows.alias("row")).select("row.*")
    schema = declared_schema or _infer_schema(spark, source, values, other_columns)
    if source.format_name == "json":
        schema = with_corrupt_record_column(
            schema, _get_option(source.options, "columnNameOfCorruptRecord") or CORRUPT_RECORD_COLUMN
        )
    frame = reader.schema(schema).load(to_absolute_uri(source.location))
    # What is null in all files has no type, which neither Parquet nor Delta can write.
    voids = {name: F.col(f"`{name}`").cast("string") for name, kind in frame.dtypes if kind == "void"}
    return frame.withColumns(voids) if voids else frame


def _parse_schema(schema: str) -> Any:
    """Columns and their types, as they are told on the command line."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        return StructType.fromDDL(schema)
    except PySparkException as error:
        expected = "expected columns such as 'sensor string, ts timestamp, flow double'"
        raise InvalidInputError(f"--schema: {expected}, got {schema!r}: {extract_error_line(str(error))}") from None


def make_batch_limits(source: SparkSource, n_files: int | None) -> dict[str, str]:
    """What a micro-batch takes, at most, and of what age; what was said with --option goes before it."""
    if source.format_name == "socket":
        return {}
    if source.format_name == "kafka":
        limits = {"maxOffsetsPerTrigger": str(BATCH_MAX_MESSAGES)}
    else:
        limits = (
            {"maxBytesPerTrigger": str(BATCH_MAX_BYTES)} if n_files is None else {"maxFilesPerTrigger": str(n_files)}
        )
    if any(re.fullmatch("max.*pertrigger", name.lower()) for name in source.options):
        limits = {}
    if source.is_files and _get_option(source.options, "maxFileAge") is None:
        limits["maxFileAge"] = MAX_FILE_AGE
    return limits


def _get_option(options: Mapping[str, str], name: str) -> str | None:
    """An option, in whatever case its name was written: Spark makes no difference."""
    return next((value for key, value in options.items() if key.lower() == name.lower()), None)


def with_corrupt_record_column(schema: Any, name: str) -> Any:
    """The columns, and one with the text of what is no JSON, unless one of them has its name."""
    from pyspark.sql.types import StringType, StructField, StructType

    is_present = name.lower() in (field.name.lower() for field in schema.fields)
    return schema if is_present else StructType([*schema.fields, StructField(name, StringType())])


def _infer_schema(
    spark: SparkSession, source: SparkSource, values: Mapping[str, Any], other_columns: tuple[str | None, ...]
) -> Any:
    """The columns of files that are there. Numbers of texts are read as such that have room for all others: the whole
    ones of today are followed by broken ones tomorrow."""
    from pyspark.sql.types import DoubleType, IntegralType, StructField, StructType

    reader = spark.read.format(source.format_name).options(**source.options)
    if source.format_name == "csv":
        reader = reader.option("inferSchema", "true")
    path = to_local_path(source.location)
    files = [] if path is None else list_files(path)
    if len(files) > MAX_SCHEMA_FILES and not any("=" in os.path.dirname(file) for file in files):
        newest = sorted(files, key=os.path.getmtime)[-MAX_SCHEMA_FILES:]
        schema = reader.load(
            [to_absolute_uri(file) if path == source.location else f"file:{os.path.abspath(file)}" for file in newest]
        ).schema
    else:
        schema = reader.load(to_absolute_uri(source.location)).schema
    if source.format_name == "parquet":
        return schema
    value_columns = values["columns"]
    fields = [
        StructField(field.name, DoubleType())
        if isinstance(field.dataType, IntegralType)
        and field.name not in other_columns
        and (not value_columns or field.name in value_columns)
        else field
        for field in schema.fields
    ]
    return StructType(fields)


SPARK_PACKAGES = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
    "delta": "io.delta:delta-spark_2.13:VERSION, of a VERSION that is made for Spark {version}",
}


def check_source_available(spark: SparkSession, name: str) -> None:
    """Says what is missing where Spark does not know Kafka or Delta."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    conf = spark._jsparkSession.sessionState().conf()
    try:
        spark._jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(name, conf)
    except (PySparkException, Py4JJavaError):
        if name not in SPARK_PACKAGES:
            raise
        package = SPARK_PACKAGES[name].format(version=spark.version)
        raise InvalidInputError(f"Spark lacks its package for {name.capitalize()}: give --packages {package}") from None
