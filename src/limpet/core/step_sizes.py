"""Step sizes ρ_t: how far each accepted point moves the parameters.

A step size is a compiled rule (t, parameters) → ρ_t and its parameters. The three here share one rule,
ρ_t = scale · (t + shift)^(−power), capped at 1; a new rule is a class with another `rule`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from limpet._jit.compile import kernel
from limpet._jit.math import exp, log, minimum
from limpet._jit.simd import all_lanes, select
from limpet._registry import Registry
from limpet._validation import check_positive
from limpet.core.state import Vector


@kernel
def polynomial_decay(t: float, parameters: Vector) -> float:
    """Return scale · (t + shift)^(−power), at most 1; t counts valid points."""
    scale, shift, power = parameters[0], parameters[1], parameters[2]
    if all_lanes(power == 0.0):
        return scale
    if all_lanes(power == 1.0):
        return minimum(scale / (t + shift), 1.0)
    rho = select(power == 1.0, scale / (t + shift), scale * exp(-power * log(t + shift)))
    return select(power == 0.0, scale, minimum(rho, 1.0))


class StepSize(ABC):
    """Base class of step sizes: frozen dataclasses, registered by name."""

    rule: ClassVar[Callable[[float, Vector], float]] = staticmethod(polynomial_decay)

    registry: ClassVar[Registry[StepSize]] = Registry("step size")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        StepSize.registry.add(cls)

    @property
    @abstractmethod
    def parameters(self) -> tuple[float, ...]:
        """Parameters of the rule, at most four."""


@dataclass(frozen=True)
class Constant(StepSize):
    """Constant ρ (the paper's choice): keeps adapting, never converges.

    Parameters
    ----------
    rho
        In (0, 1].

    Examples
    --------
    >>> Constant(0.01).parameters
    (0.01, 0.0, 0.0)
    >>> Constant.from_half_life(69).rho
    0.009995...
    """

    rho: float

    def __post_init__(self) -> None:
        check_positive("rho", self.rho, maximum=1.0)

    @classmethod
    def from_half_life(cls, half_life: float) -> Constant:
        """Return the ρ with which the weight of a point halves after `half_life` points."""
        check_positive("half_life", half_life)
        return cls(-math.expm1(-math.log(2.0) / half_life))

    @property
    def parameters(self) -> tuple[float, ...]:
        """scale = ρ, shift = power = 0."""
        return (self.rho, 0.0, 0.0)


@dataclass(frozen=True)
class InverseTime(StepSize):
    """ρ_t = 1/t: all points have equal weight; converges and cannot follow changes."""

    @property
    def parameters(self) -> tuple[float, ...]:
        """scale = power = 1, shift = 0."""
        return (1.0, 0.0, 1.0)


@dataclass(frozen=True)
class PolynomialDecay(StepSize):
    """ρ_t = scale·(t + t0)^−power; converges for ½ < power ≤ 1 (Cappé–Moulines 2009)."""

    power: float = 0.6
    t0: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_positive("power", self.power)
        check_positive("t0", self.t0, allow_zero=True)
        check_positive("scale", self.scale)

    @property
    def parameters(self) -> tuple[float, ...]:
        """scale, shift = t0, power."""
        return (self.scale, self.t0, self.power)
