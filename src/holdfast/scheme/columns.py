"""Vectors of lanes, and the way between them and the rows of a matrix of states.

`columns(block, at)` is a vector whose entry i is the lanes block[at + i·LANES : at + (i + 1)·LANES]. It can be indexed
and cut like the flat vectors that kernels know: to them it is the state of a stream, of which there are `LANES`.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import for_range
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import make_array

from holdfast.scheme.lanes import DOUBLE, INTEGER, LANES, floats


class _Columns(types.Type):
    """Where a vector of lanes begins."""

    def __init__(self) -> None:
        super().__init__(name="holdfast.columns")


columns_type = _Columns()


@register_model(_Columns)
class _ColumnsModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, DOUBLE.as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def columns(context: Any, block: Any, at: Any) -> Any:
    """The columns that begin at index `at` of a contiguous array of floats, which must outlive them."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        data = make_array(sig.args[0])(context, builder, arguments[0]).data
        return builder.gep(data, [context.cast(builder, arguments[1], sig.args[1], types.int64)])

    return columns_type(block, at), generate


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):  # type: ignore[misc]
    def generic(self, arguments: Any, named: Any) -> Any:
        if arguments[0] is not columns_type:
            return None
        if isinstance(arguments[1], types.misc.SliceType):
            return signature(columns_type, columns_type, types.slice2_type)
        return signature(floats, columns_type, types.int64)


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):  # type: ignore[misc]
    def generic(self, arguments: Any, named: Any) -> Any:
        return signature(types.none, columns_type, types.int64, floats) if arguments[0] is columns_type else None


def _place(builder: Any, column: Any, index: Any) -> Any:
    return builder.gep(column, [builder.mul(index, ir.Constant(INTEGER, LANES))])


def _pointer(builder: Any, column: Any, index: Any) -> Any:
    return builder.bitcast(_place(builder, column, index), floats.vector.as_pointer())


@lower_builtin(operator.getitem, columns_type, types.int64)  # type: ignore[untyped-decorator]
def _load(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    loaded = builder.load(_pointer(builder, *arguments), typ=floats.vector)
    loaded.align = 8
    return loaded


@lower_builtin(operator.setitem, columns_type, types.int64, floats)  # type: ignore[untyped-decorator]
def _store(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    column, index, value = arguments
    builder.store(value, _pointer(builder, column, index)).align = 8
    return context.get_dummy_value()


@lower_builtin(operator.getitem, columns_type, types.slice2_type)  # type: ignore[untyped-decorator]
def _cut(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    column, cut = arguments
    return _place(builder, column, context.make_helper(builder, sig.args[1], cut).start)


@intrinsic  # type: ignore[untyped-decorator]
def put_flags(context: Any, array: Any, at: Any, condition: Any) -> Any:
    """1 or 0 for each lane, in an array of bytes from index `at` on."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        data = make_array(sig.args[0])(context, builder, arguments[0]).data
        place = builder.gep(data, [context.cast(builder, arguments[1], sig.args[1], types.int64)])
        kind = ir.VectorType(ir.IntType(8), LANES)
        builder.store(builder.zext(arguments[2], kind), builder.bitcast(place, kind.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.none(array, at, condition), generate


# Rows and columns

QUAD = 4  # rows and numbers that are turned over at once
_FOUR = ir.VectorType(DOUBLE, QUAD)
_PAIRS = ([0, 4, 2, 6], [1, 5, 3, 7])
_HALVES = ([0, 1, 4, 5], [2, 3, 6, 7])


def _turned(builder: Any, rows: list[Any]) -> list[Any]:
    """Four vectors of four numbers, turned over."""
    mask = ir.VectorType(ir.IntType(32), QUAD)

    def mix(a: Any, b: Any, places: list[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(mask, places))

    (even, odd), (even_below, odd_below) = ([mix(rows[i], rows[i + 1], p) for p in _PAIRS] for i in (0, 2))
    return [mix(a, b, half) for half in _HALVES for a, b in ((even, even_below), (odd, odd_below))]


def _between_rows_and_columns(to_columns: bool) -> Any:
    """An intrinsic (states, streams, first, block, at, n, begin, end): the numbers begin … end − 1 of `LANES` rows of
    the states, those named from streams[first] on, to the columns at block[at], or back.

    n: the length of a row; it, begin and end are multiples of four.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def turn(
        context: Any, states: Any, streams: Any, first: Any, block: Any, at: Any, n: Any, begin: Any, end: Any
    ) -> Any:
        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            matrix, names, base = (make_array(sig.args[i])(context, builder, arguments[i]) for i in (0, 1, 3))
            first, at, n, begin, end = (
                context.cast(builder, arguments[i], sig.args[i], types.int64) for i in (2, 4, 5, 6, 7)
            )
            rows = []
            for lane in range(LANES):
                place = builder.gep(names.data, [builder.add(first, ir.Constant(INTEGER, lane))])
                name = context.cast(builder, builder.load(place), sig.args[1].dtype, types.int64)
                rows.append(builder.gep(matrix.data, [builder.mul(name, n)]))
            quads = builder.udiv(builder.sub(end, begin), ir.Constant(INTEGER, QUAD))
            with for_range(builder, quads) as loop:
                field = builder.add(begin, builder.mul(loop.index, ir.Constant(INTEGER, QUAD)))
                column = builder.gep(base.data, [builder.add(at, builder.mul(field, ir.Constant(INTEGER, LANES)))])
                for quad in range(0, LANES, QUAD):
                    by_row = [builder.gep(row, [field]) for row in rows[quad : quad + QUAD]]
                    by_field = [builder.gep(column, [ir.Constant(INTEGER, i * LANES + quad)]) for i in range(QUAD)]
                    sources, targets = (by_row, by_field) if to_columns else (by_field, by_row)
                    loaded = [builder.load(builder.bitcast(p, _FOUR.as_pointer()), align=8, typ=_FOUR) for p in sources]
                    for value, place in zip(_turned(builder, loaded), targets, strict=True):
                        builder.store(value, builder.bitcast(place, _FOUR.as_pointer()), align=8)
            return context.get_dummy_value()

        return types.none(states, streams, first, block, at, n, begin, end), generate

    return turn


rows_to_columns, columns_to_rows = _between_rows_and_columns(True), _between_rows_and_columns(False)
