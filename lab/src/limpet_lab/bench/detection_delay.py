"""Detection delay at an equal false-alarm rate, against baselines.

A baseline is a score with the threshold that it passes once in 1/far stable points; ADWIN gets that rate by its δ. The
optimal CUSUM knows both laws, outliers included. Delays are medians; 1 is the first point of the new regime. Then
bursts: how often outliers in a row raise a change alarm, over how often 60 stable points do.
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
from limpet_lab.bench.false_alarm_rate import OUTLIER_RANGE_SD
from limpet_lab.bench.false_alarm_rate import flag_detector_alarms as alarms_of_ours

TITLE = "points until a change alarm, one variable, median; every method with as many false alarms"

FALSE_ALARM_RATE = 1e-4
ROWS_BEFORE_CHANGE, ROWS_AFTER_CHANGE = 2000, 2000  # points before the change, and after it
BURST_WINDOW_ROWS = 60  # points in which a burst is evaluated


@dataclass(frozen=True)
class ChangeKind:
    """A change of level by `shift` standard deviations, or of the standard deviation by a factor."""

    name: str
    shift: float
    scale: float
    goal: float | None = None
    """What ours may be, in multiples of the optimal CUSUM's."""


CHANGE_KINDS = (
    ChangeKind(".5 sd", 0.5, 1.0, 2.0),
    ChangeKind("1 sd", 1.0, 1.0, 2.0),
    ChangeKind("2 sd", 2.0, 1.0, 2.0),
    ChangeKind("3 sd", 3.0, 1.0, 2.0),
    ChangeKind("5 sd", 5.0, 1.0),
    ChangeKind("variance × 2", 0.0, math.sqrt(2.0)),
    ChangeKind("variance × 4", 0.0, 2.0),
    ChangeKind("variance ÷ 4", 0.0, 0.5, 2.0),
)
MAX_DELAY_POINTS = {"5 sd": 6.0}

ScoreFunction = Callable[[FloatArray], FloatArray]


def draw_stable(rng: np.random.Generator, n: int, share: float) -> FloatArray:
    """Draw normal points with outliers."""
    return add_outliers(rng, rng.standard_normal(n), share)


def draw_changed(rng: np.random.Generator, kind: ChangeKind, share: float) -> FloatArray:
    """Draw a stream that changes after ROWS_BEFORE_CHANGE points."""
    y = rng.standard_normal(ROWS_BEFORE_CHANGE + ROWS_AFTER_CHANGE)
    y[ROWS_BEFORE_CHANGE:] = y[ROWS_BEFORE_CHANGE:] * kind.scale + kind.shift
    return add_outliers(rng, y, share)


def add_outliers(rng: np.random.Generator, y: FloatArray, share: float) -> FloatArray:
    """Replace a share of the points by uniform outliers."""
    is_outlier = rng.random(len(y)) < share
    y[is_outlier] = rng.uniform(-OUTLIER_RANGE_SD, OUTLIER_RANGE_SD, int(is_outlier.sum()))
    return y


def compute_cusum(ratios: FloatArray, scores: FloatArray) -> None:
    """Compute Page's statistic of log-likelihood ratios."""
    total = 0.0
    for t in range(len(ratios)):
        total = max(total, 0.0) + ratios[t]
        scores[t] = total


compiled_cusum = jit_entry_point(compute_cusum, releases_gil=True)


def make_optimal_cusum(kind: ChangeKind, share: float) -> ScoreFunction:
    """Return the CUSUM that knows the law before the change, the law after it, and the outliers'."""

    def density(y: FloatArray, shift: float, scale: float) -> FloatArray:
        normal = np.exp(-0.5 * ((y - shift) / scale) ** 2) / (scale * math.sqrt(2 * math.pi))
        return (1.0 - share) * normal + share * (np.abs(y) <= OUTLIER_RANGE_SD) / (2.0 * OUTLIER_RANGE_SD) + 1e-300

    def compute_scores(y: FloatArray) -> FloatArray:
        ratios = np.log(density(y, kind.shift, kind.scale) / density(y, 0.0, 1.0))
        statistics = np.empty(len(y))
        compiled_cusum(ratios, statistics)
        return statistics

    return compute_scores


def make_focus(clip: float = math.inf) -> ScoreFunction:
    """Return FOCuS for an unknown mean and a known variance, on clipped data."""
    with optional_import("FOCuS", "limpet-lab[baselines]"):
        from changepoint_online import Focus, Gaussian

    def compute_scores(y: FloatArray) -> FloatArray:
        detector = Focus(Gaussian())
        statistics = np.empty(len(y))
        for t, value in enumerate(np.clip(y, -clip, clip).tolist()):
            detector.update(value)
            statistics[t] = detector.statistic()
        return statistics

    return compute_scores


def make_adwin(delta: float) -> ScoreFunction:
    """Return 1 where river's ADWIN, checking at every point, detects a change."""
    with optional_import("this benchmark", "limpet-lab[bench]"):
        from river.drift import ADWIN

    def compute_scores(y: FloatArray) -> FloatArray:
        detector, detections = ADWIN(delta=delta, clock=1), np.empty(len(y))
        for t, value in enumerate(y.tolist()):
            detector.update(value)
            detections[t] = float(detector.drift_detected)
        return detections

    return compute_scores


def find_threshold(scores: ScoreFunction, share: float, far: float, blocks: int) -> float:
    """Find what the score passes once in 1/far points: within as many, it stays below with probability 1/e."""
    rng = np.random.default_rng(12345)
    peaks = [np.nanmax(scores(draw_stable(rng, round(1.0 / far), share))) for _ in range(blocks)]
    return float(np.quantile(peaks, math.exp(-1.0)))


