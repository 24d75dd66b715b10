"""SIMD lanes: process `LANES` streams in one register with one kernel source.

A kernel is written once, for one stream. Compiled for a float it updates one stream; compiled for *lanes* the same
source updates `LANES` streams with the same operations on each, and so with the same bits. The difference: lanes cannot
branch separately. Kernels for both use `select` instead of `if`, and test `any_lane` and `all_lanes` before a branch
that all lanes take together.

For vectors of lanes see `limpet._jit.simd_transpose`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import get_or_insert_function
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import models, register_model

LANES = 8  # two registers of 256 bits, so that one works while the other waits; one of 512

IR_FLOAT64, IR_INT64, IR_BOOL = ir.DoubleType(), ir.IntType(64), ir.IntType(1)
INT_TO_FLOAT_SHIFT_BITS = 0x4338000000000000  # the bits of 1.5 · 2^52, to which an integer is added in its last bits
INT_TO_FLOAT_SHIFT = 6755399441055744.0


class _LanesType(types.Type):
    """Lanes of one element type; scalars are broadcast where they meet lanes."""

    def __init__(self, name: str, element: ir.Type, scalars: tuple[type, ...]) -> None:
        super().__init__(name=name)
        self.scalars, self.vector = scalars, ir.VectorType(element, LANES)

    def can_convert_from(self, context: Any, other: Any) -> Any:
        return Conversion.safe if isinstance(other, self.scalars) else None

    def unify(self, context: Any, other: Any) -> Any:
        """Return lanes for a variable that is a scalar on one path and lanes on another."""
        return self if isinstance(other, self.scalars) else None


float_lanes = _LanesType("limpet.lanes.floats", IR_FLOAT64, (types.Float, types.Integer))
int_lanes = _LanesType("limpet.lanes.integers", IR_INT64, (types.Integer,))
bool_lanes = _LanesType("limpet.lanes.flags", IR_BOOL, (types.Boolean,))


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, value_type: Any) -> None:
        super().__init__(manager, value_type, value_type.vector)


def _broadcast(builder: Any, number: Any) -> Any:
    vector = ir.VectorType(number.type, LANES)
    first_lane = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first_lane, ir.Constant(vector, ir.Undefined), zeros)


@lower_cast(types.Float, float_lanes)  # type: ignore[untyped-decorator]
@lower_cast(types.Integer, float_lanes)  # type: ignore[untyped-decorator]
def _cast_to_floats(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return _broadcast(builder, context.cast(builder, value, source, types.float64))


@lower_cast(types.Integer, int_lanes)  # type: ignore[untyped-decorator]
def _cast_to_integers(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return _broadcast(builder, context.cast(builder, value, source, types.int64))


@lower_cast(types.Boolean, bool_lanes)  # type: ignore[untyped-decorator]
def _cast_to_bools(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return _broadcast(builder, context.cast(builder, value, source, types.boolean))


def llvm_call(builder: Any, name: str, arguments: Any, result: Any = None) -> Any:
    """Call an LLVM intrinsic for scalars or lanes."""
    value_type = arguments[0].type
    element = getattr(value_type, "element", value_type)
    suffix = f"v{LANES}" if element is not value_type else ""
    suffix += "f64" if element == IR_FLOAT64 else f"i{element.width}"
    function_type = ir.FunctionType(result or value_type, [argument.type for argument in arguments])
    function = get_or_insert_function(builder.module, function_type, f"{name}.{suffix}")
    return builder.call(function, arguments)


# Arithmetic and comparisons


def _register_operation(function: Any, value_types: tuple[Any, ...], result: Any, generate: Callable[..., Any]) -> None:
    """Register a function for lanes of these types; scalar arguments are broadcast."""

    @infer_global(function)
    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, arguments: Any, named: Any) -> Any:
            if len(arguments) != len(value_types) or not any(
                a == k for a, k in zip(arguments, value_types, strict=True)
            ):
                return None
            is_match = all(
                a == k or isinstance(a, _scalar_types(k)) for a, k in zip(arguments, value_types, strict=True)
            )
            return signature(result, *value_types) if is_match else None

    @lower_builtin(function, *value_types)  # type: ignore[untyped-decorator]
    def lower(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return generate(builder, *arguments)


def _scalar_types(value_type: Any) -> tuple[type, ...]:
    if isinstance(value_type, _LanesType):
        return value_type.scalars
    return (types.Float, types.Integer) if value_type is types.float64 else ()


def _register_arithmetic() -> None:
    float_instructions = {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}
    integer_instructions = {"add": "add", "sub": "sub", "lshift": "shl", "rshift": "ashr"}
    for value_type, names in ((float_lanes, float_instructions), (int_lanes, integer_instructions)):
        for name, instruction in names.items():
            for function in (getattr(operator, name), getattr(operator, f"i{name}")):
                _register_operation(
                    function, (value_type, value_type), value_type, lambda b, x, y, i=instruction: getattr(b, i)(x, y)
                )
    _register_operation(operator.neg, (float_lanes,), float_lanes, lambda b, x: b.fneg(x))
    _register_operation(operator.and_, (bool_lanes, bool_lanes), bool_lanes, lambda b, x, y: b.and_(x, y))
    _register_operation(operator.or_, (bool_lanes, bool_lanes), bool_lanes, lambda b, x, y: b.or_(x, y))
    pair = (float_lanes, float_lanes)
    for name, sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=="}.items():
        compare = getattr(operator, name)
        _register_operation(compare, pair, bool_lanes, lambda b, x, y, s=sign: b.fcmp_ordered(s, x, y))
    _register_operation(operator.ne, pair, bool_lanes, lambda b, x, y: b.fcmp_unordered("!=", x, y))
    for function, name in ((math.sqrt, "llvm.sqrt"), (abs, "llvm.fabs")):
        _register_operation(function, (float_lanes,), float_lanes, lambda b, x, n=name: llvm_call(b, n, [x]))
    _register_operation(float, (int_lanes,), float_lanes, _integers_to_floats)


def _integers_to_floats(builder: Any, x: Any) -> Any:
    """Convert integers up to 2^51 exactly; only AVX-512 has an instruction for it."""
    bits = builder.add(x, _broadcast(builder, ir.Constant(IR_INT64, INT_TO_FLOAT_SHIFT_BITS)))
    shifted = builder.bitcast(bits, float_lanes.vector)
    return builder.fsub(shifted, _broadcast(builder, ir.Constant(IR_FLOAT64, INT_TO_FLOAT_SHIFT)))


_register_arithmetic()


# Choices


def select(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition holds, else b, without a branch."""
    return a if condition else b


def any_lane(condition: bool) -> bool:
    """Return whether a condition holds in any lane."""
    return condition


def all_lanes(condition: bool) -> bool:
    """Return whether a condition holds in every lane."""
    return condition


for _condition, _value in ((bool_lanes, float_lanes), (types.boolean, types.float64)):
    _register_operation(select, (_condition, _value, _value), _value, lambda b, c, x, y: b.select(c, x, y))
for _function, _name in ((any_lane, "or"), (all_lanes, "and")):
    _register_operation(_function, (types.boolean,), types.boolean, lambda b, condition: condition)
    _register_operation(
        _function,
        (bool_lanes,),
        types.boolean,
        lambda b, c, n=_name: llvm_call(b, f"llvm.vector.reduce.{n}", [c], IR_BOOL),
    )
