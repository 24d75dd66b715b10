"""Several streams side by side in one processor register: numbers that are `LANES` numbers at once.

A kernel is written once, for one stream. Compiled for a float it learns one stream; compiled for *lanes* the same
source learns `LANES` streams with the same operations on each, and so to the same bits. What is different: a lane
cannot take a branch of its own. Kernels that serve both choose with `where` instead of `if`, and ask `any_of` and
`all_of` before a branch that all lanes take together.

For vectors of lanes see `scheme.columns`.
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

DOUBLE, INTEGER, BIT = ir.DoubleType(), ir.IntType(64), ir.IntType(1)
INTEGER_IN_DOUBLE = 0x4338000000000000  # the bits of 1.5 · 2^52, to which an integer is added in its last bits
ONE_AND_A_HALF_TIMES_2_52 = 6755399441055744.0


class _Lanes(types.Type):
    """Lanes of one kind of element; floats and integers become lanes where they meet some."""

    def __init__(self, name: str, element: ir.Type, scalars: tuple[type, ...]) -> None:
        super().__init__(name=name)
        self.scalars, self.vector = scalars, ir.VectorType(element, LANES)

    def can_convert_from(self, context: Any, other: Any) -> Any:
        """A single number goes to every lane."""
        return Conversion.safe if isinstance(other, self.scalars) else None

    def unify(self, context: Any, other: Any) -> Any:
        """A variable that holds a number on one way and lanes on another holds lanes."""
        return self if isinstance(other, self.scalars) else None


floats = _Lanes("holdfast.lanes.floats", DOUBLE, (types.Float, types.Integer))
integers = _Lanes("holdfast.lanes.integers", INTEGER, (types.Integer,))
flags = _Lanes("holdfast.lanes.flags", BIT, (types.Boolean,))


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.vector)


def _spread(builder: Any, number: Any) -> Any:
    """The same number in every lane."""
    vector = ir.VectorType(number.type, LANES)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


@lower_cast(types.Float, floats)  # type: ignore[untyped-decorator]
@lower_cast(types.Integer, floats)  # type: ignore[untyped-decorator]
def _to_floats(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return _spread(builder, context.cast(builder, value, source, types.float64))


@lower_cast(types.Integer, integers)  # type: ignore[untyped-decorator]
def _to_integers(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return _spread(builder, context.cast(builder, value, source, types.int64))


@lower_cast(types.Boolean, flags)  # type: ignore[untyped-decorator]
def _to_flags(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return _spread(builder, context.cast(builder, value, source, types.boolean))


def llvm_call(builder: Any, name: str, arguments: Any, result: Any = None) -> Any:
    """One of LLVM's own functions, for numbers or for lanes of them."""
    kind = arguments[0].type
    element = getattr(kind, "element", kind)
    suffix = f"v{LANES}" if element is not kind else ""
    suffix += "f64" if element == DOUBLE else f"i{element.width}"
    function_type = ir.FunctionType(result or kind, [argument.type for argument in arguments])
    function = get_or_insert_function(builder.module, function_type, f"{name}.{suffix}")
    return builder.call(function, arguments)


# Arithmetic and comparisons


def _offer(function: Any, kinds: tuple[Any, ...], result: Any, generate: Callable[..., Any]) -> None:
    """Lanes of these kinds may be given to the function; plain numbers beside them are spread."""

    @infer_global(function)
    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, arguments: Any, named: Any) -> Any:
            if len(arguments) != len(kinds) or not any(a == k for a, k in zip(arguments, kinds, strict=True)):
                return None
            fits = all(a == k or isinstance(a, _plain(k)) for a, k in zip(arguments, kinds, strict=True))
            return signature(result, *kinds) if fits else None

    @lower_builtin(function, *kinds)  # type: ignore[untyped-decorator]
    def lower(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return generate(builder, *arguments)


def _plain(kind: Any) -> tuple[type, ...]:
    """The plain numbers that may be given instead."""
    if isinstance(kind, _Lanes):
        return kind.scalars
    return (types.Float, types.Integer) if kind is types.float64 else ()


def _arithmetic() -> None:
    of_floats = {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}
    of_integers = {"add": "add", "sub": "sub", "lshift": "shl", "rshift": "ashr"}
    for kind, names in ((floats, of_floats), (integers, of_integers)):
        for name, instruction in names.items():
            for function in (getattr(operator, name), getattr(operator, f"i{name}")):
                _offer(function, (kind, kind), kind, lambda b, x, y, i=instruction: getattr(b, i)(x, y))
    _offer(operator.neg, (floats,), floats, lambda b, x: b.fneg(x))
    _offer(operator.and_, (flags, flags), flags, lambda b, x, y: b.and_(x, y))
    _offer(operator.or_, (flags, flags), flags, lambda b, x, y: b.or_(x, y))
    for name, sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=="}.items():
        _offer(getattr(operator, name), (floats, floats), flags, lambda b, x, y, s=sign: b.fcmp_ordered(s, x, y))
    _offer(operator.ne, (floats, floats), flags, lambda b, x, y: b.fcmp_unordered("!=", x, y))
    for function, name in ((math.sqrt, "llvm.sqrt"), (abs, "llvm.fabs")):
        _offer(function, (floats,), floats, lambda b, x, n=name: llvm_call(b, n, [x]))
    _offer(float, (integers,), floats, _float_of_integers)


def _float_of_integers(builder: Any, x: Any) -> Any:
    """Exact up to 2^51, by arithmetic: processors before AVX-512 have no instruction for it."""
    bits = builder.add(x, _spread(builder, ir.Constant(INTEGER, INTEGER_IN_DOUBLE)))
    shifted = builder.bitcast(bits, floats.vector)
    return builder.fsub(shifted, _spread(builder, ir.Constant(DOUBLE, ONE_AND_A_HALF_TIMES_2_52)))


_arithmetic()


# Choices


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b; both are at hand already, so that no branch is needed."""
    return a if condition else b


def any_of(condition: bool) -> bool:
    """Whether it holds in any lane."""
    return condition


def all_of(condition: bool) -> bool:
    """Whether it holds in every lane."""
    return condition


_offer(where, (flags, floats, floats), floats, lambda b, condition, x, y: b.select(condition, x, y))
_offer(where, (types.boolean, types.float64, types.float64), types.float64, lambda b, c, x, y: b.select(c, x, y))
for _function, _name in ((any_of, "or"), (all_of, "and")):
    _offer(_function, (types.boolean,), types.boolean, lambda b, condition: condition)
    _offer(_function, (flags,), types.boolean, lambda b, c, n=_name: llvm_call(b, f"llvm.vector.reduce.{n}", [c], BIT))
