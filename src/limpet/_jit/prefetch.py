"""Prefetch rows: memory latency is as long as the update of a stream."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import for_range, get_or_insert_function
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from limpet._jit.compile import kernel

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
        lines = builder.udiv(
            builder.add(size, ir.Constant(size.type, CACHE_LINE_FLOATS - 1)), ir.Constant(size.type, CACHE_LINE_FLOATS)
        )
        with for_range(builder, lines) as loop:
            pointer = builder.gep(first, [builder.mul(loop.index, ir.Constant(loop.index.type, 8 * CACHE_LINE_FLOATS))])
            builder.call(prefetch, [pointer, *flags])
        return context.get_dummy_value()

    return types.none(states, row), generate


@kernel
def prefetch_row(states: Any, row: int) -> None:
    """Start fetching a row of the states without waiting for it."""
    _prefetch(states, row)
