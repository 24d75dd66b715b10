"""Base class of learners: update, score, estimates, counters, serialization."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from limpet._registry import Registry
from limpet._validation import Constraint, Options, check_param, check_params
from limpet.core.algorithm import OUTCOME_INVALID, OUTCOME_REJECTED
from limpet.core.state import N_INVALID, N_REJECTED, N_SEEN, Vector
from limpet.detection.alarm import Alarm
from limpet.exceptions import CheckpointError, InvalidInputError, NotFittedError
from limpet.learners import serialization
from limpet.learners._diagnostics import WarningOnce
from limpet.learners._engine import Engine, FastPath
from limpet.learners.input import Names, is_point, read_point, read_rows
from limpet.learners.results import Step, Trace, new_object
from limpet.learners.serialization import Serializable, from_json
from limpet.models.base import Model

UpdateFunction = Callable[[Vector, Any], float]
REAL_TYPES = (float, int, np.integer, np.floating)


def _no_fast_path(buffer: Vector, y: Any) -> float:
    """Stand in for the compiled update where none exists."""
    return math.nan


class Learner(Serializable):
    """Base class of all learners.

    A subclass validates its parameters, passes the model on to `__init__`, and makes the engine that holds the state
    and runs the compiled kernels.

    Parameters
    ----------
    model : Model
        The distribution family.
    n_init : int
        Points that the model is initialized from.
    seed : int
        Seed of the initialization.
    on_invalid : {"skip", "raise"}
        Whether invalid points (NaN, infinite, outside the model's support) are counted and not used, or raise an
        error.
    """

    registry: ClassVar[Registry[Learner]] = Registry("learner")
    constraints: ClassVar[dict[str, Constraint]]
    """What each parameter must be, by name."""

    _assignable_params: ClassVar[tuple[str, ...]] = ("on_invalid",)

    is_auto: ClassVar[bool] = False
    """Whether the learner adapts its settings itself, raises alarms and reports p-values."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Learner.registry.add(cls)

    def __init__(self, model: Model, n_init: int, seed: int, on_invalid: str) -> None:
        self.model = model
        self.n_init, self.seed, self.on_invalid = n_init, seed, on_invalid
        check_params(self, {k: v for k, v in self.constraints.items() if k != "norm"})  # the engine checks the norm
        self.warnings = WarningOnce()
        self._engine: Engine | None = None
        self._names: Names | None = None
        self._latest_names: Names | None = None  # of the latest input; kept once it has been learned
        self._buffer: Vector = np.zeros(0)
        self._update_number: UpdateFunction = _no_fast_path
        self._update_vector: UpdateFunction = _no_fast_path
        if n_init < (minimum := model.min_init_points):
            message = f"n_init: should be at least {minimum} for this model, got {n_init}."
            self.warnings.warn_once("few_init_points", message, n_init=n_init, min_init_points=minimum)

    @abstractmethod
    def _effective_gamma(self, width: int) -> float:
        """Return the threshold in force for points of `width` numbers."""

    # Learning

    def update(self, x: Any, y: float | None = None) -> Step:
        """Learn from one point.

        Parameters
        ----------
        x : float, sequence, 1-d array or dict
            The point; for a regression, the features.
        y : float, optional
            The target, for a regression.

        Returns
        -------
        Step
        """
        if x.__class__ is float and y is None:
            compiled = self._update_number
        else:
            compiled, x = self._compiled_update_for(x, y)
        score = compiled(self._buffer, x)
        if score == score:  # learned; NaN marks all the rest
            step = new_object(Step)  # Step(score), without the call
            step.score = score
            return step
        if compiled is not _no_fast_path:
            return self._finish_update(x)
        return self._update_via_process(self._read_point(x, y))

    def _compiled_update_for(self, x: Any, y: float | None) -> tuple[UpdateFunction, Any]:
        """Return the compiled update for this point and the point in the form it takes."""
        if y is None:
            if x.__class__ is int or isinstance(x, REAL_TYPES):
                return self._update_number, float(x)
            if type(x) is np.ndarray and x.dtype == np.float64 and x.flags.c_contiguous and x.shape == (self._width,):
                return self._update_vector, x
        if self._update_vector is not _no_fast_path:
            return self._update_vector, self._read_point(x, y)
        if self._update_number is not _no_fast_path:
            return self._update_number, float(self._read_point(x, y)[0])
        return _no_fast_path, x

    def _finish_update(self, x: float | Vector) -> Step:
        """Return the step of a point that the compiled update did not simply accept."""
        engine = self._require_engine
        outcome, step = engine.result_of_last_update()
        if outcome == OUTCOME_INVALID:  # the state is unchanged, so that it can still be refused
            return self._update_via_process(np.atleast_1d(x))
        if engine.self_recovering:
            return step
        if outcome == OUTCOME_REJECTED:
            self.warnings.check_lock_out(engine, depth=5)
        else:
            self.warnings.check_state(engine, depth=5)
        return step

    def _update_via_process(self, point: Vector) -> Step:
        """Process the point as a batch, before the start or if the point is invalid."""
        trace = self._process(point.reshape(1, -1))
        engine = self._require_engine
        has_no_compiled_update = self._update_number is _no_fast_path and self._update_vector is _no_fast_path
        if engine.started and has_no_compiled_update and len(engine.buffer.vector):
            self._buffer, compiled = engine.buffer.vector, engine.compiled_update()
            if engine.width == 1:
                self._update_number = compiled
            else:
                self._update_vector = compiled
        self.warnings.check_unobserved(engine, depth=5)
        return trace.step(0)

    def fast_path(self) -> FastPath:
        """Return an object that learns points without `Step`s, for other libraries."""
        if not self.started:
            raise NotFittedError(f"learner: must be initialized, got {self.n_seen} points. Call update first.")
        if not len(self._buffer):
            message = "a stream of a fleet has no fast path: its place in memory may change. Use Fleet.update."
            raise InvalidInputError(message)
        return self._require_engine.fast_path()

    def handle_outcome(self, outcome: int) -> tuple[Alarm, ...]:
        """Return the alarms of a point that the fast path did not simply accept."""
        engine = self._require_engine
        if engine.self_recovering:
            return engine.result_of_last_update()[1].alarms
        if outcome == OUTCOME_REJECTED:
            self.warnings.check_lock_out(engine, depth=5)
        return ()

    def process(self, X: Any, y: Any = None, *, record: str | None = None) -> Trace:
        """Learn from a batch, row by row, with the same bits as `update`.

        Parameters
        ----------
        X : array of shape (T,) or (T, d), dataframe, or list of dicts
            The points; for a regression, the features.
        y : array of shape (T,), optional
            The targets, for a regression.
        record : str, optional
            Name of the estimate to keep after each row: "means", for a regression "coef".

        Returns
        -------
        Trace
        """
        recordable = self.model.recordable
        if record not in (None, recordable):
            raise InvalidInputError(f"record: must be {recordable!r} for {type(self.model).__name__}, got {record!r}.")
        trace = self._process(self._read_rows(X, y), record)
        if self._engine is not None:
            self.warnings.check_batch(self._engine, trace)
        return trace

    def _process(self, rows: Vector, record: str | None = None) -> Trace:
        if self._engine is None and not len(rows):
            return Trace(np.zeros(0), np.zeros(0, np.int8), {record: np.zeros(0)} if record else {})
        engine = self._engine or self._make_engine(rows.shape[1])
        if self.on_invalid == "raise":
            engine.raise_on_invalid(rows)
        if self._engine is None:
            self._set_engine(engine)
        self._names = self._names or self._latest_names
        engine.names = self._names
        return engine.process(rows, record)

    def _read_point(self, x: Any, y: Any) -> Vector:
        point, names = read_point(x, self._feature_width, self._names)
        if self._expects_target(y, "update"):
            point = np.append(point, read_point(y, 1, None)[0])
        self._latest_names = names
        return point

    def _read_rows(self, X: Any, y: Any) -> Vector:
        rows, names = read_rows(X, self._feature_width, self._names)
        if self._expects_target(y, "process"):
            targets, _ = read_rows(y, 1, None)
            if len(targets) != len(rows):
                raise InvalidInputError(f"y: must have as many targets as X rows ({len(rows)}), got {len(targets)}.")
            rows = np.hstack([rows, targets])
        self._latest_names = names
        return rows

    def _expects_target(self, y: Any, method: str) -> bool:
        """Return whether the model learns from pairs; raise if `y` does not match that."""
        if self.model.supervised and y is None:
            raise InvalidInputError(f"y: required by {type(self.model).__name__}. Call {method}(x, y).")
        if not self.model.supervised and y is not None:
            raise InvalidInputError(f"y: {type(self.model).__name__} takes no target. Call {method}(x).")
        return self.model.supervised

    def suppress_warning(self, topic: str) -> None:
        """Do not warn of this topic: the caller reports it."""
        self.warnings.issued_topics.add(topic)

    # The state

    def _set_engine(self, engine: Engine) -> None:
        self._engine, self._buffer = engine, engine.buffer.vector

    @property
    def _require_engine(self) -> Engine:
        if self._engine is None:
            raise NotFittedError("learner: must have received a valid point, got none. Call update first.")
        return self._engine

    @property
    def _width(self) -> int:
        return 0 if self._engine is None else self._engine.width

    @property
    def _feature_width(self) -> int | None:
        return None if self._engine is None else self._width - self.model.supervised

    @property
    def state(self) -> Vector:
        """Flat, read-only state (`limpet.core.state`); empty before the first point."""
        state = np.zeros(0) if self._engine is None else self._engine.buffer.flat[:]
        state.flags.writeable = False
        return state

    @property
    def started(self) -> bool:
        """Whether the learner has received enough points to initialize its model."""
        return self._engine is not None and self._engine.started

    @property
    def n_seen(self) -> int:
        """Number of points received, of any kind."""
        return self._count(N_SEEN)

    @property
    def n_rejected(self) -> int:
        """Number of points rejected by the threshold."""
        return self._count(N_REJECTED)

    @property
    def n_invalid(self) -> int:
        """Number of points that could not be used."""
        return self._count(N_INVALID)

    def _count(self, entry: int) -> int:
        return 0 if self._engine is None else int(self._engine.buffer.header[entry])

    @property
    def gamma_(self) -> float | None:
        """Threshold γ in force; None before the first point, which shows the dimension."""
        return None if self._engine is None else self._effective_gamma(self._width)

    @property
    def feature_names(self) -> Names | None:
        """Names of the variables, if the data have any."""
        return self._names

    # Estimates

    def score(self, x: Any, y: Any = None) -> Any:
        """Return −log f(x; θ) of a point or of each row of a batch, without learning.

        For a regression, return −log f(y | x; θ). The Detector has a different score, from several estimates.
        """
        engine, rows, single = self._read_unlearned(x, y)
        scores = engine.score(rows)
        return float(scores[0]) if single else scores

    def score_only(self, x: Any, y: Any = None, *, far: float | None = None, independent: bool = False) -> Any:
        """Return results of `update` or `process` for the next points, without learning.

        `change` is always False: a change is detected from several points.

        Parameters
        ----------
        x, y
            A point or a batch, as `update` and `process` take them.
        far : float, optional
            False-alarm rate for `anomaly`, at most 0.1; the learner's own by default.
        independent : bool
            Whether to score each row without autocorrelation (not with `lags` or `season`); otherwise as the row that
            follows the last learned one.

        Returns
        -------
        Step or Trace
            For a Detector with p-values and `anomaly`.
        """
        engine, rows, single = self._read_unlearned(x, y)
        trace = engine.score_only(rows, far, independent)
        return trace.step(0) if single else trace

    def _read_unlearned(self, x: Any, y: Any) -> tuple[Engine, Vector, bool]:
        """Return the engine, the rows to score, and whether they are a single point."""
        engine, single = self._require_engine, is_point(x, self._feature_width)
        rows = self._read_point(x, y).reshape(1, -1) if single else self._read_rows(x, y)
        if self.on_invalid == "raise":
            engine.raise_on_invalid(rows)
        return engine, rows, single

    def predict(self, x: Any) -> Any:
        """Return the target that a regression expects at x, or at each row of a batch."""
        if not self.model.supervised:
            raise AttributeError(f"{type(self.model).__name__} has no predict; regressions have.")
        theta, width = self._require_engine.theta(), self._feature_width
        single = is_point(x, width)
        rows, _ = (read_point if single else read_rows)(x, width, self._names)
        if np.isinf(rows).any():
            raise InvalidInputError("x: features must be finite (NaN marks a missing value), got an infinite value.")
        predictions = self.model.predict(theta, rows.reshape(-1, self._width - 1))
        return float(predictions[0]) if single else predictions

    @property
    def weights(self) -> Vector:
        """Weights of a mixture, shape (K,); they sum to 1."""
        return self._estimate("weights")  # type: ignore[no-any-return]

    @property
    def means(self) -> Vector:
        """Means of a mixture, shape (K, d)."""
        return self._estimate("means")  # type: ignore[no-any-return]

    @property
    def covariances(self) -> Vector:
        """Covariances of a mixture, shape (K, d, d); always positive definite."""
        return self._estimate("covariances")  # type: ignore[no-any-return]

    @property
    def coef(self) -> Vector:
        """Coefficients of a regression, shape (p,)."""
        return self._estimate("coef")  # type: ignore[no-any-return]

    @property
    def intercept(self) -> float:
        """Intercept of a regression."""
        return self._estimate("intercept")  # type: ignore[no-any-return]

    def estimate(self, name: str) -> Any:
        """Return an estimate by name, of `model.estimates`, also of a custom model."""
        check_param("name", name, Options(*self.model.estimates))
        return self._require_engine.estimate(name)

    def _estimate(self, name: str) -> Any:
        if name not in self.model.estimates:
            available = ", ".join(self.model.estimates)
            raise AttributeError(f"{type(self.model).__name__} has no {name}; it has {available}.")
        return self.estimate(name)


def from_bytes(data: bytes) -> Learner:
    """Return the learner that `to_bytes` serialized, state included."""
    header, state = serialization.unpack(bytes(data))
    learner = learner_from_config(header)
    if header["width"] is not None:
        learner._restore(header, state)
    return learner


def learner_from_config(header: dict[str, Any]) -> Learner:
    """Return an untrained learner with the parameters in the header of a checkpoint."""
    learner_class = Learner.registry[header["learner"]]
    try:
        return learner_class(**{name: from_json(value) for name, value in header["settings"].items()})
    except (TypeError, InvalidInputError) as error:  # altered, or written by another version
        text = f"data: parameters of {learner_class.__name__} must fit this version: {str(error).rstrip('.')}."
        raise CheckpointError(text) from None


def load(path: str | os.PathLike[str]) -> Learner:
    """Return the learner saved in a file."""
    return from_bytes(Path(path).read_bytes())