def find_adwin_delta(share: float, far: float, points: int) -> float:
    """Find the δ at which ADWIN has this rate of detections, by halving its logarithm."""
    y = draw_stable(np.random.default_rng(12345), points, share)
    low, high = -60.0, 0.0
    for _ in range(8):
        middle = 0.5 * (low + high)
        if make_adwin(math.exp(middle))(y).sum() > far * points:
            high = middle
        else:
            low = middle
    return math.exp(0.5 * (low + high))


def make_detector_score(far: float) -> ScoreFunction:
    """Return the score of the Detector, given only the rate: 1 where there is an alarm."""
    return lambda y: alarms_of_ours(y[:, None], far).change.astype(float)


def measure_median_delay(scores: ScoreFunction, threshold: float, kind: ChangeKind, share: float, runs: int) -> float:
    """Measure the median over the runs without an alarm before the change; ROWS_AFTER_CHANGE without one after it."""
    delays = []
    for seed in range(runs):
        alarms = scores(draw_changed(np.random.default_rng(1000 + seed), kind, share)) > threshold
        if not alarms[:ROWS_BEFORE_CHANGE].any():
            delays.append(
                int(alarms[ROWS_BEFORE_CHANGE:].argmax()) + 1
                if alarms[ROWS_BEFORE_CHANGE:].any()
                else ROWS_AFTER_CHANGE
            )
    return float(np.median(delays)) if delays else math.nan


def make_baselines(share: float, far: float, quick: bool) -> dict[str, tuple[ScoreFunction, float, int]]:
    """Name → score, threshold, runs."""
    n_runs = 10 if quick else 60
    baselines: dict[str, tuple[ScoreFunction, float, int]] = {}
    delta = find_adwin_delta(share, far, 100_000 if quick else 500_000)
    baselines["ADWIN"] = (make_adwin(delta), 0.5, n_runs)
    score_functions: dict[str, tuple[ScoreFunction, int]] = {
        "Page–Hinkley": (lambda y: RiverPageHinkley(delta=0.25, threshold=math.inf).process(y), 200),
        "KSWIN": (lambda y: KSWIN(alpha=0.0, window=300, stat=30).process(y), 40),
    }
    if find_spec("changepoint_online") is not None:  # under the GPL, and so no part of what `bench` installs
        score_functions |= {"FOCuS": (make_focus(), 60), "FOCuS, clipped at the true 3 sd": (make_focus(3.0), 60)}
    for name, (scores, blocks) in score_functions.items():
        threshold = find_threshold(scores, share, far, 20 if quick else blocks)
        baselines[name] = (scores, threshold, n_runs)
    return baselines


def measure_burst_rate(d: int, size: int, far: float, runs: int) -> float:
    """Measure how often a burst of outliers in a stable stream raises a change alarm in 60 points, over 60·far."""
    alarms = 0
    for seed in range(runs):
        rng = np.random.default_rng(50_000 + seed)
        rows = rng.standard_normal((500 + BURST_WINDOW_ROWS, d))
        rows[500 : 500 + size] = rng.uniform(-OUTLIER_RANGE_SD, OUTLIER_RANGE_SD, (size, d))
        alarms += bool(alarms_of_ours(rows, far).change[500:].any())
    return alarms / runs / (BURST_WINDOW_ROWS * far)


def measure_delays(share: float, quick: bool) -> list[Figure]:
    """Measure the Detector, the optimum and the baselines, for every kind of change."""
    figures = []
    runs = 60 if quick else 400
    baselines = make_baselines(share, FALSE_ALARM_RATE, quick)
    for kind in CHANGE_KINDS:
        label = f"{kind.name}, {share:.0%} outliers"
        cusum = make_optimal_cusum(kind, share)
        cusum_delay = measure_median_delay(
            cusum, find_threshold(cusum, share, FALSE_ALARM_RATE, 40 if quick else 400), kind, share, runs
        )
        detector_delay = measure_median_delay(make_detector_score(FALSE_ALARM_RATE), 0.5, kind, share, runs)
        figures.append(Figure(f"{label}: optimal CUSUM", cusum_delay, "points"))
        at_most = kind.goal * cusum_delay if kind.goal else MAX_DELAY_POINTS.get(kind.name)
        figures.append(Figure(f"{label}: ours", detector_delay, "points", at_most))
        baseline_delays = {
            name: measure_median_delay(*settings[:2], kind, share, settings[2]) for name, settings in baselines.items()
        }
        figures += [Figure(f"{label}: {name}", delay, "points") for name, delay in baseline_delays.items()]
        quickest = min(delay for name, delay in baseline_delays.items() if "true" not in name)
        baseline = "the quickest baseline"
        if "FOCuS" not in baseline_delays:
            baseline += " installed (FOCuS is not)"
        figures.append(Figure(f"{label}: ours over {baseline}", detector_delay / quickest, "×", 1.0 if share else None))
    return figures


def measure(quick: bool) -> list[Figure]:
    """Measure delays on clean streams and with 5 % outliers; bursts."""
    figures = [figure for share in (0.0, 0.05) for figure in measure_delays(share, quick)]
    runs = 1000 if quick else 20_000
    for d in (1, 3):
        for size in (0, 1, 2, 3, 4, 6, 8):
            value = measure_burst_rate(d, size, FALSE_ALARM_RATE, runs)
            figures.append(Figure(f"burst of {size}, d={d}", value, "× promised", 2.0))
    return figures
