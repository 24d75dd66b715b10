"""Cases of the contract: learners and models with streams for them. A new learner or model is one more `Case`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import limpet as lp
from exponential import Exponential
from limpet.core import Constant, InverseTime, PolynomialDecay
from limpet.models import ConjugatePrior, GaussianMixture, LinearRegression, LogisticRegression, PoissonMixture


@dataclass(frozen=True)
class Case:
    """A learner and the kind of stream it is for: make(rng, n) → the arguments of `process`."""

    name: str
    learner: Callable[[], lp.StochasticApproximation]
    stream: Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]

    def __str__(self):
        return self.name


def gaussian(d):
    def stream(rng, n):
        y = rng.normal(size=(n, d)) + 4.0 * rng.integers(2, size=(n, 1))
        y[rng.random(n) < 0.05] += 30.0
        return (y,)

    return stream


def with_missing(rng, n):
    (y,) = gaussian(3)(rng, n)
    y[rng.random((n, 3)) < 0.2] = np.nan
    y[np.arange(n), rng.integers(3, size=n)] = 1.0
    return (y,)


def shifting(d, groups=1, nan_share=0.0, period=0):
    """A jump far beyond the threshold after three quarters, and outliers: alarms, and a re-initialization."""

    def stream(rng, n):
        y = rng.normal(size=(n, d)) + 8.0 * rng.integers(groups, size=(n, 1))
        if period:
            y += 5.0 * np.sin(2.0 * np.pi / period * np.arange(n))[:, None]
        y[3 * n // 4 :] += 40.0
        y[rng.random(n) < 0.03] -= 300.0
        missing = rng.random((n, d)) < nan_share
        missing[np.arange(n), rng.integers(d, size=n)] = False
        y[missing] = np.nan
        return (y,)

    return stream


def counts(rng, n):
    return (rng.poisson(3.0 + 20.0 * rng.integers(2, size=n)).astype(float),)


def counts_with_missing(rng, n):
    y = rng.poisson((3.0, 20.0), size=(n, 2)).astype(float)
    y[::7, 0] = np.nan
    y[3::7, 1] = np.nan
    return (y,)


def waiting_times(rng, n):
    return (rng.exponential(2.0, size=n),)


def pairs(rng, n):
    X = rng.normal(size=(n, 2)) * (1.0, 100.0)
    return X, X @ (2.0, -0.1) + rng.standard_t(2, size=n)


def labels(rng, n):
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(float)


CASES = [
    Case("detector", lambda: lp.Detector(), shifting(1)),
    Case("detector, compact", lambda: lp.Detector(far=1e-2, memory="compact"), shifting(1)),
    Case("detector, K=2", lambda: lp.Detector(2), shifting(1, groups=2)),
    Case("detector, d=3, gaps", lambda: lp.Detector(far=1e-2), shifting(3, nan_share=0.2)),
    Case("detector, d=3, diagonal", lambda: lp.Detector(far=1e-2, covariance="diagonal"), shifting(3, nan_share=0.1)),
    Case("detector, tied step", lambda: lp.Detector(beta=50.0), shifting(1)),
    Case("detector, season", lambda: lp.Detector(lags=2, season=6), shifting(1, period=6)),
    Case("SRA", lambda: lp.SRA(rho=0.01), gaussian(1)),
    Case("SRA, patience", lambda: lp.SRA(rho=0.02, gamma=3.0, warmup=12, patience=5), shifting(1)),
    Case("SRA of the paper", lambda: lp.SRA(2, 3.0, beta=0.1, M=5.0, norm="mean"), gaussian(1)),
    Case("SRA, d=3, full norm", lambda: lp.SRA(2, 300.0, 0.02, norm="full"), gaussian(3)),
    Case("SRA, d=3, gaps", lambda: lp.SRA(2, 6.0, half_life=30), with_missing),
    Case("SRA, diagonal", lambda: lp.SRA(2, rho=0.01, covariance="diagonal"), gaussian(3)),
    Case("SRA, penalty", lambda: lp.SRA(2, rho=0.01, penalty=ConjugatePrior(0.01, 0.01, 0.01)), gaussian(3)),
    Case("SEM", lambda: lp.SEM(2, rho=0.02), gaussian(1)),
    Case("IEM", lambda: lp.IEM(2), gaussian(1)),
    Case("SDEM", lambda: lp.SDEM(2, r=0.02, alpha=1.0), gaussian(3)),
    Case("power step", lambda: lp.StochasticApproximation(GaussianMixture(2), PolynomialDecay(0.7, 5.0)), gaussian(1)),
    Case("Poisson", lambda: lp.SRA(model=PoissonMixture(2), gamma=3.0), counts),
    Case("Poisson, d=2, gaps", lambda: lp.SRA(model=PoissonMixture(1), gamma=3.0), counts_with_missing),
    Case("exponential", lambda: lp.SRA(model=Exponential(), gamma=5.0), waiting_times),
    Case(
        "linear",
        lambda: lp.StochasticApproximation(LinearRegression(0.001), Constant(0.05), gamma=4.0),
        pairs,
    ),
    Case("logistic", lambda: lp.StochasticApproximation(LogisticRegression(0.001), InverseTime()), labels),
]
