"""Vectors of lanes: views, loads, stores, transposition of states, prefetching.

`lane_view(block, offset)` is a vector whose entry i is the lanes block[offset + i·LANES : offset + (i + 1)·LANES]. It
can be indexed and sliced like the flat vectors that kernels use: for a kernel it is a state, of `LANES` streams.

Lanes also hold several numbers of one stream: a logarithm of lanes takes as long as that of one number, and has the
same bits (`limpet._jit.simd`). Loads and stores are kernels around intrinsics for Numba's cache: see
`limpet._jit.compile`.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import for_range, get_or_insert_function
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import make_array

from limpet._jit.compile import Vector, kernel
from limpet._jit.math import log
from limpet._jit.simd import IR_FLOAT64, IR_INT64, LANES, float_lanes

# Vectors of lanes


class _LaneViewType(types.Type):  # type: ignore[misc]
    """A pointer to a vector of lanes."""

    def __init__(self) -> None:
        super().__init__(name="limpet.columns")


lane_view_type = _LaneViewType()


@register_model(_LaneViewType)
class _LaneViewModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, IR_FLOAT64.as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def lane_view(context: Any, block: Any, offset: Any) -> Any:
    """Return a view of lanes, of a contiguous array that must outlive it."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        data = make_array(sig.args[0])(context, builder, arguments[0]).data
        return builder.gep(data, [context.cast(builder, arguments[1], sig.args[1], types.int64)])

    return lane_view_type(block, offset), generate


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):  # type: ignore[misc]
    def generic(self, arguments: Any, named: Any) -> Any:
        if arguments[0] is not lane_view_type:
            return None
        if isinstance(arguments[1], types.misc.SliceType):
            return signature(lane_view_type, lane_view_type, types.slice2_type)
        return signature(float_lanes, lane_view_type, types.int64)


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):  # type: ignore[misc]
    def generic(self, arguments: Any, named: Any) -> Any:
        if arguments[0] is not lane_view_type:
            return None
        return signature(types.none, lane_view_type, types.int64, float_lanes)


def _element_pointer(builder: Any, column: Any, index: Any) -> Any:
    return builder.gep(column, [builder.mul(index, ir.Constant(IR_INT64, LANES))])


def _lanes_pointer(builder: Any, column: Any, index: Any) -> Any:
    return builder.bitcast(_element_pointer(builder, column, index), float_lanes.vector.as_pointer())


