"""Dataframes and their columns, whichever library they come from; columns of keys, texts by their codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import InvalidInputError, InvalidTypeError
from holdfast.extras import optional_import
from holdfast.fleet.found import NO_MISSING_FLAGS, UNKNOWN_ROW, Flags, Integers
from holdfast.fleet.integer_table import IntHashTable
from holdfast.fleet.keys import IntKeys, StrKeys
from holdfast.fleet.listed_keys import all_missing, check_int_keys, keys_from_codes, keys_from_list
from holdfast.fleet.text_hashes import codes_match_strings, hash_strings

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw


def import_narwhals() -> Any:
    """The library that knows all dataframes."""
    with optional_import("reading a dataframe", "dataframes"):
        import narwhals.stable.v1 as nw
    return nw


def is_column(keys: Any) -> bool:
    """Whether this may be a column; classes are asked, because frames answer for columns of any name."""
    return hasattr(type(keys), "dtype") or library_name(keys) == "pyarrow"


def library_name(value: Any) -> str:
    """The name of the library that this comes from."""
    return type(value).__module__.partition(".")[0]


def to_series(column: Any) -> nw.Series[Any]:
    """A column of any library; also what pandas and pyarrow have outside of frames."""
    try:
        if library_name(column) == "pandas":
            import pandas

            column = column if isinstance(column, pandas.Series) else pandas.Series(column)
        elif library_name(column) == "pyarrow":
            import pyarrow

            column = pyarrow.chunked_array([column]) if isinstance(column, pyarrow.Array) else column
        return import_narwhals().from_native(column, series_only=True)
    except (TypeError, NotImplementedError) as error:
        raise InvalidTypeError(f"keys: expected a list, an array or a column, got {type(column).__name__}") from error


def to_frame(frame: Any) -> nw.DataFrame[Any]:
    """A dataframe of any library, with its values at hand."""
    nw = import_narwhals()
    if type(frame).__name__ == "RecordBatch":  # of pyarrow, which narwhals takes as tables only
        import pyarrow

        frame = pyarrow.Table.from_batches([frame])
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InvalidTypeError(f"expected an eager dataframe, got {type(frame).__name__}: {error}") from None
    except nw.exceptions.DuplicateError as error:
        raise InvalidInputError(f"expected a frame whose columns have different names: {error}") from None


def keys_from_column(column: nw.Series[Any]) -> IntKeys | StrKeys:
    """The keys in a column: whole numbers as they are, texts by their codes in the column's own dictionary."""
    nw = import_narwhals()
    native = column.to_native()
    if column.dtype.is_integer() or column.dtype.is_float():
        return _keys_from_numbers(column)
    if column.dtype in (nw.String, nw.Categorical, nw.Object, nw.Enum):
        if column.implementation.is_pyarrow():
            return _keys_from_arrow(native)
        if column.implementation.is_polars() and column.dtype != nw.Object:
            return _keys_from_polars(native)
        if column.implementation.is_pandas_like():
            return _keys_from_pandas(column, native)
        return keys_from_list(column.to_list())
    if column.is_null().all():  # of a type of its own, such as Null
        return all_missing(len(column))
    label = "keys: the column" if column.name in (None, "") else f"column {column.name!r}"
    raise InvalidTypeError(f"{label} holds {column.dtype}: keys are texts or whole numbers")


def _keys_from_numbers(column: nw.Series[Any]) -> IntKeys | StrKeys:
    if str(column.dtype).endswith("128"):  # which no array can hold
        return keys_from_list(column.to_list())
    if not (missing := column.is_null().to_numpy()).any():
        return check_int_keys(IntKeys.from_array(np.asarray(column.to_numpy())))
    keys = IntKeys.from_array(np.asarray(column.fill_null(0).to_numpy()))
    return check_int_keys(IntKeys(keys.values, missing | keys.missing if len(keys.missing) else missing))


def _keys_from_pandas(column: nw.Series[Any], native: Any) -> IntKeys | StrKeys:
    """Numbered by pandas; a column of any objects may hold whole numbers, too, and is read as a list of them is."""
    pandas = import_narwhals().get_native_namespace(column)
    if native.dtype == object and not (
        column.implementation.is_pandas() and pandas.api.types.infer_dtype(native, skipna=True) == "string"
    ):
        return keys_from_list(column.to_list())
    if getattr(native.dtype, "storage", "") == "pyarrow" or hasattr(native.dtype, "pyarrow_dtype"):
        return _keys_from_arrow(column.to_arrow())
    codes, categories = pandas.factorize(native)
    return keys_from_codes(np.asarray(codes, np.int64), list(categories))


def factorize_hashes(hashes: Integers, missing: Flags) -> tuple[Integers, Integers]:
    """(codes, first): the number of each hash in the order they come, −1 where missing, and where each came first."""
    lookup = IntHashTable().look_up(hashes, missing)
    return np.maximum(UNKNOWN_ROW - lookup.rows, -1), lookup.first_index


def _keys_from_polars(column: Any) -> StrKeys:
    """Numbered by their hashes, which hardly ever fail to tell them apart; then each stands for itself."""
    missing = column.is_null().to_numpy() if column.null_count() else NO_MISSING_FLAGS
    if str(column.dtype) != "String":  # categories have codes, which do tell them apart
        codes, first_index = factorize_hashes(column.to_physical().cast(int).fill_null(0).to_numpy(), missing)
        return StrKeys(column.gather(first_index).cast(str).to_list(), codes)
    codes, first_index = factorize_hashes(column.hash().to_numpy().view(np.int64), missing)
    strings = column.gather(first_index)
    no_collision = len(strings) == 0 or bool((column == strings.gather(np.maximum(codes, 0))).fill_null(True).all())
    return StrKeys(strings.to_list(), codes) if no_collision else StrKeys(column.to_list())


def _keys_from_arrow(column: Any) -> IntKeys | StrKeys:
    """Numbered by the dictionary they have, or by their hashes."""
    import pyarrow

    types = pyarrow.types
    if not (types.is_dictionary(column.type) or types.is_string(column.type) or types.is_large_string(column.type)):
        column = column.cast(pyarrow.large_string())  # from views, of which not even pieces can be put together
    array = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if isinstance(array, pyarrow.ChunkedArray):  # of several chunks still, or of none
        array = pyarrow.concat_arrays(array.chunks) if array.num_chunks else pyarrow.array([], column.type)
    if types.is_dictionary(array.type):
        codes = array.indices.cast(pyarrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return keys_from_codes(np.ascontiguousarray(codes), array.dictionary.to_pylist())
    data, offsets = arrow_string_buffers(array)
    hashes = np.empty(len(array), np.int64)
    hash_strings(data, offsets, hashes)
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else NO_MISSING_FLAGS
    codes, first_index = factorize_hashes(hashes, missing)
    strings = array.take(pyarrow.array(first_index))
    return (
        StrKeys(strings.to_pylist(), codes)
        if codes_match_strings(data, offsets, codes, *arrow_string_buffers(strings))
        else StrKeys(array.to_pylist())
    )


def arrow_string_buffers(strings: Any) -> tuple[Any, Any]:
    """The bytes of an array of texts, and where each begins and ends."""
    import pyarrow

    strings = strings if pyarrow.types.is_large_string(strings.type) else strings.cast(pyarrow.large_string())
    _, offsets_buffer, data = strings.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8), offsets
