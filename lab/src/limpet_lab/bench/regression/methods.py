"""Regressions that learn from a stream, ours and those of river and scikit-learn, each with a grid of 24 settings.

All predict a row and then learn it, in one pass. What each needs it is given: river's features go through its
StandardScaler, scikit-learn's are standardised by the rows so far, and the target of both, if it is a number, is in
units of the median and the spread of its first rows, as SRA does internally.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limpet._optional import optional_import
from limpet._validation import FloatArray
from limpet.learners import SRA
from limpet.models import LinearRegression, LogisticRegression
from limpet.models._standardization import fit_location_scale
from limpet_lab.baselines.sklearn_sgd import compute_decisions, compute_probabilities

INIT_ROWS = 50  # rows that a frame is made of
PATIENCE_ROWS = 20  # rows rejected in a row, after which the threshold is lifted
PATIENT_SRA = f"SRA, patience {PATIENCE_ROWS}"
STEP_SIZES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
LABEL_STEP_SIZES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # for labels, whose gradients are never above 1
L2_PENALTIES = (0.0, 1e-3, 1e-2, 1e-1)
MIN_LABEL_PROBABILITIES = (0.1, 0.05, 0.02, 0.001)  # labels less likely than this are rejected
SKLEARN_MODELS = {
    "scikit-learn, Huber": ("SGDRegressor", "huber"),
    "scikit-learn, log loss": ("SGDClassifier", "log_loss"),
    "scikit-learn, modified Huber": ("SGDClassifier", "modified_huber"),
}

Follower = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Method:
    """A regression with its grid.

    make: (step, other setting) → a function that follows a stream and returns what it predicted. plain: the same with
    the defaults of its library. other: what the other setting is called. tuned_as: the name of another method, if the
    setting that was chosen for that one is taken.
    """

    name: str
    make: Callable[[float, float], Follower]
    steps: Sequence[float]
    other_name: str
    other_values: Sequence[float]
    default: Follower | None = None
    tuned_as: str = ""

    @property
    def grid(self) -> list[tuple[float, float]]:
        """All settings."""
        return [(step, other) for step in self.steps for other in self.other_values]


# How a stream is followed


def follow_sra(model: SRA, X: FloatArray, y: FloatArray) -> FloatArray:
    """Predict and learn a row at a time; NaN until the learner has started."""
    predicted = np.full(len(y), math.nan)
    for row, (x, target) in enumerate(zip(X, y.tolist(), strict=True)):
        if model.started:
            predicted[row] = model.predict(x)
        model.update(x, target)
    return predicted


def follow_river(model: Any, X: FloatArray, y: FloatArray, labels: bool = False) -> FloatArray:
    """Predict and learn a row at a time; labels as probabilities of 1."""
    predicted = np.empty(len(y))
    for row, (values, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        x = dict(enumerate(values))
        if labels:
            predicted[row] = model.predict_proba_one(x)[True]
            model.learn_one(x, target > 0.5)
        else:
            predicted[row] = model.predict_one(x)
            model.learn_one(x, target)
    return predicted


def make_sklearn_follower(name: str, loss: str, **settings: Any) -> Follower:
    """Return a follower of SGDRegressor or SGDClassifier, reimplemented; labels as probabilities of 1."""

    def follow(X: FloatArray, y: FloatArray) -> FloatArray:
        predictions = compute_decisions(make_sgd(name, loss, **settings), standardize_by_past(X), y)
        return predictions if loss == "huber" else compute_probabilities(predictions, loss)

    return scale_target(follow) if loss == "huber" else follow


def make_sgd(name: str, loss: str, **settings: Any) -> Any:
    """Return the library's model, to learn row after row."""
    from sklearn import linear_model

    return getattr(linear_model, name)(loss=loss, shuffle=False, random_state=0, **settings)


def standardize_by_past(X: FloatArray) -> FloatArray:
    """Subtract from each feature its mean, and divide by its standard deviation, both of the rows so far.

    >>> standardize_by_past(np.array([[1.0], [3.0], [2.0]])).round(2).ravel()
    array([0., 1., 0.])
    """
    count = np.arange(1.0, len(X) + 1.0)[:, None]
    centered = X - X[0]  # so that no digits are lost far from 0
    mean = np.cumsum(centered, axis=0) / count
    variance = np.cumsum(centered**2, axis=0) / count - mean**2
    return np.asarray((centered - mean) / np.sqrt(np.where(variance > 0.0, variance, 1.0)))


def scale_target(follow: Follower) -> Follower:
    """Return a follower of the target in units of the median and spread of its first rows."""

    def follow_scaled(X: FloatArray, y: FloatArray) -> FloatArray:
        center, scale = fit_location_scale(y[:INIT_ROWS, None])
        return np.asarray(center + scale * follow(X, (y - center) / scale))

    return follow_scaled


# The methods


