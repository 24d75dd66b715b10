"""The rows of a source: their columns, and how many a micro-batch takes."""

from __future__ import annotations

import glob
import os
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from limpet.exceptions import InvalidInputError
from limpet.spark._errors import convert_job_errors, extract_error_line
from limpet.spark.filesystem import get_scheme, may_be_remote, to_absolute_uri, to_local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# What became of the rows: counted by Spark while it writes them.

COUNTED_FLAGS = ("rejected", "invalid", "late")


@dataclass
class RowCounts:
    """Of a batch, or of all."""

    rows: int = 0
    rejected: int = 0
    invalid: int = 0
    late: int = 0
    alarms: int = 0
    began: float = field(default_factory=time.monotonic)

    def add(self, metrics: Any) -> None:
        """What Spark has observed; of no rows it knows no sum."""
        values = metrics if isinstance(metrics, dict) else metrics.asDict()
        for name in self.to_dict():
            setattr(self, name, getattr(self, name) + int(values.get(name) or 0))

    def to_dict(self) -> dict[str, int]:
        """The numbers."""
        return {name: value for name, value in asdict(self).items() if name != "began"}

    @property
    def summary(self) -> str:
        """In words."""
        rest = ", ".join(f"{value:,} {name}" for name, value in self.to_dict().items() if name != "rows")
        return f"{self.rows:,} rows: {rest}"


def observe_counts(scored: DataFrame, prefix: str, name: Any) -> DataFrame:
    """The same rows, which Spark counts on their way."""
    from pyspark.sql import functions as F

    flags = [flag for flag in COUNTED_FLAGS if prefix + flag in scored.columns]
    sums = [F.sum(F.col(f"`{prefix}{flag}`").cast("long")).alias(flag) for flag in flags]
    alarms = F.sum(F.coalesce(F.size(F.col(f"`{prefix}alarms`")), F.lit(0)).cast("long")).alias("alarms")
    return scored.observe(name, F.count(F.lit(1)).alias("rows"), *sums, alarms)


# Where the scored rows go, and how each format holds them.

TIMESTAMP_FORMATS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
SINK_METADATA_DIR = "_spark_metadata"  # which batches are in a folder, as Spark keeps it


def check_output_owner(spark: SparkSession, checkpoint: str, out: str) -> None:
    """Refuses to begin a checkpoint on a folder that another one has written to: Spark would take its first batches for
    those that are there already, and pass over them."""
    from limpet.spark.filesystem import RemoteDirectory

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

    observation, counts = Observation("limpet"), RowCounts()
    counted = observe_counts(scored, values["prefix"], observation)
    writer = (
        prepare_for_format(counted, values["output_format"])
        .write.format(values["output_format"])
        .options(**make_writer_options(values["output_format"]))
    )
    with convert_job_errors(values["spark_log"]):
        writer.save(values["out"])
    counts.add(observation.get)
    return counts


def make_writer_options(format_name: str) -> dict[str, str]:
    """Of a writer: times to the microsecond, and separated values as most others write them."""
    options = {"csv": {"header": "true", "escape": '"', **TIMESTAMP_FORMATS}, "json": TIMESTAMP_FORMATS}
    return options.get(format_name, {})


# What is scored, by its name: folders of files, Kafka, a socket.

FORMAT_BY_SUFFIX = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
}
COMPRESSION_SUFFIXES = (".gz", ".bz2", ".zst", ".lz4", ".deflate", ".snappy")
SCHEMA_HINT = "say what columns there are, such as --schema 'sensor string, ts timestamp, flow double'"
DEFAULT_OPTIONS = {
    "csv": {"header": "true", "enforceSchema": "false", "escape": '"'},
    "json": {"inferTimestamp": "true"},
    "kafka": {"startingOffsets": "earliest"},
}


@dataclass(frozen=True)
class SparkSource:
    """A source by its name. form: as Spark calls it. address: a path, host:port, or host:port and a topic."""

    format_name: str
    location: str
    options: Mapping[str, str] = field(default_factory=dict)
    is_files: bool = True

    @property
    def description(self) -> str:
        """In words."""
        return f"{self.location}, {self.format_name}" if self.is_files else f"{self.format_name}://{self.location}"


