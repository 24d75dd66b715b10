"""Columns of Arrow as numbers, keys and times; and a few of their rows as plain values, to understand them by."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.errors import BadInputError
from holdfast.extras import needed_for
from holdfast.fleet.keys import Texts
from holdfast.scheme.state import Vector
from holdfast.streams.times import ISO, NUMBER, ZONED, Times, as_time, as_times, told

Flags = npt.NDArray[np.bool_]
NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
DAY = 86_400 * NANOSECONDS["s"]
MOST = 2**63 - 1


def arrow() -> Any:
    """pyarrow, which is an extra."""
    with needed_for("a Parquet file", "files"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow


def holds_texts(kind: Any) -> bool:
    """Whether a type is one of texts."""
    return str(kind) in ("string", "large_string", "string_view")


def holds_numbers(kind: Any) -> bool:
    """Whether a type is one of numbers; yes and no can be read as such, and so can nothing at all."""
    types = arrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    asked = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    return any(one(kind) for one in asked)


def sample_of(column: Any, as_numbers: bool) -> list[Any]:
    """A few rows for `understand`. as_numbers: yes and no are 1 and 0.

    Where all of them are null there is one value that the type would have, for the type is known all the same.
    """
    values, usual = _listed(column, as_numbers)
    return values if any(one is not None for one in values) else [usual, *values[1:]]


def plain_values(column: Any) -> list[Any]:
    """Numbers, texts, times in ISO 8601, None, or something that is none of these."""
    return _listed(column, as_numbers=False)[0]


def numbers_of(column: Any) -> Vector:
    """float64, NaN where null."""
    if not holds_numbers(column.type):
        raise BadInputError(f"a column holds {column.type}, not numbers")
    numbers = _decoded(column).cast(arrow().float64(), safe=False)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)


def keys_of(column: Any) -> Texts:
    """Texts by their codes, −1 for what is no key: null, no text at all, or bytes that are none."""
    pa = arrow()
    types = pa.types
    kind = column.type
    if types.is_dictionary(kind) and (not holds_texts(kind.value_type) or len(column.dictionary) > len(column)):
        column = _decoded(column)
    if types.is_floating(column.type):  # what becomes of whole numbers where some are missing
        numbers = numbers_of(column)
        whole = (np.abs(numbers) < 2.0**53) & (numbers == np.trunc(numbers))
        column = pa.array(np.where(whole, numbers, 0.0).astype(np.int64), mask=~whole)
    if not types.is_dictionary(column.type):
        if not (types.is_integer(column.type) or holds_texts(column.type) or types.is_null(column.type)):
            raise BadInputError(f"the column of the key holds {column.type}: keys are texts or whole numbers")
        column = column if types.is_integer(column.type) else column.cast(pa.large_string())
        column = column.dictionary_encode()
    kinds = column.dictionary
    values = _texts(kinds) if not types.is_integer(kinds.type) else [str(one) for one in kinds.to_pylist()]
    codes = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    is_key = np.array([*(bool(text) for text in values), False])
    return Texts(values, np.where(is_key[codes], codes, -1))


def times_of(column: Any, kind: str) -> tuple[Times, Flags]:
    """Times of this kind, and which of them are missing or unlike the others."""
    pa = arrow()
    types = pa.types
    column = _decoded(column)
    if types.is_timestamp(column.type) or types.is_date(column.type):
        return _moments(column)
    if kind == NUMBER:
        numbers = numbers_of(column)
        return numbers, ~(np.abs(numbers) < 1e300)
    texts = _texts(column if holds_texts(column.type) else column.cast(pa.string()))
    read = [as_time(text, kind) for text in texts]
    missing = np.array([one is None for one in read], np.bool_)
    return as_times([0 if one is None and kind in (ISO, ZONED) else one for one in read], kind), missing


def _listed(column: Any, as_numbers: bool) -> tuple[list[Any], Any]:
    """Plain values, and one that stands for those of this type."""
    types = arrow().types
    column = _decoded(column)
    kind = column.type
    if types.is_null(kind):
        return [None] * len(column), None
    if types.is_integer(kind) or types.is_floating(kind):
        return column.to_pylist(), 0 if types.is_integer(kind) else 0.0
    if types.is_decimal(kind) or (types.is_boolean(kind) and as_numbers):
        return [None if one != one else one for one in numbers_of(column).tolist()], 0.0
    if types.is_timestamp(kind) or types.is_date(kind):
        times, missing = _moments(column)
        zone = getattr(kind, "tz", None)  # which a date has not
        texts = told(times, zone is not None)
        values = [None if gone else one for one, gone in zip(texts, missing.tolist(), strict=True)]
        return values, "1970-01-01T00:00:00" + "Z" * (zone is not None)
    if holds_texts(kind):
        return _texts(column), ""
    usual = [] if types.is_nested(kind) else False if types.is_boolean(kind) else kind
    return [usual if there else None for there in column.is_valid().to_pylist()], usual


def _moments(column: Any) -> tuple[Times, Flags]:
    """Timestamps and dates as datetime64[ns]; what nanoseconds cannot count is missing."""
    pa = arrow()
    if pa.types.is_timestamp(column.type):
        scale = NANOSECONDS[column.type.unit]
    else:
        scale = DAY if pa.types.is_date32(column.type) else NANOSECONDS["ms"]
        column = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    counts = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    missing = column.is_null().to_numpy(zero_copy_only=False) | (counts > MOST // scale) | (counts < -(MOST // scale))
    return (np.where(missing, 0, counts) * scale).view("datetime64[ns]"), missing


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if arrow().types.is_dictionary(column.type) else column


def _texts(column: Any) -> list[str | None]:
    """Texts; None for null, and for bytes that are no text."""
    try:
        texts: list[str | None] = column.to_pylist()
        return texts
    except UnicodeDecodeError:
        return [_text(one) for one in column.cast(arrow().large_binary()).to_pylist()]


def _text(told: bytes | None) -> str | None:
    try:
        return None if told is None else told.decode()
    except UnicodeDecodeError:
        return None
