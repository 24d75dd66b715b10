"""Columns of dataframes, whichever library they come from: keys by codes, values as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import BadInputError, MissingExtraError, WrongTypeError
from holdfast.fleet.found import NONE_MISSING, UNKNOWN, Flags, Integers
from holdfast.fleet.integer_table import IntegerTable
from holdfast.fleet.keys import Numbers, Texts
from holdfast.fleet.text_hashes import hash_texts, texts_agree
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
        if not (missing := column.is_null().to_numpy()).any():
            return Numbers.of(np.asarray(column.to_numpy()))
        keys = Numbers.of(np.asarray(column.fill_null(0).to_numpy()))
        return Numbers(keys.values, missing | keys.missing if len(keys.missing) else missing)
    if column.dtype not in (nw.String, nw.Categorical, nw.Object, nw.Enum):
        raise WrongTypeError(f"column {column.name!r} holds {column.dtype}: keys are texts or whole numbers")
    native = column.to_native()
    if column.implementation.is_pyarrow():
        return _of_arrow(native)
    if column.implementation.is_polars():
        return _of_polars(native)
    if column.implementation.is_pandas_like():
        if getattr(native.dtype, "storage", "") == "pyarrow":
            return _of_arrow(column.to_arrow())
        codes, texts = nw.get_native_namespace(column).factorize(native)
        return Texts(list(texts), np.asarray(codes, np.int64))
    return Texts(column.to_list())


def numbered(hashes: Integers, missing: Flags) -> tuple[Integers, Integers]:
    """(codes, first): the number of each hash in the order they come, −1 where missing, and where each came first."""
    found = IntegerTable().look_up(hashes, missing)
    return np.maximum(UNKNOWN - found.rows, -1), found.first


def _of_polars(column: Any) -> Texts:
    """Numbered by their hashes, which hardly ever fail to tell them apart; then each stands for itself."""
    missing = column.is_null().to_numpy() if column.null_count() else NONE_MISSING
    if str(column.dtype) != "String":  # categories have codes, which do tell them apart
        codes, first = numbered(column.to_physical().cast(int).fill_null(0).to_numpy(), missing)
        return Texts(column.gather(first).cast(str).to_list(), codes)
    codes, first = numbered(column.hash().to_numpy().view(np.int64), missing)
    texts = column.gather(first)
    same = len(texts) == 0 or bool((column == texts.gather(np.maximum(codes, 0))).fill_null(True).all())
    return Texts(texts.to_list(), codes) if same else Texts(column.to_list())


def _of_arrow(column: Any) -> Texts:
    """Numbered by the dictionary they have, or by their hashes."""
    import pyarrow

    whole = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if isinstance(whole, pyarrow.ChunkedArray):  # of several chunks still, or of none
        whole = pyarrow.concat_arrays(whole.chunks) if whole.num_chunks else pyarrow.array([], column.type)
    if pyarrow.types.is_dictionary(whole.type):
        codes = whole.indices.cast(pyarrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return Texts(whole.dictionary.to_pylist(), np.ascontiguousarray(codes))
    data, edges = arrow_bytes(whole)
    hashes = np.empty(len(whole), np.int64)
    hash_texts(data, edges, hashes)
    missing = whole.is_null().to_numpy(zero_copy_only=False) if whole.null_count else NONE_MISSING
    codes, first = numbered(hashes, missing)
    texts = whole.take(pyarrow.array(first))
    return (
        Texts(texts.to_pylist(), codes)
        if texts_agree(data, edges, codes, *arrow_bytes(texts))
        else Texts(whole.to_pylist())
    )


def arrow_bytes(texts: Any) -> tuple[Any, Any]:
    """The bytes of an array of texts, and where each begins and ends."""
    import pyarrow

    texts = texts if pyarrow.types.is_large_string(texts.type) else texts.cast(pyarrow.large_string())
    _, edges, data = texts.buffers()
    bounds = np.frombuffer(edges, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8), bounds


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