def parse_source(source_name: str, values: Mapping[str, Any], options: Mapping[str, str]) -> SparkSource:
    """The source of this name, with its options; what is wrong with it is told before Spark is begun."""
    scheme = get_scheme(source_name)
    if scheme in ("kafka", "socket"):
        source = _parse_kafka(source_name) if scheme == "kafka" else _parse_socket(source_name)
        if not values["schema"]:
            raise InvalidInputError(
                f"{scheme}:// carries JSON, of which Spark wants to know the columns: {SCHEMA_HINT}"
            )
        for name in ("files_per_batch", "input_format"):
            if values[name] is not None:
                raise InvalidInputError(f"--{name.replace('_', '-')} is for files")
        if scheme == "socket" and (values["batch"] or not values["follow"]):
            raise InvalidInputError("a socket has no end: --once and --batch are for files and Kafka")
        if scheme == "socket" and values["checkpoint"]:
            raise InvalidInputError(
                "a socket cannot be read again: there is nothing that a --checkpoint could go on from"
            )
    else:
        source = _parse_files(source_name, values)
    return replace(source, options={**DEFAULT_OPTIONS.get(source.format_name, {}), **source.options, **options})


def _parse_kafka(source_name: str) -> SparkSource:
    parts = urlsplit(source_name)
    topic = parts.path.strip("/")
    if not parts.netloc or not topic or "@" in parts.netloc:
        raise InvalidInputError("expected kafka://host:9092/topic; names and passwords go into --option kafka.…=…")
    hosts = ",".join(host if ":" in host else f"{host}:9092" for host in parts.netloc.split(","))
    return SparkSource(
        "kafka", f"{hosts}/{topic}", {"kafka.bootstrap.servers": hosts, "subscribe": topic}, is_files=False
    )


def _parse_socket(source_name: str) -> SparkSource:
    parts = urlsplit(source_name)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise InvalidInputError(f"expected socket://host:port, got {source_name}")
    return SparkSource("socket", f"{host}:{port}", {"host": host, "port": str(port)}, is_files=False)


def _parse_files(source_name: str, values: Mapping[str, Any]) -> SparkSource:
    format_name, options = values["input_format"], {}
    path = to_local_path(source_name)
    if path is None or (not glob.glob(path) and may_be_remote(source_name, values)):
        format_name = format_name or _infer_format(source_name)
        if format_name is None:
            raise InvalidInputError(f"{source_name}: say of which format its files are, with --input-format")
        return SparkSource(format_name, source_name)
    if not glob.has_magic(path) and not os.path.exists(path):
        raise InvalidInputError(f"there is no folder {path}")
    files = list_files(path)
    if not files and not values["schema"]:
        raise InvalidInputError(f"there are no files in {path} to learn the columns from: {SCHEMA_HINT}")
    format_names = sorted(
        {candidate for file in files if (candidate := _infer_format(file))}
        or {candidate for candidate in [_infer_format(path)] if candidate}
    )
    if format_name is None and len(format_names) != 1:
        problem = (
            f"holds {' and '.join(format_names)}"
            if format_names
            else "does not tell by names of which format its files are"
        )
        raise InvalidInputError(f"{path} {problem}: say which with --input-format")
    format_name = format_name or format_names[0]
    if format_name == "csv" and files and all(".tsv" in Path(file).suffixes for file in files):
        options["sep"] = "\t"
    return SparkSource(format_name, source_name, options)


def list_files(path: str) -> list[str]:
    """The files of a folder, of its folders of the form name=value, or of a pattern: those that Spark would read."""
    files: list[str] = []
    for entry in sorted(glob.glob(path)):
        if os.path.isdir(entry):
            for name in sorted(os.listdir(entry)):
                child = os.path.join(entry, name)
                if not name.startswith(("_", ".")):
                    files += list_files(glob.escape(child)) if "=" in name or not os.path.isdir(child) else []
        else:
            files.append(entry)
    return files


def _infer_format(name: str) -> str | None:
    """The format that the name of a file tells."""
    stem, suffix = os.path.splitext(name.lower())
    return FORMAT_BY_SUFFIX.get(os.path.splitext(stem)[1] if suffix in COMPRESSION_SUFFIXES else suffix)


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
