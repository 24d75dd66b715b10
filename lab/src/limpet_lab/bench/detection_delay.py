"""Delays: how many points after a change the alarm comes, for ours and for rivals at the same rate of false alarms.

A rival is a score, held against the threshold that it passes once in 1/far stable points; ADWIN is held to that rate by
its δ. The optimal CUSUM knows both laws, outliers included. Delays are medians; 1 is the first point of the new regime.
Then bursts: how often outliers in a row raise a change alarm, over how often 60 calm points do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from limpet._jit.compile import jit_entry_point
from limpet._optional import optional_import
from limpet._validation import FloatArray
from limpet.drift import KSWIN, RiverPageHinkley
from limpet_lab.bench._measurement import Figure
from limpet_lab.bench.false_alarm_rate import REACH
from limpet_lab.bench.false_alarm_rate import ours as alarms_of_ours

TITLE = "points until a change alarm, one variable, median; every method with as many false alarms"

FAR = 1e-4
BEFORE, AFTER = 2000, 2000  # points before the change, and after it
WINDOW = 60  # points in which a burst is evaluated


@dataclass(frozen=True)
class Kind:
    """A change of level by `shift` standard deviations, or of the standard deviation by a factor."""

    name: str
    shift: float
    scale: float
    goal: float | None = None
    """What ours may be, in multiples of the optimal CUSUM's."""


KINDS = (
    Kind(".5 sd", 0.5, 1.0, 2.0),
    Kind("1 sd", 1.0, 1.0, 2.0),
    Kind("2 sd", 2.0, 1.0, 2.0),
    Kind("3 sd", 3.0, 1.0, 2.0),
    Kind("5 sd", 5.0, 1.0),
    Kind("variance × 2", 0.0, math.sqrt(2.0)),
    Kind("variance × 4", 0.0, 2.0),
    Kind("variance ÷ 4", 0.0, 0.5, 2.0),
)
MOST_POINTS = {"5 sd": 6.0}

Scores = Callable[[FloatArray], FloatArray]


def stable(rng: np.random.Generator, n: int, share: float) -> FloatArray:
    """Normal points with outliers."""
    return with_outliers(rng, rng.standard_normal(n), share)


def changed(rng: np.random.Generator, kind: Kind, share: float) -> FloatArray:
    """A stream that changes after BEFORE points."""
    y = rng.standard_normal(BEFORE + AFTER)
    y[BEFORE:] = y[BEFORE:] * kind.scale + kind.shift
    return with_outliers(rng, y, share)


def with_outliers(rng: np.random.Generator, y: FloatArray, share: float) -> FloatArray:
    """Puts a uniform outlier in place of a share of the points."""
    out = rng.random(len(y)) < share
    y[out] = rng.uniform(-REACH, REACH, int(out.sum()))
    return y


def cusum(ratios: FloatArray, scores: FloatArray) -> None:
    """Page's statistic of log-likelihood ratios."""
    total = 0.0
    for t in range(len(ratios)):
        total = max(total, 0.0) + ratios[t]
        scores[t] = total


compiled_cusum = jit_entry_point(cusum, releases_gil=True)


def optimal(kind: Kind, share: float) -> Scores:
    """The CUSUM that knows the law before the change, the law after it, and the outliers'."""

    def density(y: FloatArray, shift: float, scale: float) -> FloatArray:
        normal = np.exp(-0.5 * ((y - shift) / scale) ** 2) / (scale * math.sqrt(2 * math.pi))
        return (1.0 - share) * normal + share * (np.abs(y) <= REACH) / (2.0 * REACH) + 1e-300

    def scores(y: FloatArray) -> FloatArray:
        ratios = np.log(density(y, kind.shift, kind.scale) / density(y, 0.0, 1.0))
        out = np.empty(len(y))
        compiled_cusum(ratios, out)
        return out

    return scores


def focus(clip: float = math.inf) -> Scores:
    """FOCuS for a mean that is not known and a variance that is, on clipped data."""
    with optional_import("FOCuS", "limpet-lab[rivals]"):
        from changepoint_online import Focus, Gaussian

    def scores(y: FloatArray) -> FloatArray:
        detector = Focus(Gaussian())
        out = np.empty(len(y))
        for t, value in enumerate(np.clip(y, -clip, clip).tolist()):
            detector.update(value)
            out[t] = detector.statistic()
        return out

    return scores


def adwin(delta: float) -> Scores:
    """Return 1 where river's ADWIN, checking at every point, detects a change."""
    with optional_import("this benchmark", "limpet-lab[bench]"):
        from river.drift import ADWIN

    def scores(y: FloatArray) -> FloatArray:
        detector, out = ADWIN(delta=delta, clock=1), np.empty(len(y))
        for t, value in enumerate(y.tolist()):
            detector.update(value)
            out[t] = float(detector.drift_detected)
        return out

    return scores


