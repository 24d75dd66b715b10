"""The general scheme: any model, any step size, any norm. The other learners are settings of this one."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from holdfast.checks import require, require_whole
from holdfast.errors import BadInputError, CheckpointError, HoldfastWarning, NotStartedError
from holdfast.learners import checkpoint
from holdfast.learners.engine import Engine
from holdfast.learners.parameters import Parameters
from holdfast.learners.reading import Names, is_point, read_point, read_rows
from holdfast.learners.settings import from_json, to_json
from holdfast.learners.step import DroppedStep, Step, new
from holdfast.learners.trace import Trace
from holdfast.models.base import Model
from holdfast.models.gaussian_mixture import GaussianMixture
from holdfast.scheme.algorithm import REJECTED, UNUSABLE
from holdfast.scheme.state import BAD, DROPPED, SEEN, Vector
from holdfast.scheme.step_sizes import Constant, StepSize

FIXED = ("model", "step_size", "gamma", "norm", "n_init", "warmup", "seed")  # what the memory was laid out for


def _decline(cell: Vector, y: Any) -> float:
    """Stands for the compiled update where there is none."""
    return math.nan


class StochasticApproximation(Parameters):
    """Algorithm 1 for any model: θ ← θ − ρ_t·H(y), unless ‖H(y)‖ > γ.

    model: what to learn, one of `holdfast.models` or your own. Default: one Gaussian.
    step_size: ρ_t, one of `holdfast.scheme`. Default: Constant(0.01).
    gamma: the threshold γ; infinity switches it off. norm: how ‖H‖ is measured, one of the model's norms:
        "whitened" (in standard deviations), "mean" or "full" (as in the paper, in the units of the data).
    n_init: points the start is made from. warmup: points before the threshold acts.
    seed: of the start. on_bad: "skip" passes over points that cannot be used and counts them, "raise" raises.

    >>> import numpy as np
    >>> from holdfast.models import PoissonMixture
    >>> counts = np.random.default_rng(0).poisson(4.0, 500)
    >>> counts[300] = 90
    >>> learner = StochasticApproximation(PoissonMixture(), Constant(0.02), gamma=5.0)
    >>> trace = learner.process(counts)
    >>> np.flatnonzero(trace.dropped), learner.means.round(1)
    (array([300]), array([[4.]]))
    """

    kinds: ClassVar[dict[str, type[StochasticApproximation]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        StochasticApproximation.kinds[cls.__name__] = cls

    def __init__(
        self,
        model: Model | None = None,
        step_size: StepSize | None = None,
        gamma: float | None = math.inf,
        norm: str = "whitened",
        *,
        n_init: int = 10,
        warmup: int = 50,
        seed: int = 0,
        on_bad: str = "skip",
    ) -> None:
        self.model = model if model is not None else GaussianMixture()
        self.step_size = step_size if step_size is not None else Constant(0.01)
        self.gamma, self.norm = gamma, norm
        self.n_init, self.warmup, self.seed, self.on_bad = n_init, warmup, seed, on_bad
        self._check()
        self._engine: Engine | None = None
        self._names: Names | None = None
        self._told: set[str] = set()
        self._cell: Vector = np.zeros(0)
        self._update_number: Callable[[Vector, Any], float] = _decline
        self._update_vector: Callable[[Vector, Any], float] = _decline
        self._update_compiled = False

    def __setattr__(self, name: str, value: Any) -> None:
        # (Looking into __dict__ here would make every later look-up of an attribute slower.)
        if name in FIXED and getattr(self, "_engine", None) is not None and value != getattr(self, name):
            raise BadInputError(f"{name} is fixed once the first point has come; clone() makes a fresh learner")
        super().__setattr__(name, value)

    def _check(self) -> None:
        if not isinstance(self.model, Model):
            raise BadInputError(f"model must be one of holdfast.models or a Model of your own, not {self.model!r}")
        if not isinstance(self.step_size, StepSize):
            raise BadInputError(f"step_size must be one of holdfast.scheme, not {self.step_size!r}")
        if self.gamma is not None:
            require("gamma", self.gamma, infinite=True)
        for name, least in (("n_init", 1), ("warmup", 0), ("seed", 0)):
            require_whole(name, getattr(self, name), least)
        if self.on_bad not in ("skip", "raise"):
            raise BadInputError(f"on_bad must be 'skip' or 'raise', not {self.on_bad!r}")

    # Learning

    def update(self, x: Any, y: float | None = None) -> Step:
        """Learns one point: a number, a sequence, a vector or a dict; for a regression, features x and target y."""
        compiled = self._update_number if x.__class__ is float and y is None else self._compiled_update(x, y)
        score = compiled(self._cell, x)
        if score == score:  # learnt; NaN marks all the rest
            step = new(Step)  # Step(score), without the call
            step.score = score
            return step
        if compiled is not _decline:
            fate, score = self._open_engine.answer()
            if fate != UNUSABLE:
                return DroppedStep(score) if fate == REJECTED else Step(score)
        trace = self._process(self._read_point(x, y).reshape(1, -1))
        if self.started and not self._update_compiled:
            self._compile_update()
        score = float(trace.score[0])
        return DroppedStep(score) if trace.dropped[0] else Step(score)

    def _compiled_update(self, x: Any, y: float | None) -> Callable[[Vector, Any], float]:
        """The compiled update that can take x as it is, if there is one."""
        if y is None and isinstance(x, float):
            return self._update_number
        plain = isinstance(x, np.ndarray) and x.dtype == np.float64 and x.flags.c_contiguous and x.ndim == 1
        return self._update_vector if y is None and plain and len(x) == self._width else _decline

    def _compile_update(self) -> None:
        """From now on `update` goes the short way, unless it takes pairs."""
        self._update_compiled = True
        if self.model.supervised:
            return
        if self._width == 1:
            self._update_number = self._open_engine.compiled_update()
        else:
            self._update_vector = self._open_engine.compiled_update()

    def process(self, X: Any, y: Any = None, *, record: str | None = None) -> Trace:
        """Learns a batch, row by row, exactly as `update` would, and continues from there next time.

        X: (T,), (T, d), a dataframe or a list of dicts; y: (T,) targets, for a regression.
        record: the name of the estimate to keep after each row: "means", for a regression "coef".
        """
        if record not in (None, self.model.recorded):
            raise BadInputError(f"{type(self.model).__name__} can record {self.model.recorded!r}, not {record!r}")
        trace = self._process(self._read_rows(X, y), record)
        n_bad = int(np.count_nonzero(trace.bad))
        if n_bad:
            first = int(np.flatnonzero(trace.bad)[0])
            tell(f"{n_bad} of {len(trace)} rows could not be used and were skipped, the first of them row {first}")
        trouble = self.model.trouble(self._open_engine.cell.theta, self._width) if self.started else None
        if trouble and trouble not in self._told:
            self._told.add(trouble)
            tell(trouble)
        return trace

    def _process(self, rows: Vector, record: str | None = None) -> Trace:
        if self._engine is None and not len(rows):
            return Trace(np.zeros(0), np.zeros(0, np.int8), {record: np.zeros(0)} if record else {})
        engine = self._engine or self._open(rows.shape[1])
        if self.on_bad == "raise":
            engine.refuse_bad(rows)
        return engine.process(rows, record)

    def _read_point(self, x: Any, y: Any) -> Vector:
        point, names = read_point(x, self._feature_width, self._names)
        if self._takes_pairs(y, "update"):
            point = np.append(point, read_point(y, 1, None)[0])
        self._names = names
        return point

    def _read_rows(self, X: Any, y: Any) -> Vector:
        rows, names = read_rows(X, self._feature_width, self._names)
        if self._takes_pairs(y, "process"):
            targets, _ = read_rows(y, 1, None)
            if len(targets) != len(rows):
                raise BadInputError(f"expected as many targets as rows, got {len(targets)} and {len(rows)}")
            rows = np.hstack([rows, targets])
        self._names = names
        return rows

    def _takes_pairs(self, y: Any, method: str) -> bool:
        """Whether there is a target, which must be given if and only if the model learns from pairs."""
        if self.model.supervised and y is None:
            raise BadInputError(f"{type(self.model).__name__} learns from pairs: {method}(x, y)")
        if not self.model.supervised and y is not None:
            raise BadInputError(f"{type(self.model).__name__} learns from points alone: {method}(x), without y")
        return self.model.supervised

    # The state

    def _open(self, width: int) -> Engine:
        """The memory for points of this many numbers, made when the first one comes."""
        gamma = self._effective_gamma(width)
        settings = (self.norm, self.n_init, self.warmup, self.seed)
        self._engine = Engine(self.model, width, self.step_size, gamma, *settings)
        self._cell = self._engine.cell.vector
        return self._engine

    def _effective_gamma(self, width: int) -> float:
        return math.inf if self.gamma is None else float(self.gamma)

    @property
    def _open_engine(self) -> Engine:
        if self._engine is None:
            raise NotStartedError("there is no estimate yet: not one point has come")
        return self._engine

    @property
    def _width(self) -> int:
        return 0 if self._engine is None else self._engine.width

    @property
    def _feature_width(self) -> int | None:
        return None if self._engine is None else self._width - self.model.supervised

    @property
    def state(self) -> Vector:
        """The flat state vector, read-only; empty before the first point. See `holdfast.scheme.state`."""
        state = np.zeros(0) if self._engine is None else self._engine.cell.state[:]
        state.flags.writeable = False
        return state

    @property
    def started(self) -> bool:
        """Whether enough points have come for the model to start."""
        return self._engine is not None and self._engine.started

    @property
    def n_seen(self) -> int:
        """How many points have come, of any kind."""
        return self._count(SEEN)

    @property
    def n_dropped(self) -> int:
        """How many points the threshold rejected."""
        return self._count(DROPPED)

    @property
    def n_bad(self) -> int:
        """How many points could not be used."""
        return self._count(BAD)

    def _count(self, entry: int) -> int:
        return 0 if self._engine is None else int(self._engine.cell.header[entry])

    @property
    def variables(self) -> Names | None:
        """The names of the variables, if the data had any."""
        return self._names

    # Estimates

    def score(self, x: Any, y: Any = None) -> Any:
        """−log f(x; θ) of a point, or of each row of a batch; learns nothing. For a regression, −log f(y | x; θ)."""
        engine, names = self._open_engine, self._names
        single = is_point(x, self._feature_width)
        try:
            rows = self._read_point(x, y).reshape(1, -1) if single else self._read_rows(x, y)
        finally:
            self._names = names
        scores = engine.score(rows)
        return float(scores[0]) if single else scores

    def predict(self, x: Any) -> Any:
        """The target that a regression expects at x, or at each row of a batch."""
        if not self.model.supervised:
            raise AttributeError(f"{type(self.model).__name__} does not predict; regressions do")
        theta, width = self._open_engine.theta(), self._feature_width
        single = is_point(x, width)
        rows, _ = (read_point if single else read_rows)(x, width, self._names)
        predictions = self.model.predict(theta, rows.reshape(-1, self._width - 1))
        return float(predictions[0]) if single else predictions

    @property
    def weights(self) -> Vector:
        """(K,): the weights of a mixture, which sum to 1."""
        return self._estimate("weights")  # type: ignore[no-any-return]

    @property
    def means(self) -> Vector:
        """(K, d): the means of a mixture."""
        return self._estimate("means")  # type: ignore[no-any-return]

    @property
    def covariances(self) -> Vector:
        """(K, d, d): the covariances of a mixture, always positive definite."""
        return self._estimate("covariances")  # type: ignore[no-any-return]

    @property
    def coef(self) -> Vector:
        """(p,): the coefficients of a regression."""
        return self._estimate("coef")  # type: ignore[no-any-return]

    @property
    def intercept(self) -> float:
        """The intercept of a regression."""
        return self._estimate("intercept")  # type: ignore[no-any-return]

    def _estimate(self, name: str) -> Any:
        if name not in self.model.estimates:
            offered = ", ".join(self.model.estimates)
            raise AttributeError(f"{type(self.model).__name__} has no {name}; it has {offered}")
        return self.model.estimate(name, self._open_engine.theta(), self._width)

    # Keeping

    def to_bytes(self) -> bytes:
        """The learner with all it has learnt, as bytes; `holdfast.from_bytes` makes it again."""
        header = {
            "learner": type(self).__name__,
            "settings": {name: to_json(value) for name, value in self.get_params().items()},
            "width": None if self._engine is None else self._width,
            "names": self._names,
        }
        return checkpoint.pack(header, self.state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the learner to a file, whole or not at all; `holdfast.load` reads it."""
        checkpoint.write(path, self.to_bytes())

    def __reduce__(self) -> tuple[Callable[[bytes], StochasticApproximation], tuple[bytes]]:
        return from_bytes, (self.to_bytes(),)


