"""Interface of models: compiled functions and the sizes of their arguments."""

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
    """Functions of one model for Algorithm 1: kernels on flat vectors.

    The initializations are plain functions.

    `theta` are the parameters, `y` is the point, `width` numbers, `hyper` are hyperparameters, `work` is the workspace,
    and `missing` is whether some (not all) of the point's coordinates are NaN.
    """

    layout: Layout
    width: int
    work_size: int

    evaluate: EvaluateKernel
    """(theta, y, hyper, work, missing) → −log f(y; θ). May store results in `work` for the other functions."""

    norms: Mapping[str, SquaredNormKernel]
    """name → (theta, y, hyper, work, missing) → ‖H‖². Called right after `evaluate`."""

    advance: AdvanceKernel
    """(theta, y, hyper, work, ρ, missing): θ ← θ − ρ·H. Called right after `evaluate`."""

    init: Callable[[Vector, Vector, Vector, int], None]
    """(points (n, width), theta, hyper, seed): fill theta from the first points; NaN marks missing values.

    A plain function: it runs once per stream.
    """

    init_batch: Callable[[Vector, Vector, Vector, int], None] | None = None
    """(points (m, n, width), thetas (m, size of theta), hyper, seed): `init` of m streams at once, with the same bits.

    It should release the interpreter's lock. Without it, streams are initialized one by one.
    """

    is_valid: Callable[[Vector], bool]
    """(y) → whether y is in the support of the model. NaN and infinity are checked before."""

    estimate: Callable[[Vector, Vector, Vector, Vector], None]
    """(theta, hyper, work, out): write the estimate that `process(record=…)` stores after each row."""

    estimate_shape: tuple[int, ...]

    health_index: int = -1
    """Index in theta of a number that is 0 unless `Model.health_message` must be called; −1 for no such entry."""

    handles_missing: bool
    """Whether `evaluate` integrates missing coordinates out; if not, an incomplete point is invalid."""

    n_fixed: int = 0
    """How many numbers at the beginning of theta are constant after the start."""

    lane_kernels: ModelKernels | None = None
    """The same for complete points, compiled for lanes (`limpet._jit.simd`); None for a model that branches on the
    point: its streams are processed sequentially."""


@kernel
def gradient_step(theta: Vector, y: Vector, hyper: Vector, work: Vector, rho: float, missing: bool) -> None:
    """Apply θ ← θ − ρH, for a model whose `evaluate` stores H in `work`."""
    for i in range(len(theta)):
        theta[i] -= rho * work[i]


@kernel
def full_norm(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
    """Return ‖H‖² over all of theta, for a model whose `evaluate` stores H in `work`."""
    total = 0.0
    for i in range(len(theta)):
        total += work[i] * work[i]
    return total


@kernel
def accept_all(y: Vector) -> bool:
    """Accept every finite point."""
    return True


@kernel
def identity_estimate(theta: Vector, hyper: Vector, work: Vector, out: Vector) -> None:
    """Write theta itself."""
    for i in range(len(theta)):
        out[i] = theta[i]
