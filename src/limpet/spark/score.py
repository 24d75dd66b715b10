"""DataFrames with the answers beside the input: streaming ones with Spark's state, others sorted by time."""

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
from limpet.learners.base import StochasticApproximation
from limpet.spark.arrow import output_columns
from limpet.spark.arrow_ipc import PACKED_SCHEMA, ROWS_SCHEMA
from limpet.spark.job_spec import JobSpec, check_buckets
from limpet.spark.partition_state import STATE_SCHEMA
from limpet.spark.schema import (
    OUTPUT_TYPES,
    check_name_clash,
    get_time_unit,
    key_is_text,
    parse_duration,
    resolve_value_columns,
)
from limpet.spark.udfs import ORDER_COLUMN, CollectFleets, Pack, ScoreSortedStreams, StatefulTask, Unpack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


WATERMARK_METADATA_KEY = "spark.watermarkDelayMs"  # in what Spark keeps beside a column


def score(
    df: DataFrame,
    key: str,
    values: str | list[str] | None = None,
    time: str | None = None,
    model: StochasticApproximation | None = None,
    *,
    buckets: int | None = None,
    watermark: str | timedelta | None = None,
    idle: str | timedelta | int | None = None,
    prefix: str = "",
    checkpoint: str | os.PathLike[str] | None = None,
    initial: Fleet | str | os.PathLike[str] | None = None,
) -> DataFrame:
    """The DataFrame with what each row came to: further columns, as `Fleet.process` gives them, and `alarms`.

    Every key is a stream with a learner of its own. Its points are learnt in the order of their times, and give the
    same answers as in a `Fleet`, to the last bit.

    df: streaming or not. key: the column of keys, texts or whole numbers. values: the columns to learn from, by default
        all others that hold numbers. model: a learner that has seen nothing, by default SRA().
    time: a column of timestamps, dates or whole numbers. Rows of equal times are taken in the order of the input's
        partitions; without it, all are. On a stream, a row that is older than the last one of its key is `late`, and
        nothing is learnt from it.
    buckets: a stream's keys are dealt to so many groups (64), each of which is one value of Spark's state. Fixed for a
        checkpoint; `rebucket` moves one.
    watermark: how much later than others a row may come, such as "10 minutes": one that is older is late, too.
    idle: after how long without a row a stream is forgotten, such as "7 days" (of whole times, a whole number): what
        comes then begins anew. On a stream it needs a watermark.
    prefix: of the names of the new columns.
    checkpoint: the folder that `writeStream` gets as its checkpointLocation. What it was begun with is kept there, and
        looked at before anything runs: a model whose settings the states cannot go on with is refused.
    initial: a fleet, or the file of one, with which the streams begin (on a stream, with a checkpoint).

    New columns: score, dropped and bad; on autopilot also change_score, p_value, anomaly and change; with a time, late;
    alarms: what the row raised, or null.
    """
    spec = make_job_spec(df, key, values, time, model, buckets=buckets, watermark=watermark, idle=idle, prefix=prefix)
    if df.isStreaming:
        return process_stream(df, _bind_checkpoint(df, spec, checkpoint, initial))
    for name, value in (("checkpoint", checkpoint), ("initial", initial)):
        if value is not None:
            raise InvalidInputError(f"{name} is for a streaming DataFrame")
    return sort_by_key_time(df, spec).mapInArrow(
        ScoreSortedStreams(spec.to_json(), tuple(df.columns)), output_schema(df, spec)
    )


def make_job_spec(
    df: DataFrame,
    key: str,
    values: str | list[str] | None,
    time: str | None,
    model: StochasticApproximation | None,
    *,
    buckets: int | None = None,
    watermark: Any = None,
    idle: Any = None,
    prefix: str = "",
) -> JobSpec:
    """What is to be done, if it can be done with these columns."""
    if not hasattr(df, "isStreaming"):
        raise InvalidTypeError(f"df: expected a DataFrame of Spark, got {type(df).__name__}")
    from limpet import SRA

    learner = SRA() if model is None else model
    check_learner(learner)
    if not isinstance(prefix, str):
        raise InvalidTypeError(f"prefix: expected a text, got {prefix!r}")
    if learner.on_invalid != "skip":
        raise InvalidInputError("a job must not die of data: on_invalid='raise' is for other places")
    types = dict(df.dtypes)
    if len(types) < len(df.columns):
        raise InvalidInputError(f"expected a DataFrame whose columns have different names, got {', '.join(df.columns)}")
    keys_are_text, unit = key_is_text(types, key), get_time_unit(types, time)
    config = learner._config(None, None)
    spec = JobSpec(
        model={"learner": config["learner"], "settings": config["settings"]},
        key=key,
        texts=keys_are_text,
        values=resolve_value_columns(types, values, [key, time]),
        time=time,
        unit=unit,
        time_type=types[time] if time is not None and unit else "",
        idle=parse_duration("idle", idle, unit) if time is not None else None,
        watermark=_format_watermark(watermark) if unit == "us" else None,
        prefix=prefix,
        buckets=None if buckets is None else check_buckets(buckets),
    )
    if "__main__" in spec.get_modules():
        raise InvalidInputError(
            "a model of your own has to be in a module that Spark's workers can import, not in the script"
        )
    if (idle is not None or watermark is not None) and time is None:
        raise InvalidInputError("idle and watermark go by the times of rows: give time as well")
    if watermark is not None and spec.watermark is None:
        raise InvalidInputError("watermark goes by timestamps and dates; whole numbers have none")
    if (
        df.isStreaming
        and watermark is not None
        and any(WATERMARK_METADATA_KEY in (field.metadata or {}) for field in df.schema)
    ):
        raise InvalidInputError(
            "the DataFrame has a watermark already, of which Spark allows one: leave one of them out"
        )
    if df.isStreaming and idle is not None and watermark is None:
        raise InvalidInputError("idle needs a watermark on a stream: how much later than others a row may come")
    check_name_clash(types, spec)
    return spec


