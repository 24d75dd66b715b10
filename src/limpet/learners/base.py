"""Learners from bytes and files."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from limpet._registry import Registry
from limpet._validation import check_int, check_positive
from limpet.core.algorithm import OUTCOME_INVALID, OUTCOME_REJECTED
from limpet.core.state import N_INVALID, N_REJECTED, N_SEEN, Vector
from limpet.core.step_sizes import Constant, StepSize
from limpet.detection.alarm import Alarm
from limpet.exceptions import CheckpointError, InvalidInputError, NotFittedError
from limpet.learners import serialization
from limpet.learners._diagnostics import WarningOnce
from limpet.learners._engine import Engine, PlainEngine
from limpet.learners._fast_path import FastPath
from limpet.learners.input import Names, is_point, read_point, read_rows
from limpet.learners.results import Step, Trace, new_object
from limpet.learners.serialization import Serializable, from_json
from limpet.models.base import Model
from limpet.models.mixture import GaussianMixture

# What a learner has learnt, as attributes; which of them there are depends on the model.


class EstimatesMixin(ABC):
    """Mixtures have weights, means and covariances; regressions have coef and intercept."""

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

    @abstractmethod
    def _estimate(self, name: str) -> Any:
        """The estimate of this name; AttributeError if the model has no such thing."""


# The general scheme: any model, any step size, any norm. The other learners are settings of this one.

UpdateFunction = Callable[[Vector, Any], float]
REAL_TYPES = (float, int, np.integer, np.floating)


def _no_fast_path(buffer: Vector, y: Any) -> float:
    """Stands for the compiled update where there is none."""
    return math.nan


class StochasticApproximation(Serializable, EstimatesMixin):
    """Algorithm 1 for any model: θ ← θ − ρ_t·H(y), unless ‖H(y)‖ > γ.

    model: what to learn, one of `limpet.models` or your own. Default: one Gaussian.
    step_size: ρ_t, one of `limpet.core`. Default: Constant(0.01).
    gamma: the threshold γ; infinity switches it off. norm: how ‖H‖ is measured, one of the model's norms:
        "whitened" (in standard deviations), "mean" or "full" (as in the paper, in the units of the data).
    n_init: points the start is made from. warmup: points before the threshold acts.
    patience: points dropped in a row after which it does not act for another `warmup` points, so that no shift leaves
        the model deaf; 0, as in the paper: it always acts.
    seed: of the start. on_invalid: "skip" passes over points that cannot be used and counts them, "raise" raises.

    >>> import numpy as np
    >>> from limpet.models import PoissonMixture
    >>> counts = np.random.default_rng(0).poisson(4.0, 500)
    >>> counts[300] = 90
    >>> learner = StochasticApproximation(PoissonMixture(), Constant(0.02), gamma=5.0)
    >>> trace = learner.process(counts)
    >>> np.flatnonzero(trace.dropped), learner.means.round(1)
    (array([300]), array([[4.]]))
    """

    registry: ClassVar[Registry[StochasticApproximation]] = Registry("learner")
    settable_params: ClassVar[tuple[str, ...]] = ("on_invalid",)

    @property
    def mutable_params(self) -> tuple[str, ...]:
        """Settings that a state knows nothing of: a learner that differs in these alone can go on with it."""
        return ("gamma", "norm", "warmup", "patience", "on_invalid")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        StochasticApproximation.registry.add(cls)

    def __init__(
        self,
        model: Model | None = None,
        step_size: StepSize | None = None,
        gamma: float | None = math.inf,
        norm: str = "whitened",
        *,
        n_init: int = 10,
        warmup: int = 50,
        patience: int = 0,
        seed: int = 0,
        on_invalid: str = "skip",
    ) -> None:
        self.model = model if model is not None else GaussianMixture()
        self.step_size = step_size if step_size is not None else Constant(0.01)
        self.gamma, self.norm = gamma, norm
        self.n_init, self.warmup, self.patience, self.seed, self.on_invalid = n_init, warmup, patience, seed, on_invalid
        self._warnings = WarningOnce()
        self._check()
        self._engine: Engine | None = None
        self._names: Names | None = None
        self._latest_names: Names | None = None  # those of the latest input, kept once it has been learnt
        self._buffer: Vector = np.zeros(0)
        self._update_number: UpdateFunction = _no_fast_path
        self._update_vector: UpdateFunction = _no_fast_path

    def _check(self) -> None:
        if not isinstance(self.model, Model):
            raise InvalidInputError(f"model must be one of limpet.models or a Model of your own, not {self.model!r}")
        if not isinstance(self.step_size, StepSize):
            raise InvalidInputError(f"step_size must be one of limpet.core, not {self.step_size!r}")
        if (
            self.gamma is not None
            and check_positive("gamma", self.gamma, allow_infinite=True) != math.inf
            and not (0.0 < self.gamma * self.gamma < math.inf)
        ):
            raise InvalidInputError(f"gamma={self.gamma!r} cannot be squared: take other units, or norm='whitened'")
        for name, minimum in (("n_init", 1), ("warmup", 0), ("patience", 0), ("seed", 0)):
            check_int(name, getattr(self, name), minimum)
        if self.patience and not self.warmup:
            raise InvalidInputError(
                "patience lifts the threshold for as many points as the warm-up has: warmup must not be 0"
            )
        if self.on_invalid not in ("skip", "raise"):
            raise InvalidInputError(f"on_invalid must be 'skip' or 'raise', not {self.on_invalid!r}")
        if self.n_init < self.model.min_init_points:
            min_points = self.model.min_init_points
            self._warnings.warn_once(
                "few", f"{self.n_init} first points are few for this model: take n_init={min_points} or more"
            )

    # Learning

    def update(self, x: Any, y: float | None = None) -> Step:
        """Learns one point: a number, a sequence, a vector or a dict; for a regression, features x and target y."""
        if x.__class__ is float and y is None:
            compiled = self._update_number
        else:
            compiled, x = self._compiled_update_for(x, y)
        score = compiled(self._buffer, x)
        if score == score:  # learnt; NaN marks all the rest
            step = new_object(Step)  # Step(score), without the call
            step.score = score
            return step
        return (
            self._finish_update(x)
            if compiled is not _no_fast_path
            else self._update_via_process(self._read_point(x, y))
        )

    def _compiled_update_for(self, x: Any, y: float | None) -> tuple[UpdateFunction, Any]:
        """The compiled update that there is for this point, and the point as it takes it."""
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
        """The step of a point that the compiled update did not simply learn."""
        engine = self._require_engine
        outcome, step = engine.result_of_last_update()
        if outcome == OUTCOME_INVALID:  # it was left alone, so that it can still be refused
            return self._update_via_process(np.atleast_1d(x))
        if engine.self_recovering:
            return step
        if outcome == OUTCOME_REJECTED:
            self._warnings.check_lock_out(engine, depth=5)
        else:
            self._warnings.check_state(engine, depth=5)
        return step

    def _update_via_process(self, point: Vector) -> Step:
        """Through `process`: before the start, and for a point that cannot be used."""
        trace = self._process(point.reshape(1, -1))
        engine = self._require_engine
        has_no_compiled_update = self._update_number is _no_fast_path and self._update_vector is _no_fast_path
        if engine.started and has_no_compiled_update and len(engine.buffer.vector):
            self._buffer, compiled = engine.buffer.vector, engine.compiled_update()
            self._update_number, self._update_vector = (
                (compiled, _no_fast_path) if engine.width == 1 else (_no_fast_path, compiled)
            )
        self._warnings.check_unobserved(engine, depth=5)
        return trace.step(0)

    def fast_path(self) -> FastPath:
        """The shortest way for one point after another, without a `Step` for each: for use within other libraries."""
        if not self.started:
            raise NotFittedError("the model has not started yet: there is nothing to learn in place")
        if not len(self._buffer):
            raise InvalidInputError("a stream of a fleet is learnt by the fleet: its place in memory may change")
        return self._require_engine.fast_path()

    def handle_outcome(self, outcome: int) -> tuple[Alarm, ...]:
        """What follows from a point that was learnt in place and was not simply learnt: the alarms that it raised."""
        engine = self._require_engine
        if engine.self_recovering:
            return engine.result_of_last_update()[1].alarms
        if outcome == OUTCOME_REJECTED:
            self._warnings.check_lock_out(engine, depth=5)
        return ()

    def process(self, X: Any, y: Any = None, *, record: str | None = None) -> Trace:
        """Learns a batch, row by row, exactly as `update` would, and continues from there next time.

        X: (T,), (T, d), a dataframe or a list of dicts; y: (T,) targets, for a regression.
        record: the name of the estimate to keep after each row: "means", for a regression "coef".
        """
        if record not in (None, self.model.recordable):
            raise InvalidInputError(f"{type(self.model).__name__} can record {self.model.recordable!r}, not {record!r}")
        trace = self._process(self._read_rows(X, y), record)
        if self._engine is not None:
            self._warnings.check_batch(self._engine, trace)
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
                raise InvalidInputError(f"expected as many targets as rows, got {len(targets)} and {len(rows)}")
            rows = np.hstack([rows, targets])
        self._latest_names = names
        return rows

    def _expects_target(self, y: Any, method: str) -> bool:
        """Whether there is a target, which must be given if and only if the model learns from pairs."""
        if self.model.supervised and y is None:
            raise InvalidInputError(f"{type(self.model).__name__} learns from pairs: {method}(x, y)")
        if not self.model.supervised and y is not None:
            raise InvalidInputError(f"{type(self.model).__name__} learns from points alone: {method}(x), without y")
        return self.model.supervised

    def _suppress_warning(self, topic: str) -> None:
        """No warning on this topic: the caller tells of it himself."""
        self._warnings.issued_topics.add(topic)

    # The state

    def _make_engine(self, width: int) -> Engine:
        """The memory for points of this many numbers."""
        settings = (self.norm, self.n_init, self.warmup, self.patience, self.seed)
        return PlainEngine(self.model, width, self.step_size, self._effective_gamma(width), *settings)

    def _set_engine(self, engine: Engine) -> None:
        """From now on points are of the engine's width."""
        self._engine, self._buffer = engine, engine.buffer.vector

    def _effective_gamma(self, width: int) -> float:
        return math.inf if self.gamma is None else float(self.gamma)

    @property
    def _require_engine(self) -> Engine:
        if self._engine is None:
            raise NotFittedError("there is no estimate yet: not one point has come")
        return self._engine

    @property
    def _width(self) -> int:
        return 0 if self._engine is None else self._engine.width

    @property
    def _feature_width(self) -> int | None:
        return None if self._engine is None else self._width - self.model.supervised

    @property
    def state(self) -> Vector:
        """The flat state vector, read-only; empty before the first point. See `limpet.core.state`."""
        state = np.zeros(0) if self._engine is None else self._engine.buffer.flat[:]
        state.flags.writeable = False
        return state

    @property
    def started(self) -> bool:
        """Whether enough points have come for the model to start."""
        return self._engine is not None and self._engine.started

    @property
    def n_seen(self) -> int:
        """How many points have come, of any kind."""
        return self._count(N_SEEN)

    @property
    def n_rejected(self) -> int:
        """How many points the threshold rejected."""
        return self._count(N_REJECTED)

    @property
    def n_invalid(self) -> int:
        """How many points could not be used."""
        return self._count(N_INVALID)

    def _count(self, entry: int) -> int:
        return 0 if self._engine is None else int(self._engine.buffer.header[entry])

    @property
    def threshold(self) -> float | None:
        """The γ in force: the one given, or the model's own; None before the first point has shown the dimension."""
        return None if self._engine is None else self._effective_gamma(self._width)

    @property
    def feature_names(self) -> Names | None:
        """The names of the variables, if the data had any."""
        return self._names

    # Estimates

    def score(self, x: Any, y: Any = None) -> Any:
        """−log f(x; θ) of a point, or of each row of a batch; learns nothing. For a regression, −log f(y | x; θ)."""
        engine, single = self._require_engine, is_point(x, self._feature_width)
        rows = self._read_point(x, y).reshape(1, -1) if single else self._read_rows(x, y)
        if self.on_invalid == "raise":
            engine.raise_on_invalid(rows)
        scores = engine.score(rows)
        return float(scores[0]) if single else scores

    def score_only(self, x: Any, y: Any = None, *, far: float | None = None, independent: bool = False) -> Any:
        """What `update` would answer to a point, or `process` to a batch, if it came next; learns nothing.

        Score, whether it would be dropped and, on autopilot, p-value and `anomaly`. Nothing is said of changes, which
        are a matter of many points. Before the start it goes by the points that have come. far: another rate of false
        alarms than the learner's own, at most 0.1, for `anomaly`. alone: each row is judged by itself, as one of
        which nobody knows what came before it; otherwise as the one after the last that was learnt.
        """
        engine, single = self._require_engine, is_point(x, self._feature_width)
        rows = self._read_point(x, y).reshape(1, -1) if single else self._read_rows(x, y)
        if self.on_invalid == "raise":
            engine.raise_on_invalid(rows)
        trace = engine.score_only(rows, far, independent)
        return trace.step(0) if single else trace

    def predict(self, x: Any) -> Any:
        """The target that a regression expects at x, or at each row of a batch."""
        if not self.model.supervised:
            raise AttributeError(f"{type(self.model).__name__} does not predict; regressions do")
        theta, width = self._require_engine.theta(), self._feature_width
        single = is_point(x, width)
        rows, _ = (read_point if single else read_rows)(x, width, self._names)
        if np.isinf(rows).any():
            raise InvalidInputError("expected finite features (NaN marks a missing one), got an infinite one")
        predictions = self.model.predict(theta, rows.reshape(-1, self._width - 1))
        return float(predictions[0]) if single else predictions

    def _estimate(self, name: str) -> Any:
        if name not in self.model.estimates:
            available = ", ".join(self.model.estimates)
            raise AttributeError(f"{type(self.model).__name__} has no {name}; it has {available}")
        return self._require_engine.estimate(name)


StochasticApproximation.registry.add(StochasticApproximation)


def from_bytes(data: bytes) -> StochasticApproximation:
    """The learner that `to_bytes` was called on, ready to go on where it was."""
    header, state = serialization.unpack(bytes(data))
    learner = learner_from_config(header)
    if header["width"] is not None:
        learner._restore(header, state)
    return learner


def learner_from_config(header: dict[str, Any]) -> StochasticApproximation:
    """A learner with the settings that the header of a checkpoint tells, which has seen nothing."""
    learner_class = StochasticApproximation.registry[header["learner"]]
    try:
        return learner_class(**{name: from_json(value) for name, value in header["settings"].items()})
    except (TypeError, InvalidInputError) as error:  # altered, or written by a version with other settings
        raise CheckpointError(
            f"this {learner_class.__name__} has settings that do not fit this limpet: {error}"
        ) from None


def load(path: str | os.PathLike[str]) -> StochasticApproximation:
    """The learner that was saved to this file."""
    return from_bytes(Path(path).read_bytes())
