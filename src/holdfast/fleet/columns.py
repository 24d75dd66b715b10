"""Dataframes and their columns, whichever library they come from; columns of keys, texts by their codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import BadInputError, WrongTypeError
from holdfast.extras import needed_for
from holdfast.fleet.found import NONE_MISSING, UNKNOWN, Flags, Integers
from holdfast.fleet.integer_table import IntegerTable
from holdfast.fleet.keys import Numbers, Texts
from holdfast.fleet.listed_keys import coded, known_numbers, nobody, read_listed
from holdfast.fleet.text_hashes import hash_texts, texts_agree

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw


def narwhals() -> Any:
    """The library that knows all dataframes."""
    with needed_for("reading a dataframe", "dataframes"):
        import narwhals.stable.v1 as nw
    return nw


def is_column(keys: Any) -> bool:
    """Whether this may be a column; classes are asked, because frames answer for columns of any name."""
    return hasattr(type(keys), "dtype") or library_of(keys) == "pyarrow"


def library_of(thing: Any) -> str:
    """The name of the library that this comes from."""
    return type(thing).__module__.partition(".")[0]


def series_of(column: Any) -> nw.Series[Any]:
    """A column of any library; also what pandas and pyarrow have outside of frames."""
    try:
        if library_of(column) == "pandas":
            import pandas

            column = column if isinstance(column, pandas.Series) else pandas.Series(column)
        elif library_of(column) == "pyarrow":
            import pyarrow

            column = pyarrow.chunked_array([column]) if isinstance(column, pyarrow.Array) else column
        return narwhals().from_native(column, series_only=True)
    except (TypeError, NotImplementedError) as error:
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
    except nw.exceptions.DuplicateError as error:
        raise BadInputError(f"expected a frame whose columns have different names: {error}") from None


def read_key_column(column: nw.Series[Any]) -> Numbers | Texts:
    """The keys in a column: whole numbers as they are, texts by their codes in the column's own dictionary."""
    nw = narwhals()
    native = column.to_native()
    if column.dtype.is_integer() or column.dtype.is_float():
        return _of_numbers(column)
    if column.dtype in (nw.String, nw.Categorical, nw.Object, nw.Enum):
        if column.implementation.is_pyarrow():
            return _of_arrow(native)
        if column.implementation.is_polars() and column.dtype != nw.Object:
            return _of_polars(native)
        if column.implementation.is_pandas_like():
            return _of_pandas(column, native)
        return read_listed(column.to_list())
    if column.is_null().all():  # of a type of its own, such as Null
        return nobody(len(column))
    told = "keys: the column" if column.name in (None, "") else f"column {column.name!r}"
    raise WrongTypeError(f"{told} holds {column.dtype}: keys are texts or whole numbers")


def _of_numbers(column: nw.Series[Any]) -> Numbers | Texts:
    if str(column.dtype).endswith("128"):  # which no array can hold
        return read_listed(column.to_list())
    if not (missing := column.is_null().to_numpy()).any():
        return known_numbers(Numbers.of(np.asarray(column.to_numpy())))
    keys = Numbers.of(np.asarray(column.fill_null(0).to_numpy()))
    return known_numbers(Numbers(keys.values, missing | keys.missing if len(keys.missing) else missing))


def _of_pandas(column: nw.Series[Any], native: Any) -> Numbers | Texts:
    """Numbered by pandas; a column of any objects may hold whole numbers, too, and is read as a list of them is."""
    pandas = narwhals().get_native_namespace(column)
    if native.dtype == object and not (
        column.implementation.is_pandas() and pandas.api.types.infer_dtype(native, skipna=True) == "string"
    ):
        return read_listed(column.to_list())
    if getattr(native.dtype, "storage", "") == "pyarrow" or hasattr(native.dtype, "pyarrow_dtype"):
        return _of_arrow(column.to_arrow())
    codes, kinds = pandas.factorize(native)
    return coded(np.asarray(codes, np.int64), list(kinds))


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


def _of_arrow(column: Any) -> Numbers | Texts:
    """Numbered by the dictionary they have, or by their hashes."""
    import pyarrow

    types = pyarrow.types
    if not (types.is_dictionary(column.type) or types.is_string(column.type) or types.is_large_string(column.type)):
        column = column.cast(pyarrow.large_string())  # from views, of which not even pieces can be put together
    whole = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if isinstance(whole, pyarrow.ChunkedArray):  # of several chunks still, or of none
        whole = pyarrow.concat_arrays(whole.chunks) if whole.num_chunks else pyarrow.array([], column.type)
    if types.is_dictionary(whole.type):
        codes = whole.indices.cast(pyarrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return coded(np.ascontiguousarray(codes), whole.dictionary.to_pylist())
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