def _format_watermark(watermark: Any) -> str | None:
    """In words that Spark knows; it knows fewer than we do."""
    return None if watermark is None else f"{parse_duration('watermark', watermark, 'us', minimum=0)} microseconds"


def output_schema(df: DataFrame, spec: JobSpec) -> Any:
    """The columns of the input and those of the answers.

    No column has a watermark: Spark does not carry one past a state, and a window that relied on it would never close.
    """
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    names = output_columns(spec.is_auto, spec.time is not None)
    added = [StructField(spec.prefix + name, _parse_datatype_string(OUTPUT_TYPES[name])) for name in names]
    input_fields = [
        StructField(
            field.name,
            field.dataType,
            field.nullable,
            {name: value for name, value in (field.metadata or {}).items() if name != WATERMARK_METADATA_KEY},
        )
        for field in df.schema.fields
    ]
    return StructType([*input_fields, *added])


def fit(
    df: DataFrame,
    key: str,
    values: str | list[str] | None = None,
    time: str | None = None,
    model: StochasticApproximation | None = None,
    *,
    idle: str | timedelta | int | None = None,
) -> Fleet:
    """Learns a DataFrame that does not stream, on all executors, and brings the streams here as one fleet.

    The arguments are those of `score`. History can be learnt so, and a stream be begun with it (`initial`).
    """
    spec = make_job_spec(df, key, values, time, model, idle=idle)
    if df.isStreaming:
        raise InvalidInputError(
            "learn takes a DataFrame that does not stream; `score` with a checkpoint, then `export`"
        )
    parts = (
        sort_by_key_time(df, spec)
        .mapInArrow(CollectFleets(spec.to_json(), tuple(df.columns)), "fleet binary")
        .persist()
    )
    try:
        parts.count()  # all partitions at a time; they come here one after another
        return concat(
            [fleet_from_bytes(part.fleet) for part in parts.toLocalIterator()] or [Fleet(spec.make_learner())]
        )
    finally:
        parts.unpersist()


def sort_by_key_time(df: DataFrame, spec: JobSpec) -> DataFrame:
    """All rows of a key in one partition, in the order of their times, those of equal times as they were."""
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
    """A value for each bucket and task, the state of each bucket, and rows again."""
    spec_json = spec.to_json()
    packed = with_safe_names(df).mapInArrow(Pack(spec_json, tuple(df.columns)), PACKED_SCHEMA)
    if spec.watermark is not None:
        packed = packed.withWatermark("latest", spec.watermark)
    results = packed.groupBy("bucket").applyInPandasWithState(
        task(spec_json), ROWS_SCHEMA, STATE_SCHEMA, "append", "NoTimeout"
    )
    return results.mapInArrow(Unpack(spec_json), output_schema(df, spec))


def _bind_checkpoint(df: DataFrame, spec: JobSpec, checkpoint: Any, initial: Any) -> JobSpec:
    """The plan as the checkpoint has it, where one is given."""
    if checkpoint is None:
        if initial is not None:
            raise InvalidInputError("initial: the states are kept beside the checkpoint: give checkpoint as well")
        return replace(spec, buckets=spec.n_buckets)
    from limpet.spark.checkpoint import open_checkpoint

    return open_checkpoint(df.sparkSession, os.fspath(checkpoint), spec, initial)


def with_safe_names(df: DataFrame) -> DataFrame:
    """The same with other names: PySpark does not find columns whose names have dots or backticks."""
    return df.toDF(*(f"column{i}" for i in range(len(df.columns))))
