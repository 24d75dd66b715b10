"""Exponential and logarithm as plain arithmetic: the same bits everywhere.

The libraries that `math.exp` and `math.log` call differ between systems in the last bit, and a loop that
calls them cannot be vectorised. These are polynomials after the usual range reduction, correct to about one
unit in the last place (`tests/jit/test_math.py` checks 4e-16 relative), without branches.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from limpet._jit.compile import kernel
from limpet._jit.simd import float_lanes, int_lanes, llvm_call, select

NEGATIVE_ZERO = -0.0  # where a sum begins: x + (-0.0) is x for every x, so that the compiler leaves the addition out

LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01  # the leading bits of log 2: exact times any integer exponent
LN2_LOW = 1.90821492927058770002e-10
ROUNDING_SHIFT = 6755399441055744.0  # 1.5 · 2^52: adding it leaves the nearest integer in the low bits
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
ONE_BITS = 0x3FF0000000000000

MIN_EXP_ARGUMENT = -708.0  # below, the result is held at exp(-708) ≈ 3e-308: never a denormal, never zero
MAX_EXP_ARGUMENT = 709.0


def _make_bitcast(source: Any, source_lanes: Any, result: Any, result_lanes: Any) -> Any:
    """Make an intrinsic that reinterprets 64 bits, of a number or of lanes."""

    @intrinsic  # type: ignore[untyped-decorator]
    def bitcast(typing_context: Any, x: Any) -> Any:
        to, of = (result_lanes, source_lanes) if x is source_lanes else (result, source)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(to))

        return to(of), generate

    return bitcast


float_to_bits = _make_bitcast(types.float64, float_lanes, types.int64, int_lanes)
bits_to_float = _make_bitcast(types.int64, int_lanes, types.float64, float_lanes)


@intrinsic  # type: ignore[untyped-decorator]
def fma_intrinsic(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a·b + c, rounded once: one instruction, or equal bits without it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return llvm_call(builder, "llvm.fma", arguments)

    value_type = float_lanes if float_lanes in (a, b, c) else types.float64
    return value_type(value_type, value_type, value_type), generate


@kernel
def fma(a: float, b: float, c: float) -> float:
    """Return a·b + c, rounded once; callers can be cached (see `compile`)."""
    return fma_intrinsic(a, b, c)


@kernel
def maximum(x: float, lower: float) -> float:
    """Return the larger of two numbers, without a branch."""
    return select(x > lower, x, lower)


@kernel
def minimum(x: float, upper: float) -> float:
    """Return the smaller of two numbers, without a branch."""
    return select(x < upper, x, upper)


@kernel
def averaging_step(n: float, min_step: float) -> float:
    """Return max(1/n, min_step): the mean of n points, then an exponential average.

    The division is skipped where possible: it takes as long as the rest of an update.
    """
    return min_step if n * min_step >= 1.0 else 1.0 / n


@kernel
def exp(x: float) -> float:
    """Return e^x = 2^n · e^r with |r| ≤ log(2)/2, e^r by Chebyshev interpolation."""
    x = minimum(maximum(x, MIN_EXP_ARGUMENT), MAX_EXP_ARGUMENT)
    shifted = fma(x, LOG2_E, ROUNDING_SHIFT)
    power_of_two = bits_to_float((float_to_bits(shifted) << 52) + ONE_BITS)
    n = shifted - ROUNDING_SHIFT
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x))
    r2 = r * r
    low = fma(r2, fma(r, 0.16666666666666666, 0.5), 1.0 + r)
    middle = fma(
        r2, fma(r, 0.00019841269854330778, 0.0013888888905871355), fma(r, 0.008333333333332157, 0.041666666666651364)
    )
    high = fma(
        r2, fma(r, 2.5095545990395195e-08, 2.761379556582631e-07), fma(r, 2.755728008266902e-06, 2.4801536409043718e-05)
    )
    r4 = r2 * r2
    return fma(r4, fma(r4, high, middle), low) * power_of_two


@kernel
def log(x: float) -> float:
    """Return the natural logarithm of a positive, normal x.

    log x = e·log 2 + log m with m in [√½, √2), and log m = 2·artanh((m−1)/(m+1)).
    """
    bits = float_to_bits(x)
    exponent = (bits - SQRT_HALF_BITS) >> 52
    f = bits_to_float(bits - (exponent << 52)) - 1.0
    s = f / (2.0 + f)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    low = fma(z2, fma(z, 2 / 9, 2 / 7), fma(z, 2 / 5, 2 / 3))
    high = fma(z2, fma(z, 2 / 17, 2 / 15), fma(z, 2 / 13, 2 / 11))
    tail = z * fma(z4, fma(z4, fma(z, 2 / 21, 2 / 19), high), low)
    e = float(exponent)
    return fma(e, LN2_HIGH, fma(2.0, s, fma(s, tail, e * LN2_LOW)))
