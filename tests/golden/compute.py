"""Golden digests: what learners, fleets, detectors and Spark compute, bit for bit.

`digests.json` has a digest of every output of a fixed computation. Digests are of bits: a result that differs in the
last bit of one number has another digest. They exist so that a refactoring can show that it has changed no result.

    python tests/golden/compute.py                    # compares, and names what differs
    python tests/golden/compute.py --write            # rewrites the file, but for what Spark computes
    python tests/golden/compute.py --write --only X   # adds or rewrites one case
    python tests/golden/compute.py --write --spark    # rewrites all of the file; needs pyspark and Java

A change of results on purpose is made with `--write`, and the commit and the changelog name what has changed and why.

The names in the file describe what is computed, and are not those of classes or modules: these may be renamed.
Every entry has a digest of its input as well. Where that one differs, the generator of random numbers or a function of
numpy gives another stream than it did when the file was written, and the other digests of the entry cannot be compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import astuple
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

if __name__ == "__main__":
    ROOT = Path(__file__).parents[2]
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "docs" / "how-to")]

import limpet as lp
from contract.cases import CASES, Case, gaussian, shifting, with_missing
from limpet import metrics, tradeoff
from limpet.drift import ADWIN, KSWIN, DriftDetector, PageHinkley
from limpet.exceptions import LimpetWarning
from limpet.tradeoff import Constants, Optimum

FILE = Path(__file__).with_name("digests.json")
SEED, N_ROWS = 20240607, 2000

Digests = dict[str, str]
Stream = Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]


# Digests


def digest_strings(strings: Iterable[str]) -> str:
    return sha256("\n".join(strings).encode()).hexdigest()[:32]


def digest_floats(*arrays: npt.ArrayLike) -> str:
    """Return a digest of bits and shapes; all NaNs are equal."""
    result = sha256()
    for values in arrays:
        array = np.array(values, dtype=float, order="C")
        array[np.isnan(array)] = np.nan
        result.update(repr(array.shape).encode())
        result.update(np.ascontiguousarray(array).tobytes())
    return result.hexdigest()[:32]


def digest_integers(array: npt.ArrayLike) -> str:
    return sha256(np.ascontiguousarray(array, dtype=np.int64).tobytes()).hexdigest()[:32]


def format_alarm(
    kind: str,
    row: int,
    onset: int,
    size: float,
    direction: str,
    variables: Iterable[str | int],
    p_value: float | None,
    key: str | int | None = None,
) -> str:
    names = tuple(name if isinstance(name, str) else int(name) for name in variables)
    p = None if p_value is None else float(p_value)
    return repr((kind, int(row), int(onset), float(size), direction, names, p, key))


def digest_alarms(alarms: Iterable[lp.Alarm]) -> str:
    return digest_strings(
        format_alarm(
            alarm.kind,
            alarm.row,
            alarm.onset,
            alarm.size,
            alarm.direction,
            alarm.variables,
            alarm.p_value,
            alarm.key,
        )
        for alarm in alarms
    )


def compute_trace_digests(trace: lp.Trace) -> Digests:
    return {
        "score": digest_floats(trace.score),
        "change score": digest_floats(trace.change_score),
        "p-value": digest_floats(trace.p_value),
        "outcomes": digest_integers(trace.outcomes),
        "alarms": digest_alarms(trace.alarms),
    }


# Learners


def compute_learner_digests(case: Case) -> Digests:
    stream = case.stream(np.random.default_rng(SEED), N_ROWS)
    input_digest = digest_floats(*stream)
    learner = case.learner()
    trace = learner.process(*stream)
    return {"input": input_digest, **compute_trace_digests(trace), "state": digest_floats(learner.state)}


LEARNERS: dict[str, Case] = {case.name: case for case in CASES}


# Fleets

FLEETS: dict[str, tuple[Callable[[], lp.StochasticApproximation], Stream, bool]] = {
    "detector, integer keys": (lambda: lp.Detector(), shifting(1), False),
    "detector, text keys": (lambda: lp.Detector(), shifting(1), True),
    "detector, compact": (lambda: lp.Detector(memory="compact"), shifting(1), False),
    "detector, K=2": (lambda: lp.Detector(2), shifting(1, groups=2), True),
    "plain, K=2, d=3, gaps, integer keys": (lambda: lp.SRA(2, gamma=6.0, rho=0.02), with_missing, False),
    "plain, K=2, d=3, gaps, text keys": (lambda: lp.SRA(2, gamma=6.0, rho=0.02), with_missing, True),
    "without threshold, K=2": (lambda: lp.SEM(2, rho=0.02), gaussian(1), False),
}
"""A learner, the stream of each key, and whether keys are strings."""

N_KEYS, N_POINTS = 40, 12_000
CALL_SIZES = (1, 1, 3, 40, 500, 17, 2000, 64, 1, 5000)  # points; the last call has the others


def make_keyed_points(stream: Stream) -> tuple[npt.NDArray[np.int64], np.ndarray]:
    """Return the key of each point, with very unequal counts, and the points, (n, d)."""
    rng = np.random.default_rng(SEED)
    shares = 1.0 / np.arange(1.0, N_KEYS + 1.0)
    owners = rng.choice(N_KEYS, size=N_POINTS, p=shares / shares.sum())
    parts = [stream(rng, int(np.count_nonzero(owners == owner)))[0] for owner in range(N_KEYS)]
    points = np.empty((N_POINTS, parts[0].shape[1]))
    for owner, part in enumerate(parts):
        points[owners == owner] = part
    points[rng.random(N_POINTS) < 0.002] = np.nan  # these are invalid
    points[rng.random(N_POINTS) < 0.002, 0] = np.inf
    return owners, points


def compute_fleet_digests(name: str) -> Digests:
    model, stream, strings = FLEETS[name]
    owners, points = make_keyed_points(stream)
    input_digest = digest_floats(owners, points)
    keys = [f"sensor {owner:02}" for owner in owners.tolist()] if strings else owners * 7919 - 1000
    fleet = lp.Fleet(model())
    edges = [0, *np.cumsum(CALL_SIZES).tolist(), N_POINTS]
    calls = [compute_trace_digests(fleet.update(keys[begin:end], points[begin:end])) for begin, end in pairwise(edges)]
    results = {output: digest_strings(call[output] for call in calls) for output in calls[0]}
    sorted_keys = sorted(fleet.keys())
    assert len(sorted_keys) == N_KEYS
    states = digest_floats(*(fleet[key].state for key in sorted_keys))
    return {"input": input_digest, **results, "states": states}


# Other computations


def compute_table_digests() -> Digests:
    """A fleet of detectors processes a dataframe whose rows are not sorted by time."""
    import pandas as pd

    owners, points = make_keyed_points(shifting(2, nan_share=0.1))
    owners, points = owners[:5000], points[:5000]
    times = np.random.default_rng(SEED).permutation(len(owners))
    input_digest = digest_floats(owners, points, times)
    names = [f"sensor {owner:02}" for owner in owners.tolist()]
    table = pd.DataFrame({"sensor": names, "a": points[:, 0], "b": points[:, 1], "when": times})
    fleet = lp.Fleet(lp.Detector(far=1e-2))
    result = fleet.process(table, key="sensor", values=["a", "b"], time="when")
    columns = ["when", "score", "rejected", "invalid", "change_score", "p_value", "anomaly", "change"]
    results = [digest_floats(result[column].to_numpy()) for column in columns]
    states = digest_floats(*(fleet[key].state for key in sorted(fleet.keys())))
    return {"input": input_digest, "result": digest_strings([*results, digest_alarms(fleet.alarms), states])}


def compute_tradeoff_digests() -> Digests:
    """Each function of the calculator, and the optimum of each kind, to eight digits.

    The last bits of numpy's logarithm and power differ between processors; nothing that is learned depends on these.
    """
    unusual = Constants(
        c0=0.3, c1=0.7, d0=0.4, d1=2.5, L=3.0, sigma0=1.5, sigma1=0.6, alpha=0.8, U=4.0, dim=3, M=2.0, V=5.0, n=40
    )
    tied = Constants.from_beta(beta=0.1, M=5.0)
    interior = Constants(c1=0.01, L=2000.0, M=5.0, U=20.0, V=1.0, n=10_000)
    gammas, steps = np.array([0.05, 0.9, 2.0, 5.5, 6.9, 7.0, 30.0]), [0.1, 0.05, 0.025]
    optima: list[Optimum] = [
        tradeoff.optimum(c) for c in (unusual, tied, interior, Constants(n=1), Constants(alpha=1.0))
    ]
    tables: list[npt.ArrayLike] = [
        tradeoff.step_size(gammas, 0.1, 5.0),
        tradeoff.threshold(0.01, 0.1, 5.0),
        tradeoff.beta_from(1.0, 2000.0, 0.99),
        tradeoff.tail(gammas, 2.0),
        tradeoff.bound(gammas, 0.02, unusual),
        tradeoff.bound(gammas, steps, unusual),
        tradeoff.bound_without_threshold(0.02, unusual),
        tradeoff.gain(gammas, 0.02, unusual),
        tradeoff.best_step(gammas, unusual),
        tradeoff.d_bound_d_gamma(gammas, 0.02, unusual),
        tradeoff.d_bound_d_rho(gammas, 0.02, unusual),
        tradeoff.admissible_gamma(unusual),
        tradeoff.admissible_step(gammas, tied),
        tradeoff.karimi_bound(steps, unusual),
        tradeoff.karimi_step_limit(unusual),
        *((best.gamma, best.rho, best.bound) for best in optima),
    ]
    results = [*(f"{value:.8g}" for table in tables for value in np.ravel(table)), *(best.kind for best in optima)]
    input_digest = digest_strings(repr(astuple(constants)) for constants in (unusual, tied, interior))
    return {"input": input_digest, "result": digest_strings(results)}


def level_shifts() -> npt.NDArray[np.float64]:
    """Noise whose level jumps now and then, with a stretch of equal numbers and a missing value."""
    rng = np.random.default_rng(SEED)
    points = rng.normal(np.repeat(rng.normal(0.0, 2.0, 5), N_ROWS // 5))
    points[N_ROWS // 2 : N_ROWS // 2 + 150] = 1.0
    points[77] = np.nan
    return points


def compute_detector_digests(detector: DriftDetector) -> Digests:
    points = level_shifts()
    return {"input": digest_floats(points), "result": digest_floats(detector.process(points))}


def compute_benefit_digests() -> Digests:
    """The area under the curve of benefit, of a score with ties and NaN."""
    score = np.abs(level_shifts()).round(1)
    changes = [N_ROWS // 5 * i for i in range(1, 5)]
    area = metrics.benefit_auc(score, changes, 50.0)
    part = metrics.benefit_auc(score, changes, 20.0, start=100, stop=1500)
    return {"input": digest_floats(score), "result": digest_floats(area, part)}


OTHER_COMPUTATIONS: dict[str, Callable[[], Digests]] = {
    "fleet, table": compute_table_digests,
    "trade-off calculator": compute_tradeoff_digests,
    "adaptive windows": lambda: compute_detector_digests(ADWIN(0.1)),
    "Kolmogorov–Smirnov windows": lambda: compute_detector_digests(KSWIN(0.005, 60, 20, seed=3)),
    "Page–Hinkley": lambda: compute_detector_digests(PageHinkley(0.3)),
    "area of benefit": compute_benefit_digests,
}


# Spark

SPARK: dict[str, Callable[[], lp.StochasticApproximation]] = {
    "detector, compact": lambda: lp.Detector(memory="compact"),
    "plain": lambda: lp.SRA(gamma=4.0, rho=0.01),
}

COLUMNS_BY_CASE = {
    "detector, compact": ["score", "rejected", "invalid", "change_score", "p_value", "anomaly", "change"],
    "plain": ["score", "rejected", "invalid"],
}


def digest_column(column: Any) -> str:
    """Return a digest of a column of Arrow: its nulls and its numbers."""
    import pyarrow as pa

    numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy()
    return digest_strings([digest_integers(column.is_null().to_numpy()), digest_floats(numbers)])


def compute_spark_digests(session: Any, name: str) -> Digests:
    """Return digests of the scores of a small batch DataFrame, sorted by key and time."""
    import pyarrow as pa

    from helpers.spark import make_table
    from limpet import spark as ls

    table = make_table(n_keys=10, n=5000, seed=SEED)
    values = [digest_column(table[column]) for column in ("a", "b")]
    input_digest = digest_strings(
        [*table["sensor"].to_pylist(), *map(repr, table["ts"].cast(pa.int64()).to_pylist()), *values]
    )
    scored = ls.score(session.createDataFrame(table), "sensor", ["a", "b"], "ts", SPARK[name]())
    result = scored.toArrow().sort_by([("sensor", "ascending"), ("ts", "ascending")])
    digests = {"input": input_digest} | {column: digest_column(result[column]) for column in COLUMNS_BY_CASE[name]}
    if "alarms" in result.column_names:
        lists = [raised or [] for raised in result["alarms"].to_pylist()]
        digests["alarms"] = digest_strings(
            repr((row, format_alarm(**{entry: value for entry, value in alarm.items() if entry != "message"})))
            for row, raised in enumerate(lists)
            for alarm in raised
        )
    return digests


# The file


def read_stored() -> dict[str, dict[str, Digests]]:
    """Return the digests in the file by group, name and output."""
    digests: dict[str, dict[str, Digests]] = json.loads(FILE.read_text(encoding="utf-8"))
    return digests


def compute_all(only: str | None = None) -> dict[str, dict[str, Digests]]:
    """Compute all digests except those of Spark, or those of one name."""
    return {
        "learners": {name: compute_learner_digests(LEARNERS[name]) for name in LEARNERS if only in (None, name)},
        "fleets": {name: compute_fleet_digests(name) for name in FLEETS if only in (None, name)},
        "others": {name: OTHER_COMPUTATIONS[name]() for name in OTHER_COMPUTATIONS if only in (None, name)},
    }


def compute_all_by_spark() -> dict[str, dict[str, Digests]]:
    from limpet.spark import session

    running = session(2, spark_driver_memory="2g")
    try:
        return {"spark": {name: compute_spark_digests(running, name) for name in SPARK}}
    finally:
        running.stop()


def describe_difference(expected: Digests | None, got: Digests) -> str | None:
    """Describe the differences; return None if all digests are equal."""
    if expected is None:
        return "no digests are stored; --write adds them"
    if expected["input"] != got["input"]:
        return "the input differs: the random generator's stream differs, not the learner"
    differing = [output for output in sorted(expected.keys() | got.keys()) if expected.get(output) != got.get(output)]
    return f"the bits differ of: {', '.join(differing)}" if differing else None


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the golden digests with what is computed now.")
    parser.add_argument("--write", action="store_true", help="rewrite the file instead")
    parser.add_argument("--spark", action="store_true", help="also what Spark computes")
    parser.add_argument("--only", metavar="NAME", help="only the digests of this case")
    flags = parser.parse_args()
    warnings.simplefilter("ignore", LimpetWarning)
    current, stored = compute_all(flags.only), read_stored() if FILE.exists() else {}
    if flags.only is not None and not any(current.values()):
        parser.error(f"--only: must be the name of a case, got {flags.only!r}.")
    if flags.spark:
        current |= compute_all_by_spark()
    n_different = 0
    for group, entries in current.items():
        for name, digests in entries.items():
            message = describe_difference(stored.get(group, {}).get(name), digests)
            if message is not None:
                n_different += 1
                print(f"{group}: {name}: {message}")
    print(f"{sum(map(len, current.values()))} computed, {n_different} not as stored")
    if flags.only is not None:
        current = {group: stored.get(group, {}) | entries for group, entries in current.items()}
    if flags.write:
        FILE.write_text(json.dumps(stored | current, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"written to {FILE.relative_to(FILE.parents[2])}")
        return 0
    return int(n_different > 0)


if __name__ == "__main__":
    sys.exit(main())
