"""Reads what users pass as keys and points of many streams."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import jit_entry_point
from limpet._optional import optional_import
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
from limpet.learners.input import LabelledArray, Names, read_rows

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw


# Hashes of texts, and whether they told them apart: over the bytes of a column as Arrow lays them out.
#
# Text i is data[edges[i] : edges[i + 1]].

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


hash_strings = jit_entry_point(_hash_strings, releases_gil=True)
"""(data, edges, out): a number of 64 bits for each text."""

codes_match_strings = jit_entry_point(_codes_match_strings, releases_gil=True)
"""(data, edges, codes, kinds, kinds' edges): whether every text is the one that its code names; −1 names none."""


# Keys one by one: in lists, in arrays, and by their places in a list of those that there are.
#
# Where all keys of a call are missing they are of neither kind, and fit every fleet: see `nobody`.

VALIDATE_CHUNK_KEYS = 1 << 13  # texts that are tried together
EXPECTED_KEYS_MESSAGE = "keys: expected texts or whole numbers"


def all_missing(n: int) -> StrKeys:
    """n keys, all of them missing: places in a list of no texts.

    >>> nobody(2).values, nobody(2).codes
    ([], array([-1, -1]))
    """
    return StrKeys([], np.full(n, NO_ROW, np.int64))


def keys_from_list(keys: list[Any]) -> IntKeys | StrKeys:
    """The keys in a list: whole numbers to the last digit, texts as they are, whatever is missing among them.

    >>> read_listed([2**60 + 1, None]).values, read_listed(["a", None]).values
    (array([1152921504606846977,                   0]), ['a', None])
    """
    types = set(map(type, keys))
    if types <= {str}:
        return _check_str_keys(keys, all_str=True)
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
            _raise_invalid_key(f"{EXPECTED_KEYS_MESSAGE}, all of one kind, got texts and", key)
    return _check_str_keys(keys, all_str=False)


def keys_from_array(keys: npt.NDArray[Any]) -> IntKeys | StrKeys:
    """The keys in an array; those that are masked are missing."""
    if keys.ndim != 1:
        raise InvalidInputError(f"keys: expected one key a point, got an array of shape {keys.shape}")
    if keys.dtype.kind not in "iufUTO":
        raise InvalidTypeError(f"{EXPECTED_KEYS_MESSAGE}, got an array of {keys.dtype}")
    if keys.dtype.kind in "iuf" and not isinstance(keys, np.ma.MaskedArray):
        return check_int_keys(IntKeys.from_array(keys))
    return keys_from_list(keys.tolist())


def keys_from_codes(codes: Integers, categories: list[Any]) -> IntKeys | StrKeys:
    """Keys that are told by their places in a list, −1 for a missing one."""
    keys = keys_from_list(categories)
    if codes.max(initial=NO_ROW) < 0 or (isinstance(keys, StrKeys) and keys.codes is not None):
        return all_missing(len(codes))
    if isinstance(keys, StrKeys):
        return StrKeys(keys.values, codes)
    missing = np.append(keys.missing if len(keys.missing) else np.zeros(len(keys), np.bool_), True)
    return check_int_keys(IntKeys(np.append(keys.values, 0)[codes], missing[codes]))


def check_int_keys(keys: IntKeys) -> IntKeys | StrKeys:
    """Whole numbers, unless all of them are missing."""
    return all_missing(len(keys)) if len(keys.missing) and keys.missing.all() else keys


def _check_str_keys(keys: list[Any], all_str: bool) -> StrKeys:
    """Texts as they are, unless one cannot be written to a file."""
    for start in range(0, len(keys), VALIDATE_CHUNK_KEYS):
        strings = keys[start : start + VALIDATE_CHUNK_KEYS]
        strings = strings if all_str else [string for string in strings if isinstance(string, str)]
        try:
            "".join(strings).encode()  # all at once, for speed
        except UnicodeEncodeError:
            invalid = next(string for string in strings if not is_valid_utf8(string))
            raise InvalidInputError(
                f"keys: {invalid!r} holds half a character, which cannot be written as UTF-8"
            ) from None
    return StrKeys(keys)


def _int_keys_from_list(
    keys: list[Any], null_types: set[type], int_types: set[type], float_types: set[type]
) -> IntKeys | StrKeys:
    """Numbers of these types; `gone` are those of what is missing."""
    if not int_types:  # floats alone are what becomes of whole numbers where some are missing
        return check_int_keys(
            IntKeys.from_array(np.array([math.nan if type(key) in null_types else key for key in keys], np.float64))
        )
    IntKeys.from_array(np.array([key for key in keys if type(key) in float_types], np.float64))  # refuses fractions
    missing: Flags = np.array([type(key) in null_types or bool(key != key) for key in keys], np.bool_)
    return IntKeys(
        _to_int64([0 if is_null else int(key) for key, is_null in zip(keys, missing.tolist(), strict=True)]), missing
    )


def _to_int64(keys: Collection[int]) -> Integers:
    try:
        return np.array(keys, np.int64)
    except OverflowError:
        largest = max(keys, key=abs)
        raise InvalidTypeError(f"keys: whole numbers {INT64_REQUIREMENT}, got {largest}; make texts of them") from None


def _raise_invalid_key(message: str, key: Any) -> NoReturn:
    raise InvalidTypeError(f"{message} {key!r} ({type(key).__name__})")


# Dataframes and their columns, whichever library they come from; columns of keys, texts by their codes.


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


def read_keys(keys: Any) -> IntKeys | StrKeys:
    """The keys of a call: a list, a tuple, an array or a column of a dataframe.

    >>> read_keys(["a", None]).values, read_keys(np.array([3.0, np.nan])).missing
    (['a', None], array([False,  True]))
    """
    if isinstance(keys, IntKeys | StrKeys):
        return keys
    if isinstance(keys, np.ndarray):
        return keys_from_array(keys)
    if isinstance(keys, Sequence) and not isinstance(keys, str | bytes | bytearray):
        return keys_from_list(keys if isinstance(keys, list) else list(keys))
    if is_column(keys):
        return keys_from_column(to_series(keys))
    raise InvalidTypeError(f"keys: expected a list, an array or a column, one key a point, got {type(keys).__name__}")


def read_points(X: Any, n: int, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    """The points of a call, (n, width). Of rows of unequal length those of another width become NaN: not usable."""
    if isinstance(X, list | tuple) and X and _are_rows(X):
        lengths = [len(x) for x in X]
        expected = width or Counter(lengths).most_common(1)[0][0]
        if len(set(lengths)) > 1 or lengths[0] != expected:
            _raise_on_string(x for row, length in zip(X, lengths, strict=True) if length != expected for x in row)
            X = [x if length == expected else [np.nan] * expected for x, length in zip(X, lengths, strict=True)]
    points, names = read_rows(X if isinstance(X, LabelledArray) else _check_no_strings(X), width, names)
    if len(points) != n:
        raise InvalidInputError(f"expected a point for each key, got {n} keys and {len(points)} points")
    return points, names


def _are_rows(X: Sequence[Any]) -> bool:
    """Whether each is a point of several numbers; a text is none, though it has a length."""
    types = set(map(type, X))
    if not all(issubclass(type_, Sequence | np.ndarray) and not issubclass(type_, str | bytes) for type_ in types):
        return False
    return np.ndarray not in types or all(np.ndim(x) > 0 for x in X if isinstance(x, np.ndarray))


def _check_no_strings(X: Any) -> Any:
    """The same, if there is no text among other things: where some are missing, it would be read as a number."""
    array = X
    if isinstance(X, list | tuple):
        try:
            array = np.asarray(X)
        except (TypeError, ValueError):  # of no one shape: `read_rows` says so
            return X
    if isinstance(array, np.ndarray) and array.dtype.kind == "O":
        _raise_on_string(array.flat)
    return array if isinstance(array, np.ndarray) and array.dtype.kind in "biuf" else X


def _raise_on_string(values: Iterable[Any]) -> None:
    for x in values:
        if isinstance(x, str | bytes):
            raise InvalidTypeError(f"expected numbers, got {type(x).__name__} {x!r}")
