"""What a model gives to the scheme: a handful of compiled functions and the sizes of what they work on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from limpet._jit.compile import kernel
from limpet.core.state import Layout, Vector

EvaluateKernel = Callable[[Vector, Vector, Vector, Vector, bool], float]
SquaredNormKernel = Callable[[Vector, Vector, Vector, Vector, bool], float]
AdvanceKernel = Callable[[Vector, Vector, Vector, Vector, float, bool], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelKernels:
    """One model, as Algorithm 1 sees it. All functions but the starts are compiled (`@kernel`), on flat vectors:

    theta: what is learnt. y: the point, `width` numbers. hyper: the model's fixed numbers. work: scratch.
    missing: whether some (not all) of the point's coordinates are NaN.
    """

    layout: Layout
    width: int
    work_size: int

    evaluate: EvaluateKernel
    """(theta, y, hyper, work, missing) → −log f(y; θ). May leave in `work` what the other functions need."""

    norms: Mapping[str, SquaredNormKernel]
    """name → (theta, y, hyper, work, missing) → ‖H‖², squared. Called right after `evaluate`."""

    advance: AdvanceKernel
    """(theta, y, hyper, work, ρ, missing): θ ← θ − ρ·H. Called right after `evaluate`."""

    init: Callable[[Vector, Vector, Vector, int], None]
    """(points (n, width), theta, hyper, seed): fills theta from the first points; NaN marks what is missing.

    An ordinary function: it runs once a stream.
    """

    init_batch: Callable[[Vector, Vector, Vector, int], None] | None = None
    """(points (m, n, width), thetas (m, theta's size), hyper, seed): `start` of m streams at once, with the same bits.

    Compiled, and without the interpreter's lock. A model that has none is started stream by stream.
    """

    is_valid: Callable[[Vector], bool]
    """(y) → whether the model can have produced such a point. NaN and infinity are dealt with before."""

    estimate: Callable[[Vector, Vector, Vector, Vector], None]
    """(theta, hyper, work, out): writes the estimate that `process(record=…)` keeps after each row."""

    estimate_shape: tuple[int, ...]

    health_index: int = -1
    """An entry of theta that is 0 until `Model.trouble` has something to say; −1 if there is none."""

    handles_missing: bool
    """Whether `evaluate` integrates missing coordinates out; if not, a point that misses some is a bad one."""

    n_fixed: int = 0
    """How many numbers at the beginning of theta never change once the model has started."""

    lane_kernels: ModelKernels | None = None
    """The same for points that miss nothing, compiled for many streams side by side (`scheme.lanes`); None for a model
    that takes branches of its own at each point: its streams are learnt one after another."""


@kernel
def gradient_step(theta: Vector, y: Vector, hyper: Vector, work: Vector, rho: float, missing: bool) -> None:
    """The step of Algorithm 1 to the letter, for a model whose `evaluate` leaves H in the first entries of `work`."""
    for i in range(len(theta)):
        theta[i] -= rho * work[i]


@kernel
def full_norm(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
    """‖H‖² over the whole state, for a model whose `evaluate` leaves H in the first entries of `work`."""
    total = 0.0
    for i in range(len(theta)):
        total += work[i] * work[i]
    return total


@kernel
def accept_all(y: Vector) -> bool:
    """Every finite point is possible."""
    return True


@kernel
def identity_estimate(theta: Vector, hyper: Vector, work: Vector, out: Vector) -> None:
    """The estimate is theta itself."""
    for i in range(len(theta)):
        out[i] = theta[i]