def threshold_at(scores: Scores, share: float, far: float, blocks: int) -> float:
    """What the score passes once in 1/far points: within as many, it stays below with probability 1/e."""
    rng = np.random.default_rng(12345)
    peaks = [np.nanmax(scores(stable(rng, round(1.0 / far), share))) for _ in range(blocks)]
    return float(np.quantile(peaks, math.exp(-1.0)))


def delta_at(share: float, far: float, points: int) -> float:
    """The δ at which ADWIN has this rate of detections, by halving its logarithm."""
    y = stable(np.random.default_rng(12345), points, share)
    low, high = -60.0, 0.0
    for _ in range(8):
        middle = 0.5 * (low + high)
        if adwin(math.exp(middle))(y).sum() > far * points:
            high = middle
        else:
            low = middle
    return math.exp(0.5 * (low + high))


def ours(far: float) -> Scores:
    """Ours, with nothing but the rate: 1 where there is an alarm."""
    return lambda y: alarms_of_ours(y[:, None], far).change.astype(float)


def median_delay(scores: Scores, threshold: float, kind: Kind, share: float, runs: int) -> float:
    """Over the runs that have no alarm before the change; AFTER without an alarm after it."""
    delays = []
    for seed in range(runs):
        alarms = scores(changed(np.random.default_rng(1000 + seed), kind, share)) > threshold
        if not alarms[:BEFORE].any():
            delays.append(int(alarms[BEFORE:].argmax()) + 1 if alarms[BEFORE:].any() else AFTER)
    return float(np.median(delays)) if delays else math.nan


def rivals(share: float, far: float, quick: bool) -> dict[str, tuple[Scores, float, int]]:
    """Name → score, threshold, runs."""
    few = 10 if quick else 60
    made: dict[str, tuple[Scores, float, int]] = {}
    delta = delta_at(share, far, 100_000 if quick else 500_000)
    made["ADWIN"] = (adwin(delta), 0.5, few)
    scored: dict[str, tuple[Scores, int]] = {
        "Page–Hinkley": (lambda y: RiverPageHinkley(delta=0.25, threshold=math.inf).process(y), 200),
        "KSWIN": (lambda y: KSWIN(alpha=0.0, window=300, stat=30).process(y), 40),
    }
    if find_spec("changepoint_online") is not None:  # under the GPL, and so no part of what `bench` installs
        scored |= {"FOCuS": (focus(), 60), "FOCuS, clipped at the true 3 sd": (focus(3.0), 60)}
    for name, (scores, blocks) in scored.items():
        threshold = threshold_at(scores, share, far, 20 if quick else blocks)
        made[name] = (scores, threshold, few)
    return made


def burst_rate(d: int, size: int, far: float, runs: int) -> float:
    """How often a burst of scattered outliers in a calm stream raises a change alarm within 60 points, over 60·far."""
    alarms = 0
    for seed in range(runs):
        rng = np.random.default_rng(50_000 + seed)
        rows = rng.standard_normal((500 + WINDOW, d))
        rows[500 : 500 + size] = rng.uniform(-REACH, REACH, (size, d))
        alarms += bool(alarms_of_ours(rows, far).change[500:].any())
    return alarms / runs / (WINDOW * far)


def delay_figures(share: float, quick: bool) -> list[Figure]:
    """Ours, the optimum and the rivals, for every kind of change."""
    figures = []
    runs = 60 if quick else 400
    others = rivals(share, FAR, quick)
    for kind in KINDS:
        label = f"{kind.name}, {share:.0%} outliers"
        best = optimal(kind, share)
        least = median_delay(best, threshold_at(best, share, FAR, 40 if quick else 400), kind, share, runs)
        our_delay = median_delay(ours(FAR), 0.5, kind, share, runs)
        figures.append(Figure(f"{label}: optimal CUSUM", least, "points"))
        at_most = kind.goal * least if kind.goal else MOST_POINTS.get(kind.name)
        figures.append(Figure(f"{label}: ours", our_delay, "points", at_most))
        theirs = {name: median_delay(*rival[:2], kind, share, rival[2]) for name, rival in others.items()}
        figures += [Figure(f"{label}: {name}", delay, "points") for name, delay in theirs.items()]
        quickest = min(delay for name, delay in theirs.items() if "true" not in name)
        rival = "the quickest rival" if "FOCuS" in theirs else "the quickest rival at hand (FOCuS is not installed)"
        figures.append(Figure(f"{label}: ours over {rival}", our_delay / quickest, "×", 1.0 if share else None))
    return figures


def measure(quick: bool) -> list[Figure]:
    """Delays on clean streams and with 5 % outliers; bursts."""
    figures = [figure for share in (0.0, 0.05) for figure in delay_figures(share, quick)]
    runs = 1000 if quick else 20_000
    for d in (1, 3):
        for size in (0, 1, 2, 3, 4, 6, 8):
            value = burst_rate(d, size, FAR, runs)
            figures.append(Figure(f"burst of {size}, d={d}", value, "× promised", 2.0))
    return figures
