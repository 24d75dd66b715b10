"""Score DataFrames: streams with Spark's state, others sorted by key and time."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from limpet.exceptions import InvalidInputError
from limpet.fleet import Fleet
from limpet.fleet.fleet import fleet_from_bytes
from limpet.fleet.partition import concat
from limpet.learners.base import Learner
from limpet.spark.checkpoint import open_checkpoint
from limpet.spark.job_spec import JobSpec
from limpet.spark.partition_state import STATE_SCHEMA
from limpet.spark.schema import make_job_spec, output_schema
from limpet.spark.udfs import (
    PACKED_SCHEMA,
    ROWS_SCHEMA,
    CollectFleets,
    Pack,
    ScoreSortedStreams,
    StatefulTask,
    unpack_batches,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


ORDER_COLUMN = "__limpet_order__"  # order of rows of equal times, while they are sorted


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
    return open_checkpoint(df.sparkSession, os.fspath(checkpoint), spec, initial)


def with_safe_names(df: DataFrame) -> DataFrame:
    """Rename all columns, as PySpark cannot resolve names with dots or backticks."""
    return df.toDF(*(f"column{i}" for i in range(len(df.columns))))