@lower_builtin(operator.getitem, lane_view_type, types.int64)  # type: ignore[untyped-decorator]
def _load(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    loaded = builder.load(_lanes_pointer(builder, *arguments), typ=float_lanes.vector)
    loaded.align = 8
    return loaded


@lower_builtin(operator.setitem, lane_view_type, types.int64, float_lanes)  # type: ignore[untyped-decorator]
def _store(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    column, index, value = arguments
    builder.store(value, _lanes_pointer(builder, column, index)).align = 8
    return context.get_dummy_value()


@lower_builtin(operator.getitem, lane_view_type, types.slice2_type)  # type: ignore[untyped-decorator]
def _slice_view(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    column, slice_value = arguments
    return _element_pointer(builder, column, context.make_helper(builder, sig.args[1], slice_value).start)


@intrinsic  # type: ignore[untyped-decorator]
def store_mask(context: Any, array: Any, offset: Any, condition: Any) -> Any:
    """Write 1 or 0 per lane to an array of bytes, from `offset` on."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        data = make_array(sig.args[0])(context, builder, arguments[0]).data
        pointer = builder.gep(data, [context.cast(builder, arguments[1], sig.args[1], types.int64)])
        bytes_type = ir.VectorType(ir.IntType(8), LANES)
        builder.store(
            builder.zext(arguments[2], bytes_type), builder.bitcast(pointer, bytes_type.as_pointer()), align=1
        )
        return context.get_dummy_value()

    return types.none(array, offset, condition), generate


# Rows and columns

TILE_SIZE = 4  # rows and fields that are transposed at once
_TILE_ROW = ir.VectorType(IR_FLOAT64, TILE_SIZE)
_TILE_POINTER = _TILE_ROW.as_pointer()
_PAIR_SHUFFLES = ([0, 4, 2, 6], [1, 5, 3, 7])
_HALF_SHUFFLES = ([0, 1, 4, 5], [2, 3, 6, 7])


def _transpose_tile(builder: Any, rows: list[Any]) -> list[Any]:
    mask_type = ir.VectorType(ir.IntType(32), TILE_SIZE)

    def shuffle(a: Any, b: Any, indices: list[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(mask_type, indices))

    (even, odd), (even_below, odd_below) = ([shuffle(rows[i], rows[i + 1], p) for p in _PAIR_SHUFFLES] for i in (0, 2))
    return [shuffle(a, b, half) for half in _HALF_SHUFFLES for a, b in ((even, even_below), (odd, odd_below))]


def _make_transpose(to_columns: bool) -> Any:
    """Make an intrinsic that copies fields of `LANES` states to a block, or back.

    (states, streams, first, block, offset, n, start, end): fields start … end − 1 of the rows streams[first] … to the
    lanes at block[offset]. n: the length of a row; it, start and end are multiples of four.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def transpose(
        context: Any, states: Any, streams: Any, first: Any, block: Any, offset: Any, n: Any, start: Any, end: Any
    ) -> Any:
        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            matrix, stream_indices, base = (make_array(sig.args[i])(context, builder, arguments[i]) for i in (0, 1, 3))
            first, offset, n, start, end = (
                context.cast(builder, arguments[i], sig.args[i], types.int64) for i in (2, 4, 5, 6, 7)
            )
            rows = []
            for lane in range(LANES):
                pointer = builder.gep(stream_indices.data, [builder.add(first, ir.Constant(IR_INT64, lane))])
                stream_index = context.cast(builder, builder.load(pointer), sig.args[1].dtype, types.int64)
                rows.append(builder.gep(matrix.data, [builder.mul(stream_index, n)]))
            n_tiles = builder.udiv(builder.sub(end, start), ir.Constant(IR_INT64, TILE_SIZE))
            with for_range(builder, n_tiles) as loop:
                field = builder.add(start, builder.mul(loop.index, ir.Constant(IR_INT64, TILE_SIZE)))
                column = builder.gep(base.data, [builder.add(offset, builder.mul(field, ir.Constant(IR_INT64, LANES)))])
                for tile in range(0, LANES, TILE_SIZE):
                    by_row = [builder.gep(row, [field]) for row in rows[tile : tile + TILE_SIZE]]
                    offsets = [ir.Constant(IR_INT64, i * LANES + tile) for i in range(TILE_SIZE)]
                    by_field = [builder.gep(column, [offset]) for offset in offsets]
                    pointers = [[builder.bitcast(p, _TILE_POINTER) for p in part] for part in (by_row, by_field)]
                    sources, targets = pointers if to_columns else reversed(pointers)
                    loaded = [builder.load(pointer, align=8, typ=_TILE_ROW) for pointer in sources]
                    for value, pointer in zip(_transpose_tile(builder, loaded), targets, strict=True):
                        builder.store(value, pointer, align=8)
            return context.get_dummy_value()

        return types.none(states, streams, first, block, offset, n, start, end), generate

    return transpose


rows_to_columns, columns_to_rows = _make_transpose(True), _make_transpose(False)


@intrinsic  # type: ignore[untyped-decorator]
def pack4(context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return lanes of which the first four hold these numbers."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        lanes = ir.Constant(float_lanes.vector, ir.Undefined)
        for i, number in enumerate(arguments):
            lanes = builder.insert_element(lanes, number, ir.Constant(ir.IntType(32), i))
        return lanes

    return float_lanes(*(types.float64,) * 4), generate


@intrinsic  # type: ignore[untyped-decorator]
def unpack4(context: Any, lanes: Any) -> Any:
    """Return the numbers in the first four lanes."""
    tuple_type = types.UniTuple(types.float64, 4)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        numbers = [builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), i)) for i in range(4)]
        return context.make_tuple(builder, tuple_type, numbers)

    return tuple_type(float_lanes), generate


@intrinsic  # type: ignore[untyped-decorator]
def gather_lanes(context: Any, vector: Any, offset: Any) -> Any:
    """Return the lanes vector[offset : offset + LANES], read one by one.

    Numbers that were just written are forwarded this way; a load of a whole register waits until they are in memory.
    """

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        data = make_array(sig.args[0])(context, builder, arguments[0]).data
        first = context.cast(builder, arguments[1], sig.args[1], types.int64)
        lanes = ir.Constant(float_lanes.vector, ir.Undefined)
        for i in range(LANES):
            pointer = builder.gep(data, [builder.add(first, ir.Constant(ir.IntType(64), i))])
            lanes = builder.insert_element(lanes, builder.load(pointer), ir.Constant(ir.IntType(32), i))
        return lanes

    return float_lanes(vector, offset), generate


@kernel
def load_lanes_unaligned(vector: Vector, offset: int) -> Any:
    """Return the lanes vector[offset : offset + LANES], partly just written."""
    return gather_lanes(vector, offset)


@kernel
def load_lanes(vector: Vector, offset: int) -> Any:
    """Return the lanes vector[offset : offset + LANES]."""
    return lane_view(vector, offset)[0]


@kernel
def store_lanes(vector: Vector, offset: int, lanes: Any) -> None:
    """Write lanes to vector[offset : offset + LANES]."""
    lane_view(vector, offset)[0] = lanes


@kernel
def log3(a: float, b: float, c: float) -> tuple[float, float, float]:
    x, y, z, _ = unpack4(log(pack4(a, b, c, c)))
    return x, y, z


# Prefetching: memory latency is as long as the update of a stream

CACHE_LINE_FLOATS = 8  # numbers in a line of a processor's cache

_IR_BYTE_POINTER, _IR_INT32 = ir.IntType(8).as_pointer(), ir.IntType(32)
_PREFETCH_WRITE, _PREFETCH_LOCALITY, _PREFETCH_DATA_CACHE = 1, 3, 1  # arguments of LLVM's prefetch


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(context: Any, states: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        matrix = make_array(sig.args[0])(context, builder, arguments[0])
        stride, size = builder.extract_value(matrix.strides, 0), builder.extract_value(matrix.shape, 1)
        row = context.cast(builder, arguments[1], sig.args[1], types.intp)
        first = builder.gep(builder.bitcast(matrix.data, _IR_BYTE_POINTER), [builder.mul(row, stride)])
        function_type = ir.FunctionType(ir.VoidType(), [_IR_BYTE_POINTER, _IR_INT32, _IR_INT32, _IR_INT32])
        prefetch = get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        flags = [ir.Constant(_IR_INT32, flag) for flag in (_PREFETCH_WRITE, _PREFETCH_LOCALITY, _PREFETCH_DATA_CACHE)]
        rounded_up = builder.add(size, ir.Constant(size.type, CACHE_LINE_FLOATS - 1))
        lines = builder.udiv(rounded_up, ir.Constant(size.type, CACHE_LINE_FLOATS))
        with for_range(builder, lines) as loop:
            pointer = builder.gep(first, [builder.mul(loop.index, ir.Constant(loop.index.type, 8 * CACHE_LINE_FLOATS))])
            builder.call(prefetch, [pointer, *flags])
        return context.get_dummy_value()

    return types.none(states, row), generate


@kernel
def prefetch_row(states: Any, row: int) -> None:
    """Start fetching a row of the states without waiting for it."""
    _prefetch(states, row)
