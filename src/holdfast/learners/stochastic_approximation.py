"""The general scheme: any model, any step size, any norm. The other learners are settings of this one."""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from holdfast.errors import BadInputError, HoldfastWarning, NotStartedError
from holdfast.learners import checkpoint
from holdfast.learners.reading import Names, read_point, read_rows
from holdfast.learners.settings import from_json, to_json
from holdfast.learners.step import DroppedStep, Step, new
from holdfast.learners.trace import Trace
from holdfast.models.base import Model
from holdfast.models.gaussian_mixture import GaussianMixture
from holdfast.scheme.algorithm import HELD_FOR_START, HYPER, UNUSABLE, Algorithm, bind
from holdfast.scheme.compiling import announced, direct
from holdfast.scheme.functions import Functions
from holdfast.scheme.state import BAD, DROPPED, HELD, MISSING, SEEN, STARTED, Cell, Vector
from holdfast.scheme.step_sizes import Constant, StepSize

NAN = math.nan


def _decline(cell: Vector, y: Any) -> float:
    """Stands in for the compiled update until the model has started."""
    return NAN


class StochasticApproximation:
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
    (array([300]), array([[4.1]]))
    """

    kinds: ClassVar[dict[str, type[StochasticApproximation]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        StochasticApproximation.kinds[cls.__name__] = cls

    def __init__(
        self,
        model: Model | None = None,
        step_size: StepSize | None = None,
        gamma: float = math.inf,
        norm: str = "whitened",
        *,
        n_init: int = 10,
        warmup: int = 50,
        seed: int = 0,
        on_bad: str = "skip",
    ) -> None:
        self.model = model if model is not None else GaussianMixture()
        self.step_size = step_size if step_size is not None else Constant(0.01)
        self.gamma: float | None = gamma
        self.norm, self.n_init, self.warmup, self.seed, self.on_bad = norm, n_init, warmup, seed, on_bad
        self._check()
        self._names: Names | None = None
        self._cell: Cell | None = None
        self._vector: Vector = np.zeros(0)
        self._width = 0
        self._update_compiled = False
        self._update_number: Callable[[Vector, Any], float] = _decline
        self._update_vector: Callable[[Vector, Any], float] = _decline
        self._troubles: set[str] = set()

    def _check(self) -> None:
        if not isinstance(self.model, Model):
            raise BadInputError(f"model must be one of holdfast.models or a subclass of Model, not {self.model!r}")
        if not isinstance(self.step_size, StepSize):
            raise BadInputError(f"step_size must be one of holdfast.scheme, such as Constant(0.01), not {self.step_size!r}")
        if self.gamma is not None and not self.gamma > 0.0:
            raise BadInputError(f"gamma must be a positive number (math.inf switches it off), not {self.gamma!r}")
        for name, least in (("n_init", 1), ("warmup", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise BadInputError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if self.on_bad not in ("skip", "raise"):
            raise BadInputError(f"on_bad must be 'skip' or 'raise', not {self.on_bad!r}")

    # ------------------------------------------------------------------------------------------------ learning

    def update(self, x: Any, y: float | None = None) -> Step:
        """Learns one point: a number, a sequence, a vector or a dict; for a regression, features x and target y."""
        compiled = self._update_number if x.__class__ is float and y is None else self._compiled_update(x, y)
        score = compiled(self._vector, x)
        if score == score:  # learnt; NaN marks all the rest
            step = new(Step)  # Step(score), without the call
            step.score = score
            return step
        if compiled is not _decline:
            score = self._cell.work[-1]  # type: ignore[union-attr]
            if score == score:
                return DroppedStep(float(score))
        trace = self._process(self._read_point(x, y).reshape(1, -1), None)
        if self.started and not self._update_compiled:
            self._compile_update()
        score = float(trace.score[0])
        return DroppedStep(score) if trace.dropped[0] else Step(score)

    def _compiled_update(self, x: Any, y: float | None) -> Callable[[Vector, Any], float]:
        """The compiled update that can take x as it is, if there is one."""
        if y is None and isinstance(x, float):
            return self._update_number
        plain = isinstance(x, np.ndarray) and x.dtype == np.float64 and x.flags.c_contiguous
        return self._update_vector if y is None and plain and x.shape == (self._width,) else _decline

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
            self._warn(f"{n_bad} of {len(trace)} rows could not be used and were skipped, the first of them row {first}")
        if self._cell is not None and self.started:
            trouble = self.model.trouble(self._cell.theta, self._width)
            if trouble and trouble not in self._troubles:
                self._troubles.add(trouble)
                self._warn(trouble)
        return trace

    def _process(self, rows: Vector, record: str | None) -> Trace:
        cell = self._open(rows.shape[1])
        if self.on_bad == "raise":
            self._refuse_bad(rows)
        shape = self._functions.estimate_shape
        scores, fates = np.full(len(rows), NAN), np.full(len(rows), HELD_FOR_START, np.int8)
        estimates = np.full((len(rows) if record else 0, math.prod(shape)), NAN)
        first = 0
        while first < len(rows) and not self.started:
            fates[first] = self._hold(rows[first])
            first += 1
            if record and self.started:
                self._functions.estimate(cell.theta, cell.settings[HYPER:], cell.work, estimates[first - 1])
        if first < len(rows):
            with announced(self._title):
                self._algorithm.run(
                    cell.state, rows[first:], cell.settings, cell.work, scores[first:], fates[first:], estimates[first:]
                )
        recorded = {record: estimates.reshape(-1, *shape)} if record else {}
        return Trace(scores, fates, recorded)

    def _hold(self, row: Vector) -> int:
        """Keeps one of the first points; starts the model once there are enough of them."""
        assert self._cell is not None
        header = self._cell.header
        header[SEEN] += 1.0
        if self._algorithm.missing_coordinates(row) < 0:
            header[BAD] += 1.0
            return UNUSABLE
        held = int(header[HELD])
        # While a variable has not shown a single value the model cannot start: the latest points are kept.
        if held == self.n_init:
            self._cell.start[:-1] = self._cell.start[1:]
            held -= 1
        self._cell.start[held] = np.where(np.isnan(row), MISSING, row)
        header[HELD] = held + 1.0
        if held + 1 == self.n_init and not (self._cell.start == MISSING).all(axis=0).any():
            self._start(self._cell.start, self._cell.theta)
            self._cell.start[:] = 0.0
            header[HELD] = STARTED
        return HELD_FOR_START

    def _start(self, held: Vector, theta: Vector) -> None:
        points = np.where(held == MISSING, NAN, held)
        with announced(self._title):
            self._functions.start(points, theta, self.model.hyper(self._width), self.seed)

    def _compile_update(self) -> None:
        """From now on `update` goes the short way, unless it takes pairs."""
        self._update_compiled = True
        if self.model.supervised:
            return
        with announced(self._title):
            if self._width == 1:
                self._update_number = direct(self._algorithm.update, self._vector, 0.0)
            else:
                self._update_vector = direct(self._algorithm.update, self._vector, np.zeros(self._width))

    # ------------------------------------------------------------------------------------------------- reading

    def _read_point(self, x: Any, y: float | None) -> Vector:
        width = self._feature_width
        point, names = read_point(x, width, self._names)
        if self.model.supervised:
            if y is None:
                raise BadInputError(f"{type(self.model).__name__} learns from pairs: update(x, y)")
            point = np.append(point, read_point(y, 1, None)[0])
        elif y is not None:
            raise BadInputError(f"{type(self.model).__name__} learns from points alone: update(x), without y")
        self._names = names
        return point

    def _read_rows(self, X: Any, y: Any) -> Vector:
        rows, names = read_rows(X, self._feature_width, self._names)
        if self.model.supervised:
            if y is None:
                raise BadInputError(f"{type(self.model).__name__} learns from pairs: process(X, y)")
            targets, _ = read_rows(y, 1, None)
            if len(targets) != len(rows):
                raise BadInputError(f"expected as many targets as rows, got {len(targets)} and {len(rows)}")
            rows = np.hstack([rows, targets])
        elif y is not None:
            raise BadInputError(f"{type(self.model).__name__} learns from points alone: process(X), without y")
        self._names = names
        return rows

    def _refuse_bad(self, rows: Vector) -> None:
        for i, row in enumerate(rows):
            if self._algorithm.missing_coordinates(row) < 0:
                raise BadInputError(f"row {i} cannot be used: {row}; nothing of this call was learnt")

    # --------------------------------------------------------------------------------------------------- state

    def _open(self, width: int) -> Cell:
        """The memory for points of this many numbers, made when the first one comes."""
        if self._cell is None:
            functions = self.model.functions(width)
            if self.norm not in functions.norms:
                known = ", ".join(functions.norms)
                raise BadInputError(f"{type(self.model).__name__} has the norms {known}, not {self.norm!r}")
            step = np.zeros(4)
            step[: len(self.step_size.parameters)] = self.step_size.parameters
            gamma = self._effective_gamma(width)
            settings = np.concatenate([[gamma * gamma, self.warmup], step, self.model.hyper(width)])
            self._functions: Functions = functions
            self._algorithm: Algorithm = bind(functions, self.norm, type(self.step_size).rule, len(settings))
            self._width = width
            start_shape = (int(self.n_init), width)
            self._cell = Cell(settings, self._algorithm.work_size, functions.layout.size, start_shape)
            self._vector = self._cell.vector
        return self._cell

    def _effective_gamma(self, width: int) -> float:
        assert self.gamma is not None
        return float(self.gamma)

    @property
    def _feature_width(self) -> int | None:
        return None if self._cell is None else self._width - self.model.supervised

    @property
    def _title(self) -> str:
        return f"{type(self.model).__name__} ({self._width} variable{'s' * (self._width > 1)}, norm {self.norm})"

    @property
    def state(self) -> Vector:
        """The flat state vector, read-only; empty before the first point. See `holdfast.scheme.state`."""
        state = np.zeros(0) if self._cell is None else self._cell.state[:]
        state.flags.writeable = False
        return state

    @property
    def started(self) -> bool:
        """Whether enough points have come for the model to start."""
        return self._cell is not None and self._cell.header[HELD] == STARTED

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
        return 0 if self._cell is None else int(self._cell.header[entry])

    @property
    def variables(self) -> Names | None:
        """The names of the variables, if the data had any."""
        return self._names

    # ----------------------------------------------------------------------------------------------- estimates

    def score(self, x: Any, y: Any = None) -> Any:
        """−log f(x; θ) of a point, or of each row of a batch; learns nothing. For a regression, −log f(y | x; θ)."""
        theta = self._theta()
        single = isinstance(x, int | float | dict | np.number) or (self._feature_width != 1 and np.ndim(x) == 1)
        names = self._names
        try:
            rows = self._read_point(x, y).reshape(1, -1) if single else self._read_rows(x, y)
        finally:
            self._names = names
        assert self._cell is not None
        state = self._cell.state.copy()
        state[len(self._cell.header) :][: len(theta)] = theta
        scores = np.empty(len(rows))
        with announced(self._title):
            self._algorithm.score(state, rows, self._cell.settings, self._cell.work, scores)
        return float(scores[0]) if single else scores

    def predict(self, x: Any) -> Any:
        """The target that a regression expects at x, or at each row of a batch."""
        if not self.model.supervised:
            raise AttributeError(f"{type(self.model).__name__} does not predict; regressions do")
        theta, width = self._theta(), self._feature_width
        single = isinstance(x, int | float | dict | np.number) or (width != 1 and np.ndim(x) == 1)
        rows = read_point(x, width, self._names)[0] if single else read_rows(x, width, self._names)[0]
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
        return self.model.estimate(name, self._theta(), self._width)

    def _theta(self) -> Vector:
        """The parameters; before the start, those it would start with from the points it has."""
        if self._cell is not None and self.started:
            return self._cell.theta
        held = 0 if self._cell is None else int(self._cell.header[HELD])
        if self._cell is None or held == 0:
            raise NotStartedError("there is no estimate yet: not one usable point has come")
        points, theta = self._cell.start[:held], np.zeros_like(self._cell.theta)
        unseen = (points == MISSING).all(axis=0)
        self._start(np.where(unseen, 0.0, points), theta)
        return theta

    # ----------------------------------------------------------------------------------------------- keeping

    def to_bytes(self) -> bytes:
        """The learner with all it has learnt, as bytes; `holdfast.from_bytes` makes it again."""
        header = {
            "learner": type(self).__name__,
            "settings": {name: to_json(value) for name, value in self.get_params().items()},
            "width": None if self._cell is None else self._width,
            "names": self._names,
        }
        return checkpoint.pack(header, self.state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the learner to a file, whole or not at all; `holdfast.load` reads it."""
        checkpoint.write(path, self.to_bytes())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings it was made with, by name, as scikit-learn has it."""
        return {name: getattr(self, name) for name in inspect.signature(type(self).__init__).parameters if name != "self"}

    def clone(self) -> Self:
        """A learner with the same settings that has seen nothing."""
        return type(self)(**self.get_params())

    def __reduce__(self) -> tuple[Callable[[bytes], StochasticApproximation], tuple[bytes]]:
        return from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self).__init__).parameters
        given = {k: v for k, v in self.get_params().items() if repr(v) != repr(parameters[k].default)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @staticmethod
    def _warn(message: str) -> None:
        warnings.warn(message, HoldfastWarning, stacklevel=3)


StochasticApproximation.kinds["StochasticApproximation"] = StochasticApproximation


def from_bytes(data: bytes) -> StochasticApproximation:
    """The learner that `to_bytes` was called on, ready to go on where it was."""
    header, state = checkpoint.unpack(data)
    kind = StochasticApproximation.kinds.get(header["learner"])
    if kind is None:
        raise checkpoint.CheckpointError(f"this holds a {header['learner']!r}, a learner that is not known here")
    learner = kind(**{name: from_json(value) for name, value in header["settings"].items()})
    if header["width"] is not None:
        cell = learner._open(header["width"])
        if len(cell.state) != len(state):
            raise checkpoint.CheckpointError(f"expected a state of {len(cell.state)} numbers, got {len(state)}")
        cell.state[:] = state
        learner._names = tuple(header["names"]) if header["names"] else None
    return learner


def load(path: str | os.PathLike[str]) -> StochasticApproximation:
    """The learner that was saved to this file."""
    return from_bytes(Path(path).read_bytes())
