"""Read keys and points of many streams from lists, arrays and dataframes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import jit_entry_point
from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.fleet._key_index import (
    INT64_REQUIREMENT,
    NO_MISSING_FLAGS,
    NO_ROW,
    UNKNOWN_ROW,
    Flags,
    Integers,
    IntHashTable,
    IntKeys,
    StrKeys,
    is_null_type,
    is_valid_utf8,
)
from limpet.learners.input import LabeledArray, Names, import_narwhals, read_rows

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw


# Hashes of strings in Arrow's layout: string i is data[offsets[i] : offsets[i + 1]]

FNV_PRIME, FNV_OFFSET_BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)  # FNV-1a


def _hash_strings(data, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        hash_ = FNV_OFFSET_BASIS
        for k in range(offsets[i], offsets[i + 1]):
            hash_ = (hash_ ^ np.uint64(data[k])) * FNV_PRIME
        out[i] = np.int64(hash_)


def _codes_match_strings(data, offsets, codes, categories, category_offsets):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        if codes[i] >= 0:
            start, category_start = offsets[i], category_offsets[codes[i]]
            length = offsets[i + 1] - start
            if category_offsets[codes[i] + 1] - category_start != length:
                return False
            for k in range(length):
                if data[start + k] != categories[category_start + k]:
                    return False
    return True


# (data, offsets, out): write the 64-bit hash of each string
hash_strings = jit_entry_point(_hash_strings, releases_gil=True)

# (data, offsets, codes, categories, category_offsets): whether every string is the category of its code, if not −1
codes_match_strings = jit_entry_point(_codes_match_strings, releases_gil=True)

# Keys in lists, in arrays and by codes. If all keys of a call are missing, they fit every fleet: see `all_missing`.

VALIDATE_CHUNK_KEYS = 1 << 13  # strings encoded together
EXPECTED_KEYS_MESSAGE = "keys: must be strings or integers"


def all_missing(n: int) -> StrKeys:
    """Return n missing keys: codes without strings.

    >>> all_missing(2).values, all_missing(2).codes
    ([], array([-1, -1]))
    """
    return StrKeys([], np.full(n, NO_ROW, np.int64))


def keys_from_list(keys: list[Any]) -> IntKeys | StrKeys:
    """Read keys from a list of integers or strings, some of which may be missing.

    >>> keys_from_list([2**60 + 1, None]).values, keys_from_list(["a", None]).values
    (array([1152921504606846977,                   0]), ['a', None])
    """
    types = set(map(type, keys))
    if types <= {str}:
        return _check_str_keys(keys, keys)
    if types == {int}:
        return IntKeys.from_array(_to_int64(keys))
    present = {type_ for type_ in types if not is_null_type(type_)}
    str_types = {type_ for type_ in present if issubclass(type_, str)}
    int_types = {type_ for type_ in present if issubclass(type_, int | np.integer) and type_ is not bool}
    float_types = {type_ for type_ in present if issubclass(type_, float | np.floating)}
    if invalid_types := present - str_types - int_types - float_types:
        _raise_invalid_key(f"{EXPECTED_KEYS_MESSAGE}, got", next(key for key in keys if type(key) in invalid_types))
    if not str_types:
        return _int_keys_from_list(keys, types - present, int_types, float_types)
    for key in keys if int_types or float_types else ():
        if type(key) in int_types or (type(key) in float_types and key == key):
            _raise_invalid_key(f"{EXPECTED_KEYS_MESSAGE}, all of one type, got strings and", key)
    return _check_str_keys(keys, [key for key in keys if isinstance(key, str)])


def keys_from_array(keys: npt.NDArray[Any]) -> IntKeys | StrKeys:
    """Read keys from an array; masked keys are missing."""
    if keys.ndim != 1:
        raise InvalidInputError(f"keys: must be one key per point, got an array of shape {keys.shape}.")
    if keys.dtype.kind not in "iufUTO":
        raise InvalidTypeError(f"{EXPECTED_KEYS_MESSAGE}, got an array of {keys.dtype}.")
    if keys.dtype.kind in "iuf" and not isinstance(keys, np.ma.MaskedArray):
        return check_int_keys(IntKeys.from_array(keys))
    return keys_from_list(keys.tolist())


def keys_from_codes(codes: Integers, categories: list[Any]) -> IntKeys | StrKeys:
    """Read keys given by their indices in a list, −1 for a missing key."""
    keys = keys_from_list(categories)
    if codes.max(initial=NO_ROW) < 0 or (isinstance(keys, StrKeys) and keys.codes is not None):
        return all_missing(len(codes))
    if isinstance(keys, StrKeys):
        return StrKeys(keys.values, codes)
    missing = np.append(keys.missing if len(keys.missing) else np.zeros(len(keys), np.bool_), True)
    return check_int_keys(IntKeys(np.append(keys.values, 0)[codes], missing[codes]))


def check_int_keys(keys: IntKeys) -> IntKeys | StrKeys:
    """Return integer keys, or `all_missing` if all of them are missing."""
    return all_missing(len(keys)) if len(keys.missing) and keys.missing.all() else keys


def _check_str_keys(keys: list[Any], strings: list[str]) -> StrKeys:
    """Return string keys; raise if one of `strings` cannot be encoded in UTF-8."""
    for start in range(0, len(strings), VALIDATE_CHUNK_KEYS):
        chunk = strings[start : start + VALIDATE_CHUNK_KEYS]
        try:
            "".join(chunk).encode()  # faster than one by one
        except UnicodeEncodeError:
            invalid = next(string for string in chunk if not is_valid_utf8(string))
            raise InvalidInputError(
                f"keys: must be encodable in UTF-8, got {invalid!r} with half a character (a surrogate)."
            ) from None
    return StrKeys(keys)


def _int_keys_from_list(
    keys: list[Any], null_types: set[type], int_types: set[type], float_types: set[type]
) -> IntKeys | StrKeys:
    """Return integer keys from a list of ints, floats and null values."""
    if not int_types:  # libraries convert integers to floats if some are missing
        floats = [math.nan if type(key) in null_types else key for key in keys]
        return check_int_keys(IntKeys.from_array(np.array(floats, np.float64)))
    IntKeys.from_array(np.array([key for key in keys if type(key) in float_types], np.float64))  # raises for fractions
    is_missing = [type(key) in null_types or bool(key != key) for key in keys]
    integers = _to_int64([0 if is_null else int(key) for key, is_null in zip(keys, is_missing, strict=True)])
    return IntKeys(integers, np.array(is_missing, np.bool_))


def _to_int64(keys: Collection[int]) -> Integers:
    try:
        return np.array(keys, np.int64)
    except OverflowError:
        largest = max(keys, key=abs)
        raise InvalidTypeError(f"{INT64_REQUIREMENT}, got {largest}. Convert them to strings.") from None


def _raise_invalid_key(message: str, key: Any) -> NoReturn:
    raise InvalidTypeError(f"{message} {key!r} ({type(key).__name__}).")


# Dataframes and their columns, of any library


def library_name(value: Any) -> str:
    """Return the name of the library that defines the type of a value."""
    return type(value).__module__.partition(".")[0]


def to_series(column: Any) -> nw.Series[Any]:
    """Convert a column or array of any library to a series of narwhals."""
    try:
        if library_name(column) == "pandas":
            import pandas

            column = column if isinstance(column, pandas.Series) else pandas.Series(column)
        elif library_name(column) == "pyarrow":
            import pyarrow

            column = pyarrow.chunked_array([column]) if isinstance(column, pyarrow.Array) else column
        return import_narwhals().from_native(column, series_only=True)
    except (TypeError, NotImplementedError) as error:
        raise InvalidTypeError(f"keys: must be a list, an array or a column, got {type(column).__name__}.") from error


def to_frame(frame: Any) -> nw.DataFrame[Any]:
    """Convert an eager dataframe of any library to one of narwhals."""
    nw = import_narwhals()
    if type(frame).__name__ == "RecordBatch":  # of pyarrow; narwhals supports only tables
        import pyarrow

        frame = pyarrow.Table.from_batches([frame])
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError as error:
        advice = "Use update(keys, X) for arrays." if isinstance(frame, np.ndarray | list) else f"{error}."
        raise InvalidTypeError(f"frame: must be an eager dataframe, got {type(frame).__name__}. {advice}") from None
    except nw.exceptions.DuplicateError as error:
        raise InvalidInputError(f"frame: must have distinct column names: {error}.") from None


def keys_from_column(column: nw.Series[Any]) -> IntKeys | StrKeys:
    """Read keys from a column: integers as they are, strings as codes."""
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
    if column.is_null().all():  # of the type Null, for example
        return all_missing(len(column))
    label = "" if column.name in (None, "") else f" in the column {column.name!r}"
    raise InvalidTypeError(f"{EXPECTED_KEYS_MESSAGE}, got {column.dtype}{label}.")


def _keys_from_numbers(column: nw.Series[Any]) -> IntKeys | StrKeys:
    if str(column.dtype).endswith("128"):  # no array can hold these
        return keys_from_list(column.to_list())
    if not (missing := column.is_null().to_numpy()).any():
        return check_int_keys(IntKeys.from_array(np.asarray(column.to_numpy())))
    keys = IntKeys.from_array(np.asarray(column.fill_null(0).to_numpy()))
    return check_int_keys(IntKeys(keys.values, missing | keys.missing if len(keys.missing) else missing))


def _keys_from_pandas(column: nw.Series[Any], native: Any) -> IntKeys | StrKeys:
    """Factorize a pandas column; read objects, which may be integers, as a list."""
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
    """Return codes of hashes by occurrence, −1 if missing, and their first indices."""
    lookup = IntHashTable().look_up(hashes, missing)
    return np.maximum(UNKNOWN_ROW - lookup.rows, -1), lookup.first_index


def _keys_from_polars(column: Any) -> StrKeys:
    """Factorize a column by hashes; if two strings collide, return the strings."""
    missing = column.is_null().to_numpy() if column.null_count() else NO_MISSING_FLAGS
    if str(column.dtype) != "String":  # the codes of categories are distinct
        codes, first_index = factorize_hashes(column.to_physical().cast(int).fill_null(0).to_numpy(), missing)
        return StrKeys(column.gather(first_index).cast(str).to_list(), codes)
    codes, first_index = factorize_hashes(column.hash().to_numpy().view(np.int64), missing)
    strings = column.gather(first_index)
    no_collision = len(strings) == 0 or bool((column == strings.gather(np.maximum(codes, 0))).fill_null(True).all())
    return StrKeys(strings.to_list(), codes) if no_collision else StrKeys(column.to_list())


def _keys_from_arrow(column: Any) -> IntKeys | StrKeys:
    """Factorize by dictionary or hashes; return the strings if two hashes collide."""
    import pyarrow
    from pyarrow import types

    if not (types.is_dictionary(column.type) or types.is_string(column.type) or types.is_large_string(column.type)):
        column = column.cast(pyarrow.large_string())  # string views cannot be concatenated
    array = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if isinstance(array, pyarrow.ChunkedArray):  # still of several chunks, or of none
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
    if codes_match_strings(data, offsets, codes, *arrow_string_buffers(strings)):
        return StrKeys(strings.to_pylist(), codes)
    return StrKeys(array.to_pylist())


def arrow_string_buffers(strings: Any) -> tuple[Any, Any]:
    """Return the bytes and the offsets of an array of strings."""
    import pyarrow

    strings = strings if pyarrow.types.is_large_string(strings.type) else strings.cast(pyarrow.large_string())
    _, offsets_buffer, data = strings.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8), offsets


def read_keys(keys: Any) -> IntKeys | StrKeys:
    """Read the keys of a call from a sequence, an array or a column.

    >>> read_keys(["a", None]).values, read_keys(np.array([3.0, np.nan])).missing
    (['a', None], array([False,  True]))
    """
    if isinstance(keys, IntKeys | StrKeys):
        return keys
    if isinstance(keys, np.ndarray):
        return keys_from_array(keys)
    if isinstance(keys, Sequence) and not isinstance(keys, str | bytes | bytearray):
        return keys_from_list(keys if isinstance(keys, list) else list(keys))
    if hasattr(type(keys), "dtype") or library_name(keys) == "pyarrow":  # the class: a frame may have a column `dtype`
        return keys_from_column(to_series(keys))
    raise InvalidTypeError(f"keys: must be a list, an array or a column, one per point, got {type(keys).__name__}.")


def read_points(X: Any, n: int, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    """Read points as an array (n, width); rows of another length become NaN."""
    if isinstance(X, list | tuple) and X and _are_rows(X):
        lengths = [len(x) for x in X]
        expected = width or Counter(lengths).most_common(1)[0][0]
        if len(set(lengths)) > 1 or lengths[0] != expected:
            _raise_on_string(x for row, length in zip(X, lengths, strict=True) if length != expected for x in row)
            X = [x if length == expected else [np.nan] * expected for x, length in zip(X, lengths, strict=True)]
    points, names = read_rows(X if isinstance(X, LabeledArray) else _check_no_strings(X), width, names)
    if len(points) != n:
        raise InvalidInputError(f"X: must have one point per key, got {n} keys and {len(points)} points.")
    return points, names


def _are_rows(X: Sequence[Any]) -> bool:
    """Return whether each item is a sequence of numbers; a string is not."""
    types = set(map(type, X))
    if not all(issubclass(type_, Sequence | np.ndarray) and not issubclass(type_, str | bytes) for type_ in types):
        return False
    return np.ndarray not in types or all(np.ndim(x) > 0 for x in X if isinstance(x, np.ndarray))


def _check_no_strings(X: Any) -> Any:
    """Return X or its array; raise for strings, which NumPy may convert to numbers."""
    try:
        array = np.asarray(X) if isinstance(X, list | tuple) else X
    except (TypeError, ValueError):  # of unequal shapes: `read_rows` raises an error
        return X
    if isinstance(array, np.ndarray) and array.dtype.kind == "O":
        _raise_on_string(array.flat)
    return array if isinstance(array, np.ndarray) and array.dtype.kind in "biuf" else X


def _raise_on_string(values: Iterable[Any]) -> None:
    for x in values:
        if isinstance(x, str | bytes):
            raise InvalidTypeError(f"X: must be numbers, got {type(x).__name__} {x!r}.")
