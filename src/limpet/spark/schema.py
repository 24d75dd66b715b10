"""Check the columns and parameters of a job, and name its result columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from limpet._format import join_names
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.fleet.fleet import check_learner
from limpet.learners import Detector, Learner
from limpet.spark.arrow import output_columns
from limpet.spark.job_spec import JobSpec, check_buckets, get_config

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


INTEGER_TYPES = ("tinyint", "smallint", "int", "bigint")
NUMERIC_TYPES = (*INTEGER_TYPES, "float", "double", "boolean")
TIME_TYPES = ("timestamp", "timestamp_ntz", "date")
OUTPUT_TYPES = {
    **dict.fromkeys(("score", "p_value", "change_score"), "double"),
    **dict.fromkeys(("rejected", "anomaly", "change", "invalid", "late", "duplicate"), "boolean"),
    "alarms": "array<struct<kind: string, row: bigint, onset: bigint, size: double, direction: string, "
    "variables: array<string>, p_value: double, message: string>>",
}
WATERMARK_METADATA_KEY = "spark.watermarkDelayMs"  # in Spark's metadata of a column
DURATION_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
MICROSECONDS_PER_UNIT: dict[str, float] = {
    **dict.fromkeys(("us", "microsecond"), 1),
    **dict.fromkeys(("ms", "millisecond"), 1_000),
    **dict.fromkeys(("s", "sec", "second"), 1_000_000),
    **dict.fromkeys(("min", "minute"), 60_000_000),
    **dict.fromkeys(("h", "hour"), 3_600_000_000),
    **dict.fromkeys(("d", "day"), 86_400_000_000),
    **dict.fromkeys(("w", "week"), 604_800_000_000),
}


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
    """Check columns and parameters of `score`; return them as a specification."""
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
    used_names = {name.lower() for name in types}  # Spark ignores case
    names = [prefix + name for name in output_columns(spec.is_auto, time is not None)]
    if clash := [name for name in names if name.lower() in used_names]:
        raise InvalidInputError(
            f"prefix: result columns must have new names, got the existing {_quote(clash)}. Give another prefix."
        )
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


def has_string_keys(types: dict[str, str], key: str) -> bool:
    """Return whether keys are strings; otherwise they are integers."""
    kind = _get_type("key", types, key)
    if kind not in ("string", *INTEGER_TYPES):
        raise InvalidTypeError(f"key: must be a column of strings or integers, got {key!r} of {kind}. Cast it.")
    return kind == "string"


def resolve_value_columns(types: dict[str, str], values: Any, others: Sequence[str | None]) -> tuple[str, ...]:
    """Return the value columns: those given, or all numeric ones but the `others`."""
    if values is None:  # as a fleet does: booleans only on request
        candidates = (name for name, kind in types.items() if is_numeric_type(kind) and kind != "boolean")
        names = tuple(name for name in candidates if name not in others)
    else:
        names = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else (values,)
    for name in names:
        if not is_numeric_type(kind := _get_type("values", types, name)):
            raise InvalidTypeError(
                f"values: must be numeric columns, got {name!r} of {kind}. Leave it out, or cast it to double."
            )
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"values: must be one or more different numeric columns, got {_quote(names)}.")
    if overlap := [name for name in names if name in others]:
        raise InvalidInputError(f"values: must not contain the key or the time, got {_quote(overlap)}.")
    return names


def get_time_unit(types: dict[str, str], time: str | None) -> str:
    """Return the unit of times: "us" for dates and timestamps, "" for integers."""
    if time is None:
        return ""
    kind = _get_type("time", types, time)
    if kind not in (*TIME_TYPES, *INTEGER_TYPES):
        raise InvalidTypeError(
            f"time: must be a column of timestamps, dates or integers, got {time!r} of {kind}. Cast it to timestamp."
        )
    return "us" if kind in TIME_TYPES else ""


def is_numeric_type(kind: str) -> bool:
    """Return whether a type of Spark is numeric."""
    return kind in NUMERIC_TYPES or kind.startswith("decimal")


def parse_duration(name: str, value: Any, unit: str, minimum: int = 1) -> int | None:
    """Return a duration as an integer, in the unit of the times.

    >>> parse_duration("idle", "7 days", "us"), parse_duration("idle", timedelta(minutes=1), "us")
    (604800000000, 60000000)
    >>> parse_duration("idle", 100, "")
    100
    """
    if value is None:
        return None
    result: float | None = None
    if unit and isinstance(value, timedelta):
        result = value / timedelta(microseconds=1)
    elif unit and isinstance(value, str) and (parts := DURATION_PATTERN.fullmatch(value)):
        unit_name = parts[2].lower()
        n_us = MICROSECONDS_PER_UNIT.get(unit_name) or MICROSECONDS_PER_UNIT.get(unit_name.removesuffix("s"), math.nan)
        result = float(parts[1]) * n_us
    elif not unit and isinstance(value, int) and not isinstance(value, bool):
        result = value
    if result is None or math.isnan(result) or int(result) < minimum:
        expected = "a duration such as '7 days'" if unit else "a positive integer, as times are integers"
        raise InvalidInputError(f"{name}: must be {expected}, got {value!r}.")
    return int(result)


def _get_type(parameter: str, types: dict[str, str], name: str) -> str:
    if not isinstance(name, str) or name not in types:
        raise InvalidInputError(f"{parameter}: must be a column of the DataFrame ({_quote(types)}), got {name!r}.")
    return types[name]


def _quote(names: Iterable[str]) -> str:
    return join_names(map(repr, names))
