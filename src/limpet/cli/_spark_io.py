"""Sources and sinks of `limpet spark score`: folders of files, and Kafka."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from limpet.exceptions import InvalidInputError
from limpet.spark._errors import convert_job_errors, extract_error_line
from limpet.spark.filesystem import RemoteDirectory, get_scheme, may_be_remote, to_absolute_uri, to_local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


FORMAT_BY_SUFFIX = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
}
COMPRESSION_SUFFIXES = (".gz", ".bz2", ".zst", ".lz4", ".deflate", ".snappy")
SCHEMA_HINT = "Give --schema 'sensor string, ts timestamp, flow double'."
FORMAT_HINT = "Give --input-format."
DEFAULT_OPTIONS = {
    "csv": {"header": "true", "enforceSchema": "false", "escape": '"'},
    "json": {"inferTimestamp": "true"},
    "kafka": {"startingOffsets": "earliest"},
}
TIMESTAMP_FORMATS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
WRITER_OPTIONS = {"csv": {"header": "true", "escape": '"', **TIMESTAMP_FORMATS}, "json": TIMESTAMP_FORMATS}
SINK_METADATA_DIR = "_spark_metadata"  # Spark's log of the batches in a folder
MAX_BATCH_BYTES = 256 << 20  # of files
MAX_BATCH_MESSAGES = 1_000_000  # of Kafka, whose first micro-batch is the whole topic otherwise
MAX_FILE_AGE = "36500d"  # Spark's default skips files a week older than the newest one
CORRUPT_RECORD_COLUMN = "_corrupt_record"  # Spark's default
SPARK_PACKAGES = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
    "delta": "io.delta:delta-spark_2.13:VERSION, with the VERSION for Spark {version}",
}
COUNTED_FLAGS = ("rejected", "invalid", "late", "duplicate")


@dataclass(frozen=True)
class SparkSource:
    """A source: its format, its path or hosts and topic, and its options."""

    format_name: str
    location: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_files(self) -> bool:
        """Whether the source has files: a folder or a pattern."""
        return self.format_name != "kafka"

    def has_option(self, *names: str) -> bool:
        """Return whether an option is given; Spark ignores case."""
        return any(name.lower() in map(str.lower, self.options) for name in names)


def parse_source(source_name: str, values: Mapping[str, Any], options: Mapping[str, str]) -> SparkSource:
    """Return the source of a name, checked as far as possible without Spark."""
    if get_scheme(source_name) == "kafka":
        if not values["schema"]:
            raise InvalidInputError(f"--schema: is required for kafka://, whose messages are JSON. {SCHEMA_HINT}")
        for name in ("files_per_batch", "input_format"):
            if values[name] is not None:
                raise InvalidInputError(f"--{name.replace('_', '-')}: requires files, got {source_name}.")
        source = _parse_kafka(source_name)
    else:
        source = _parse_files(source_name, values)
    return replace(source, options={**DEFAULT_OPTIONS.get(source.format_name, {}), **source.options, **options})


def _parse_kafka(source_name: str) -> SparkSource:
    parts = urlsplit(source_name)
    topic = parts.path.strip("/")
    if not parts.netloc or not topic or "@" in parts.netloc:
        raise InvalidInputError(
            "SOURCE: must be kafka://host:9092/topic without a login. Give credentials by --option kafka.NAME=VALUE."
        )
    hosts = ",".join(host if ":" in host else f"{host}:9092" for host in parts.netloc.split(","))
    return SparkSource("kafka", f"{hosts}/{topic}", {"kafka.bootstrap.servers": hosts, "subscribe": topic})


def _parse_files(source_name: str, values: Mapping[str, Any]) -> SparkSource:
    format_name, path = values["input_format"], to_local_path(source_name)
    if path is None or (not glob.glob(path) and may_be_remote(source_name, values)):
        format_name = format_name or _infer_format(source_name)
        if format_name is None:
            raise InvalidInputError(f"--input-format: is required, as the name {source_name} has none. {FORMAT_HINT}")
        return SparkSource(format_name, source_name)
    if not glob.has_magic(path) and not os.path.exists(path):
        raise InvalidInputError(f"SOURCE: must be an existing file or folder, got {path}.")
    files = list(iter_files(path))
    if not files and not values["schema"]:
        raise InvalidInputError(f"--schema: is required, as {path} has no files to infer it from. {SCHEMA_HINT}")
    format_names = sorted({name for file in files or [path] if (name := _infer_format(file))})
    if format_name is None and len(format_names) != 1:
        found_formats = " and ".join(format_names) or "no known suffix"
        raise InvalidInputError(f"SOURCE: must have files of one format, got {found_formats} in {path}. {FORMAT_HINT}")
    format_name = format_name or format_names[0]
    is_tsv = format_name == "csv" and files and all(".tsv" in Path(file).suffixes for file in files)
    return SparkSource(format_name, source_name, {"sep": "\t"} if is_tsv else {})


def iter_files(path: str) -> Iterator[str]:
    """Yield the files that Spark reads, also of partition folders NAME=VALUE."""
    for entry in sorted(glob.glob(path)):
        if not os.path.isdir(entry):
            yield entry
            continue
        for child in sorted(Path(entry).iterdir()):
            if not child.name.startswith(("_", ".")) and ("=" in child.name or not child.is_dir()):
                yield from iter_files(glob.escape(str(child)))


def _infer_format(name: str) -> str | None:
    stem, suffix = os.path.splitext(name.lower())
    return FORMAT_BY_SUFFIX.get(os.path.splitext(stem)[1] if suffix in COMPRESSION_SUFFIXES else suffix)


def read_frame(spark: SparkSession, source: SparkSource, values: Mapping[str, Any]) -> DataFrame:
    """Return the rows of a source, streaming unless --batch is given."""
    from pyspark.sql import functions as F

    schema = values["schema"] and _parse_schema(values["schema"])
    reader = spark.read if values["batch"] else spark.readStream
    limits = {} if values["batch"] else make_batch_limits(source, values["files_per_batch"])
    reader = reader.format(source.format_name).options(**limits, **source.options)
    if not source.has_files:
        check_package(spark, source.format_name)
        options = {"columnNameOfCorruptRecord": CORRUPT_RECORD_COLUMN}
        rows = F.from_json(F.col("value").cast("string"), _add_corrupt_record_column(schema), options)
        return reader.load().select(rows.alias("row")).select("row.*")
    schema = schema or _infer_schema(spark, source, values)
    if source.format_name == "json" and not source.has_option("columnNameOfCorruptRecord"):
        schema = _add_corrupt_record_column(schema)
    return reader.schema(schema).load(to_absolute_uri(source.location))


def _parse_schema(schema: str) -> Any:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        return StructType.fromDDL(schema)
    except PySparkException as error:
        reason = extract_error_line(str(error))
        raise InvalidInputError(f"--schema: must be columns, got {schema!r}: {reason} {SCHEMA_HINT}") from None


def make_batch_limits(source: SparkSource, n_files: int | None) -> dict[str, str]:
    """Return the options that bound a micro-batch, unless --option has some."""
    if not source.has_files:
        limits = {"maxOffsetsPerTrigger": str(MAX_BATCH_MESSAGES)}
    elif n_files is None:
        limits = {"maxBytesPerTrigger": str(MAX_BATCH_BYTES)}
    else:
        limits = {"maxFilesPerTrigger": str(n_files)}
    if source.has_option("maxOffsetsPerTrigger", "maxBytesPerTrigger", "maxFilesPerTrigger"):
        limits = {}
    if source.has_files and not source.has_option("maxFileAge"):
        limits["maxFileAge"] = MAX_FILE_AGE
    return limits


def _add_corrupt_record_column(schema: Any) -> Any:
    """Return the schema with a column for the text of invalid JSON."""
    from pyspark.sql.types import StringType, StructField, StructType

    is_present = CORRUPT_RECORD_COLUMN in (field.name.lower() for field in schema.fields)
    return schema if is_present else StructType([*schema.fields, StructField(CORRUPT_RECORD_COLUMN, StringType())])


def _infer_schema(spark: SparkSession, source: SparkSource, values: Mapping[str, Any]) -> Any:
    """Infer the schema of files; integers in text become double for later fractions."""
    from pyspark.sql.types import DoubleType, IntegralType, StructField, StructType

    reader = spark.read.format(source.format_name).options(**source.options)
    if source.format_name == "csv":
        reader = reader.option("inferSchema", "true")
    schema = reader.load(to_absolute_uri(source.location)).schema
    if source.format_name == "parquet":
        return schema
    value_columns = set(values["columns"] or schema.names) - {values["key"], values["time"]}
    integers = [field.name for field in schema.fields if isinstance(field.dataType, IntegralType)]
    names = value_columns.intersection(integers)
    return StructType([StructField(old.name, DoubleType()) if old.name in names else old for old in schema.fields])


def check_package(spark: SparkSession, name: str) -> None:
    """Check that Spark has its package for Kafka or Delta."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    conf = spark._jsparkSession.sessionState().conf()
    try:
        spark._jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(name, conf)
    except (PySparkException, Py4JJavaError):
        package = SPARK_PACKAGES[name].format(version=spark.version)
        raise InvalidInputError(f"--packages: must have Spark's for {name.capitalize()}. Give {package}.") from None