def make_linear_methods() -> list[Method]:
    """Return the methods for targets that are numbers."""
    make_river_model, losses, _ = _import_libraries()

    def make_sra(rho: float, gamma: float, l2: float = 0.0, patience: int = 0) -> Follower:
        settings: dict[str, Any] = {"rho": rho, "gamma": gamma, "n_init": INIT_ROWS, "patience": patience}
        return lambda X, y: follow_sra(SRA(model=LinearRegression(l2=l2), **settings), X, y)

    def make_river_factory(
        loss: Callable[[float], Any], is_penalized: bool = False
    ) -> Callable[[float, float], Follower]:
        def make(step: float, other: float) -> Follower:
            settings = {"loss": loss(other), "intercept_lr": step, "l2": other if is_penalized else 0.0}
            return scale_target(lambda X, y: follow_river(make_river_model("LinearRegression", step, **settings), X, y))

        return make

    def make_sklearn_huber(step: float, epsilon: float) -> Follower:
        settings = {"learning_rate": "constant", "eta0": step, "epsilon": epsilon, "alpha": 0.0}
        return make_sklearn_follower("SGDRegressor", "huber", **settings)

    def make_default_river(loss: Callable[[], Any]) -> Follower:
        return scale_target(lambda X, y: follow_river(make_river_model("LinearRegression", None, loss=loss()), X, y))

    huber, cauchy = losses.Huber, losses.Cauchy
    gammas, epsilons = (3.0, 4.0, 6.0, 10.0), (0.03, 0.1, 0.3, 1.0)
    return [
        Method("SRA", make_sra, STEP_SIZES, "γ", gammas, make_default_sra(LinearRegression())),
        Method(
            PATIENT_SRA,
            lambda rho, gamma: make_sra(rho, gamma, patience=PATIENCE_ROWS),
            STEP_SIZES,
            "γ",
            gammas,
            make_default_sra(LinearRegression(), PATIENCE_ROWS),
            tuned_as="SRA",
        ),
        Method("SRA, no threshold", lambda rho, l2: make_sra(rho, math.inf, l2), STEP_SIZES, "l2", L2_PENALTIES),
        Method(
            "river, squared loss",
            make_river_factory(lambda _: losses.Squared(), is_penalized=True),
            STEP_SIZES,
            "l2",
            L2_PENALTIES,
            make_default_river(losses.Squared),
        ),
        Method("river, Huber", make_river_factory(huber), STEP_SIZES, "ε", epsilons, make_default_river(huber)),
        Method(
            "river, Cauchy",
            make_river_factory(cauchy),
            STEP_SIZES,
            "C",
            (0.1, 0.3, 1.0, 3.0),
            make_default_river(cauchy),
        ),
        Method(
            "scikit-learn, Huber",
            make_sklearn_huber,
            STEP_SIZES,
            "ε",
            epsilons,
            make_sklearn_follower("SGDRegressor", "huber"),
        ),
    ]


def make_logistic_methods() -> list[Method]:
    """Return the methods for labels."""
    make_river_model, _, _ = _import_libraries()

    def make_sra(rho: float, gamma: float, l2: float = 0.0, patience: int = 0) -> Follower:
        settings: dict[str, Any] = {"rho": rho, "gamma": gamma, "n_init": INIT_ROWS, "patience": patience}
        return lambda X, y: follow_sra(SRA(model=LogisticRegression(l2=l2), **settings), X, y)

    def make_rejecting_sra(rho: float, min_probability: float, patience: int = 0) -> Follower:
        return make_sra(rho, math.sqrt(1.0 / min_probability - 1.0), patience=patience)

    def make_river(step: float, l2: float) -> Follower:
        return lambda X, y: follow_river(
            make_river_model("LogisticRegression", step, intercept_lr=step, l2=l2), X, y, True
        )

    def make_sklearn_factory(loss: str) -> Callable[[float, float], Follower]:
        settings = {"learning_rate": "constant"}
        return lambda step, alpha: make_sklearn_follower("SGDClassifier", loss, eta0=step, alpha=alpha, **settings)

    return [
        Method(
            "SRA",
            make_rejecting_sra,
            LABEL_STEP_SIZES,
            "least probability",
            MIN_LABEL_PROBABILITIES,
            make_default_sra(LogisticRegression()),
        ),
        Method(
            PATIENT_SRA,
            lambda rho, min_probability: make_rejecting_sra(rho, min_probability, PATIENCE_ROWS),
            LABEL_STEP_SIZES,
            "least probability",
            MIN_LABEL_PROBABILITIES,
            make_default_sra(LogisticRegression(), PATIENCE_ROWS),
            tuned_as="SRA",
        ),
        Method("SRA, no threshold", lambda rho, l2: make_sra(rho, math.inf, l2), LABEL_STEP_SIZES, "l2", L2_PENALTIES),
        Method(
            "river, log loss",
            make_river,
            LABEL_STEP_SIZES,
            "l2",
            L2_PENALTIES,
            lambda X, y: follow_river(make_river_model("LogisticRegression", None), X, y, True),
        ),
        *(
            Method(
                name,
                make_sklearn_factory(loss),
                LABEL_STEP_SIZES,
                "l2",
                L2_PENALTIES,
                make_sklearn_follower(classifier, loss),
            )
            for name, (classifier, loss) in SKLEARN_MODELS.items()
            if loss != "huber"
        ),
    ]


def make_default_sra(model: LinearRegression | LogisticRegression, patience: int = 0) -> Follower:
    """Return a follower of SRA with its defaults, except for its patience."""
    return lambda X, y: follow_sra(SRA(rho=0.01, model=model, patience=patience), X, y)


def _import_libraries() -> tuple[Callable[..., Any], Any, Any]:
    """Return river's regressions behind its scaler, its losses; and scikit-learn, which must be installed too."""
    with optional_import("this benchmark", "limpet-lab[bench]"):
        import sklearn
        from river import linear_model, optim, preprocessing

    def make_river_model(name: str, step: float | None, **settings: Any) -> Any:
        optimizer = {} if step is None else {"optimizer": optim.SGD(step)}
        return preprocessing.StandardScaler() | getattr(linear_model, name)(**optimizer, **settings)

    return make_river_model, optim.losses, sklearn
