"""Check parameters: constraints, their tables, and conversions of numbers.

The module loads without NumPy, so that the command line can read constraints and still start instantly.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from limpet._format import join_names, truncate
from limpet.exceptions import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float64]
else:
    FloatArray = Any


class Constraint(ABC):
    """The values that a parameter may have. As a string: what the value must be."""

    @abstractmethod
    def accepts(self, value: Any) -> bool:
        """Return whether a parameter may have this value."""

    def __or__(self, other: Constraint) -> AnyOf:
        return AnyOf(self, other)


class Interval(Constraint):
    """Numbers of one type between two bounds, of which None is no bound.

    Integers satisfy `float` as well; booleans satisfy neither type. Infinity satisfies only a closed bound.

    >>> str(Interval(float, 0, None, closed="neither")), str(Interval(int, 1, None))
    ('a finite number above 0', 'an integer of at least 1')
    >>> Interval(float, 0, 1, closed="right").accepts(0), Interval(float, 0, math.inf).accepts(math.inf)
    (False, True)
    """

    def __init__(
        self,
        type: type[float] | type[int],
        low: float | None,
        high: float | None,
        *,
        closed: Literal["both", "left", "right", "neither"] = "both",
    ) -> None:
        self.type, self.low, self.high = type, low, high
        self._is_low_closed, self._is_high_closed = closed in ("both", "left"), closed in ("both", "right")

    def accepts(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, Integral if self.type is int else Real):
            return False
        above = operator.ge if self._is_low_closed else operator.gt
        below = operator.le if self._is_high_closed else operator.lt
        return (
            (math.isfinite(value) or value in (self.low, self.high))
            and (self.low is None or above(value, self.low))
            and (self.high is None or below(value, self.high))
        )

    def __str__(self) -> str:
        noun = "an integer" if self.type is int else "a number"
        bounds = []
        if self.low is not None and not math.isinf(self.low):
            bounds.append(f"{'of at least' if self._is_low_closed else 'above'} {_format_bound(self.low)}")
        if self.high is not None and not math.isinf(self.high):
            bounds.append(f"{'at most' if self._is_high_closed else 'below'} {_format_bound(self.high)}")
        elif self.type is float:
            noun = "a number" if self.high is not None and self._is_high_closed else "a finite number"
        return " ".join([noun, " and ".join(bounds)]).rstrip()


def _format_bound(bound: float) -> str:
    """Return a bound with all digits of an integer: 1048576, not 1.04858e+06."""
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


MAX_FAR = 0.1
FALSE_ALARM_RATE = Interval(float, 1e-12, MAX_FAR)  # `far`, per point


class Options(Constraint):
    """A few values, compared with `==` and by type.

    >>> str(Options("full", "diagonal")), Options("full", "diagonal").accepts("spherical")
    ("'full' or 'diagonal'", False)
    """

    def __init__(self, *values: Any) -> None:
        self.values = values

    def accepts(self, value: Any) -> bool:
        return any(isinstance(value, type(option)) and value == option for option in self.values)

    def __str__(self) -> str:
        return join_names(map(repr, self.values), "or")


class AnyOf(Constraint):
    """Values that satisfy one of several constraints: `a | b` is `AnyOf(a, b)`.

    >>> str(Interval(int, 1, None) | Options("auto"))
    "an integer of at least 1 or 'auto'"
    """

    def __init__(self, *constraints: Constraint) -> None:
        self.constraints = constraints

    def accepts(self, value: Any) -> bool:
        return any(constraint.accepts(value) for constraint in self.constraints)

    def __str__(self) -> str:
        return join_names(self.constraints, "or")


class Optional(AnyOf):
    """None, or a value that satisfies the constraint.

    >>> str(Optional(Interval(int, 1, None))), Optional(Interval(int, 1, None)).accepts(None)
    ('an integer of at least 1 or None', True)
    """

    def __init__(self, constraint: Constraint) -> None:
        super().__init__(constraint, Options(None))


def check_param(name: str, value: Any, constraint: Constraint) -> None:
    """Raise InvalidInputError if the value does not satisfy the constraint.

    >>> check_param("rho", 2.0, Interval(float, 0, 1, closed="right"))
    Traceback (most recent call last):
    limpet.exceptions.InvalidInputError: rho: must be a number above 0 and at most 1, got 2.0.
    """
    if not constraint.accepts(value):
        raise invalid_param_error(name, f"must be {constraint}", value)


def check_params(params: object, constraints: Mapping[str, Constraint]) -> None:
    """Check attributes of an object by a table."""
    for name, constraint in constraints.items():
        check_param(name, getattr(params, name), constraint)


def invalid_param_error(name: str, constraint: str, value: Any, advice: str = "") -> InvalidInputError:
    """Return the error for a parameter that does not satisfy a constraint.

    >>> print(invalid_param_error("season", "must be at least 2, or 0 for none", 1, "It counts the rows of a period."))
    season: must be at least 2, or 0 for none, got 1. It counts the rows of a period.
    """
    return InvalidInputError(f"{name}: {constraint}, got {truncate(repr(value), 200)}. {advice}".rstrip())


def check_floats(name: str, value: Any, *, allow_bool: bool = False) -> FloatArray:
    """Return a number or numbers as float64 in one layout, with one summation order."""
    import numpy as np

    try:
        values = np.asarray(value)
    except ValueError:  # rows of unequal length
        values = np.asarray(None)
    if values.dtype.kind not in ("iufb" if allow_bool else "iuf"):
        raise invalid_param_error(name, "must be a number or an array of numbers", value)
    return values.astype(np.float64, order="C")


def check_positive(
    name: str, value: Any, *, allow_zero: bool = False, maximum: float | None = None, allow_infinite: bool = False
) -> float:
    """Return a number above 0, or of at least 0, as a float.

    >>> check_positive("rho", 0.1, maximum=1.0)
    0.1
    """
    number = value.item() if getattr(value, "ndim", None) == 0 else value
    high = math.inf if allow_infinite else maximum
    if high is None:
        constraint = Interval(float, 0, None, closed="left" if allow_zero else "neither")
    else:
        constraint = Interval(float, 0, high, closed="both" if allow_zero else "right")
    check_param(name, number, constraint)
    return float(number)


def check_int(name: str, value: Any, minimum: int) -> int:
    """Return an integer of at least `minimum` as an int.

    >>> check_int("n_init", 10, 1)
    10
    """
    check_param(name, value, Interval(int, minimum, None))
    return int(value)
