"""Numbers of one stream side by side: what is done to each of several numbers, done to all of them at once.

A logarithm of lanes takes as long as that of one number, and has the same bits in each (`scheme.lanes`). These are
kernels, and not the intrinsics that they are made of, for the sake of Numba's cache: see `scheme.compiling`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from holdfast.scheme.columns import lane_view
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import log
from holdfast.scheme.lanes import LANES, float_lanes
from holdfast.scheme.state import Vector


@intrinsic  # type: ignore[untyped-decorator]
def pack4(context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Lanes of four numbers; what the others hold is not said."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        lanes = ir.Constant(float_lanes.vector, ir.Undefined)
        for i, number in enumerate(arguments):
            lanes = builder.insert_element(lanes, number, ir.Constant(ir.IntType(32), i))
        return lanes

    return float_lanes(*(types.float64,) * 4), generate


@intrinsic  # type: ignore[untyped-decorator]
def unpack4(context: Any, lanes: Any) -> Any:
    """The numbers in the first four lanes."""
    tuple_type = types.UniTuple(types.float64, 4)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        numbers = [builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), i)) for i in range(4)]
        return context.make_tuple(builder, tuple_type, numbers)

    return tuple_type(float_lanes), generate


@intrinsic  # type: ignore[untyped-decorator]
def gather_lanes(context: Any, vector: Any, offset: Any) -> Any:
    """The lanes vector[at : at + LANES], read number by number: those that have just been written are at hand so, while
    a whole register of them would have to wait until all have arrived in memory."""

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
    """The lanes vector[at : at + LANES], of which some have just been written."""
    return gather_lanes(vector, offset)


@kernel
def load_lanes(vector: Vector, offset: int) -> Any:
    """The lanes vector[at : at + LANES]."""
    return lane_view(vector, offset)[0]


@kernel
def store_lanes(vector: Vector, offset: int, lanes: Any) -> None:
    """vector[at : at + LANES] ← lanes."""
    lane_view(vector, offset)[0] = lanes


@kernel
def log3(a: float, b: float, c: float) -> tuple[float, float, float]:
    """The logarithms of three numbers."""
    x, y, z, _ = unpack4(log(pack4(a, b, c, c)))
    return x, y, z