StochasticApproximation.kinds["StochasticApproximation"] = StochasticApproximation


def tell(message: str) -> None:
    """A warning, placed at the line that called the learner."""
    warnings.warn(message, HoldfastWarning, stacklevel=3)


def from_bytes(data: bytes) -> StochasticApproximation:
    """The learner that `to_bytes` was called on, ready to go on where it was."""
    header, state = checkpoint.unpack(bytes(data))
    kind = StochasticApproximation.kinds.get(header["learner"])
    if kind is None:
        raise CheckpointError(f"this holds a {header['learner']!r}, a learner that is not known here")
    settings = {name: from_json(value) for name, value in header["settings"].items()}
    try:
        learner = kind(**settings)
    except TypeError as error:  # written by a version with other settings
        raise CheckpointError(f"this {kind.__name__} has settings that this holdfast does not know: {error}") from None
    if header["width"] is not None:
        cell = learner._open(header["width"]).cell
        if len(cell.state) != len(state):
            raise CheckpointError(f"expected a state of {len(cell.state)} numbers, got {len(state)}")
        cell.state[:] = state
        learner._names = tuple(header["names"]) if header["names"] else None
    return learner


def load(path: str | os.PathLike[str]) -> StochasticApproximation:
    """The learner that was saved to this file."""
    return from_bytes(Path(path).read_bytes())
