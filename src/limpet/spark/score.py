"""Score DataFrames: streams with Spark's state, others sorted by key and time."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.fleet import Fleet
from limpet.fleet.fleet import check_learner
from limpet.fleet.partition import concat
from limpet.fleet.serialization import fleet_from_bytes
from limpet.learners import Detector
from limpet.learners.base import Learner
from limpet.spark.arrow import output_columns
from limpet.spark.arrow_ipc import PACKED_SCHEMA, ROWS_SCHEMA, unpack_batches
from limpet.spark.job_spec import JobSpec, check_buckets, get_config
from limpet.spark.partition_state import STATE_SCHEMA
from limpet.spark.schema import (
    OUTPUT_TYPES,
    check_name_clash,
    get_time_unit,
    has_string_keys,
    parse_duration,
    resolve_value_columns,
)
from limpet.spark.udfs import ORDER_COLUMN, CollectFleets, Pack, ScoreSortedStreams, StatefulTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


WATERMARK_METADATA_KEY = "spark.watermarkDelayMs"  # in Spark's metadata of a column


def score(
    df: DataFrame,
    key: str,
    values: str | list[str] | None = None,
    time: str | None = None,
    learner: Learner | None = None,
    *,
    buckets: int | None = None,
    watermark: str | timedelta | None = None,
    idle_timeout: str | timedelta | int | None = None,
    prefix: str = "",
    checkpoint: str | os.PathLike[str] | None = None,
    initial: Fleet | str | os.PathLike[str] | None = None,
) -> DataFrame:
    """Score a DataFrame: add result columns to its rows.

    Every key is a stream with a separate learner. Its rows are learned in the order of their times, with the results of
    a `Fleet` to the last bit.

    Parameters
    ----------
    df : DataFrame
        Rows, streaming or not.
    key : str
        Column of the keys: strings or integers.
    values : str or list of str, optional
        Columns of the values. Default: all other numeric columns.
    time : str, optional
        Column of timestamps, dates or integers. Rows of equal times, or all rows without it, are learned in the order
        of the input's partitions. A row older than the last row of its key in an earlier micro-batch is late, and a row
        with the time and the values of the row before is a duplicate: both are skipped.
    learner : learner, optional
        A learner without data, which is cloned for every key. Default: `Detector()`.
    buckets : int, optional
        Number of buckets of keys on a stream, each with one value of Spark's state. Default: 64, or that of the
        checkpoint, which `repartition` changes.
    watermark : str or timedelta, optional
        Delay of Spark's watermark, such as "10 minutes". Rows older than the watermark are late, too.
    idle_timeout : str, timedelta or int, optional
        Time without a row after which a stream is dropped and starts from scratch, such as "7 days"; an integer if
        times are integers. Requires `watermark` on a stream.
    prefix : str
        Prefix of the names of the result columns.
    checkpoint : str or path, optional
        The folder given to `writeStream` as checkpointLocation. The specification of the job is stored and checked
        there before the query starts.
    initial : Fleet or path, optional
        A fleet, or a file of one, with which the streams start. Requires `checkpoint`.

    Returns
    -------
    DataFrame
        The rows with the columns `score`, `rejected` and `invalid`; of a detector also `p_value`, `change_score`,
        `anomaly` and `change`; with times also `late` and `duplicate`; and `alarms`, null where a row raised none.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a column or a parameter is invalid.
    CheckpointError
        If the job does not fit the states of the checkpoint.
    """
    spec = make_job_spec(
        df, key, values, time, learner, buckets=buckets, watermark=watermark, idle_timeout=idle_timeout, prefix=prefix
    )
    if df.isStreaming:
        return process_stream(df, _bind_checkpoint(df, spec, checkpoint, initial))
    for name, value in (("checkpoint", checkpoint), ("initial", initial)):
        if value is not None:
            raise InvalidInputError(f"{name}: must be None for a DataFrame that is not streaming, got {value!r}.")
    task = ScoreSortedStreams(spec.to_json(), tuple(df.columns))
    return sort_by_key_time(df, spec).mapInArrow(task, output_schema(df, spec))


def make_job_spec(
    df: DataFrame,
    key: str,
    values: str | list[str] | None,
    time: str | None,
    learner: Learner | None,
    *,
    buckets: int | None = None,
    watermark: Any = None,
    idle_timeout: Any = None,
    prefix: str = "",
) -> JobSpec:
    """Check the columns and the parameters of `score`, and return them as a specification."""
    if not hasattr(df, "isStreaming"):
        raise InvalidTypeError(f"df: must be a DataFrame of Spark, got {type(df).__name__}.")
    learner = Detector() if learner is None else learner
    check_learner(learner)
    if not isinstance(prefix, str):
        raise InvalidTypeError(f"prefix: must be a string, got {prefix!r}.")
    if learner.on_invalid != "skip":
        raise InvalidInputError(
            f"on_invalid: must be 'skip' on Spark, got {learner.on_invalid!r}. The column `invalid` marks invalid rows."
        )
    types = dict(df.dtypes)
    if len(types) < len(df.columns):
        raise InvalidInputError(f"df: must have different column names, got {', '.join(df.columns)}.")
    string_keys, unit = has_string_keys(types, key), get_time_unit(types, time)
    if time is None and (idle_timeout is not None or watermark is not None):
        name = "watermark" if idle_timeout is None else "idle_timeout"
        raise InvalidInputError(f"{name}: requires a column of times, got time=None. Give time.")
    if watermark is not None and unit != "us":
        raise InvalidInputError(
            f"watermark: requires timestamps or dates, got integers in column {time!r}. Cast it to timestamp."
        )
    value_names = resolve_value_columns(types, values, [key, time])
    timeout, delay = parse_duration("idle_timeout", idle_timeout, unit), parse_duration("watermark", watermark, "us", 0)
    spec = JobSpec(
        learner=get_config(learner),
        key=key,
        has_string_keys=string_keys,
        values=value_names,
        time=time,
        time_unit=unit,
        time_type=types[time] if time is not None and unit else "",
        idle_timeout=timeout,
        watermark=None if delay is None else f"{delay} microseconds",  # a unit that Spark knows
        prefix=prefix,
        buckets=None if buckets is None else check_buckets(buckets),
    )
    if "__main__" in spec.get_modules():
        raise InvalidInputError(
            "learner: its model must be defined in a module that Spark's workers can import, got one of the script."
        )
    if df.isStreaming and watermark is not None and any(WATERMARK_METADATA_KEY in each.metadata for each in df.schema):
        raise InvalidInputError(
            f"watermark: must be None where the DataFrame has one, got {watermark!r}. Leave one of them out."
        )
    if df.isStreaming and idle_timeout is not None and watermark is None:
        raise InvalidInputError("idle_timeout: requires a watermark on a stream, got watermark=None. Give watermark.")
    check_name_clash(types, spec)
    return spec


def output_schema(df: DataFrame, spec: JobSpec) -> Any:
    """Return the schema of the input with the result columns.

    No column has a watermark: Spark does not propagate one through a stateful operator, and a window relying on it
    would never close.
    """
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    names = output_columns(spec.is_auto, spec.time is not None)
    added = [StructField(spec.prefix + name, _parse_datatype_string(OUTPUT_TYPES[name])) for name in names]
    schema = StructType()
    for field in df.schema:
        metadata = {name: value for name, value in field.metadata.items() if name != WATERMARK_METADATA_KEY}
        schema.add(field.name, field.dataType, field.nullable, metadata)
    return StructType([*schema, *added])


def fit(
    df: DataFrame,
    key: str,
    values: str | list[str] | None = None,
    time: str | None = None,
    learner: Learner | None = None,
    *,
    idle_timeout: str | timedelta | int | None = None,
) -> Fleet:
    """Learn a DataFrame on all executors, and return one fleet.

    The fleet can continue on this machine, or start a stream as `initial` of `score`.

    Parameters
    ----------
    df : DataFrame
        Rows, not streaming.
    key, values, time, learner, idle_timeout
        As in `score`.

    Returns
    -------
    Fleet

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a column or a parameter is invalid.
    """
    spec = make_job_spec(df, key, values, time, learner, idle_timeout=idle_timeout)
    if df.isStreaming:
        raise InvalidInputError(
            "df: must not be streaming, got a streaming DataFrame. Use score(…, checkpoint=…) and export_fleet."
        )
    task = CollectFleets(spec.to_json(), tuple(df.columns))
    parts = sort_by_key_time(df, spec).mapInArrow(task, "fleet binary").persist()
    try:
        parts.count()  # compute all partitions in parallel; the iterator fetches them one by one
        fleets = [fleet_from_bytes(part.fleet) for part in parts.toLocalIterator()]
        return concat(fleets or [Fleet(spec.make_learner())])
    finally:
        parts.unpersist()


def sort_by_key_time(df: DataFrame, spec: JobSpec) -> DataFrame:
    """Return the rows with each key in one partition, sorted by time, stable."""
    from pyspark.sql import functions as F

    partitions = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or "200")
    renamed = with_safe_names(df)
    key, *times = (renamed.columns[df.columns.index(name)] for name in (spec.key, spec.time) if name is not None)
    return (
        renamed.withColumn(ORDER_COLUMN, F.monotonically_increasing_id())
        .repartition(partitions, F.col(key))
        .sortWithinPartitions(*(F.col(time).asc_nulls_last() for time in times), ORDER_COLUMN)
    )


def process_stream(df: DataFrame, spec: JobSpec, task: type[StatefulTask] = StatefulTask) -> DataFrame:
    """Pack rows by bucket, process them with the bucket's state, and unpack them."""
    spec_json = spec.to_json()
    packed = with_safe_names(df).mapInArrow(Pack(spec_json, tuple(df.columns)), PACKED_SCHEMA)
    if spec.watermark is not None:
        packed = packed.withWatermark("latest", spec.watermark)
    buckets = packed.groupBy("bucket")
    results = buckets.applyInPandasWithState(task(spec_json), ROWS_SCHEMA, STATE_SCHEMA, "append", "NoTimeout")
    return results.mapInArrow(unpack_batches, output_schema(df, spec))


def _bind_checkpoint(df: DataFrame, spec: JobSpec, checkpoint: Any, initial: Any) -> JobSpec:
    """Return the specification with the layout of the checkpoint, if one is given."""
    if checkpoint is None:
        if initial is not None:
            raise InvalidInputError("initial: requires a checkpoint, where the states are stored. Give checkpoint.")
        return replace(spec, buckets=spec.n_buckets)
    from limpet.spark.checkpoint import open_checkpoint

    return open_checkpoint(df.sparkSession, os.fspath(checkpoint), spec, initial)


def with_safe_names(df: DataFrame) -> DataFrame:
    """Rename all columns, as PySpark cannot resolve names with dots or backticks."""
    return df.toDF(*(f"column{i}" for i in range(len(df.columns))))