def check_output_owner(spark: SparkSession, checkpoint: str, out: str) -> None:
    """Check that a new checkpoint has a new output folder, or Spark skips batches."""
    is_written = RemoteDirectory(spark, out).list_names(SINK_METADATA_DIR)
    if is_written and not RemoteDirectory(spark, checkpoint).list_names("offsets"):
        raise InvalidInputError(
            f"--out: must be a new folder for a new checkpoint, got {out}, which was written with another checkpoint "
            f"than {checkpoint}."
        )


def write_table(scored: DataFrame, values: Mapping[str, Any]) -> dict[str, int]:
    """Write a table, and return its counts."""
    from pyspark.sql import Observation

    observation, format_name = Observation("limpet"), values["output_format"]
    counted = count_rows(scored, values, observation)
    with convert_job_errors(values["spark_log"]):
        counted.write.format(format_name).options(**WRITER_OPTIONS.get(format_name, {})).save(values["out"])
    return read_counts(observation.get)


def count_rows(scored: DataFrame, values: Mapping[str, Any], name: Any) -> DataFrame:
    """Return the rows, counted by Spark as it writes; for CSV, lists become JSON."""
    from pyspark.sql import functions as F

    prefix = values["prefix"]
    flags = [flag for flag in COUNTED_FLAGS if prefix + flag in scored.columns]
    sums = [F.sum(F.col(f"`{prefix}{flag}`").cast("long")).alias(flag) for flag in flags]
    alarms = F.sum(F.coalesce(F.size(F.col(f"`{prefix}alarms`")), F.lit(0)).cast("long")).alias("alarms")
    counted = scored.observe(name, F.count(F.lit(1)).alias("rows"), *sums, alarms)
    if values["output_format"] != "csv":
        return counted
    nested = [name for name, kind in counted.dtypes if kind.startswith(("array", "struct", "map"))]
    return counted.withColumns({name: F.to_json(F.col(f"`{name}`")) for name in nested})


def read_counts(metrics: Any) -> dict[str, int]:
    """Return the counts that Spark has observed; the sum of no rows is null."""
    values = metrics if isinstance(metrics, dict) else metrics.asDict()
    return {name: int(values.get(name) or 0) for name in ("rows", *COUNTED_FLAGS, "alarms")}


def format_counts(counts: Mapping[str, int]) -> str:
    """Format counts as text."""
    others = ", ".join(f"{count:,} {name}" for name, count in counts.items() if name != "rows")
    return f"{counts['rows']:,} rows: {others}"
