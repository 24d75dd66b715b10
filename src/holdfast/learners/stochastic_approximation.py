"""The general scheme: any model, any step size, any norm. The other learners are settings of this one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from holdfast.alarms.alarm import Alarm
from holdfast.checks import require, require_whole
from holdfast.errors import BadInputError, NotStartedError
from holdfast.learners.engine import Engine
from holdfast.learners.estimates import Estimates
from holdfast.learners.in_place import InPlace
from holdfast.learners.keeping import Keeping
from holdfast.learners.plain_engine import PlainEngine
from holdfast.learners.reading import Names, is_point, read_point, read_rows
from holdfast.learners.step import Step, new
from holdfast.learners.trace import Trace
from holdfast.learners.warnings import Teller
from holdfast.models.base import Model
from holdfast.models.gaussian_mixture import GaussianMixture
from holdfast.registry import Registry
from holdfast.scheme.algorithm import REJECTED, UNUSABLE
from holdfast.scheme.state import BAD, DROPPED, SEEN, Vector
from holdfast.scheme.step_sizes import Constant, StepSize

Update = Callable[[Vector, Any], float]
REAL_NUMBERS = (float, int, np.integer, np.floating)


def _decline(cell: Vector, y: Any) -> float:
    """Stands for the compiled update where there is none."""
    return math.nan


class StochasticApproximation(Keeping, Estimates):
    """Algorithm 1 for any model: θ ← θ − ρ_t·H(y), unless ‖H(y)‖ > γ.

    model: what to learn, one of `holdfast.models` or your own. Default: one Gaussian.
    step_size: ρ_t, one of `holdfast.scheme`. Default: Constant(0.01).
    gamma: the threshold γ; infinity switches it off. norm: how ‖H‖ is measured, one of the model's norms:
        "whitened" (in standard deviations), "mean" or "full" (as in the paper, in the units of the data).
    n_init: points the start is made from. warmup: points before the threshold acts.
    patience: points dropped in a row after which it does not act for another `warmup` points, so that no shift leaves
        the model deaf; 0, as in the paper: it always acts.
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

    registry: ClassVar[Registry[StochasticApproximation]] = Registry("learner")
    changeable: ClassVar[tuple[str, ...]] = ("on_bad",)

    @property
    def retunable(self) -> tuple[str, ...]:
        """Settings that a state knows nothing of: a learner that differs in these alone can go on with it."""
        return ("gamma", "norm", "warmup", "patience", "on_bad")

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
        on_bad: str = "skip",
    ) -> None:
        self.model = model if model is not None else GaussianMixture()
        self.step_size = step_size if step_size is not None else Constant(0.01)
        self.gamma, self.norm = gamma, norm
        self.n_init, self.warmup, self.patience, self.seed, self.on_bad = n_init, warmup, patience, seed, on_bad
        self._teller = Teller()
        self._check()
        self._engine: Engine | None = None
        self._names: Names | None = None
        self._read_names: Names | None = None  # those of the latest input, kept once it has been learnt
        self._cell: Vector = np.zeros(0)
        self._update_number: Update = _decline
        self._update_vector: Update = _decline

    def _check(self) -> None:
        if not isinstance(self.model, Model):
            raise BadInputError(f"model must be one of holdfast.models or a Model of your own, not {self.model!r}")
        if not isinstance(self.step_size, StepSize):
            raise BadInputError(f"step_size must be one of holdfast.scheme, not {self.step_size!r}")
        if (
            self.gamma is not None
            and require("gamma", self.gamma, infinite=True) != math.inf
            and not (0.0 < self.gamma * self.gamma < math.inf)
        ):
            raise BadInputError(f"gamma={self.gamma!r} cannot be squared: take other units, or norm='whitened'")
        for name, least in (("n_init", 1), ("warmup", 0), ("patience", 0), ("seed", 0)):
            require_whole(name, getattr(self, name), least)
        if self.patience and not self.warmup:
            raise BadInputError(
                "patience lifts the threshold for as many points as the warm-up has: warmup must not be 0"
            )
        if self.on_bad not in ("skip", "raise"):
            raise BadInputError(f"on_bad must be 'skip' or 'raise', not {self.on_bad!r}")
        if self.n_init < self.model.least_points:
            enough = self.model.least_points
            self._teller.tell("few", f"{self.n_init} first points are few for this model: take n_init={enough} or more")

    # Learning

    def update(self, x: Any, y: float | None = None) -> Step:
        """Learns one point: a number, a sequence, a vector or a dict; for a regression, features x and target y."""
        if x.__class__ is float and y is None:
            compiled = self._update_number
        else:
            compiled, x = self._short_way(x, y)
        score = compiled(self._cell, x)
        if score == score:  # learnt; NaN marks all the rest
            step = new(Step)  # Step(score), without the call
            step.score = score
            return step
        return self._explain(x) if compiled is not _decline else self._long_way(self._read_point(x, y))

    def _short_way(self, x: Any, y: float | None) -> tuple[Update, Any]:
        """The compiled update that there is for this point, and the point as it takes it."""
        if y is None:
            if x.__class__ is int or isinstance(x, REAL_NUMBERS):
                return self._update_number, float(x)
            if type(x) is np.ndarray and x.dtype == np.float64 and x.flags.c_contiguous and x.shape == (self._width,):
                return self._update_vector, x
        if self._update_vector is not _decline:
            return self._update_vector, self._read_point(x, y)
        if self._update_number is not _decline:
            return self._update_number, float(self._read_point(x, y)[0])
        return _decline, x

    def _explain(self, x: float | Vector) -> Step:
        """The step of a point that the compiled update did not simply learn."""
        engine = self._open_engine
        fate, step = engine.answer()
        if fate == UNUSABLE:  # it was left alone, so that it can still be refused
            return self._long_way(np.atleast_1d(x))
        if engine.rescues:
            return step
        if fate == REJECTED:
            self._teller.look_for_lock_out(engine, depth=5)
        else:
            self._teller.look_at(engine, depth=5)
        return step

    def _long_way(self, point: Vector) -> Step:
        """Through `process`: before the start, and for a point that cannot be used."""
        trace = self._process(point.reshape(1, -1))
        engine = self._open_engine
        waits = self._update_number is _decline and self._update_vector is _decline
        if engine.started and waits and len(engine.cell.vector):
            self._cell, compiled = engine.cell.vector, engine.compiled_update()
            self._update_number, self._update_vector = (
                (compiled, _decline) if engine.width == 1 else (_decline, compiled)
            )
        self._teller.look_for_silence(engine, depth=5)
        return trace.step(0)

    def in_place(self) -> InPlace:
        """The shortest way for one point after another, without a `Step` for each: for use within other libraries."""
        if not self.started:
            raise NotStartedError("the model has not started yet: there is nothing to learn in place")
        if not len(self._cell):
            raise BadInputError("a stream of a fleet is learnt by the fleet: its place in memory may change")
        return self._open_engine.in_place()

    def follow_up(self, fate: int) -> tuple[Alarm, ...]:
        """What follows from a point that was learnt in place and was not simply learnt: the alarms that it raised."""
        engine = self._open_engine
        if engine.rescues:
            return engine.answer()[1].alarms
        if fate == REJECTED:
            self._teller.look_for_lock_out(engine, depth=5)
        return ()

    def process(self, X: Any, y: Any = None, *, record: str | None = None) -> Trace:
        """Learns a batch, row by row, exactly as `update` would, and continues from there next time.

        X: (T,), (T, d), a dataframe or a list of dicts; y: (T,) targets, for a regression.
        record: the name of the estimate to keep after each row: "means", for a regression "coef".
        """
        if record not in (None, self.model.recorded):
            raise BadInputError(f"{type(self.model).__name__} can record {self.model.recorded!r}, not {record!r}")
        trace = self._process(self._read_rows(X, y), record)
        if self._engine is not None:
            self._teller.look_at_batch(self._engine, trace)
        return trace

    def _process(self, rows: Vector, record: str | None = None) -> Trace:
        if self._engine is None and not len(rows):
            return Trace(np.zeros(0), np.zeros(0, np.int8), {record: np.zeros(0)} if record else {})
        engine = self._engine or self._make_engine(rows.shape[1])
        if self.on_bad == "raise":
            engine.refuse_bad(rows)
        if self._engine is None:
            self._open(engine)
        self._names = self._names or self._read_names
        engine.names = self._names
        return engine.process(rows, record)

    def _read_point(self, x: Any, y: Any) -> Vector:
        point, names = read_point(x, self._feature_width, self._names)
        if self._takes_pairs(y, "update"):
            point = np.append(point, read_point(y, 1, None)[0])
        self._read_names = names
        return point

    def _read_rows(self, X: Any, y: Any) -> Vector:
        rows, names = read_rows(X, self._feature_width, self._names)
        if self._takes_pairs(y, "process"):
            targets, _ = read_rows(y, 1, None)
            if len(targets) != len(rows):
                raise BadInputError(f"expected as many targets as rows, got {len(targets)} and {len(rows)}")
            rows = np.hstack([rows, targets])
        self._read_names = names
        return rows

    def _takes_pairs(self, y: Any, method: str) -> bool:
        """Whether there is a target, which must be given if and only if the model learns from pairs."""
        if self.model.supervised and y is None:
            raise BadInputError(f"{type(self.model).__name__} learns from pairs: {method}(x, y)")
        if not self.model.supervised and y is not None:
            raise BadInputError(f"{type(self.model).__name__} learns from points alone: {method}(x), without y")
        return self.model.supervised

    def _is_told_elsewhere(self, topic: str) -> None:
        """No warning on this topic: the caller tells of it himself."""
        self._teller.told.add(topic)

    # The state

    def _make_engine(self, width: int) -> Engine:
        """The memory for points of this many numbers."""
        settings = (self.norm, self.n_init, self.warmup, self.patience, self.seed)
        return PlainEngine(self.model, width, self.step_size, self._effective_gamma(width), *settings)

    def _open(self, engine: Engine) -> None:
        """From now on points are of the engine's width."""
        self._engine, self._cell = engine, engine.cell.vector

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
        state = np.zeros(0) if self._engine is None else self._engine.cell.flat[:]
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
    def threshold(self) -> float | None:
        """The γ in force: the one given, or the model's own; None before the first point has shown the dimension."""
        return None if self._engine is None else self._effective_gamma(self._width)

    @property
    def variables(self) -> Names | None:
        """The names of the variables, if the data had any."""
        return self._names

    # Estimates

    def score(self, x: Any, y: Any = None) -> Any:
        """−log f(x; θ) of a point, or of each row of a batch; learns nothing. For a regression, −log f(y | x; θ)."""
        engine, single = self._open_engine, is_point(x, self._feature_width)
        rows = self._read_point(x, y).reshape(1, -1) if single else self._read_rows(x, y)
        if self.on_bad == "raise":
            engine.refuse_bad(rows)
        scores = engine.score(rows)
        return float(scores[0]) if single else scores

    def assess(self, x: Any, y: Any = None, *, far: float | None = None, alone: bool = False) -> Any:
        """What `update` would answer to a point, or `process` to a batch, if it came next; learns nothing.

        Score, whether it would be dropped and, on autopilot, p-value and `anomaly`. Nothing is said of changes, which
        are a matter of many points. Before the start it goes by the points that have come. far: another rate of false
        alarms than the learner's own, at most 0.1, for `anomaly`. alone: each row is judged by itself, as one of
        which nobody knows what came before it; otherwise as the one after the last that was learnt.
        """
        engine, single = self._open_engine, is_point(x, self._feature_width)
        rows = self._read_point(x, y).reshape(1, -1) if single else self._read_rows(x, y)
        if self.on_bad == "raise":
            engine.refuse_bad(rows)
        trace = engine.assess(rows, far, alone)
        return trace.step(0) if single else trace

    def predict(self, x: Any) -> Any:
        """The target that a regression expects at x, or at each row of a batch."""
        if not self.model.supervised:
            raise AttributeError(f"{type(self.model).__name__} does not predict; regressions do")
        theta, width = self._open_engine.theta(), self._feature_width
        single = is_point(x, width)
        rows, _ = (read_point if single else read_rows)(x, width, self._names)
        if np.isinf(rows).any():
            raise BadInputError("expected finite features (NaN marks a missing one), got an infinite one")
        predictions = self.model.predict(theta, rows.reshape(-1, self._width - 1))
        return float(predictions[0]) if single else predictions

    def _estimate(self, name: str) -> Any:
        if name not in self.model.estimates:
            offered = ", ".join(self.model.estimates)
            raise AttributeError(f"{type(self.model).__name__} has no {name}; it has {offered}")
        return self._open_engine.estimate(name)


StochasticApproximation.registry.add(StochasticApproximation)
