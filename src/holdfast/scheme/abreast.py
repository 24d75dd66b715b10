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

from holdfast.scheme.columns import columns
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import log
from holdfast.scheme.lanes import LANES, floats
from holdfast.scheme.state import Vector


@intrinsic  # type: ignore[untyped-decorator]
def side_by_side(context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Lanes of four numbers; what the others hold is not said."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        lanes = ir.Constant(floats.vector, ir.Undefined)
        for i, number in enumerate(arguments):
            lanes = builder.insert_element(lanes, number, ir.Constant(ir.IntType(32), i))
        return lanes

    return floats(*(types.float64,) * 4), generate


@intrinsic  # type: ignore[untyped-decorator]
def first_of(context: Any, lanes: Any) -> Any:
    """The numbers in the first four lanes."""
    four = types.UniTuple(types.float64, 4)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        numbers = [builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), i)) for i in range(4)]
        return context.make_tuple(builder, four, numbers)

    return four(floats), generate


@intrinsic  # type: ignore[untyped-decorator]
def one_by_one(context: Any, vector: Any, at: Any) -> Any:
    """The lanes vector[at : at + LANES], read number by number: those that have just been written are at hand so, while
    a whole register of them would have to wait until all have arrived in memory."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        data = make_array(sig.args[0])(context, builder, arguments[0]).data
        first = context.cast(builder, arguments[1], sig.args[1], types.int64)
        lanes = ir.Constant(floats.vector, ir.Undefined)
        for i in range(LANES):
            place = builder.gep(data, [builder.add(first, ir.Constant(ir.IntType(64), i))])
            lanes = builder.insert_element(lanes, builder.load(place), ir.Constant(ir.IntType(32), i))
        return lanes

    return floats(vector, at), generate


@kernel
def gathered(vector: Vector, at: int) -> Any:
    """The lanes vector[at : at + LANES], of which some have just been written."""
    return one_by_one(vector, at)


@kernel
def lanes_at(vector: Vector, at: int) -> Any:
    """The lanes vector[at : at + LANES]."""
    return columns(vector, at)[0]


@kernel
def put_lanes(vector: Vector, at: int, lanes: Any) -> None:
    """vector[at : at + LANES] ← lanes."""
    columns(vector, at)[0] = lanes


@kernel
def three_logs(a: float, b: float, c: float) -> tuple[float, float, float]:
    """The logarithms of three numbers."""
    x, y, z, _ = first_of(log(side_by_side(a, b, c, c)))
    return x, y, z
