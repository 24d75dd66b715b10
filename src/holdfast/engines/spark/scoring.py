"""DataFrames with the answers beside the input: streaming ones with Spark's state, others sorted by time."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from holdfast.engines.spark.columns import answer_names
from holdfast.engines.spark.packing import PACKED, ROWS
from holdfast.engines.spark.plan import Plan, check_buckets
from holdfast.engines.spark.schema import TYPES, duration, key_is_text, refuse_taken, unit_of, values_in
from holdfast.engines.spark.state import SCHEMA
from holdfast.engines.spark.tasks import ORDER, Gather, Learn, LearnWithState, Pack, Unpack
from holdfast.errors import BadInputError, WrongTypeError
from holdfast.fleet import Fleet
from holdfast.fleet.checkpoint import fleet_of
from holdfast.fleet.fleet import check_model
from holdfast.fleet.parts import joined
from holdfast.learners.stochastic_approximation import StochasticApproximation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HAS_WATERMARK = "spark.watermarkDelayMs"  # in what Spark keeps beside a column


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
    plan = plan_of(df, key, values, time, model, buckets=buckets, watermark=watermark, idle=idle, prefix=prefix)
    if df.isStreaming:
        return streaming(df, _on_checkpoint(df, plan, checkpoint, initial))
    for name, given in (("checkpoint", checkpoint), ("initial", initial)):
        if given is not None:
            raise BadInputError(f"{name} is for a streaming DataFrame")
    return in_time(df, plan).mapInArrow(Learn(plan.to_json(), tuple(df.columns)), output_schema(df, plan))


def plan_of(
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
) -> Plan:
    """What is to be done, if it can be done with these columns."""
    if not hasattr(df, "isStreaming"):
        raise WrongTypeError(f"df: expected a DataFrame of Spark, got {type(df).__name__}")
    from holdfast import SRA

    learner = SRA() if model is None else model
    check_model(learner)
    if not isinstance(prefix, str):
        raise WrongTypeError(f"prefix: expected a text, got {prefix!r}")
    if learner.on_bad != "skip":
        raise BadInputError("a job must not die of data: on_bad='raise' is for other places")
    types = dict(df.dtypes)
    if len(types) < len(df.columns):
        raise BadInputError(f"expected a DataFrame whose columns have different names, got {', '.join(df.columns)}")
    texts, unit = key_is_text(types, key), unit_of(types, time)
    described = learner._description(None, None)
    plan = Plan(
        model={"learner": described["learner"], "settings": described["settings"]},
        key=key,
        texts=texts,
        values=values_in(types, values, [key, time]),
        time=time,
        unit=unit,
        time_type=types[time] if time is not None and unit else "",
        idle=duration("idle", idle, unit) if time is not None else None,
        watermark=_delay(watermark) if unit == "us" else None,
        prefix=prefix,
        buckets=None if buckets is None else check_buckets(buckets),
    )
    if "__main__" in plan.modules():
        raise BadInputError(
            "a model of your own has to be in a module that Spark's workers can import, not in the script"
        )
    if (idle is not None or watermark is not None) and time is None:
        raise BadInputError("idle and watermark go by the times of rows: give time as well")
    if watermark is not None and plan.watermark is None:
        raise BadInputError("watermark goes by timestamps and dates; whole numbers have none")
    if df.isStreaming and watermark is not None and any(HAS_WATERMARK in (one.metadata or {}) for one in df.schema):
        raise BadInputError("the DataFrame has a watermark already, of which Spark allows one: leave one of them out")
    if df.isStreaming and idle is not None and watermark is None:
        raise BadInputError("idle needs a watermark on a stream: how much later than others a row may come")
    refuse_taken(types, plan)
    return plan


def _delay(watermark: Any) -> str | None:
    """In words that Spark knows; it knows fewer than we do."""
    return None if watermark is None else f"{duration('watermark', watermark, 'us', least=0)} microseconds"


def output_schema(df: DataFrame, plan: Plan) -> Any:
    """The columns of the input and those of the answers.

    No column has a watermark: Spark does not carry one past a state, and a window that relied on it would never close.
    """
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    names = answer_names(plan.on_autopilot, plan.time is not None)
    added = [StructField(plan.prefix + name, _parse_datatype_string(TYPES[name])) for name in names]
    own = [
        StructField(
            field.name,
            field.dataType,
            field.nullable,
            {name: told for name, told in (field.metadata or {}).items() if name != HAS_WATERMARK},
        )
        for field in df.schema.fields
    ]
    return StructType([*own, *added])


def learn(
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
    plan = plan_of(df, key, values, time, model, idle=idle)
    if df.isStreaming:
        raise BadInputError("learn takes a DataFrame that does not stream; `score` with a checkpoint, then `export`")
    parts = in_time(df, plan).mapInArrow(Gather(plan.to_json(), tuple(df.columns)), "fleet binary").persist()
    try:
        parts.count()  # all partitions at a time; they come here one after another
        return joined([fleet_of(part.fleet) for part in parts.toLocalIterator()] or [Fleet(plan.learner())])
    finally:
        parts.unpersist()


def in_time(df: DataFrame, plan: Plan) -> DataFrame:
    """All rows of a key in one partition, in the order of their times, those of equal times as they were."""
    from pyspark.sql import functions as F

    partitions = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or "200")
    plain = plainly_named(df)
    key, *times = (plain.columns[df.columns.index(name)] for name in (plan.key, plan.time) if name is not None)
    return (
        plain.withColumn(ORDER, F.monotonically_increasing_id())
        .repartition(partitions, F.col(key))
        .sortWithinPartitions(*(F.col(time).asc_nulls_last() for time in times), ORDER)
    )


def streaming(df: DataFrame, plan: Plan, learn: type[LearnWithState] = LearnWithState) -> DataFrame:
    """A value for each bucket and task, the state of each bucket, and rows again."""
    text = plan.to_json()
    packed = plainly_named(df).mapInArrow(Pack(text, tuple(df.columns)), PACKED)
    if plan.watermark is not None:
        packed = packed.withWatermark("latest", plan.watermark)
    learnt = packed.groupBy("bucket").applyInPandasWithState(learn(text), ROWS, SCHEMA, "append", "NoTimeout")
    return learnt.mapInArrow(Unpack(text), output_schema(df, plan))


def _on_checkpoint(df: DataFrame, plan: Plan, checkpoint: Any, initial: Any) -> Plan:
    """The plan as the checkpoint has it, where one is given."""
    if checkpoint is None:
        if initial is not None:
            raise BadInputError("initial: the states are kept beside the checkpoint: give checkpoint as well")
        return replace(plan, buckets=plan.n_buckets)
    from holdfast.engines.spark.generations import begun

    return begun(df.sparkSession, os.fspath(checkpoint), plan, initial)


def plainly_named(df: DataFrame) -> DataFrame:
    """The same with other names: PySpark does not find columns whose names have dots or backticks."""
    return df.toDF(*(f"column{i}" for i in range(len(df.columns))))
