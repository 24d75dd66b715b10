"""Columns of dataframes, whichever library they come from: keys by codes, values as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import BadInputError, MissingExtraError, WrongTypeError
from holdfast.fleet.found import UNKNOWN
from holdfast.fleet.integer_table import IntegerTable
from holdfast.fleet.keys import Numbers, Texts
from holdfast.scheme.state import Vector

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw


PANDAS_INDEX = "__index_level_"  # what pyarrow makes of an index, which is no variable


def narwhals() -> Any:
    """The library that knows all dataframes."""
    try:
        import narwhals.stable.v1 as nw
    except ImportError:
        raise MissingExtraError("reading a dataframe needs narwhals: pip install 'holdfast[dataframes]'") from None
    return nw


def series_of(column: Any) -> nw.Series[Any]:
    """A column of any library."""
    try:
        return narwhals().from_native(column, series_only=True)
    except TypeError as error:
        raise WrongTypeError(f"keys: expected a list, an array or a column, got {type(column).__name__}") from error


def frame_of(frame: Any) -> nw.DataFrame[Any]:
    """A dataframe of any library, with its values at hand."""
    nw = narwhals()
    if type(frame).__name__ == "RecordBatch":  # of pyarrow, which narwhals takes as tables only
        import pyarrow

        frame = pyarrow.Table.from_batches([frame])
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise WrongTypeError(f"expected an eager dataframe, got {type(frame).__name__}: {error}") from None


def read_key_column(column: nw.Series[Any]) -> Numbers | Texts:
    """The keys in a column: whole numbers as they are, texts by their codes in the column's own dictionary."""
    nw = narwhals()
    if column.dtype.is_integer() or column.dtype.is_float():
        from holdfast.fleet.reading import read_keys

        missing = column.is_null().to_numpy()
        filled = column.fill_null(0) if missing.any() else column
        keys = read_keys(np.asarray(filled.to_numpy()))
        assert isinstance(keys, Numbers)
        return (
            keys
            if not missing.any()
            else Numbers(keys.values, missing | (keys.missing if len(keys.missing) else False))
        )
    if column.dtype not in (nw.String, nw.Categorical, nw.Object, nw.Enum):
        raise WrongTypeError(f"column {column.name!r} holds {column.dtype}: keys are texts or whole numbers")
    native, codes, texts = column.to_native(), None, None
    if column.implementation.is_pandas_like():
        codes, texts = narwhals().get_native_namespace(column).factorize(native)
        return Texts(list(texts), np.asarray(codes, np.int64))
    if column.implementation.is_polars():
        import polars

        coded = native.cast(polars.Categorical) if native.dtype == polars.String else native
        numbers = coded.to_physical().cast(polars.Int64)
        missing = numbers.is_null().to_numpy()
        found = IntegerTable().look_up(numbers.fill_null(0).to_numpy(), missing)  # numbered as they come
        return Texts(native.gather(found.first).cast(polars.String).to_list(), np.maximum(UNKNOWN - found.rows, -1))
    if column.implementation.is_pyarrow():
        whole = native.combine_chunks() if hasattr(native, "combine_chunks") else native
        coded = whole.dictionary_encode() if not hasattr(whole, "dictionary") else whole
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return Texts(coded.dictionary.to_pylist(), np.asarray(codes, np.int64))
    return Texts(column.to_list())


def read_values(frame: nw.DataFrame[Any], names: Sequence[str]) -> Vector:
    """The numbers in some columns, (n, columns); what is null is NaN."""
    nw = narwhals()
    columns = []
    for name in names:
        column = frame[name]
        if not column.dtype.is_numeric() and column.dtype != nw.Boolean:
            raise WrongTypeError(f"column {name!r} holds {column.dtype}, not numbers: leave it out or convert it")
        columns.append(column.cast(nw.Float64).to_numpy())
    return np.ascontiguousarray(np.column_stack(columns), dtype=np.float64)


def values_named(frame: nw.DataFrame[Any], values: Any, others: Sequence[str]) -> tuple[str, ...]:
    """The columns to learn from: those given, or all that hold numbers besides key and time."""
    given = [values] if isinstance(values, str) else values
    missing = [name for name in (*others, *(given or ())) if name not in frame.columns]
    if missing:
        raise BadInputError(f"there is no column {', '.join(map(repr, missing))}; there are {', '.join(frame.columns)}")
    if given is None:
        candidates = (name for name in frame.columns if name not in others and not name.startswith(PANDAS_INDEX))
        given = [name for name in candidates if frame[name].dtype.is_numeric()]
    if not given or len(set(given)) < len(given):
        raise BadInputError(f"values: expected one or more columns with numbers, each once, got {given}")
    return tuple(given)
